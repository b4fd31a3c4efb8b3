//! What the log holds: records of a kind, a header and sections of bytes, whose meaning is their owner's.

use std::io::Read;

/// A record read into memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// What the record is, in its owner's numbers.
    pub kind: u8,
    /// A short description, such as JSON.
    pub header: Vec<u8>,
    /// In the order written. A name may come more than once.
    pub sections: Vec<Section>,
}

impl Record {
    /// Adds a piece that was read.
    pub(super) fn add(&mut self, part: Part, begins: bool, bytes: &[u8]) {
        match part {
            Part::Header => self.header.extend_from_slice(bytes),
            Part::Section(name) => {
                if begins {
                    self.sections.push(Section { name, bytes: Vec::new() });
                }
                if let Some(section) = self.sections.last_mut() {
                    section.bytes.extend_from_slice(bytes);
                }
            }
        }
    }
}

/// A named part of a record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Section {
    /// In its owner's numbers.
    pub name: u8,
    /// The content, of any length.
    pub bytes: Vec<u8>,
}

/// A record to append, whose sections may be larger than memory.
#[derive(Debug)]
pub struct NewRecord<'a> {
    /// What the record is, in its owner's numbers.
    pub kind: u8,
    /// A short description, such as JSON.
    pub header: &'a [u8],
    /// In this order. A name may come more than once.
    pub sections: Vec<NewSection<'a>>,
}

/// A named part of a record to append.
#[derive(Debug)]
pub struct NewSection<'a> {
    /// In its owner's numbers.
    pub name: u8,
    /// Where the bytes come from.
    pub content: Content<'a>,
}

/// Where the bytes of a section come from.
pub enum Content<'a> {
    /// Memory.
    Bytes(&'a [u8]),
    /// A reader, read to its end.
    Reader(&'a mut dyn Read),
}

impl std::fmt::Debug for Content<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Reader(_) => f.write_str("a reader"),
        }
    }
}

impl<'a> From<&'a Record> for NewRecord<'a> {
    fn from(record: &'a Record) -> Self {
        let sections = record.sections.iter();
        Self {
            kind: record.kind,
            header: &record.header,
            sections: sections
                .map(|section| NewSection { name: section.name, content: Content::Bytes(&section.bytes) })
                .collect(),
        }
    }
}

/// Where a record stands. It holds as long as the log is open; opening it again gives new ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordRef {
    /// Number of the segment.
    pub segment: u64,
    /// Of its first frame, in bytes from the start of the segment.
    pub offset: u64,
    /// Its place among all records ever written to this log, from 1, without gaps.
    pub sequence: u64,
    /// As in [`Record::kind`].
    pub kind: u8,
    /// Header and sections.
    pub bytes: u64,
}

/// A run of bytes of a record that is read piece by piece, at most 1 MiB. Each part has at least one, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece<'a> {
    /// What the bytes belong to.
    pub part: Part,
    /// Whether this is the part's first piece.
    pub begins: bool,
    /// The bytes; empty only in a part without any.
    pub bytes: &'a [u8],
}

/// A part of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The header.
    Header,
    /// The section with this name.
    Section(u8),
}

impl Part {
    pub(super) fn number(self) -> u16 {
        match self {
            Self::Header => 0,
            Self::Section(name) => 1 + u16::from(name),
        }
    }

    pub(super) fn of(number: u16) -> Option<Self> {
        match number.checked_sub(1) {
            None => Some(Self::Header),
            Some(name) => u8::try_from(name).ok().map(Self::Section),
        }
    }
}
