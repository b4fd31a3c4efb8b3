//! Results of cases as JUnit XML, which continuous integration reads.

use super::Outcome;

/// The document.
pub(super) fn document(results: &[Outcome<'_>]) -> String {
    let failed = results.iter().filter(|result| !result.passed()).count();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    xml.push_str(&format!("<testsuite name=\"tidemill\" tests=\"{}\" failures=\"{failed}\">\n", results.len()));
    for result in results {
        let name = escaped(&result.report.name);
        let folder = escaped(&result.path.parent().map(|folder| folder.to_string_lossy()).unwrap_or_default());
        xml.push_str(&format!("  <testcase name=\"{name}\" classname=\"{folder}\""));
        if result.passed() {
            xml.push_str("/>\n");
        } else {
            let text = escaped(&result.report.to_string());
            xml.push_str(&format!(">\n    <failure>{text}</failure>\n  </testcase>\n"));
        }
    }
    xml.push_str("</testsuite>\n");
    xml
}

/// Text that XML takes; control characters, which it cannot hold, as question marks.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out
}
