//! The kernel's own times of the nfsd threads.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// Times that each nfsd thread has run and waited to run, since its start or in a window (/proc/PID/schedstat).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    by_id: BTreeMap<u32, (Duration, Duration)>,
}

impl ThreadTimes {
    /// Script that prints the text for [`ThreadTimes::parse`].
    pub(crate) const SCRIPT: &str =
        "for p in $(pidof nfsd); do echo $p $(cat /proc/$p/schedstat); done";

    /// Reads lines of `<thread id> <ran, ns> <waited to run, ns> <times that it ran>`.
    pub(crate) fn parse(text: &str) -> Result<ThreadTimes> {
        let mut by_id = BTreeMap::new();
        for line in text.lines() {
            let n: Vec<u64> = line
                .split_whitespace()
                .map(|word| word.parse().with_context(|| format!("no number: {line:?}")))
                .collect::<Result<_>>()?;
            let [id, ran, waited, _] = n[..] else {
                anyhow::bail!("not understood: {line:?}")
            };
            let times = (Duration::from_nanos(ran), Duration::from_nanos(waited));
            by_id.insert(u32::try_from(id)?, times);
        }
        ensure!(!by_id.is_empty(), "no nfsd threads");
        Ok(ThreadTimes { by_id })
    }

    /// Times since `before`. Fails if a thread has ended since, because its times went with it.
    pub fn since(&self, before: &ThreadTimes) -> Result<ThreadTimes> {
        let mut by_id = self.by_id.clone();
        for (id, (ran, waited)) in &before.by_id {
            let now = by_id.get_mut(id);
            let now = now.with_context(|| format!("the nfsd thread {id} has ended"))?;
            *now = (now.0.saturating_sub(*ran), now.1.saturating_sub(*waited));
        }
        Ok(ThreadTimes { by_id })
    }

    /// Time on a CPU, all threads together.
    pub fn ran(&self) -> Duration {
        self.by_id.values().map(|(ran, _)| *ran).sum()
    }

    /// Time runnable and waiting for a CPU, all threads together.
    pub fn waited(&self) -> Duration {
        self.by_id.values().map(|(_, waited)| *waited).sum()
    }
}
