//! Frames: output of a script from `@begin` to `@end`, every ten seconds and when the agent asks for it.
//!
//! Fields are separated by tabs. `@c` is a count that only rises, `@g` a value of this moment, `@h` the table of a `lquantize()` that
//! follows. The text comes in pieces of any size, may be cut anywhere and may have anything in it. A half frame yields none, a line that
//! cannot be read is counted and left out, and the memory has a bound.

use std::collections::BTreeMap;

/// Limit of a line: the scripts print no longer one.
const MOST_LINE: usize = 2048;
/// Limit of lines: no frame has as many keys.
const MOST_KEYS: usize = 32_768;
/// Limit of rows: no table of the scripts has as many buckets.
const MOST_ROWS: u16 = 128;

/// Rows of a table by bucket.
pub type Table = Vec<(u16, u64)>;

/// Values of a frame. A key is a name and its fields, separated by tabs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frame {
    /// The script's clock, in nanoseconds.
    pub at: u64,
    /// Values that only rise.
    pub counts: BTreeMap<String, u64>,
    /// Values of this moment.
    pub gauges: BTreeMap<String, i64>,
    /// Histograms.
    pub tables: BTreeMap<String, Table>,
}

impl Frame {
    fn keys(&self) -> usize {
        self.counts.len() + self.gauges.len() + self.tables.len()
    }
}

/// Event that a piece of text completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The script of this name runs.
    Hello(String),
    /// A complete frame.
    Frame(Frame),
    /// A slow operation: the text behind `@slow` in its line.
    Slow(String),
}

/// Parser of text that comes in pieces.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    /// True in the rest of a line that is too long.
    skipping: bool,
    open: Option<Frame>,
    /// Key of the table to which rows belong.
    table: Option<String>,
    /// Number of lines that could not be read, within frames or outside.
    bad: u64,
}

impl Parser {
    /// Takes the next piece, and passes completed events to `done`.
    pub fn feed(&mut self, mut text: &[u8], done: &mut dyn FnMut(Event)) {
        while let Some(end) = text.iter().position(|&b| b == b'\n') {
            self.keep(&text[..end]);
            if !std::mem::take(&mut self.skipping) {
                let line = std::mem::take(&mut self.line);
                match std::str::from_utf8(&line) {
                    Ok(line) => self.line(line, done),
                    Err(_) => self.bad += 1,
                }
                self.line = line;
            }
            self.line.clear();
            text = &text[end + 1..];
        }
        self.keep(text);
    }

    /// Number of lines so far that could not be read.
    pub fn bad(&self) -> u64 {
        self.bad
    }

    /// Adds lines that were read, and whose content the caller could not use.
    pub fn add_bad(&mut self, lines: u64) {
        self.bad += lines;
    }

    fn keep(&mut self, part: &[u8]) {
        if self.skipping {
            return;
        }
        if self.line.len() + part.len() > MOST_LINE {
            self.skipping = true;
            self.bad += 1;
            self.line.clear();
            return;
        }
        self.line.extend_from_slice(part);
    }

    fn line(&mut self, line: &str, done: &mut dyn FnMut(Event)) {
        if let Some(name) = line.strip_prefix("@hello\t") {
            done(Event::Hello(name.to_owned()));
            return;
        }
        if let Some(fields) = line.strip_prefix("@slow\t") {
            done(Event::Slow(fields.to_owned()));
            return;
        }
        if let Some(at) = line.strip_prefix("@begin\t") {
            // A frame that is still open has lost its end.
            self.bad += u64::from(self.open.is_some());
            self.table = None;
            self.open = at.parse().ok().map(|at| Frame {
                at,
                ..Frame::default()
            });
            self.bad += u64::from(self.open.is_none());
            return;
        }
        if self.open.is_none() {
            // Lines outside of frames are ignored: at its end dtrace prints all aggregations.
            return;
        }
        if line == "@end" {
            self.table = None;
            if let Some(frame) = self.open.take() {
                done(Event::Frame(frame));
            }
            return;
        }
        let read = match line.split_once('\t') {
            Some(("@c", rest)) => self.count(rest),
            Some(("@g", rest)) => self.gauge(rest),
            Some(("@h", rest)) => self.begin_table(rest),
            _ => self.row(line.trim()),
        };
        self.bad += u64::from(read.is_none());
    }

    fn count(&mut self, rest: &str) -> Option<()> {
        self.table = None;
        let (key, value) = rest.rsplit_once('\t')?;
        let value = value.parse().ok()?;
        let frame = self.room_for(key)?;
        frame.counts.insert(key.to_owned(), value);
        Some(())
    }

    fn gauge(&mut self, rest: &str) -> Option<()> {
        self.table = None;
        let (key, value) = rest.rsplit_once('\t')?;
        let value = value.parse().ok()?;
        let frame = self.room_for(key)?;
        frame.gauges.insert(key.to_owned(), value);
        Some(())
    }

    fn begin_table(&mut self, rest: &str) -> Option<()> {
        self.table = None;
        let key = rest.trim_end_matches('\t');
        let frame = self.room_for(key)?;
        frame.tables.insert(key.to_owned(), Vec::new());
        self.table = Some(key.to_owned());
        Some(())
    }

    fn room_for(&mut self, key: &str) -> Option<&mut Frame> {
        let frame = self.open.as_mut()?;
        (!key.is_empty() && frame.keys() < MOST_KEYS).then_some(frame)
    }

    /// Reads a row such as `45 |@@@@   832`, or a line around the rows.
    fn row(&mut self, line: &str) -> Option<()> {
        if line.is_empty() || line.starts_with("value ") {
            return Some(());
        }
        let table = self.open.as_mut()?.tables.get_mut(self.table.as_ref()?)?;
        let (value, rest) = line.split_once('|')?;
        let number = rest.rsplit([' ', '|', '@']).next()?;
        let number: u64 = number.parse().ok()?;
        if number == 0 {
            // Margins of the table, `< 0` and `>= 110`, among others.
            return Some(());
        }
        let bucket: u16 = value.trim().parse().ok()?;
        if bucket >= MOST_ROWS || table.len() >= usize::from(MOST_ROWS) {
            return None;
        }
        table.push((bucket, number));
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(parser: &mut Parser, text: &[u8]) -> Vec<Frame> {
        let mut out = Vec::new();
        parser.feed(text, &mut |e| {
            if let Event::Frame(f) = e {
                out.push(f);
            }
        });
        out
    }

    const WHOLE: &str = "@hello\tnfs\n@begin\t17\n@h\top\t3\top-write-done\t\n           value  ------------- Distribution ------------- count    \n             < 0 |                                         0        \n              45 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@    832      \n              46 |@                                        14       \n              47 |                                         0        \n\n@c\top_ns\t3\top-write-done\t2070888392\n@g\tbusy\t-1\n@end\n";

    fn whole() -> Frame {
        let mut frame = Frame {
            at: 17,
            ..Frame::default()
        };
        frame
            .tables
            .insert("op\t3\top-write-done".into(), vec![(45, 832), (46, 14)]);
        frame
            .counts
            .insert("op_ns\t3\top-write-done".into(), 2_070_888_392);
        frame.gauges.insert("busy".into(), -1);
        frame
    }

    #[test]
    fn a_frame_is_read_however_it_is_cut() {
        for size in 1..WHOLE.len() {
            let mut parser = Parser::default();
            let mut all = Vec::new();
            for piece in WHOLE.as_bytes().chunks(size) {
                all.extend(frames(&mut parser, piece));
            }
            assert_eq!(all, [whole()], "in pieces of {size}");
            assert_eq!(parser.bad(), 0);
        }
    }

    #[test]
    fn half_a_frame_is_none_and_the_next_is_whole() {
        for cut in 0..WHOLE.len() - 1 {
            let mut parser = Parser::default();
            let text = format!("{}\n{WHOLE}", &WHOLE[..cut]);
            let all = frames(&mut parser, text.as_bytes());
            assert_eq!(all.last(), Some(&whole()), "cut at {cut}");
            assert!(all.len() <= 1 + usize::from(cut > WHOLE.len() - 3), "{cut}");
        }
    }

    #[test]
    fn lines_that_cannot_be_read_are_counted_and_left_out() {
        let mut parser = Parser::default();
        let text = "@c\tbefore\t1\n@begin\t1\n@c\ta\tx\n@c\t5\n@c\tb\t2\nnonsense\n 3 |@ 4\n@h\tt\t\n 999 |@ 4\n\u{fffd}|@ 4\n@end\n";
        let all = frames(&mut parser, text.as_bytes());
        assert_eq!(all[0].counts, BTreeMap::from([("b".to_owned(), 2)]));
        assert_eq!(all[0].tables["t"], []);
        assert_eq!(parser.bad(), 6);
        // Bytes that are no text.
        let all = frames(&mut parser, b"@begin\t1\n\xff\xfe\n@end\n@begin\tx\n@end\n");
        assert_eq!((all.len(), parser.bad()), (1, 8));
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let mut parser = Parser::default();
        let mut text = b"@begin\t1\n@c\tlong\t".to_vec();
        text.extend(vec![b'1'; 10 * MOST_LINE]);
        assert_eq!(frames(&mut parser, &text), []);
        assert!(parser.line.len() <= MOST_LINE);
        let mut text = String::from("\n");
        for i in 0..MOST_KEYS + 10 {
            text += &format!("@c\tk{i}\t1\n");
        }
        text += "@end\n";
        let all = frames(&mut parser, text.as_bytes());
        assert_eq!(all[0].counts.len(), MOST_KEYS);
        assert_eq!(parser.bad(), 1 + 10);
    }

    /// Generates random input from tokens of frames and arbitrary bytes.
    fn soup(x: &mut u64, out: &mut Vec<u8>) {
        const PARTS: [&[u8]; 17] = [
            b"@slow\t",
            b"@begin\t",
            b"@end\n",
            b"@c\t",
            b"@g\t",
            b"@h\t",
            b"\t",
            b"\n",
            b" 45 |@@@ 12\n",
            b"value ",
            b"| ",
            b"-1",
            b"18446744073709551616",
            b"@hello\t",
            b"\xff",
            b"op\t3\top-read-done\t",
            b"7\n",
        ];
        let mut next = || {
            *x ^= *x << 13;
            *x ^= *x >> 7;
            *x ^= *x << 17;
            *x
        };
        out.clear();
        for _ in 0..next() % 24 {
            let r = next();
            match r % 20 {
                19 => out.push((r >> 8) as u8),
                18 => out.extend(std::iter::repeat_n(b'9', (r >> 8) as usize % 64)),
                part => out.extend_from_slice(PARTS[part as usize % PARTS.len()]),
            }
        }
    }

    fn fuzz(inputs: u64) {
        let (mut x, mut text, mut parser) = (0x5eed_u64, Vec::new(), Parser::default());
        let mut whole = 0;
        for _ in 0..inputs {
            soup(&mut x, &mut text);
            parser.feed(&text, &mut |e| {
                whole += u64::from(matches!(e, Event::Frame(_)))
            });
            assert!(parser.line.len() <= MOST_LINE);
            let keys = parser.open.as_ref().map_or(0, Frame::keys);
            assert!(keys <= MOST_KEYS);
        }
        assert!(whole > 0, "no frame in {inputs} inputs");
    }

    /// Runs for about ten seconds of CPU time. `NFSCOPE_FUZZ_INPUTS` sets another number of inputs.
    #[test]
    fn no_text_is_too_much_for_it() {
        let inputs = std::env::var("NFSCOPE_FUZZ_INPUTS");
        fuzz(inputs.map_or(10_000_000, |n| n.parse().unwrap()));
    }
}
