//! Cuts DDL into words, quoted names, texts and symbols, one pass over the text.

use super::super::error::SchemaError;

/// Characters of the text that an error shows.
const EXCERPT_CHARS: usize = 24;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// Letters, digits and `_`: a keyword, an unquoted name or a number.
    Word(&'t str),
    /// A name in back-quotes, without them.
    Quoted(String),
    /// A text in single or double quotes. Only comments have one and they are dropped, so its content is not kept.
    Text,
    /// Anything else.
    Symbol(char),
    /// The end of the text.
    End,
}

/// A token and the byte where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spanned<'t> {
    pub(super) token: Token<'t>,
    pub(super) at: usize,
}

pub(super) struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn next(&mut self) -> Result<Spanned<'t>, SchemaError> {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
        let (rest, at) = (self.rest(), self.at);
        let Some(first) = rest.chars().next() else {
            return Ok(Spanned { token: Token::End, at });
        };
        let token = if is_word(first) {
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            self.at += end;
            Token::Word(rest.get(..end).unwrap_or_default())
        } else if first == '`' {
            Token::Quoted(self.quoted_name()?)
        } else if first == '\'' || first == '"' {
            self.skip_text(first)?;
            Token::Text
        } else {
            self.at += first.len_utf8();
            Token::Symbol(first)
        };
        Ok(Spanned { token, at })
    }

    /// A syntax error at byte `at`.
    pub(super) fn error(&self, at: usize, problem: impl Into<String>) -> SchemaError {
        let rest = self.text.get(at..).unwrap_or_default();
        let mut excerpt: String = rest.chars().take(EXCERPT_CHARS).collect();
        if excerpt.len() < rest.len() {
            excerpt.push_str("...");
        }
        SchemaError::Syntax { position: self.position(at), excerpt, problem: problem.into() }
    }

    /// The character, counted from 1, at byte `at`.
    pub(super) fn position(&self, at: usize) -> usize {
        self.text.get(..at).unwrap_or_default().chars().count() + 1
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Reads a name in back-quotes; two of them within it stand for one.
    fn quoted_name(&mut self) -> Result<String, SchemaError> {
        let mut name = String::new();
        let mut chars = self.rest().char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            if c != '`' {
                name.push(c);
            } else if chars.next_if(|(_, next)| *next == '`').is_some() {
                name.push('`');
            } else {
                self.at += at + 1;
                return Ok(name);
            }
        }
        Err(self.error(self.at, "the back-quoted name has no end"))
    }

    /// Skips a quoted text; a backslash takes the next character as it is.
    fn skip_text(&mut self, quote: char) -> Result<(), SchemaError> {
        let mut chars = self.rest().char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            if c == '\\' {
                chars.next();
            } else if c == quote {
                self.at += at + 1;
                return Ok(());
            }
        }
        Err(self.error(self.at, "the quoted text has no end"))
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
