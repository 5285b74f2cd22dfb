//! Lines of bounded length.

use std::io::{self, BufRead, Read};

/// Longest line that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// A line's number, and its text or the reason why it has none.
pub type Line<'a> = (u64, Result<&'a str, &'static str>);

/// Lines of an input, with their numbers.
pub struct Lines<R> {
    input: R,
    number: u64,
    bytes: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub fn new(input: R) -> Lines<R> {
        Lines {
            input,
            number: 0,
            bytes: Vec::new(),
        }
    }

    /// Number of the next line from 1, and the line without its end; `None` at the end. A line that is no text or too long is an `Err`
    /// with the reason.
    pub fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.bytes.clear();
        let mut limited = (&mut self.input).take(LONGEST);
        if limited.read_until(b'\n', &mut self.bytes)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.bytes.last() != Some(&b'\n') && self.bytes.len() as u64 == LONGEST {
            self.skip_rest()?;
            return Ok(Some((self.number, Err("the line is longer than 1 MiB"))));
        }
        let text = std::str::from_utf8(&self.bytes).map(|t| t.trim_end_matches(['\n', '\r']));
        Ok(Some((self.number, text.map_err(|_| "the line is no text"))))
    }

    fn skip_rest(&mut self) -> io::Result<()> {
        loop {
            let buffer = self.input.fill_buf()?;
            let end = buffer.iter().position(|b| *b == b'\n');
            let used = end.map_or(buffer.len(), |end| end + 1);
            if buffer.is_empty() {
                return Ok(());
            }
            self.input.consume(used);
            if end.is_some() {
                return Ok(());
            }
        }
    }
}
