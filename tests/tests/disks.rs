//! Disks are as slow as the lab sets them: every test of a delay relies on these checks.

use std::time::Duration;

use anyhow::{Result, ensure};
use lab::{Delay, Disk, Server};

const LATE: Duration = Duration::from_millis(200);

/// Delays of a server that exports ext4 or XFS with a log on a disk of its own.
pub fn are_as_slow_as_told(server: &Server) -> Result<()> {
    let done = with_a_log_disk(server);
    all_are_fast(server)?;
    done
}

/// Synchronous writes of a pool wait for the log's disk alone, and a pool takes such a disk while it serves.
pub fn of_a_pool_are_as_slow_as_told(server: &Server) -> Result<()> {
    let done = a_pool_takes_a_log_disk(server);
    all_are_fast(server)?;
    done
}

/// Removes all delays, even after a failure: later checks find fast disks.
pub fn all_are_fast(server: &Server) -> Result<()> {
    server.clients().try_for_each(|c| c.unmount_all())?;
    server.delay(Disk::Data, Delay::NONE)?;
    server.delay(Disk::Log, Delay::NONE)
}

fn with_a_log_disk(server: &Server) -> Result<()> {
    let mount = server.client(0).mount_v3()?;
    let took = |script: &str| seconds(server, script);
    let write = |name: &str| five_sync_writes(server, &format!("{mount}/{name}"));
    server.delay(Disk::Data, Delay::writes(LATE))?;
    let sync = write("f")?;
    ensure!(sync > 1.0, "5 synchronous writes took {sync} s");
    // A disk's delay would be in all five, and the host's in some.
    let stats = (0..5).map(|_| took(&format!("stat {mount}/f")));
    let stats = stats.collect::<Result<Vec<f64>>>()?;
    ensure!(stats.iter().any(|s| *s < 0.5), "stat took {stats:?} s");

    server.delay(Disk::Data, Delay::reads(LATE))?;
    let fast = write("g")?;
    server.drop_caches()?;
    let read = took("cat /run/exp/g > /dev/null")?;
    ensure!(read > 0.2, "a cold read took {read} s");
    server.delay(Disk::Data, Delay::NONE)?;
    server.delay(Disk::Log, Delay::writes(LATE))?;
    let slow = write("h")?;
    ensure!(
        slow > 1.0 && slow > fast + 0.8,
        "5 synchronous writes took {slow} s with a slow log, {fast} s without"
    );
    Ok(())
}

fn a_pool_takes_a_log_disk(server: &Server) -> Result<()> {
    let mount = server.client(0).mount_v4_2()?;
    let write = |name: &str| five_sync_writes(server, &format!("{mount}/{name}"));
    write("first")?; // makes the log

    server.delay(Disk::Data, Delay::writes(LATE))?;
    let alone = write("f")?;
    server.sh("zpool add -f tank log /dev/mapper/log")?;
    ensure!(alone > 1.0, "5 synchronous writes took {alone} s");
    write("second")?; // where the log goes on was settled before
    let separate = write("g")?;
    ensure!(
        separate < alone / 2.0,
        "5 synchronous writes took {separate} s with a fast log, {alone} s without"
    );
    server.delay(Disk::Data, Delay::NONE)?;
    server.delay(Disk::Log, Delay::writes(LATE))?;
    let slow = write("h")?;
    println!("no log {alone} s, a fast one {separate} s, a slow one {slow} s");
    ensure!(slow > 1.0, "5 synchronous writes took {slow} s");
    Ok(())
}

fn seconds(server: &Server, script: &str) -> Result<f64> {
    let script = format!("TIMEFORMAT=%R; time {script}");
    let output = server.client(0).sh(&script)?;
    Ok(output.stderr.lines().last().unwrap_or_default().parse()?)
}

fn five_sync_writes(server: &Server, file: &str) -> Result<f64> {
    let dd = format!("dd if=/dev/zero of={file} bs=4k count=5 oflag=sync status=none");
    seconds(server, &dd)
}
