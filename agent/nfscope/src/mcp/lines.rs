//! Lines of bounded length.

use std::io::{self, BufRead};

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// Its bytes, without the end.
    Whole(Vec<u8>),
    /// Longer than allowed, and left out.
    TooLong,
}

/// The next line, or `None` at the end. Of one that is too long no more than that is ever in memory.
///
/// # Errors
/// Where it cannot be read.
pub fn next(input: &mut impl BufRead, most: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let buffer = match input.fill_buf() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if buffer.is_empty() {
            let nothing = line.is_empty() && !too_long;
            return Ok((!nothing).then(|| ended(line, too_long)));
        }
        let end = buffer.iter().position(|b| *b == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        too_long |= line.len() + part.len() > most;
        match too_long {
            true => line = Vec::new(),
            false => line.extend_from_slice(part),
        }
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return Ok(Some(ended(line, too_long)));
        }
    }
}

fn ended(line: Vec<u8>, too_long: bool) -> Line {
    match too_long {
        true => Line::TooLong,
        false => Line::Whole(line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    #[test]
    fn a_line_that_is_too_long_is_left_out_alone() {
        let text = b"ab\n\nabcdef\nabc\nabcd";
        // Whatever the pieces are in which it comes.
        for piece in 1..8 {
            let mut input = BufReader::with_capacity(piece, &text[..]);
            let mut all = Vec::new();
            while let Some(line) = next(&mut input, 3).unwrap() {
                all.push(match line {
                    Line::Whole(bytes) => String::from_utf8(bytes).unwrap(),
                    Line::TooLong => "too long".into(),
                });
            }
            assert_eq!(all, ["ab", "", "too long", "abc", "too long"]);
        }
    }
}
