//! Kinds of requests that arrive, from the job file's comments.

use crate::workload::catalog::Workload;
use crate::workload::parameters::number;
use anyhow::{Context, bail};

/// Action of a request; each action opens its file and closes it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Action {
    /// Creates a file and writes it whole.
    Create,
    /// Extends a file.
    Append,
    /// Reads a file whole.
    Read,
    /// Looks a file up.
    Stat,
    /// Removes the oldest file.
    Remove,
    /// Looks up, opens and reads this number of files, one after the other.
    Page(u32),
    /// Writes to one log.
    Log,
}

/// A kind of request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kind {
    pub job: &'static str,
    pub action: Action,
    /// Least and most bytes.
    pub size: (u64, u64),
    /// Requests of this kind per request of the rate.
    pub part: f64,
    /// True if data is durable before the write returns.
    pub durable: bool,
}

impl Kind {
    pub fn operation(&self) -> &'static str {
        match self.action {
            Action::Create => "create",
            Action::Append => "append",
            Action::Read => "read",
            Action::Stat => "stat",
            Action::Remove => "unlink",
            Action::Page(_) => "page",
            Action::Log => "write",
        }
    }

    pub fn moves_data(&self) -> bool {
        !matches!(self.action, Action::Stat | Action::Remove) && self.size.1 > 0
    }
}

/// All kinds of a workload, and its files.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix {
    pub(super) kinds: Vec<Kind>,
    /// Number of files that exist before the run.
    pub(super) files: u64,
    /// Least and most bytes of these files.
    pub(super) size: (u64, u64),
    /// Directories that they are spread over; 0 for one flat directory.
    pub(super) directories: u64,
}

impl Mix {
    /// Mix of a workload with these variables; `None` if the job file describes none.
    ///
    /// # Errors
    /// When a variable is no number.
    pub fn of(w: Workload, variables: &[(&'static str, String)]) -> anyhow::Result<Option<Mix>> {
        let value = |word: &str| -> anyhow::Result<f64> {
            let set = variables.iter().find(|(name, _)| *name == word);
            let text = set.map_or(word, |(_, value)| value);
            number(text).with_context(|| {
                format!("{word}: `{text}` is no number; fix: give one such as 8, 64k or 1g")
            })
        };
        let size = |word: &str| -> anyhow::Result<(u64, u64)> {
            let (low, high) = word.split_once('-').unwrap_or((word, word));
            let (low, high) = (value(low)? as u64, value(high)? as u64);
            Ok((low.min(high), high))
        };
        let mut mix = Mix {
            kinds: Vec::new(),
            files: 0,
            size: (0, 0),
            directories: 0,
        };
        // Format of the line: deliver create 16k 0.2 durable
        for line in w.said("Open") {
            let words: Vec<&'static str> = line.split_whitespace().collect();
            let [job, action, bytes, part, rest @ ..] = &words[..] else {
                bail!("{}: cannot read `{line}`", w.name);
            };
            mix.kinds.push(Kind {
                job,
                action: action_of(action).with_context(|| format!("{}: no {action}", w.name))?,
                size: size(bytes)?,
                part: value(part)?,
                durable: rest.contains(&"durable"),
            });
        }
        if mix.kinds.is_empty() {
            return Ok(None);
        }
        // Format of the line: FILES x READERS of 16k in 0
        let line = w.said("Files").next().unwrap_or_default();
        let words: Vec<_> = line.split_whitespace().collect();
        let [files, "x", threads, "of", bytes, "in", directories] = words[..] else {
            bail!("{}: cannot read `{line}`", w.name);
        };
        mix.files = ((value(files)? * value(threads)?) as u64).max(1);
        mix.size = size(bytes)?;
        mix.directories = value(directories)? as u64;
        Ok(Some(mix))
    }
}

fn action_of(word: &str) -> Option<Action> {
    Some(match word {
        "create" => Action::Create,
        "append" => Action::Append,
        "read" => Action::Read,
        "stat" => Action::Stat,
        "remove" => Action::Remove,
        "log" => Action::Log,
        _ => Action::Page(word.strip_prefix("page*")?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::SizeName;
    use crate::workload::catalog::all;
    use crate::workload::parameters::{Set, variables};

    #[test]
    fn every_workload_has_an_open_loop_or_says_why_not() {
        for w in all() {
            let size = w.size(SizeName::Small).unwrap();
            let (variables, _) = variables(w, &size, &Set::default()).unwrap();
            let mix = Mix::of(w, &variables).unwrap();
            let ways = [mix.is_some(), w.open_loop().is_some(), w.closed().is_some()];
            assert_eq!(ways.iter().filter(|way| **way).count(), 1, "{}", w.name);
            for kind in mix.iter().flat_map(|m| &m.kinds) {
                assert!(kind.part > 0.0, "{}: {kind:?}", w.name);
            }
        }
    }

    #[test]
    fn a_mix_follows_what_is_set() {
        let w = crate::workload::named("postmark").unwrap();
        let set = Set {
            values: vec![("LOW".into(), "1k".into()), ("HIGH".into(), "4k".into())],
            threads: Some(2),
            ..Set::default()
        };
        let (variables, _) = variables(w, &w.size(SizeName::Small).unwrap(), &set).unwrap();
        let mix = Mix::of(w, &variables).unwrap().unwrap();
        assert_eq!((mix.size, mix.files), ((1024, 4096), 40));
        let parts: f64 = mix.kinds.iter().map(|k| k.part).sum();
        assert!((parts - 1.0).abs() < 1e-9);
    }
}
