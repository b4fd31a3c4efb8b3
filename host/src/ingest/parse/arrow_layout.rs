//! Whether what a batch of an Arrow IPC stream claims can be true: arrays within the bytes of the message, large enough for
//! their values and of whole values. Arrow's reader takes that for granted in places, and would panic.

use arrow_ipc::{Buffer, FieldNode, RecordBatch as BatchMessage};
use arrow_schema::{DataType, Schema};

/// Checks the arrays of a batch with so many bytes. `rows_max` bounds those that take no bytes.
///
/// # Errors
/// What is wrong.
pub(super) fn check_batch(
    schema: &Schema,
    batch: &BatchMessage<'_>,
    bytes: usize,
    rows_max: u64,
) -> Result<(), String> {
    let nodes = batch.nodes().into_iter().flatten();
    let buffers = batch.buffers().into_iter().flatten();
    let mut claims = Claims { nodes, buffers, bytes, rows_max };
    let rows = u64::try_from(batch.length()).map_err(|_| "a batch has a negative length".to_owned())?;
    for field in schema.fields() {
        let claimed = claims.array(field.data_type()).map_err(|claim| format!("column `{}`: {claim}", field.name()))?;
        if claimed != rows {
            return Err(format!("column `{}` has {claimed} values in a batch of {rows} rows", field.name()));
        }
    }
    if claims.nodes.next().is_some() || claims.buffers.next().is_some() {
        return Err("a batch has more arrays than its schema".to_owned());
    }
    Ok(())
}

/// The claims that were not looked at yet, in the order of the schema.
struct Claims<N, B> {
    nodes: N,
    buffers: B,
    bytes: usize,
    rows_max: u64,
}

impl<'a, N: Iterator<Item = &'a FieldNode>, B: Iterator<Item = &'a Buffer>> Claims<N, B> {
    /// Checks an array and those in it; gives its length.
    fn array(&mut self, data_type: &DataType) -> Result<u64, String> {
        let length = self.node()?;
        match data_type {
            DataType::Boolean => self.buffer(length.div_ceil(8), 1)?,
            DataType::Utf8 | DataType::Binary => self.variable(length, 4)?,
            DataType::LargeUtf8 | DataType::LargeBinary => self.variable(length, 8)?,
            DataType::FixedSizeBinary(width) => match u64::try_from(*width) {
                Ok(width) if width > 0 => self.buffer(length.saturating_mul(width), width)?,
                _ => return Err("it has values without bytes".to_owned()),
            },
            DataType::List(element) => self.list(length, 4, element.data_type())?,
            DataType::LargeList(element) => self.list(length, 8, element.data_type())?,
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => self.list(length, 4, entries.data_type())?,
                _ => return Err("the entries of a map have a key and a value".to_owned()),
            },
            DataType::Struct(fields) => {
                for field in fields {
                    if self.array(field.data_type())? != length {
                        return Err("a struct has members of another length".to_owned());
                    }
                }
            }
            other => match other.primitive_width() {
                Some(width) => self.buffer(length.saturating_mul(width as u64), width as u64)?,
                None => return Err(format!("{other} is not taken; send plain columns, e.g. Utf8 or Int64")),
            },
        }
        Ok(length)
    }

    /// Length and validity of an array.
    fn node(&mut self) -> Result<u64, String> {
        let node = self.nodes.next().ok_or("a batch has fewer arrays than its schema")?;
        let (Ok(length), Ok(nulls)) = (u64::try_from(node.length()), u64::try_from(node.null_count())) else {
            return Err("it claims a negative length".to_owned());
        };
        // The smallest value is a bit; structs without members have no bytes at all.
        if nulls > length || length > (self.bytes as u64).saturating_mul(8).saturating_add(self.rows_max) {
            return Err("it claims more values than its bytes can hold".to_owned());
        }
        self.buffer(if nulls > 0 { length.div_ceil(8) } else { 0 }, 1)?;
        Ok(length)
    }

    fn list(&mut self, length: u64, offset_bytes: u64, element: &DataType) -> Result<(), String> {
        self.offsets(length, offset_bytes)?;
        self.array(element).map(drop)
    }

    fn variable(&mut self, length: u64, offset_bytes: u64) -> Result<(), String> {
        self.offsets(length, offset_bytes)?;
        self.buffer(0, 1)
    }

    /// An array without values may have no offsets.
    fn offsets(&mut self, length: u64, offset_bytes: u64) -> Result<(), String> {
        let offsets = if length == 0 { 0 } else { length + 1 };
        self.buffer(offsets.saturating_mul(offset_bytes), offset_bytes)
    }

    /// A buffer of at least so many bytes, and of whole values.
    fn buffer(&mut self, bytes_min: u64, value_bytes: u64) -> Result<(), String> {
        let buffer = self.buffers.next().ok_or("a batch has fewer buffers than its schema")?;
        let (Ok(offset), Ok(bytes)) = (u64::try_from(buffer.offset()), u64::try_from(buffer.length())) else {
            return Err("it claims a negative length".to_owned());
        };
        if offset.checked_add(bytes).is_none_or(|end| end > self.bytes as u64) {
            return Err("it claims bytes outside of its message".to_owned());
        }
        if bytes < bytes_min || !bytes.is_multiple_of(value_bytes) {
            return Err("it claims other bytes than its values take".to_owned());
        }
        Ok(())
    }
}
