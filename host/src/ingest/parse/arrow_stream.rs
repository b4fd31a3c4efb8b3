//! The batches of an Arrow IPC stream that a stranger wrote. What could become much larger in memory than it is in the body is
//! refused: compression, dictionaries, runs, views, and arrays that claim more values than their bytes could hold.

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::StreamDecoder;
use arrow_ipc::{MessageHeader, root_as_message};
use arrow_schema::ArrowError;

use super::arrow_layout::check_batch;
use crate::ingest::ParseError;

/// In front of the length of a message.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// The batches of the stream, one after the other.
pub(super) fn batches(
    body: &[u8],
    rows_max: u64,
) -> Result<impl Iterator<Item = Result<RecordBatch, ParseError>> + use<>, ParseError> {
    check_messages(body, rows_max)?;
    let mut decoder = StreamDecoder::new();
    let mut rest = Buffer::from(body);
    let mut ended = false;
    Ok(std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let next = next_batch(&mut decoder, &mut rest);
        ended = !matches!(next, Ok(Some(_)));
        next.transpose()
    }))
}

fn next_batch(decoder: &mut StreamDecoder, rest: &mut Buffer) -> Result<Option<RecordBatch>, ParseError> {
    match decoder.decode(rest).map_err(|error| refused(&error))? {
        Some(batch) => Ok(Some(batch)),
        None => {
            decoder.finish().map_err(|error| refused(&error))?;
            if decoder.schema().is_none() { Err(body_error("it has no schema")) } else { Ok(None) }
        }
    }
}

/// Looks at every message before any is decoded.
fn check_messages(body: &[u8], rows_max: u64) -> Result<(), ParseError> {
    let (mut rest, mut schema) = (body, None);
    while let Some((message, after)) = split_message(rest)? {
        let message = root_as_message(message).map_err(|error| body_error(&error.to_string()))?;
        let length = usize::try_from(message.bodyLength()).ok();
        let Some((data, after)) = length.and_then(|length| after.split_at_checked(length)) else {
            return Err(body_error("it ends within a message"));
        };
        if message.header_type() == MessageHeader::DictionaryBatch {
            return Err(body_error("it has a dictionary; send plain columns"));
        }
        match (message.header_as_schema(), message.header_as_record_batch(), &schema) {
            (Some(read), _, None) => {
                schema = Some(arrow_ipc::convert::try_fb_to_schema(read).map_err(|error| refused(&error))?);
            }
            (_, Some(batch), Some(schema)) => {
                if batch.compression().is_some() {
                    return Err(body_error("it is compressed; send it without compression"));
                }
                if u64::try_from(batch.length()).is_ok_and(|rows| rows > rows_max) {
                    return Err(ParseError::TooManyRows { rows_max });
                }
                check_batch(schema, &batch, data.len(), rows_max).map_err(|reason| body_error(&reason))?;
            }
            _ => return Err(body_error("it must have one schema, and then only batches")),
        }
        rest = after;
    }
    Ok(())
}

/// A message's own bytes, and what is behind them.
type Split<'a> = (&'a [u8], &'a [u8]);

/// Takes the next message off. None: the stream has ended.
fn split_message(rest: &[u8]) -> Result<Option<Split<'_>>, ParseError> {
    if rest.is_empty() {
        return Ok(None);
    }
    let rest = rest.strip_prefix(&CONTINUATION).unwrap_or(rest);
    let ends = || body_error("it ends within a message");
    let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(ends)?;
    match u32::from_le_bytes(*length) as usize {
        0 if rest.is_empty() => Ok(None),
        0 => Err(body_error("it has bytes behind its end")),
        length => rest.split_at_checked(length).map(Some).ok_or_else(ends),
    }
}

fn refused(error: &ArrowError) -> ParseError {
    body_error(&error.to_string())
}

fn body_error(reason: &str) -> ParseError {
    ParseError::Body { reason: reason.to_owned() }
}
