//! Rows of a result: aligned columns for people, a JSON document per line for programs. Both are written as they come, in
//! bounded memory.

use std::ops::ControlFlow;

use serde_json::Value;

use super::Format;
use super::output::Results;

/// Rows that are aligned together. A wider one further on widens its column from there.
const PAGE_ROWS: usize = 1_000;

/// What stands between two columns.
const GAP: &str = "  ";

/// Writes rows, which are JSON objects.
pub(super) struct Listing {
    out: Results,
    format: Format,
    /// Fields, by their names from outside in; a field that a row lacks is blank.
    columns: Vec<Vec<String>>,
    widths: Vec<usize>,
    page: Vec<Vec<String>>,
}

impl Listing {
    /// A listing with these columns for people; programs get whole rows.
    pub(super) fn start(format: Format, columns: Vec<Vec<String>>) -> Self {
        let header: Vec<String> = columns.iter().map(|path| plain(&path.join("."))).collect();
        Self { out: Results::start(), format, widths: vec![0; columns.len()], columns, page: vec![header] }
    }

    /// Adds a row. Breaks when nobody reads any more.
    pub(super) fn row(&mut self, row: &Value) -> anyhow::Result<ControlFlow<()>> {
        match self.format {
            Format::Json => self.out.write(&format!("{row}\n")),
            Format::Text => {
                self.page.push(self.columns.iter().map(|path| cell(row, path)).collect());
                if self.page.len() < PAGE_ROWS { Ok(ControlFlow::Continue(())) } else { self.write_page() }
            }
        }
    }

    /// Writes what is left.
    pub(super) fn finish(mut self) -> anyhow::Result<()> {
        if self.format == Format::Text {
            let _gone = self.write_page()?;
        }
        self.out.flush().map(drop)
    }

    fn write_page(&mut self) -> anyhow::Result<ControlFlow<()>> {
        for row in &self.page {
            for (width, cell) in self.widths.iter_mut().zip(row) {
                *width = cell.chars().count().max(*width);
            }
        }
        let mut text = String::new();
        for row in self.page.drain(..) {
            let aligned: Vec<String> =
                row.iter().zip(&self.widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            text.push_str(aligned.join(GAP).trim_end());
            text.push('\n');
        }
        self.out.write(&text)
    }
}

/// A path of one name.
pub(super) fn column(name: &str) -> Vec<String> {
    vec![name.to_owned()]
}

fn cell(row: &Value, path: &[String]) -> String {
    let found = path.iter().try_fold(row, |value, name| value.get(name));
    match found {
        None => String::new(),
        Some(Value::Null) => "NULL".to_owned(),
        Some(Value::String(text)) => plain(text),
        Some(other) => plain(&other.to_string()),
    }
}

/// A duration as settings take it: `1h 30m`.
pub(super) fn duration_text(ms: u64) -> String {
    humantime::format_duration(std::time::Duration::from_millis(ms)).to_string()
}

/// Text from outside must not move a terminal's cursor.
pub(super) fn plain(text: &str) -> String {
    if text.chars().any(char::is_control) { text.escape_debug().to_string() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cell_is_what_stands_at_the_path() {
        let row = json!({ "key": { "k": "a b", "n": null }, "list": [1, { "x": 2 }] });
        let at = |path: &[&str]| cell(&row, &path.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());

        assert_eq!(at(&["key", "k"]), "a b");
        assert_eq!(at(&["key", "n"]), "NULL");
        assert_eq!(at(&["list"]), r#"[1,{"x":2}]"#);
        assert_eq!(at(&["value", "k"]), "");
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(plain("\u{1b}[2Jx"), "\\u{1b}[2Jx");
        assert_eq!(plain("Zürich \"x\""), "Zürich \"x\"");
    }
}
