//! Where an entry stands in the stream.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::ResultsError;

/// Where an entry stands in the stream of a query's results. Later entries have greater positions.
///
/// Its text, `<generation>-<batch>-<index>`, is made of decimal numbers without signs and leading zeros, e.g. `0-41-7`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Position {
    /// Of the query; each rollback begins the next.
    pub generation: u32,
    /// Id of the batch. Of a rollback: the last batch before it.
    pub batch: u64,
    /// Of the row in its batch, from 0.
    pub index: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.generation, self.batch, self.index)
    }
}

impl FromStr for Position {
    type Err = ResultsError;

    fn from_str(text: &str) -> Result<Self, ResultsError> {
        let mut parts = text.split('-');
        let mut number = || parts.next().and_then(number);
        let position = (number(), number(), number());
        match (position, parts.next()) {
            ((Some(generation), Some(batch), Some(index)), None) => match u32::try_from(generation) {
                Ok(generation) => Ok(Self { generation, batch, index }),
                Err(_) => Err(ResultsError::PositionInvalid),
            },
            _ => Err(ResultsError::PositionInvalid),
        }
    }
}

/// Only the text that [`fmt::Display`] writes, so that equal positions have equal texts.
fn number(text: &str) -> Option<u64> {
    let is_canonical = text.bytes().all(|digit| digit.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    is_canonical.then(|| text.parse().ok())?
}

impl TryFrom<String> for Position {
    type Error = ResultsError;

    fn try_from(text: String) -> Result<Self, ResultsError> {
        text.parse()
    }
}

impl From<Position> for String {
    fn from(position: Position) -> Self {
        position.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_ordered_as_the_stream_is() {
        let texts = ["0-1-0", "0-1-1", "0-3-0", "1-3-0", "1-4-0", "2-4-0", "10-2-0"];
        let positions: Vec<Position> = texts.iter().map(|text| text.parse().unwrap()).collect();

        assert!(positions.is_sorted());
        assert_eq!(positions.iter().map(Position::to_string).collect::<Vec<_>>(), texts);
    }

    #[test]
    fn only_the_text_that_is_written_is_read() {
        let others = [
            "",
            "0",
            "0-1",
            "0-1-",
            "0-1-2-3",
            "00-1-2",
            "0-+1-2",
            "0-1-2 ",
            "-0-1-2",
            "4294967296-1-2",
            "0-18446744073709551616-0",
        ];
        for text in others {
            assert_eq!(text.parse::<Position>().unwrap_err().code(), "RESULTS_POSITION_INVALID", "{text:?}");
        }
    }
}
