//! WRITEs that clients take for durable: as many as the raw clients sent, and unsafe where the lab made them so.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, ensure};
use lab::reconcile::{settled, window};
use lab::{Agent, Delay, Disk, Server, finally};
use nfscope_model::{Snapshot, family};

/// How the lab exports, but for `sync`.
const OPTIONS: &str = "rw,no_root_squash,insecure,no_subtree_check,fsid=0";
const WRITES: u64 = 120;

/// On a file system with a journal, exported `sync` and then `async`.
pub fn is_told(server: &Server, agent: &Agent) -> Result<()> {
    // No log is so fast then that a thread need not wait for it.
    server.delay(Disk::Log, Delay::writes(Duration::from_millis(20)))?;
    let told = with_a_log_that_takes_time(server, agent);
    server.delay(Disk::Log, Delay::NONE)?;
    told
}

fn with_a_log_that_takes_time(server: &Server, agent: &Agent) -> Result<()> {
    let write = |nfs: &str| {
        // One client: another one's wait could make its writes durable, too.
        server.run_clients(&format!("write --nfs {nfs} --times {WRITES}"))
    };
    let during = |what: &str| -> Result<BTreeMap<String, u64>> {
        let before = settled(server, &[agent])?;
        // Over v3 they ask for FILE_SYNC, over v4 for nothing, and then for a COMMIT.
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
    // Every WRITE changes its file.
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
