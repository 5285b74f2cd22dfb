//! WRITEs that clients take for durable: their number equals the raw clients', and they are unsafe if the lab made them so.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use lab::reconcile::{settled, window};
use lab::{Agent, Delay, Disk, Server, finally};
use nfscope_model::{Snapshot, family};

/// Export options of the lab, but for `sync`.
const OPTIONS: &str = "rw,no_root_squash,insecure,no_subtree_check,fsid=0";
const WRITES: u64 = 120;

/// Durability on a file system with a journal, exported `sync` and then `async`.
pub fn is_told(server: &Server, agent: &Agent) -> Result<()> {
    // With a fast log a thread need not wait for it at times.
    server.delay(Disk::Log, Delay::writes(Duration::from_millis(20)))?;
    let told = with_a_log_that_takes_time(server, agent);
    server.delay(Disk::Log, Delay::NONE)?;
    told
}

fn with_a_log_that_takes_time(server: &Server, agent: &Agent) -> Result<()> {
    let write = |nfs: &str| {
        // The writer is a single client: another one's wait could make its writes durable, too.
        server.run_clients(&format!("write --nfs {nfs} --times {WRITES}"))
    };
    let during = |what: &str| -> Result<BTreeMap<String, u64>> {
        let before = settled(server, &[agent])?;
        // WRITEs over v3 are FILE_SYNC; over v4 they are unstable, with a COMMIT behind.
        write("3")?;
        write("4.2")?;
        let after = settled(server, &[agent])?;
        let (_, seen) = window(&before, &after, 0);
        println!("{what}: {:?}", reasons(&seen));
        assert_eq!(
            sum(&seen) as u64,
            2 * WRITES,
            "{what}: WRITEs and COMMITs whose client takes them for durable"
        );
        Ok(reasons(&seen))
    };
    let waited = during("sync")?;
    // With `sync` none is unsafe, because every WRITE changes its file and waits for the log.
    let none = waited.values().all(|n| *n == 0);
    ensure!(waited.len() == 4 && none, "{waited:?}");
    let export = |how: &str| server.sh(&format!("exportfs -o {how},{OPTIONS} '*:/run/exp'"));
    finally(
        || {
            export("async")?;
            assert_eq!(during("async")?.get("async"), Some(&(2 * WRITES)), "async");
            Ok(())
        },
        || export("sync").map(drop),
    )
}

fn reasons(seen: &Snapshot) -> BTreeMap<String, u64> {
    seen.numbers(&family::UNSAFE_WRITES)
        .map(|([why], n)| (why.to_owned(), n as u64))
        .collect()
}

fn sum(seen: &Snapshot) -> f64 {
    seen.value(&family::DURABLE_WRITES, []).unwrap_or(0.0)
}
