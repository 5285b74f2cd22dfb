//! Looks at the kernel stacks of operations that are in waits without a name, several times while somebody watches windows.

use crate::http;
use nfscope_diagnose::observed::Sleeps;
use nfscope_model::{HeldRequest, HeldRequests};
use nfscope_source::{Source, hostname, kernel_frames};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Looks in a window: enough to tell what most of the sleeps are.
const LOOKS: u32 = 20;
/// The label `wait` of a wait without a name.
const OTHER_WAIT: &str = "lock";

/// Sleeps that were seen, and the latest reason why some were not.
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

/// The stacks of the requests that are in waits without a name.
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
        // The threads of another host have the numbers of others here.
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
    /// A thread asks an agent.
    Agent(Arc<Mutex<Seen>>),
    /// Our own probes are asked from time to time.
    Own(Own),
}

/// See [`Sleepers::Own`].
pub struct Own {
    seen: Seen,
    length: Duration,
    next: Instant,
}

impl Own {
    /// Looks if it is time to.
    pub fn take(&mut self, source: &mut dyn Source) {
        if self.wait().is_zero() {
            self.next = Instant::now() + pause(self.length, self.seen.sleeps.looks);
            self.seen.look(Ok(source.held(Duration::ZERO)));
        }
    }

    /// Until the next look.
    pub fn wait(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }
}

impl Sleepers {
    /// Looks at an agent's requests for as long as that.
    pub fn of_agent(url: &str, length: Duration) -> Sleepers {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let (url, theirs) = (url.to_owned(), Arc::downgrade(&seen));
        let looks = move || {
            for looks in 0..LOOKS {
                std::thread::sleep(pause(length, looks));
                // The result is gone: no command waits for it any more.
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

    /// Looks at the requests of our own probes, by [`Own::take`].
    pub fn own(length: Duration) -> Sleepers {
        Sleepers::Own(Own {
            seen: Seen::default(),
            length,
            next: Instant::now() + pause(length, 0),
        })
    }

    /// Returns the sleeps that were seen, or why none were.
    pub fn end(self) -> Result<Sleeps, String> {
        match self {
            Sleepers::Agent(seen) => {
                std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner)).end()
            }
            Sleepers::Own(own) => own.seen.end(),
        }
    }
}

/// The first look is not at the beginning, and the last one not behind the end.
fn interval(length: Duration) -> Duration {
    (length / (LOOKS + 1)).max(http::FRESH)
}

/// Between two looks. Looks at equal distances would see a load that repeats itself in one of its moments: each pause is another part,
/// three to five quarters, of the [`interval`], by multiples of the golden ratio, which repeat themselves never.
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
        // A thread of this host may have the number of one there.
        let why = stacks(&one, "there", reads).unwrap_err();
        assert!(why.starts_with("only root on here may read them"), "{why}");
        // The agent may have the right.
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
