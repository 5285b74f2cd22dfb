//! Other forms of traces: text of this program, and text that other programs print of theirs.

mod calls;
mod dataseries;
mod lines;
mod nfsdump;
#[cfg(test)]
mod tests;
mod text;
mod tshark;

pub use text::export;
pub use tshark::COMMAND as TSHARK;

use crate::format::{Error, Writer};
use crate::header::Host;
use lines::Lines;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, Write};

/// Form of a trace that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Text of [`export`]: a line for each operation.
    Text,
    /// Text of nfsdump, as SNIA publishes it: a line for each call and each reply. NFSv2 and NFSv3.
    Nfsdump,
    /// Text that ds2txt prints of NFS traces in DataSeries: the extents common, attr-ops and read-write. NFSv2 and NFSv3.
    Dataseries,
    /// Fields that tshark prints by [`TSHARK`]. NFSv3 and NFSv4.
    Tshark,
}

impl Form {
    /// Every form.
    pub const EACH: [Form; 4] = [Form::Text, Form::Nfsdump, Form::Dataseries, Form::Tshark];

    /// Word of the form.
    pub fn name(self) -> &'static str {
        match self {
            Form::Text => "text",
            Form::Nfsdump => "nfsdump",
            Form::Dataseries => "dataseries",
            Form::Tshark => "tshark",
        }
    }
}

/// Result of an import.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Imported {
    /// Operations that were written.
    pub operations: u64,
    /// Calls among them without a reply: neither duration nor status is known.
    pub unanswered: u64,
    /// Replies without a call, which are in no operation.
    pub without_call: u64,
    /// Calls that came again, which are no further operation.
    pub repeated: u64,
    /// Lines that could not be read.
    pub unreadable: u64,
    /// Number and reason of the first of them.
    pub first_unreadable: Option<(u64, String)>,
}

impl Imported {
    fn count_unreadable(&mut self, line: u64, reason: &str) {
        self.unreadable += 1;
        self.first_unreadable
            .get_or_insert_with(|| (line, reason.to_owned()));
    }
}

/// Error of an import.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The input cannot be read.
    #[error("{0}")]
    Read(#[from] std::io::Error),
    /// The trace cannot be written.
    #[error("{0}")]
    Write(#[from] Error),
    /// The input has another form.
    #[error("{0}")]
    Form(String),
}

/// Reads a trace of this form, and writes its operations. Memory is bounded: calls that wait for their reply, at most 65536.
///
/// # Errors
/// If the input cannot be read or has another form, or the trace cannot be written. A line that cannot be read is no error, and counted.
pub fn import<W: Write + Send>(
    form: Form,
    input: impl BufRead,
    writer: &mut Writer<W>,
) -> Result<Imported, ImportError> {
    let mut lines = Lines::new(input);
    let header = writer.header_mut();
    header.host = Host::Network;
    header.imported_from = Some(form.name().to_owned());
    let pseudonyms = Pseudonyms::new();
    let imported = match form {
        Form::Text => text::import(&mut lines, writer)?,
        Form::Nfsdump => nfsdump::import(&mut lines, writer, &pseudonyms)?,
        Form::Dataseries => dataseries::import(&mut lines, writer, &pseudonyms)?,
        Form::Tshark => tshark::import(&mut lines, writer, &pseudonyms)?,
    };
    let header = writer.header_mut();
    for (reason, count) in [
        ("unreadable_line", imported.unreadable),
        ("reply_without_call", imported.without_call),
    ] {
        if count > 0 {
            header.count_dropped(reason, None, count);
        }
    }
    Ok(imported)
}

#[cfg(test)]
fn tshark_fields() -> usize {
    tshark::FIELDS
}

/// Pseudonyms of file handles: a hash under a key that is forgotten, so that a pseudonym does not tell the handle.
struct Pseudonyms(RandomState);

impl Pseudonyms {
    fn new() -> Pseudonyms {
        Pseudonyms(RandomState::new())
    }

    fn file(&self, handle: &str) -> u64 {
        self.0.hash_one(handle)
    }
}

/// `1004562602.021187` as nanoseconds.
fn nanoseconds(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if seconds.is_empty() || !is_number(fraction) || !is_number(seconds) {
        return None;
    }
    let digits = format!("{:0<9}", &fraction[..fraction.len().min(9)]);
    let seconds: u64 = seconds.parse().ok()?;
    seconds
        .checked_mul(1_000_000_000)?
        .checked_add(digits.parse().ok()?)
}
