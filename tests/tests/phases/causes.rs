//! Causes of waits, one at a time, the same load without it and with it: the added time is in its phase.

use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::{Delay, Disk, Server, ThreadTimes};
use nfscope_model::{Snapshot, family};

use super::added::{self, ATTEMPTS, Cause, Of};
use super::{DELAY, Watch};

/// Every cause on ext4, with its name.
pub const ON_EXT4: [(&str, crate::vm_kernels::Check); 6] = [
    (
        "a cold read waits for the disk",
        a_cold_read_waits_for_the_disk,
    ),
    ("a sync write waits for the log", |watch| {
        a_sync_write_waits_for_the_log(watch, "ext4")
    }),
    (
        "a create waits for the directory",
        a_create_waits_for_the_directory,
    ),
    ("a request waits for a thread", a_request_waits_for_a_thread),
    ("an operation waits for a CPU", an_operation_waits_for_a_cpu),
    ("a reply waits for its reader", a_reply_waits_for_its_reader),
];

/// Makes the file for READs, and a directory with many entries.
pub fn make_files(server: &Server) -> Result<()> {
    server.sh("set -e
         dd if=/dev/urandom of=/run/exp/shared bs=1M count=64 status=none
         cd /run/exp; touch $(seq -f entry%g 600); sync")?;
    Ok(())
}

/// Causes on XFS, which is exported with its log on a disk of its own.
pub fn are_found_on_xfs(watch: &mut Watch) -> Result<()> {
    a_sync_write_waits_for_the_log(watch, "xfs")?;
    a_cold_listing_of_xfs_waits_for_the_disk(watch)
}

/// XFS does not wait for its metadata in io_schedule(). A single client waits for its own reads and for readahead. Several clients
/// would also wait for each other's lookups of one name (d_alloc_parallel), which are other waits.
fn a_cold_listing_of_xfs_waits_for_the_disk(watch: &mut Watch) -> Result<()> {
    let files = "cd /run/exp; touch $(seq -f entry%g 2000); sync";
    watch.server.sh(files)?;
    let of = Of::Op("3", "readdirplus");
    added::is_in("disk", "a slow disk of metadata", of, |cause| {
        let delay = cause.choose(Delay::reads(DELAY), Delay::NONE);
        watch.server.delay(Disk::Data, delay)?;
        watch.server.drop_caches()?;
        watch.run_clients("readdir --clients 1 --times 1")
    })?;
    watch.server.delay(Disk::Data, Delay::NONE)
}

/// Causes on btrfs, whose log lies on the data's disk. If that is slow, a write waits for its data, then for its log.
pub fn are_found_on_btrfs(watch: &mut Watch) -> Result<()> {
    for (version, op) in [("3", "write"), ("4.2", "commit")] {
        let of = Of::Op(version, op);
        added::is_in_both(("log", "disk"), "a slow disk of btrfs", of, |cause| {
            let delay = cause.choose(Delay::writes(DELAY), Delay::NONE);
            watch.server.delay(Disk::Data, delay)?;
            watch.run_clients(&format!("write --nfs {version} --times 10"))
        })?;
    }
    watch.server.delay(Disk::Data, Delay::NONE)
}

fn a_cold_read_waits_for_the_disk(watch: &mut Watch) -> Result<()> {
    for version in ["3", "4.2"] {
        let of = Of::Op(version, "read");
        added::is_in("disk", "a slow disk", of, |cause| {
            let delay = cause.choose(Delay::reads(DELAY), Delay::NONE);
            watch.server.delay(Disk::Data, delay)?;
            watch.server.drop_caches()?;
            watch.run_clients(&format!("read --nfs {version} --times 15"))
        })?;
    }
    watch.server.delay(Disk::Data, Delay::NONE)
}

fn a_sync_write_waits_for_the_log(watch: &mut Watch, fs: &str) -> Result<()> {
    for (version, op) in [("3", "write"), ("4.2", "commit")] {
        let what = format!("a slow log of {fs}");
        added::is_in("log", &what, Of::Op(version, op), |cause| {
            let delay = cause.choose(Delay::writes(DELAY), Delay::NONE);
            watch.server.delay(Disk::Log, delay)?;
            watch.run_clients(&format!("write --nfs {version} --times 10"))
        })?;
    }
    watch.server.delay(Disk::Log, Delay::NONE)
}

/// The directory stays locked while its change is made durable: the next CREATEs wait for the lock, not for the log.
fn a_create_waits_for_the_directory(watch: &mut Watch) -> Result<()> {
    watch.server.delay(Disk::Log, Delay::writes(DELAY))?;
    let of = Of::Op("3", "create");
    added::is_in("lock", "eight in one directory", of, |cause| {
        let clients = cause.choose(8, 1);
        let times = 16 / clients;
        watch.run_clients(&format!("create --clients {clients} --times {times}"))
    })?;
    watch.server.delay(Disk::Log, Delay::NONE)
}

/// The clients' own clocks measure the wait, too.
fn a_request_waits_for_a_thread(watch: &mut Watch) -> Result<()> {
    let server = watch.server;
    server.delay(Disk::Data, Delay::reads(DELAY))?;
    let of = Of::Rpc("3");
    added::is_in("queue", "one thread for sixteen", of, |cause| {
        server.set_threads(cause.choose(1, 16))?;
        server.drop_caches()?;
        let mut waited = 0.0;
        let (_, seen) = watch.during(|| {
            let clients = server.run_clients("read --clients 16 --times 2")?;
            waited = clients.iter().map(|c| c.seconds).sum();
            Ok(())
        })?;
        let residence = seen.hist(&family::RPC_DURATION, ["3"]);
        let residence = residence.map_or(0.0, |h| h.sum);
        println!("residence {residence:.3} s, by the clients' clocks {waited:.3} s");
        // A call may lie on its socket before the server accepts the connection, and the clients wait for CPUs, too. A reply may be
        // read before the thread that sent it goes on, and until then the thread has the request.
        ensure!(
            residence < 1.1 * waited && residence > 0.7 * waited,
            "a residence of {residence} s, but the clients waited {waited} s"
        );
        Ok(seen)
    })?;
    server.set_threads(8)?;
    server.delay(Disk::Data, Delay::NONE)
}

/// A single CPU is needed: if one thread of the emulator plays two, one that spins keeps the other from its timer interrupts.
fn an_operation_waits_for_a_cpu(watch: &mut Watch) -> Result<()> {
    let server = watch.server;
    server.one_cpu()?;
    let list = "readdir --times 25";
    // The first listing reads everything into memory.
    watch.run_clients(list)?;
    let of = Of::Op("3", "readdirplus");
    added::is_in("runqueue", "others with priority", of, |cause| {
        let mut left = ATTEMPTS;
        loop {
            left -= 1;
            let (seen, threads) = with_a_hog(watch, cause, list)?;
            let Err(why) = cpu_time_is_the_threads(&seen, &threads) else {
                return Ok(seen);
            };
            // A wait is unknown if the kernel skipped the beginning of its operation, and there are few operations.
            let lost = ["late", "recursion"].map(|r| seen.value(&family::EVENTS_LOST, ["nfsd", r]));
            ensure!(lost.iter().any(|n| *n > Some(0.0)), "{why}");
            if left == 0 {
                // An unknown wait counts as CPU time: waits are at most those of the threads, and both together at most the threads'
                // sum.
                cpu_time_and_waits_are_the_threads(&seen, &threads).context(why)?;
                return Ok(seen);
            }
            println!("once more, because programs were skipped ({lost:?}): {why}");
        }
    })?;
    server.all_cpus()
}

/// Runs a load with or without a program of high priority that takes the CPU for three quarters of the time.
fn with_a_hog(watch: &mut Watch, cause: Cause, load: &str) -> Result<(Snapshot, ThreadTimes)> {
    let server = watch.server;
    let (busy, idle) = (Duration::from_millis(60), Duration::from_millis(20));
    let hog = match cause {
        Cause::On => Some(server.cpu_hog(busy, idle)?),
        Cause::Off => None,
    };
    let threads = server.thread_times()?;
    let seen = watch.run_clients(load)?;
    if let Some(hog) = hog {
        hog.kill()?;
    }
    Ok((seen, server.thread_times()?.since(&threads)?))
}

/// Compares CPU time with the kernel's own of threads that do little besides these operations.
fn cpu_time_is_the_threads(seen: &Snapshot, threads: &ThreadTimes) -> Result<()> {
    let op = lab::reconcile::by_last_label(seen, &family::OP_PHASE.info, |_| true);
    let (ran, waited) = (threads.ran().as_secs_f64(), threads.waited().as_secs_f64());
    println!("{op:.3?}; the threads ran {ran:.3} s, waited {waited:.3} s");
    ensure!(op["cpu"] <= ran, "{op:?}, but the threads ran {ran} s");
    ensure!(
        op["cpu"] >= ran / 2.0,
        "{op:?}, but the threads ran {ran} s"
    );
    ensure!(
        op["runqueue"] <= waited,
        "{op:?}, but the threads waited {waited} s"
    );
    Ok(())
}

/// Compares waits, and waits with CPU time together, with the kernel's own times of the threads.
fn cpu_time_and_waits_are_the_threads(seen: &Snapshot, threads: &ThreadTimes) -> Result<()> {
    let op = lab::reconcile::by_last_label(seen, &family::OP_PHASE.info, |_| true);
    let told = op["cpu"] + op["runqueue"];
    let (ran, waited) = (threads.ran().as_secs_f64(), threads.waited().as_secs_f64());
    let had = ran + waited;
    ensure!(
        op["runqueue"] <= waited && told <= had && told >= had / 2.0,
        "{op:?}, but the threads ran {ran} s and waited {waited} s"
    );
    Ok(())
}

/// An operation ends before its reply does. A snapshot between the two must not count it once as an unknown client's and then as its
/// client's.
fn each_is_told_once(watch: &mut Watch, load: &str) -> Result<()> {
    let (server, agent) = (watch.server, watch.agent);
    let mut asked = 0;
    let (_, seen) = watch.during(|| {
        thread::scope(|scope| {
            let load = scope.spawn(|| server.run_clients(load));
            while !load.is_finished() {
                agent.snapshot()?;
                asked += 1;
            }
            load.join().expect("the load does not panic").map(drop)
        })
    })?;
    let all = lab::reconcile::merged(&seen, &family::OP_DURATION.info, |_| true);
    let clients = lab::reconcile::by_last_label(&seen, &family::CLIENT_OPS.info, |_| true);
    println!("{clients:?} while the agent was asked {asked} times");
    let reported = clients.values().sum::<f64>() as u64;
    let told = all.map_or(0, |h| h.count());
    let missed = lab::reconcile::missed(agent, "nfsd")?;
    lab::reconcile::agree("operations of clients", reported, told, missed)
}

fn a_reply_waits_for_its_reader(watch: &mut Watch) -> Result<()> {
    // A reply is larger than the socket's buffer, so that the thread that sends it must wait for the reader.
    let wmem = "/proc/sys/net/ipv4/tcp_wmem";
    let server = watch.server;
    let usual = server.sh(&format!("cat {wmem}; echo 4096 16384 65536 > {wmem}"))?;
    let read = "read --size 262144 --buffer 65536";
    watch.run_clients(&format!("{read} --times 8"))?;
    added::is_in("reply", "a slow reader", Of::Rpc("3"), |cause| {
        watch.run_clients(&format!(
            "{read} --times 8 --stall {}",
            cause.choose(300, 0)
        ))
    })?;
    // Each client stalls for longer than a snapshot of the agent takes.
    each_is_told_once(watch, &format!("{read} --times 4 --stall 1500"))?;
    server.sh(&format!("echo {} > {wmem}", usual.stdout.trim()))?;
    Ok(())
}
