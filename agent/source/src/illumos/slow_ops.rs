//! Slow operations: a script of its own, which runs while there is a subscriber.

use super::child::{Child, Reader};
use super::frame::{Event, Parser};
use super::read::nfs::version;
use super::runner::{Patience, Runner};
use super::scripts::op_of;
use crate::nfs_names::{STABILITIES, status};
use nfscope_model::{OpArguments, OpPhases, SlowBatch, SlowFilter, SlowOp};
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime};

/// Operations that are held until they are taken, twenty times a second.
pub const KEEP: usize = 10_000;

/// Line of the script.
#[derive(Debug, Clone, PartialEq)]
pub enum Line {
    /// The script runs.
    Hello,
    /// An operation.
    Slow(Box<SlowOp>),
}

/// Reads the script's text.
#[derive(Debug)]
pub struct Lines {
    parser: Parser,
    secret: String,
}

impl Lines {
    /// Makes a parser for the script whose lines have this word. Lines without it are forged: a client chooses the names of its files, and
    /// a name may contain the end of a line.
    pub fn new(secret: String) -> Lines {
        Lines {
            parser: Parser::default(),
            secret,
        }
    }
}

/// Random word for one start of the script, which no client can guess.
pub fn secret() -> String {
    // The keys of the hash are random.
    let half = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", half(), half())
}

impl Reader for Lines {
    type Value = Line;

    fn feed(&mut self, text: &[u8], done: &mut dyn FnMut(Line)) {
        let mut unreadable = 0;
        let Lines { parser, secret } = self;
        let ours = |line: &str| {
            let rest = line.strip_prefix(secret.as_str())?;
            rest.strip_prefix('\t').and_then(decode)
        };
        parser.feed(text, &mut |event| match event {
            Event::Hello(_) => done(Line::Hello),
            Event::Slow(line) => match ours(&line) {
                Some(op) => done(Line::Slow(Box::new(op))),
                None => unreadable += 1,
            },
            Event::Frame(_) => {}
        });
        parser.add_bad(unreadable);
    }

    fn bad(&self) -> u64 {
        self.parser.bad()
    }
}

/// Reads the fields of a line: time of day, version, probe, duration, status, bytes, stability, client, phases, length of the export,
/// export and path. The last two may have any character in them but the end of a line.
fn decode(line: &str) -> Option<SlowOp> {
    let fields: Vec<_> = line.splitn(11, '\t').collect();
    let [
        at,
        number,
        probe,
        ns,
        code,
        bytes,
        stable,
        client,
        phases,
        length,
        rest,
    ] = fields[..]
    else {
        return None;
    };
    let (export, path) = rest.split_at_checked(length.parse().ok()?)?;
    let path = path.strip_prefix('\t')?;
    let duration = Duration::from_nanos(ns.parse().ok()?);
    let version = version(number)?;
    let op = op_of(probe)?;
    let stability = STABILITIES.get(stable.parse::<usize>().ok()?);
    let bytes: u64 = bytes.parse().ok()?;
    Some(SlowOp {
        arguments: OpArguments::default(),
        at: SystemTime::UNIX_EPOCH + Duration::from_nanos(at.parse().ok()?),
        client: client.parse().ok(),
        version: version.to_owned(),
        op: op.to_owned(),
        export: Some(export.to_owned()).filter(|e| e.starts_with('/')),
        dataset: None,
        inode: None,
        path: Some(path.to_owned()).filter(|p| p.starts_with('/')),
        xid: None,
        bytes: matches!(op, "read" | "write").then_some(bytes),
        stability: stability.filter(|_| op == "write").map(|s| (*s).to_owned()),
        status: match code.parse().ok()? {
            0 => "ok".to_owned(),
            code => status(version == "3", code),
        },
        duration,
        phases: match phases {
            "" => None,
            phases => Some(split(phases, duration)?),
        },
    })
}

/// Durations of each wait, in the order of the script. CPU time is the rest of the duration.
fn split(text: &str, duration: Duration) -> Option<OpPhases> {
    let all: Option<Vec<u64>> = text.split(',').map(|ns| ns.parse().ok()).collect();
    let all: Vec<_> = all?.into_iter().map(Duration::from_nanos).collect();
    let [runqueue, log, disk, throttle, upcall, recall, reclaim, lock] = all[..] else {
        return None;
    };
    let waits = all
        .iter()
        .try_fold(Duration::ZERO, |sum, d| sum.checked_add(*d))?;
    Some(OpPhases {
        cpu: duration.saturating_sub(waits),
        runqueue,
        log,
        disk,
        throttle,
        upcall,
        recall,
        reclaim,
        lock,
    })
}

/// Subscription to slow operations.
#[derive(Debug)]
pub struct Listening {
    filter: SlowFilter,
    runner: Runner<Line>,
    /// Begin of the current second, and number of operations in it.
    second: (Instant, u32),
    /// Operations of the running process that were left out so far.
    left_out: u64,
}

impl Listening {
    /// Makes a subscription. The script starts with the first [`take`](Listening::take).
    pub fn new(filter: SlowFilter, patience: Patience) -> Listening {
        Listening {
            filter,
            runner: Runner::new(patience),
            second: (Instant::now(), 0),
            left_out: 0,
        }
    }

    /// Ends the subscription. A script that is being compiled takes a while to end, so that a thread waits for it.
    pub fn end(self) {
        std::thread::spawn(move || drop(self));
    }

    /// Latency above which operations are requested.
    pub fn over(&self) -> Duration {
        self.filter.over
    }

    /// Changes the filter, but for its latency.
    pub fn change(&mut self, filter: SlowFilter) {
        self.filter = filter;
    }

    /// The process of the script.
    pub fn runner(&self) -> &Runner<Line> {
        &self.runner
    }

    /// Operations since the last call; `start` starts the script.
    pub fn take(&mut self, start: impl FnOnce() -> std::io::Result<Child<Line>>) -> SlowBatch {
        let mut batch = SlowBatch::default();
        let now = Instant::now();
        let Listening {
            filter,
            runner,
            second,
            left_out,
        } = self;
        let overflowed = runner.child().map_or(0, |c| c.inbox().overflowed);
        batch.left_out += overflowed.saturating_sub(std::mem::replace(left_out, overflowed));
        runner.tick(now, start, |line| {
            let Line::Slow(op) = line else { return };
            let op_wanted = filter.ops.is_empty() || filter.ops.contains(&op.op);
            if !op_wanted || !from(&op, filter.client) {
                return;
            }
            if now.saturating_duration_since(second.0) >= Duration::from_secs(1) {
                *second = (now, 0);
            }
            if second.1 >= filter.per_second {
                batch.left_out += 1;
                return;
            }
            second.1 += 1;
            batch.ops.push(*op);
        });
        batch
    }
}

fn from(op: &SlowOp, client: Option<IpAddr>) -> bool {
    client.is_none_or(|wanted| op.client == Some(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::illumos::scripts::{Parts, SLOW};

    const PARTS_NONE: Parts = Parts {
        phases: false,
        zfs: false,
        upcalls: false,
        recalls: false,
        reclaim: false,
        idle: false,
        exports: false,
    };

    fn lines(text: &str) -> (Vec<Line>, u64) {
        let mut out = Vec::new();
        let mut lines = Lines::new("word".into());
        lines.feed(text.as_bytes(), &mut |l| out.push(l));
        (out, lines.bad())
    }

    #[test]
    fn a_line_is_an_operation() {
        let (all, bad) = lines(
            "@hello\tslow\n@slow\tword\t1700000000000000001\t42\top-write-done\t12000000\t10008\t4096\t2\tfe80::3\t1,2000000,3,0,0,0,0,4\t18\t/export/with space\t/export/with space/a\ttab\n\
             @slow\tword\t5\t3\top-commit-done\t40000000\t0\t0\t0\tunknown\t\t9\t<unknown>\t<unknown>\n@slow\tword\t5\t3\top-none-done\t1\t0\t0\t0\tx\t\t1\ty\tz\n\
             @slow\tword\t5\t3\top-commit-done\t4\t0\t0\t0\tx\t\t99\ty\tz\n@slow\tword\t5\t3\top-commit-done\t4\t0\t0\t0\tx\t1,2\t1\ty\tz\nnoise\n",
        );
        assert_eq!((all.len(), bad), (3, 3));
        let Line::Slow(op) = &all[1] else { panic!() };
        assert_eq!(
            (&*op.version, &*op.op, &*op.status),
            ("4.2", "write", "delay")
        );
        assert_eq!(op.stability.as_deref(), Some("file_sync"));
        assert_eq!(op.bytes, Some(4096));
        assert_eq!(op.export.as_deref(), Some("/export/with space"));
        assert_eq!(op.client, "fe80::3".parse().ok());
        assert_eq!(op.duration, Duration::from_millis(12));
        assert_eq!(op.path.as_deref(), Some("/export/with space/a\ttab"));
        let phases = op.phases.unwrap();
        let waits = phases.all().map(|d| d.as_nanos() as u64);
        assert_eq!(waits, [9_999_992, 1, 2_000_000, 3, 0, 0, 0, 0, 4]);
        let Line::Slow(op) = &all[2] else { panic!() };
        assert_eq!((op.client, &op.export, op.bytes), (None, &None, None));
        assert_eq!((&op.path, op.phases), (&None, None));
    }

    /// A script may find no slow operation for a long time: then it only prints every ten seconds that it runs.
    #[test]
    fn a_script_without_slow_operations_is_not_ended() {
        let heartbeat = "profile:::tick-10s\n{\n\tprintf(\"@hello\\tslow\\n\");\n}\n";
        for parts in [Parts::ALL, PARTS_NONE] {
            assert!(SLOW.text(parts, "17").contains(heartbeat));
        }
        // The test runs ten times as fast, with a tenth of the time limit, on a machine that may be busy.
        let patience = Patience {
            silence: Patience::USUAL.silence / 10,
            ..Patience::USUAL
        };
        let everything = SlowFilter {
            over: Duration::ZERO,
            ops: Default::default(),
            client: None,
            per_second: 1,
        };
        let mut listening = Listening::new(everything, patience);
        let say = "while :; do printf '@hello\\tslow\\n'; sleep 1; done";
        let mut starts = 0;
        let begun = Instant::now();
        while begun.elapsed() < 3 * patience.silence {
            let batch = listening.take(|| {
                starts += 1;
                let script = ["-c".to_owned(), say.to_owned()];
                let none = String::new();
                Child::start(
                    "/bin/sh".as_ref(),
                    &script,
                    none,
                    Lines::new("word".into()),
                    KEEP,
                )
            });
            assert_eq!(batch, SlowBatch::default());
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!((starts, listening.runner().failure()), (1, None));
        assert!(listening.runner().runs());
    }

    #[test]
    fn a_path_cannot_make_up_an_operation() {
        let end = "5\t3\top-commit-done\t40000000\t0\t0\t0\t10.0.0.1\t\t2\t/e\t/e/";
        let (all, bad) = lines(&format!(
            "@slow\tword\t{end}first\n@slow\t{end}forged\n@slow\tother\t{end}forged\n@slow\tword{end}forged\n@slow\tword\t{end}last\n"
        ));
        let path = |line: &Line| match line {
            Line::Slow(op) => op.path.clone(),
            Line::Hello => None,
        };
        let paths: Vec<_> = all.iter().filter_map(path).collect();
        assert_eq!((paths.len(), bad), (2, 3), "{paths:?}");
        assert_eq!(paths, ["/e/first", "/e/last"]);
        // Each start of the script has a random word, which the script prints.
        let words = [secret(), secret()];
        assert!(words[0] != words[1] && words[0].len() == 32, "{words:?}");
        let text = SLOW.text(Parts::ALL, "17");
        let prints = text.matches("\"@slow\\t").count();
        assert_eq!(text.matches("\"@slow\\tSECRET\\t").count(), prints);
        assert!(prints > 0);
    }

    #[test]
    fn the_filter_and_its_limit_hold() {
        let mut text = String::from("@hello\tslow\n");
        for i in 0..10 {
            let op = ["write", "commit"][i % 2];
            text += &format!(
                "@slow\tword\t5\t3\top-{op}-done\t40000000\t0\t0\t0\t10.0.0.{}\t\t2\t/e\t/e/f\n",
                i % 4
            );
        }
        let filter = |ops: &[&str], client: Option<&str>, per_second| SlowFilter {
            over: Duration::from_millis(10),
            ops: ops.iter().map(|o| (*o).to_owned()).collect(),
            client: client.map(|c| c.parse().unwrap()),
            per_second,
        };
        for (filter, expected) in [
            (filter(&[], None, 1000), (10, 0)),
            (filter(&["commit"], None, 1000), (5, 0)),
            (filter(&["commit"], Some("10.0.0.1"), 1000), (3, 0)),
            (filter(&[], None, 4), (4, 6)),
        ] {
            let mut listening = Listening::new(filter, Patience::USUAL);
            let printed = text.clone();
            let start = || {
                let script = ["-c".to_owned(), "cat".to_owned()];
                Child::start(
                    "/bin/sh".as_ref(),
                    &script,
                    printed,
                    Lines::new("word".into()),
                    KEEP,
                )
            };
            assert_eq!(listening.take(start), SlowBatch::default());
            let child = listening.runner().child().unwrap();
            child.wait_for(Duration::from_secs(60), |inbox| inbox.open == 0);
            let batch = listening.take(|| unreachable!());
            assert_eq!((batch.ops.len(), batch.left_out), expected);
        }
    }
}
