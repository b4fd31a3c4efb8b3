//! A pull parser over one JSON text (RFC 8259), which hands out numbers as they are written, so that decimals and 64-bit
//! integers lose nothing.
//!
//! The caller drives it by the schema, so it recurses no deeper than the schema does; what is skipped is counted in depth
//! and not recursed into.

use std::borrow::Cow;

use super::table::RowFault;

/// Deepest nesting of a value that is skipped; as deep as other parsers go.
const SKIP_DEPTH_MAX: usize = 128;

/// What a value begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Boolean,
    /// A number
    Number,
    /// A string
    String,
    /// `[`
    Array,
    /// `{`
    Object,
}

/// A place in a JSON text.
#[derive(Debug)]
pub(crate) struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    /// At the start of a text.
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The kind of the next value, which is not consumed.
    ///
    /// # Errors
    /// No value follows.
    pub(crate) fn kind(&mut self) -> Result<Kind, RowFault> {
        match self.peek() {
            Some(b'n') => Ok(Kind::Null),
            Some(b't' | b'f') => Ok(Kind::Boolean),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b'"') => Ok(Kind::String),
            Some(b'[') => Ok(Kind::Array),
            Some(b'{') => Ok(Kind::Object),
            _ => Err(self.unexpected("a value")),
        }
    }

    /// Takes `null`.
    ///
    /// # Errors
    /// Something else.
    pub(crate) fn null(&mut self) -> Result<(), RowFault> {
        self.literal("null")
    }

    /// Takes `true` or `false`.
    ///
    /// # Errors
    /// Something else.
    pub(crate) fn boolean(&mut self) -> Result<bool, RowFault> {
        if self.peek() == Some(b't') {
            self.literal("true").map(|()| true)
        } else {
            self.literal("false").map(|()| false)
        }
    }

    /// Takes a number, as it is written.
    ///
    /// # Errors
    /// Something else.
    pub(crate) fn number(&mut self) -> Result<&'t str, RowFault> {
        self.skip_space();
        let start = self.at;
        self.skip_byte(b'-');
        let whole = self.skip_digits();
        let first = self.text.as_bytes().get(self.at - whole);
        let mut valid = whole == 1 || (whole > 1 && first != Some(&b'0'));
        if self.skip_byte(b'.') {
            valid &= self.skip_digits() > 0;
        }
        if self.skip_byte(b'e') || self.skip_byte(b'E') {
            let _signed = self.skip_byte(b'+') || self.skip_byte(b'-');
            valid &= self.skip_digits() > 0;
        }
        match self.text.get(start..self.at) {
            Some(number) if valid => Ok(number),
            _ => {
                self.at = start;
                Err(self.unexpected("a number"))
            }
        }
    }

    /// Takes a string. Borrowed unless it has escapes.
    ///
    /// # Errors
    /// Something else, a control character, a broken escape.
    pub(crate) fn string(&mut self) -> Result<Cow<'t, str>, RowFault> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected("a string"));
        }
        self.at += 1;
        let plain = self.plain_run()?;
        if self.skip_byte(b'"') {
            return Ok(Cow::Borrowed(plain));
        }
        let mut string = plain.to_owned();
        loop {
            if self.skip_byte(b'"') {
                return Ok(Cow::Owned(string));
            }
            self.at += 1; // the backslash, at which a plain run ends
            string.push(self.escape()?);
            string.push_str(self.plain_run()?);
        }
    }

    /// Takes the `[` of an array or the `{` of an object. True: it has a first element.
    ///
    /// # Errors
    /// Something else.
    pub(crate) fn open(&mut self, open: u8, close: u8) -> Result<bool, RowFault> {
        if self.peek() != Some(open) {
            return Err(self.unexpected(if open == b'[' { "an array" } else { "an object" }));
        }
        self.at += 1;
        Ok(self.peek() != Some(close) || !self.skip_byte(close))
    }

    /// Takes what stands behind an element. True: another one follows; false: that was `close`.
    ///
    /// # Errors
    /// Something else.
    pub(crate) fn more(&mut self, close: u8) -> Result<bool, RowFault> {
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(false)
            }
            _ => Err(self.unexpected(if close == b']' { "`,` or `]`" } else { "`,` or `}`" })),
        }
    }

    /// Takes the name of a member and its colon.
    ///
    /// # Errors
    /// Something else.
    pub(crate) fn name(&mut self) -> Result<Cow<'t, str>, RowFault> {
        let name = self.string()?;
        if self.peek() != Some(b':') {
            return Err(self.unexpected("`:`"));
        }
        self.at += 1;
        Ok(name)
    }

    /// Takes a value of any kind and forgets it.
    ///
    /// # Errors
    /// No well-formed value follows, or one nested too deeply.
    pub(crate) fn skip(&mut self) -> Result<(), RowFault> {
        let mut closes: Vec<u8> = Vec::new();
        loop {
            let (open, close) = match self.kind()? {
                Kind::Array => (b'[', b']'),
                Kind::Object => (b'{', b'}'),
                kind => {
                    match kind {
                        Kind::Null => self.null()?,
                        Kind::Boolean => drop(self.boolean()?),
                        Kind::Number => drop(self.number()?),
                        _ => drop(self.string()?),
                    }
                    (0, 0)
                }
            };
            if open != 0 && self.open(open, close)? {
                if closes.len() == SKIP_DEPTH_MAX {
                    return Err(RowFault::malformed(format!("values nest more than {SKIP_DEPTH_MAX} deep")));
                }
                closes.push(close);
            } else {
                while let Some(close) = closes.last().copied() {
                    if self.more(close)? {
                        break;
                    }
                    closes.pop();
                }
                if closes.is_empty() {
                    return Ok(());
                }
            }
            if closes.last() == Some(&b'}') {
                self.name()?;
            }
        }
    }

    /// Checks that nothing but space is left.
    ///
    /// # Errors
    /// Something is.
    pub(crate) fn end(&mut self) -> Result<(), RowFault> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.unexpected("the end of the line")),
        }
    }

    /// What is here instead of what was expected.
    pub(crate) fn unexpected(&self, expected: &str) -> RowFault {
        let column = self.text.get(..self.at).unwrap_or_default().chars().count() + 1;
        match self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            Some(found) => RowFault::malformed(format!(
                "expected {expected} at character {column}, found `{}`",
                found.escape_debug()
            )),
            None => RowFault::malformed(format!("expected {expected} at character {column}, where the line ends")),
        }
    }

    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        self.skip_space();
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
    }

    fn skip_byte(&mut self, byte: u8) -> bool {
        let found = self.text.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(found);
        found
    }

    fn skip_digits(&mut self) -> usize {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += digits;
        digits
    }

    fn literal(&mut self, literal: &'static str) -> Result<(), RowFault> {
        self.skip_space();
        if self.text.get(self.at..).is_some_and(|rest| rest.starts_with(literal)) {
            self.at += literal.len();
            Ok(())
        } else {
            Err(self.unexpected("a value"))
        }
    }

    /// Takes characters up to a quote or a backslash.
    fn plain_run(&mut self) -> Result<&'t str, RowFault> {
        let start = self.at;
        let rest = self.text.as_bytes().get(start..).unwrap_or_default();
        self.at += rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)).count();
        match self.text.as_bytes().get(self.at) {
            Some(b'"' | b'\\') => Ok(self.text.get(start..self.at).unwrap_or_default()),
            Some(_) => Err(self.unexpected("a string without control characters")),
            None => Err(self.unexpected("the end of the string")),
        }
    }

    /// Takes what stands behind a backslash.
    fn escape(&mut self) -> Result<char, RowFault> {
        let letter = self.text.as_bytes().get(self.at).copied();
        let plain = match letter {
            Some(letter @ (b'"' | b'\\' | b'/')) => char::from(letter),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.unexpected("an escape")),
        };
        self.at += 1;
        Ok(plain)
    }

    /// Takes `uXXXX`, with a second one when the first is half of a surrogate pair.
    fn unicode_escape(&mut self) -> Result<char, RowFault> {
        let first = self.code_unit()?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) && self.skip_byte(b'\\') {
            units.push(self.code_unit()?);
        }
        match char::decode_utf16(units).next() {
            Some(Ok(character)) => Ok(character),
            _ => Err(RowFault::malformed(format!("a string has the escape \\u{first:04x} without its other half"))),
        }
    }

    fn code_unit(&mut self) -> Result<u16, RowFault> {
        let hex = self.text.get(self.at + 1..self.at + 5).filter(|_| self.text.as_bytes().get(self.at) == Some(&b'u'));
        let unit = hex
            .filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|hex| u16::from_str_radix(hex, 16).ok());
        let unit = unit.ok_or_else(|| self.unexpected("an escape \\uXXXX"))?;
        self.at += 5;
        Ok(unit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accepts(text: &str) -> bool {
        let mut scanner = Scanner::new(text);
        scanner.skip().and_then(|()| scanner.end()).is_ok()
    }

    #[test]
    fn strings_are_unescaped() {
        let mut scanner = Scanner::new(r#" "a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00z" "#);
        assert_eq!(scanner.string().unwrap(), "a\"\\/\u{8}\u{c}\n\r\t\u{e9}\u{1f600}z");
        for broken in [r#""\ud83d""#, r#""\ude00""#, r#""\ud83d\u0041""#, r#""\x""#, r#""\u12""#, "\"\n\"", "\"a"] {
            assert!(!accepts(broken), "{broken}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        assert!(accepts(&format!("{}{}", "[".repeat(SKIP_DEPTH_MAX), "]".repeat(SKIP_DEPTH_MAX))));
        assert!(!accepts(&"[".repeat(1_000_000)));
        assert!(!accepts(&format!("{}{}", "[".repeat(200), "]".repeat(200))));
    }

    proptest! {
        #[test]
        fn accepts_what_serde_json_accepts(text in r#"[\[\]{},:"a\\u0 1.eE+\-tnrufals]{0,14}"#) {
            // Two differences: numbers beyond f64 are numbers here, and serde_json does not know half pairs apart.
            let theirs = serde_json::from_str::<serde_json::Value>(&text);
            let out_of_range = theirs.as_ref().is_err_and(|error| error.to_string().contains("out of range"));
            prop_assert_eq!(accepts(&text), theirs.is_ok() || out_of_range, "{}", text);
        }
    }
}
