//! Numbers that a load prints, such as throughput and latency at its clients.

use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};

/// Placeholder of the number in a pattern.
const PLACE: &str = "{}";
/// Longest part of a line that is searched at once, in bytes. It limits the memory for output without line feeds.
const LONGEST_LINE: u64 = 64 << 10;

/// Text with a placeholder for a number: `bw={}MiB/s`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    before: String,
    after: String,
}

impl Pattern {
    /// Parses `bw={}MiB/s`.
    ///
    /// # Errors
    /// When the text has no placeholder, several, or nothing else; the error shows the grammar.
    pub(super) fn parse(text: &str) -> Result<Pattern, String> {
        let wrong = || {
            format!("give a text with {PLACE} in place of the number, as in \"bw={PLACE}MiB/s\"")
        };
        let (before, after) = text.split_once(PLACE).ok_or_else(wrong)?;
        // A pattern without any text would match every number.
        if after.contains(PLACE) || before.trim().is_empty() && after.trim().is_empty() {
            return Err(wrong());
        }
        Ok(Pattern {
            before: before.to_owned(),
            after: after.to_owned(),
        })
    }

    /// Pattern as it was written.
    pub(super) fn text(&self) -> String {
        format!("{}{PLACE}{}", self.before, self.after)
    }

    /// The numbers in a line.
    fn in_line(&self, line: &str) -> Vec<f64> {
        let mut all = Vec::new();
        let mut from = 0;
        while let Some(at) = line.get(from..).and_then(|rest| rest.find(&self.before)) {
            let mut begin = from + at + self.before.len();
            let rest = &line[begin..];
            begin += rest.len() - rest.trim_start_matches([' ', '\t']).len();
            let digits = number(&line[begin..]);
            let end = begin + digits.len();
            match digits.parse::<f64>() {
                Ok(v) if v.is_finite() && line[end..].starts_with(&self.after) => {
                    all.push(v);
                    from = end;
                }
                // Continues behind this number, not within it: a pattern without text before the number matches anywhere.
                _ => from = next_place(line, end.max(from + at + self.before.len())),
            }
        }
        all
    }

    /// Mean of all numbers that match in an output, from byte `from` on.
    ///
    /// # Errors
    /// When no number matches, or the output cannot be read.
    pub(super) fn mean(&self, said: &mut File, from: u64) -> anyhow::Result<f64> {
        said.seek(SeekFrom::Start(from))
            .context("cannot read what the load printed")?;
        let mut lines = BufReader::new(said);
        let (mut sum, mut n) = (0.0, 0.0);
        let mut rest = Vec::new();
        loop {
            let mut line = std::mem::take(&mut rest);
            let mut part = std::io::Read::take(&mut lines, LONGEST_LINE);
            let read = part.read_until(b'\n', &mut line);
            if read.context("cannot read what the load printed")? == LONGEST_LINE as usize {
                // A longer line is cut between numbers: a part of a number would be another number.
                let of_number = |b: &u8| b.is_ascii_alphanumeric() || b"+-.".contains(b);
                let between = line.iter().rposition(|b| b.is_ascii() && !of_number(b));
                rest = line.split_off(between.map_or(line.len(), |at| at + 1));
            } else if line.is_empty() {
                break;
            }
            for v in self.in_line(&String::from_utf8_lossy(&line)) {
                sum += v;
                n += 1.0;
            }
        }
        if n == 0.0 {
            bail!(
                "the load printed no `{}` on its stdout since the recording began",
                self.text()
            );
        }
        Ok(sum / n)
    }
}

/// Numbers that a load has printed from byte `from` on, by the names of their patterns.
pub(super) fn numbers(
    patterns: &BTreeMap<String, Pattern>,
    said: Option<&File>,
    from: u64,
) -> anyhow::Result<BTreeMap<String, f64>> {
    let each = patterns.iter().map(|(name, pattern)| {
        let mut said = said.context("there is no load")?.try_clone()?;
        let value = pattern.mean(&mut said, from);
        Ok((
            name.clone(),
            value.with_context(|| format!("numbers: {name}"))?,
        ))
    });
    each.collect()
}

/// Number at the beginning of a text, as digits; empty if there is none.
fn number(text: &str) -> &str {
    let mut end = 0;
    let mut last = ' ';
    for c in text.chars() {
        let sign = matches!(c, '-' | '+') && (end == 0 || matches!(last, 'e' | 'E'));
        let exponent = matches!(c, 'e' | 'E') && last.is_ascii_digit();
        if !(c.is_ascii_digit() || c == '.' || sign || exponent) {
            break;
        }
        (end, last) = (end + c.len_utf8(), c);
    }
    // In `5 elements` and `5.`, the letter and the full stop belong to the text after the number.
    text[..end].trim_end_matches(['e', 'E', '.', '+', '-'])
}

/// Next character boundary after `from`, or one behind the end.
fn next_place(text: &str, from: usize) -> usize {
    (from + 1..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn all(pattern: &str, line: &str) -> Vec<f64> {
        Pattern::parse(pattern).unwrap().in_line(line)
    }

    /// Output lines of fio 3.33, IOzone and PostMark.
    #[test]
    fn numbers_of_loads() {
        let fio = "  write: IOPS=2533, BW=9.90MiB/s (10.4MB/s)(297MiB/30001msec); 0 zone resets";
        assert_eq!(all("BW={}MiB/s", fio), [9.90]);
        assert_eq!(all("IOPS={}", fio), [2533.0]);
        assert_eq!(all("BW={}KiB/s", fio), [0.0; 0]);
        let iozone = "\tChildren see throughput for  4 initial writers \t=   53189.77 kB/sec";
        assert_eq!(all("initial writers \t={} kB/sec", iozone), [53189.77]);
        assert_eq!(all("{} kB/sec", iozone), [53189.77]);
        assert_eq!(
            all("({} per second)", "\t500 created (12 per second)"),
            [12.0]
        );
        assert_eq!(
            all("avg={}, ", "lat avg=1.5e3, max=-2, avg=7, avg=x"),
            [1500.0, 7.0]
        );
        assert_eq!(all("{} é", "1 2 é 3 é"), [2.0, 3.0]);
        assert!(Pattern::parse("bw").is_err());
        assert!(Pattern::parse(" {} ").is_err());
    }

    #[test]
    fn a_long_line_is_cut_between_numbers() {
        for fill in ["x bw=12 ", "bw=12,"] {
            let mut said = tempfile::tempfile().unwrap();
            let times = 4 * LONGEST_LINE as usize / fill.len();
            said.write_all(fill.repeat(times).as_bytes()).unwrap();
            let pattern = Pattern::parse("bw={}").unwrap();
            assert_eq!(pattern.mean(&mut said, 0).unwrap(), 12.0, "{fill}");
        }
    }

    #[test]
    fn the_mean_is_of_what_was_printed_since() {
        let mut said = tempfile::tempfile().unwrap();
        said.write_all(b"bw=100\n").unwrap();
        let from = said.metadata().unwrap().len();
        said.write_all(b"bw=2 \xff bw=4\nbw=9 and more").unwrap();
        let pattern = Pattern::parse("bw={}").unwrap();
        assert_eq!(pattern.mean(&mut said, from).unwrap(), 5.0);
        let none = Pattern::parse("iops={}").unwrap();
        let why = none.mean(&mut said, 0).unwrap_err().to_string();
        assert!(why.contains("the load printed no `iops={}`"), "{why}");
    }
}
