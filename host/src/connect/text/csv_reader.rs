//! CSV (RFC 4180) into Arrow batches: fields found by the header's names or by position.
//!
//! An unquoted field that is empty, or the null value of the settings, is NULL; a quoted one never is, so `""` is the
//! empty string. A quote within an unquoted field stands for itself. Spaces belong to the field.

use std::borrow::Cow;

use arrow_schema::Fields;

use super::decoder::is_blank;
use super::scalar::push_text;
use super::table::{RowFault, Table};

/// How the fields of a CSV file are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvDialect {
    /// Between the fields.
    pub delimiter: u8,
    /// An unquoted field with this text is NULL, as is an empty one.
    pub null_value: Option<String>,
    /// Where column names come from.
    pub header: CsvHeader,
}

impl Default for CsvDialect {
    fn default() -> Self {
        Self { delimiter: b',', null_value: None, header: CsvHeader::FirstRow }
    }
}

impl CsvDialect {
    /// Whether a NULL is written as nothing that can be seen.
    pub(crate) fn null_is_blank(&self) -> bool {
        self.null_value.as_deref().is_none_or(|text| is_blank(text.as_bytes()))
    }
}

/// Where the column names of CSV come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CsvHeader {
    /// The first row names the columns.
    FirstRow,
    /// There is no such row: columns stand in the order of the schema.
    None,
}

/// Reads rows with a known order of fields into the columns of a table.
#[derive(Debug)]
pub(crate) struct CsvReader {
    dialect: CsvDialect,
    /// The column of each field; None: not wanted.
    columns: Vec<Option<usize>>,
}

impl CsvReader {
    /// What stands between the fields.
    pub(crate) fn delimiter(&self) -> u8 {
        self.dialect.delimiter
    }

    /// For rows below a header.
    ///
    /// # Errors
    /// What is wrong with the header.
    pub(crate) fn below_header(dialect: &CsvDialect, header: &[u8], wanted: &Fields) -> Result<Self, String> {
        let names = header_names(dialect, header)?;
        let columns = names.iter().map(|name| position(wanted, name)).collect::<Vec<_>>();
        for (index, field) in wanted.iter().enumerate() {
            match columns.iter().filter(|column| **column == Some(index)).count() {
                1 => {}
                0 => {
                    return Err(format!("there is no column `{}`; the header has: {}", field.name(), names.join(", ")));
                }
                _ => return Err(format!("the header has the column `{}` more than once", field.name())),
            }
        }
        Ok(Self { dialect: dialect.clone(), columns })
    }

    /// For rows without a header, whose fields are all columns of the source in order.
    pub(crate) fn by_position(dialect: &CsvDialect, all: &Fields, wanted: &Fields) -> Self {
        let columns = all.iter().map(|field| position(wanted, field.name())).collect();
        Self { dialect: dialect.clone(), columns }
    }

    /// Appends one row, without its line end.
    ///
    /// # Errors
    /// Why the row was rejected.
    pub(crate) fn read(&self, row: &[u8], table: &mut Table) -> Result<(), RowFault> {
        table.push_row(|schema, columns, _| {
            let mut rest = Some(text(row)?);
            for (number, column) in self.columns.iter().enumerate() {
                let Some(at) = rest else {
                    return Err(self.wrong_count(number));
                };
                let (field, behind) = next_field(at, self.dialect.delimiter)?;
                rest = behind;
                let Some(index) = *column else { continue };
                let (Some(column), Some(definition)) = (columns.get_mut(index), schema.fields().get(index)) else {
                    continue;
                };
                if !self.is_null(&field) {
                    push_text(column, &field.text).map_err(|fault| fault.in_column(definition.name()))?;
                } else if definition.is_nullable() {
                    column.push_null();
                } else {
                    return Err(RowFault::null(definition.name()));
                }
            }
            match rest {
                None => Ok(()),
                Some(_) => Err(self.wrong_count(self.columns.len() + 1)),
            }
        })
    }

    fn is_null(&self, field: &Field<'_>) -> bool {
        !field.quoted && (field.text.is_empty() || self.dialect.null_value.as_deref() == Some(&*field.text))
    }

    fn wrong_count(&self, found: usize) -> RowFault {
        let expected = self.columns.len();
        let found = if found > expected { "more".to_owned() } else { found.to_string() };
        RowFault::malformed(format!("expected {expected} fields, found {found}"))
    }
}

/// The names of a header row.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn header_names(dialect: &CsvDialect, header: &[u8]) -> Result<Vec<String>, String> {
    fields(dialect, header).map(|fields| fields.into_iter().map(|field| field.text.into_owned()).collect())
}

/// The fields of a row; None for NULL.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn values(dialect: &CsvDialect, row: &[u8]) -> Result<Vec<Option<String>>, String> {
    let is_null = |field: &Field<'_>| {
        !field.quoted && (field.text.is_empty() || dialect.null_value.as_deref() == Some(&*field.text))
    };
    let fields = fields(dialect, row)?;
    Ok(fields.into_iter().map(|field| (!is_null(&field)).then(|| field.text.into_owned())).collect())
}

fn fields<'r>(dialect: &CsvDialect, row: &'r [u8]) -> Result<Vec<Field<'r>>, String> {
    let mut fields = Vec::new();
    let mut rest = Some(text(row).map_err(|fault| fault.reason)?);
    while let Some(at) = rest {
        let (field, behind) = next_field(at, dialect.delimiter).map_err(|fault| fault.reason)?;
        fields.push(field);
        rest = behind;
    }
    Ok(fields)
}

struct Field<'r> {
    text: Cow<'r, str>,
    quoted: bool,
}

/// The first field, and what stands behind its delimiter. None: it is the last one.
fn next_field(row: &str, delimiter: u8) -> Result<(Field<'_>, Option<&str>), RowFault> {
    let Some(mut rest) = row.strip_prefix('"') else {
        let end = memchr::memchr(delimiter, row.as_bytes());
        let (field, behind) = match end {
            Some(end) => (row.get(..end), row.get(end + 1..)),
            None => (Some(row), None),
        };
        return Ok((Field { text: Cow::Borrowed(field.unwrap_or_default()), quoted: false }, behind));
    };
    let mut text = Cow::Borrowed("");
    loop {
        let Some((run, behind)) = rest.split_once('"') else {
            return Err(RowFault::malformed("a quoted field has no end"));
        };
        if text.is_empty() {
            text = Cow::Borrowed(run);
        } else {
            text.to_mut().push_str(run);
        }
        match behind.bytes().next() {
            None => return Ok((Field { text, quoted: true }, None)),
            Some(byte) if byte == delimiter => return Ok((Field { text, quoted: true }, behind.get(1..))),
            Some(b'"') => {
                text.to_mut().push('"');
                rest = behind.get(1..).unwrap_or_default();
            }
            Some(_) => return Err(RowFault::malformed("there is text between a closing quote and the next delimiter")),
        }
    }
}

fn text(row: &[u8]) -> Result<&str, RowFault> {
    std::str::from_utf8(row)
        .map_err(|error| RowFault::malformed(format!("not UTF-8 at byte {}", error.valid_up_to() + 1)))
}

fn position(fields: &Fields, name: &str) -> Option<usize> {
    let name = name.to_lowercase();
    fields.iter().position(|field| field.name().to_lowercase() == name)
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;

    use super::super::table::{MALFORMED_ROW, NULL_IN_NOT_NULL_COLUMN, WRONG_TYPE};
    use super::*;
    use crate::record::Schema;

    fn strings(dialect: &CsvDialect, row: &str) -> Result<Vec<Option<String>>, String> {
        values(dialect, row.as_bytes())
    }

    #[test]
    fn fields_are_cut_and_unquoted() {
        let dialect = CsvDialect { null_value: Some("NA".to_owned()), ..CsvDialect::default() };
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            strings(&dialect, r#"a,,"","x,""y""",NA,"NA", b ,5" disk"#).unwrap(),
            [some("a"), None, some(""), some("x,\"y\""), None, some("NA"), some(" b "), some("5\" disk")]
        );
        assert_eq!(strings(&dialect, "\"\"\"\"").unwrap(), [some("\"")]);
        assert_eq!(strings(&dialect, "a,").unwrap(), [some("a"), None]);
        assert!(strings(&dialect, "\"a").is_err());
        assert!(strings(&dialect, "\"a\"b").is_err());
    }

    #[test]
    fn columns_are_found_by_name_and_bad_rows_rejected() {
        let schema = Schema::parse("n INT NOT NULL, s STRING").unwrap().to_arrow();
        let dialect = CsvDialect::default();
        let reader = CsvReader::below_header(&dialect, b"s,other,N", schema.fields()).unwrap();
        let mut table = Table::new(schema).unwrap();
        let mut read = |row: &str| reader.read(row.as_bytes(), &mut table).map_err(|fault| fault.code);
        assert_eq!(read("x,?,1"), Ok(()));
        assert_eq!(read("x,?,one"), Err(WRONG_TYPE));
        assert_eq!(read("x,?,"), Err(NULL_IN_NOT_NULL_COLUMN));
        assert_eq!(read("x,1"), Err(MALFORMED_ROW));
        assert_eq!(read("x,?,1,2"), Err(MALFORMED_ROW));
        assert_eq!(read("\"\",?,2"), Ok(()));
        let batch = table.take().unwrap().unwrap();
        assert_eq!(batch.column(1).as_string::<i32>().iter().collect::<Vec<_>>(), [Some("x"), Some("")]);
    }

    #[test]
    fn a_header_must_have_each_wanted_column_once() {
        let schema = Schema::parse("n INT").unwrap().to_arrow();
        for header in ["a,b", "n,N", ""] {
            assert!(CsvReader::below_header(&CsvDialect::default(), header.as_bytes(), schema.fields()).is_err());
        }
    }
}
