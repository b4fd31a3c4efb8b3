//! Reads DDL: a recursive descent bounded by length, nesting and number of columns, since guests send schemas too.

use super::super::error::SchemaError;
use super::super::schema::{COLUMNS_MAX, DataType, Field, NESTING_MAX, Schema};
use super::token::{Spanned, Token, Tokens};

/// Longest text that is read: 1,024 columns with names of 60 characters.
const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Precision of `DECIMAL` without parentheses, as in Spark.
const DECIMAL_PRECISION_DEFAULT: u8 = 10;

/// Names of Spark types that are not supported, and what to use instead.
const UNSUPPORTED: [(&str, &str); 14] = [
    ("TIMESTAMP_NTZ", "use TIMESTAMP, which is an instant in UTC"),
    ("TIME", "use BIGINT with microseconds of the day"),
    ("INTERVAL", "use BIGINT with a unit in the column's name"),
    ("CHAR", "use STRING"),
    ("CHARACTER", "use STRING"),
    ("VARCHAR", "use STRING"),
    ("VARIANT", "use STRING with JSON in it, or a STRUCT"),
    ("OBJECT", "use STRUCT or BINARY"),
    ("VOID", "name a type; every column may be NULL"),
    ("NULL", "name a type; every column may be NULL"),
    ("GEOMETRY", "use BINARY"),
    ("GEOGRAPHY", "use BINARY"),
    ("UUID", "use STRING or BINARY"),
    ("JSON", "use STRING"),
];

/// Reads a list of columns, also when it is wrapped in `STRUCT<...>`.
pub(in super::super) fn parse(text: &str) -> Result<Schema, SchemaError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(SchemaError::TextTooLong { bytes: text.len(), bytes_max: TEXT_BYTES_MAX });
    }
    let mut tokens = Tokens::new(text);
    let (now, next) = (tokens.next()?, tokens.next()?);
    let mut parser = Parser { tokens, now, next };
    let wrapped = parser.at_keyword("STRUCT") && parser.next.token == Token::Symbol('<');
    let schema = if wrapped {
        parser.advance()?;
        parser.advance()?;
        let schema = parser.columns(Token::Symbol('>'), NESTING_MAX)?;
        parser.expect('>')?;
        schema
    } else {
        parser.columns(Token::End, NESTING_MAX)?
    };
    match parser.now.token {
        Token::End => Ok(schema),
        _ => Err(parser.unexpected("`,` or the end")),
    }
}

struct Parser<'t> {
    tokens: Tokens<'t>,
    now: Spanned<'t>,
    next: Spanned<'t>,
}

impl<'t> Parser<'t> {
    /// Columns up to `end`, which is not consumed.
    fn columns(&mut self, end: Token<'t>, nesting_left: usize) -> Result<Schema, SchemaError> {
        let mut fields = Vec::new();
        if self.now.token != end {
            loop {
                fields.push(self.column(nesting_left)?);
                if fields.len() > COLUMNS_MAX {
                    return Err(self.error(format!("more than {COLUMNS_MAX} columns in one row")));
                }
                if self.now.token != Token::Symbol(',') {
                    break;
                }
                self.advance()?;
            }
        }
        Schema::new(fields)
    }

    /// `name[:] type [NOT NULL] [COMMENT 'text']`
    fn column(&mut self, nesting_left: usize) -> Result<Field, SchemaError> {
        let name = match &self.now.token {
            Token::Word(word) => (*word).to_owned(),
            Token::Quoted(name) => name.clone(),
            _ => {
                return Err(self.unexpected("a column name (in back-quotes if it is not letters, digits and `_`)"));
            }
        };
        self.advance()?;
        if self.now.token == Token::Symbol(':') {
            self.advance()?;
        }
        let data_type = self.data_type(nesting_left)?;
        let mut nullable = true;
        if self.at_keyword("NOT") {
            self.advance()?;
            if !self.at_keyword("NULL") {
                return Err(self.unexpected("NULL after NOT"));
            }
            self.advance()?;
            nullable = false;
        }
        if self.at_keyword("COMMENT") {
            self.advance()?;
            if self.now.token != Token::Text {
                return Err(self.unexpected("a quoted text after COMMENT"));
            }
            self.advance()?;
        }
        Ok(Field { name, data_type, nullable })
    }

    fn data_type(&mut self, nesting_left: usize) -> Result<DataType, SchemaError> {
        let Token::Word(word) = self.now.token else {
            return Err(self.unexpected("a type"));
        };
        let name = word.to_ascii_uppercase();
        let scalar = match name.as_str() {
            "BOOLEAN" => DataType::Boolean,
            "TINYINT" | "BYTE" => DataType::TinyInt,
            "SMALLINT" | "SHORT" => DataType::SmallInt,
            "INT" | "INTEGER" => DataType::Int,
            "BIGINT" | "LONG" => DataType::BigInt,
            "FLOAT" | "REAL" => DataType::Float,
            "DOUBLE" => DataType::Double,
            "STRING" => DataType::String,
            "BINARY" => DataType::Binary,
            "DATE" => DataType::Date,
            "TIMESTAMP" | "TIMESTAMP_LTZ" => DataType::Timestamp,
            "DECIMAL" | "DEC" | "NUMERIC" => return self.decimal(),
            "ARRAY" | "MAP" | "STRUCT" => return self.nested(&name, nesting_left),
            _ => return Err(self.no_such_type(&name)),
        };
        self.advance()?;
        Ok(scalar)
    }

    /// `DECIMAL`, `DECIMAL(p)` or `DECIMAL(p, s)`
    fn decimal(&mut self) -> Result<DataType, SchemaError> {
        self.advance()?;
        let (mut precision, mut scale) = (DECIMAL_PRECISION_DEFAULT, 0);
        if self.now.token == Token::Symbol('(') {
            self.advance()?;
            precision = self.number()?;
            if self.now.token == Token::Symbol(',') {
                self.advance()?;
                scale = self.number()?;
            }
            self.expect(')')?;
        }
        Ok(DataType::Decimal { precision, scale })
    }

    /// `ARRAY<type>`, `MAP<type, type>` or `STRUCT<columns>`
    fn nested(&mut self, name: &str, nesting_left: usize) -> Result<DataType, SchemaError> {
        let Some(left) = nesting_left.checked_sub(1) else {
            return Err(self.error(format!("ARRAY, MAP and STRUCT nest more than {NESTING_MAX} deep")));
        };
        self.advance()?;
        self.expect('<')?;
        let data_type = match name {
            "ARRAY" => DataType::Array(Box::new(self.data_type(left)?)),
            "MAP" => {
                let key = self.data_type(left)?;
                self.expect(',')?;
                DataType::Map(Box::new(key), Box::new(self.data_type(left)?))
            }
            _ => DataType::Struct(self.columns(Token::Symbol('>'), left)?),
        };
        self.expect('>')?;
        Ok(data_type)
    }

    fn number(&mut self) -> Result<u8, SchemaError> {
        match self.now.token {
            Token::Word(word) if word.bytes().all(|b| b.is_ascii_digit()) => {
                let Ok(number) = word.parse() else {
                    return Err(self.error("the number is too large"));
                };
                self.advance()?;
                Ok(number)
            }
            _ => Err(self.unexpected("a number")),
        }
    }

    fn expect(&mut self, symbol: char) -> Result<(), SchemaError> {
        if self.now.token == Token::Symbol(symbol) {
            self.advance()
        } else {
            Err(self.unexpected(&format!("`{symbol}`")))
        }
    }

    fn at_keyword(&self, keyword: &str) -> bool {
        matches!(self.now.token, Token::Word(word) if word.eq_ignore_ascii_case(keyword))
    }

    fn advance(&mut self) -> Result<(), SchemaError> {
        let after = self.tokens.next()?;
        self.now = std::mem::replace(&mut self.next, after);
        Ok(())
    }

    fn error(&self, problem: impl Into<String>) -> SchemaError {
        self.tokens.error(self.now.at, problem)
    }

    fn unexpected(&self, expected: &str) -> SchemaError {
        let found = match &self.now.token {
            Token::Word(word) => format!("`{}`", shortened(word)),
            Token::Quoted(name) => format!("the name `{}`", shortened(name)),
            Token::Text => "a quoted text".to_owned(),
            Token::Symbol(c) => format!("`{}`", c.escape_debug()),
            Token::End => "the end".to_owned(),
        };
        self.error(format!("expected {expected}, found {found}"))
    }

    fn no_such_type(&self, name: &str) -> SchemaError {
        match UNSUPPORTED.iter().find(|(unsupported, _)| *unsupported == name) {
            Some((_, instead)) => SchemaError::UnsupportedType {
                position: self.tokens.position(self.now.at),
                data_type: name.to_owned(),
                instead,
            },
            None => self.error(format!(
                "there is no type {}; there are BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, DECIMAL, STRING, BINARY, \
                 DATE, TIMESTAMP, ARRAY, MAP and STRUCT",
                shortened(name)
            )),
        }
    }
}

/// Enough of a word to recognise it.
fn shortened(word: &str) -> String {
    const CHARS_MAX: usize = 64;
    match word.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}...", word.get(..end).unwrap_or_default()),
        None => word.to_owned(),
    }
}
