//! Counts of the kernel itself, as `kstat -p` prints them each second: `module:instance:name:statistic`, a tab and a value. `-T u` begins
//! each set with a line of seconds.

use super::child::Reader;
use crate::clock::monotonic_ns;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Longer lines are left out.
const MOST_LINE: usize = 512;
/// Limit of statistics: the largest server with a thousand CPUs and a thousand disks has fewer.
const MOST_VALUES: usize = 16_384;

/// Arguments of `kstat`. It reads every instance whose module *or* name matches a pattern, so that each pattern must have a name.
pub const ARGUMENTS: [&str; 12] = [
    "-p",
    "-T",
    "u",
    "nfs:0:rfsproccnt_v3",
    "nfs:0:rfsproccnt_v4",
    "unix:0:rpc_cots_server",
    "unix:0:rpc_clts_server",
    "cpu:*:sys:cpu_nsec_idle",
    "sd:*:sd*:/^(rtime|rcnt)$/",
    "blkdev:*:blkdev*:/^(rtime|rcnt)$/",
    "cmdk:*:cmdk*:/^(rtime|rcnt)$/",
    "1",
];

/// A set of values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    /// Time of its first line, on the clock of the scripts.
    pub at_ns: u64,
    /// Values by module, name and statistic, with the instance in front of the name where there are many.
    values: BTreeMap<String, f64>,
}

impl Stats {
    /// A statistic of an instance, written as `kstat -p` does.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.values.get(name).copied()
    }

    /// All statistics that begin with `start`: the rest of the name, and the value.
    pub fn under<'a>(&'a self, start: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        let from = (Bound::Included(start), Bound::Unbounded);
        let from = self.values.range::<str, _>(from);
        from.take_while(move |(name, _)| name.starts_with(start))
            .map(move |(name, value)| (&name[start.len()..], *value))
    }

    /// Every statistic.
    pub fn all(&self) -> impl Iterator<Item = (&str, f64)> {
        self.values.iter().map(|(name, value)| (&**name, *value))
    }
}

/// Parser of text that comes in pieces.
#[derive(Debug, Default)]
pub struct Parser {
    line: Vec<u8>,
    skipping: bool,
    open: Option<Stats>,
    bad: u64,
}

impl Reader for Parser {
    type Value = Stats;

    fn feed(&mut self, text: &[u8], done: &mut dyn FnMut(Stats)) {
        for &byte in text {
            if byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                if !std::mem::take(&mut self.skipping) {
                    let text = std::str::from_utf8(&line);
                    let read = text.ok().and_then(|line| self.line(line, done));
                    self.bad += u64::from(read.is_none());
                }
                self.line = line;
                self.line.clear();
            } else if self.line.len() < MOST_LINE {
                self.line.push(byte);
            } else if !self.skipping {
                self.skipping = true;
                self.bad += 1;
            }
        }
    }

    fn bad(&self) -> u64 {
        self.bad
    }
}

impl Parser {
    fn line(&mut self, line: &str, done: &mut dyn FnMut(Stats)) -> Option<()> {
        if line.is_empty() {
            // Empty lines stand between two sets.
            return Some(());
        }
        if line.bytes().all(|b| b.is_ascii_digit()) {
            if let Some(whole) = self.open.take() {
                done(whole);
            }
            self.open = Some(Stats {
                at_ns: monotonic_ns(),
                ..Stats::default()
            });
            return Some(());
        }
        let (name, value) = line.split_once('\t')?;
        let open = self.open.as_mut()?;
        // Statistics such as `class` have words as values.
        if let Ok(value) = value.parse::<f64>()
            && value.is_finite()
            && open.values.len() < MOST_VALUES
        {
            open.values.insert(name.to_owned(), value);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_is_whole_when_the_next_begins() {
        let mut parser = Parser::default();
        let mut all = Vec::new();
        let text = "1700000000\nnfs:0:rfsproccnt_v3:class\tmisc\nnfs:0:rfsproccnt_v3:read\t12\nsd:1:sd1:rtime\t3.500000000\nno tab\n\n1700000001\nnfs:0:rfsproccnt_v3:read\t13\n";
        for piece in text.as_bytes().chunks(7) {
            parser.feed(piece, &mut |s| all.push(s));
        }
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].value("nfs:0:rfsproccnt_v3:read"), Some(12.0));
        assert_eq!(all[0].value("sd:1:sd1:rtime"), Some(3.5));
        assert_eq!(
            all[0].under("nfs:0:").collect::<Vec<_>>(),
            [("rfsproccnt_v3:read", 12.0)]
        );
        assert_eq!(all[0].all().count(), 2);
        assert_eq!(parser.bad(), 1);
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let mut parser = Parser::default();
        let mut all = Vec::new();
        let mut text = String::from("1\n");
        for i in 0..MOST_VALUES + 5 {
            text += &format!("m:{i}:n:s\t1\n");
        }
        text += &"x".repeat(100 * MOST_LINE);
        text += "\n2\n";
        parser.feed(text.as_bytes(), &mut |s| all.push(s));
        assert_eq!(all[0].values.len(), MOST_VALUES);
        assert_eq!(parser.bad(), 1);
        assert!(parser.line.capacity() < 4 * MOST_LINE);
    }
}
