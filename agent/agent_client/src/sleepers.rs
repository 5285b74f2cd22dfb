//! Samples the kernel stacks of operations in waits without a name, several times while a command watches windows.

use crate::http;
use nfscope_diagnose::observed::Sleeps;
use nfscope_model::{HeldRequest, HeldRequests};
use nfscope_source::{Source, hostname, kernel_frames};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Samples per window, enough to find most of the sleeps.
const LOOKS: u32 = 20;
/// Value of the label `wait` for a wait without a name.
const OTHER_WAIT: &str = "lock";

/// Sleeps that were seen, and the latest reason why some could not be read.
#[derive(Default)]
pub struct Seen {
    sleeps: Sleeps,
    why: Option<String>,
}

impl Seen {
    fn look(&mut self, held: anyhow::Result<HeldRequests>) {
        self.sleeps.looks += 1;
        let held = held.map_err(|why| format!("{why:#}"));
        let stacks = held.and_then(|held| stacks(&held, &hostname::own_name(), kernel_frames));
        match stacks {
            Ok(stacks) => stacks.into_iter().for_each(|s| self.sleeps.add(s)),
            Err(why) => self.why = Some(why),
        }
    }

    fn end(self) -> Result<Sleeps, String> {
        match self.why {
            Some(why) if self.sleeps.count() == 0 => Err(why),
            _ => Ok(self.sleeps),
        }
    }
}

/// Stacks of the requests that are in waits without a name.
fn stacks(
    held: &HeldRequests,
    here: &str,
    read: impl Fn(u32) -> io::Result<Vec<String>>,
) -> Result<Vec<Vec<String>>, String> {
    if let Some(why) = &held.unknown {
        return Err(why.clone());
    }
    let mut all = Vec::new();
    let waits = |r: &&HeldRequest| r.wait == OTHER_WAIT;
    for r in held.requests.iter().filter(waits) {
        // Thread numbers of another host belong to other threads here.
        let stack = match held.host == here {
            true => read(r.thread),
            false => Err(io::ErrorKind::Unsupported.into()),
        };
        match stack {
            Ok(stack) => all.push(stack),
            Err(_) if !r.stack.is_empty() => all.push(r.stack.clone()),
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                return Err("only root may read them: run nfscope diagnose as root".to_owned());
            }
            Err(e) if e.kind() == io::ErrorKind::Unsupported => {
                return Err(format!(
                    "only root on {} may read them: run nfscope diagnose there",
                    held.host
                ));
            }
            // The thread has ended.
            Err(_) => {}
        }
    }
    Ok(all)
}

/// A reader of kernel stacks while a window is watched.
pub enum Sleepers {
    /// A thread that asks an agent.
    Agent(Arc<Mutex<Seen>>),
    /// This process's own probes, asked from time to time.
    Own(Own),
}

/// See [`Sleepers::Own`].
pub struct Own {
    seen: Seen,
    length: Duration,
    next: Instant,
}

impl Own {
    /// Takes a sample if one is due.
    pub fn take(&mut self, source: &mut dyn Source) {
        if self.wait().is_zero() {
            self.next = Instant::now() + pause(self.length, self.seen.sleeps.looks);
            self.seen.look(Ok(source.held(Duration::ZERO)));
        }
    }

    /// Time until the next sample.
    pub fn wait(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }
}

impl Sleepers {
    /// Samples an agent's requests for this time.
    pub fn of_agent(url: &str, length: Duration) -> Sleepers {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let (url, theirs) = (url.to_owned(), Arc::downgrade(&seen));
        let looks = move || {
            for looks in 0..LOOKS {
                std::thread::sleep(pause(length, looks));
                // The result was dropped: no command waits for it any more.
                let Some(seen) = theirs.upgrade() else { return };
                let held = http::held(&url, Duration::ZERO).map_err(anyhow::Error::from);
                seen.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .look(held);
            }
        };
        let thread = std::thread::Builder::new().name("sleepers".to_owned());
        if let Err(why) = thread.spawn(looks) {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.why = Some(why.to_string());
        }
        Sleepers::Agent(seen)
    }

    /// Samples the requests of this process's probes, by [`Own::take`].
    pub fn own(length: Duration) -> Sleepers {
        Sleepers::Own(Own {
            seen: Seen::default(),
            length,
            next: Instant::now() + pause(length, 0),
        })
    }

    /// Returns the sleeps that were seen, or the reason why none were.
    pub fn end(self) -> Result<Sleeps, String> {
        match self {
            Sleepers::Agent(seen) => {
                std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner)).end()
            }
            Sleepers::Own(own) => own.seen.end(),
        }
    }
}

/// Mean time between samples. The first sample is after the beginning of the window, and the last one before its end.
fn interval(length: Duration) -> Duration {
    (length / (LOOKS + 1)).max(http::FRESH)
}

/// Time until the next sample. Samples at equal distances would see a periodic load at the same moment of its period. Each pause therefore
/// is another part of the [`interval`], three to five quarters, by multiples of the golden ratio, which never repeat.
fn pause(length: Duration, looks: u32) -> Duration {
    let part = 0.75 + (f64::from(looks) * 0.618_034).fract() / 2.0;
    interval(length).mul_f64(part).max(http::FRESH)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(host: &str, waits: &[(&str, &[&str])]) -> HeldRequests {
        let request = |(wait, stack): &(&str, &[&str])| HeldRequest {
            thread: 7,
            wait: (*wait).to_owned(),
            stack: stack.iter().map(|&f| f.to_owned()).collect(),
            ..HeldRequest::default()
        };
        HeldRequests {
            host: host.to_owned(),
            requests: waits.iter().map(request).collect(),
            ..HeldRequests::default()
        }
    }

    fn reads(_: u32) -> io::Result<Vec<String>> {
        Ok(vec!["fanotify_handle_event".to_owned()])
    }

    fn denied(_: u32) -> io::Result<Vec<String>> {
        Err(io::ErrorKind::PermissionDenied.into())
    }

    #[test]
    fn only_waits_without_a_name_are_looked_at() {
        let held = held(
            "here",
            &[("lock", &[]), ("disk", &[]), ("cpu", &[]), ("lock", &[])],
        );
        assert_eq!(stacks(&held, "here", reads).unwrap().len(), 2);
    }

    #[test]
    fn without_the_right_to_read_stacks_the_reason_is_known() {
        let one = held("here", &[("lock", &[])]);
        let why = stacks(&one, "here", denied).unwrap_err();
        assert!(why.starts_with("only root may read them"), "{why}");
        // A thread of this host may have the same number as the thread of the other host.
        let why = stacks(&one, "there", reads).unwrap_err();
        assert!(why.starts_with("only root on here may read them"), "{why}");
        // Stacks that the agent has read are used where this process cannot read them.
        let told = held("here", &[("lock", &["cv_wait"])]);
        for (host, read) in [("here", denied as fn(u32) -> _), ("there", reads)] {
            assert_eq!(stacks(&told, host, read).unwrap(), [["cv_wait"]]);
        }
        let ended = |_| Err(io::ErrorKind::NotFound.into());
        assert_eq!(stacks(&one, "here", ended), Ok(Vec::new()));
        let unknown = HeldRequests {
            unknown: Some("not timed".into()),
            ..HeldRequests::default()
        };
        assert_eq!(stacks(&unknown, "here", reads), Err("not timed".into()));
    }

    #[test]
    fn a_look_that_fails_hides_none_that_did_not() {
        let mut seen = Seen::default();
        seen.sleeps.add(vec!["cv_wait".into()]);
        seen.look(Err(anyhow::anyhow!("gone")));
        let sleeps = seen.end().unwrap();
        assert_eq!((sleeps.looks, sleeps.count()), (1, 1));
        let mut none = Seen::default();
        none.look(Err(anyhow::anyhow!("gone")));
        assert_eq!(none.end(), Err("gone".to_owned()));
    }

    #[test]
    fn all_looks_are_within_the_window() {
        let length = Duration::from_secs(60);
        assert!(interval(length) * LOOKS < length);
        assert_eq!(interval(Duration::from_secs(1)), http::FRESH);
        let pauses: Vec<_> = (0..LOOKS).map(|n| pause(length, n)).collect();
        assert!(pauses.iter().sum::<Duration>() < length, "{pauses:?}");
        let different: std::collections::BTreeSet<_> = pauses.iter().collect();
        assert_eq!(different.len(), pauses.len());
    }
}
