//! Break-downs on demand: their counts by client, user and file equal those of raw clients, and their sums equal the gain of the
//! operation counters.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use lab::breakdown::{Breakdown, Told};
use lab::reconcile::{agree_each, merged, missed, moved, settled, window};
use lab::{Agent, Server};
use nfscope_model::family;
use nfscope_model::{Sample, Snapshot};

/// Three clients, two users, two exports, two files. One agent, whose first listener groups by fewer labels than the others.
pub fn tells_who_did_what(server: &Server, agent: &Agent) -> Result<()> {
    server.clients().try_for_each(|c| c.unmount_all())?;
    let inodes =
        "cd /run/exp && echo known >known && echo known >home/known && stat -c %i known home/known";
    let inodes = server.sh(inodes)?.stdout;
    let inodes: Vec<&str> = inodes.split_whitespace().collect();
    let tables = tables(server, agent)?;
    let first = settled(server, &[agent])?;
    let op = Breakdown::begin(agent.address(), "by=op,version")?;
    let others = comes_and_goes(agent.address());
    server.run_clients("getattr --clients 3 --from 127.9.0.1 --times 400 --every 5")?;
    let times = others.end()?;
    ensure!(times > 1, "somebody else listened {times} times");
    let before = settled(server, &[agent])?;
    let all = "by=client,export,op,version,user,file&rows=1000";
    let all = Breakdown::begin(agent.address(), all)?;
    let home = "by=user,file&where=export:/run/exp/home&where=op:read";
    let home = Breakdown::begin(agent.address(), home)?;
    let by_file = "by=file&where=op:read&paths=true";
    let named = Breakdown::begin(agent.address(), by_file)?;
    ensure!(
        self::tables(server, agent)? == tables + 2,
        "listeners do not share tables"
    );
    let mut sent = BTreeMap::new();
    for (n, export, version, user, times) in [
        (0, "/run/exp", "3", "1000", 20),
        (1, "/run/exp/home", "4.2", "1001", 10),
        (1, "/run/exp/home", "3", "1000", 5),
    ] {
        let clients = server.run_clients(&format!(
            "read --file known --clients 3 --more 7 --from 127.9.0.1 --export {export} --nfs {version} --user {user} --times {times}"
        ))?;
        for (client, more) in clients.iter().zip([0, 7, 14]) {
            let key = [
                &client.address.to_string(),
                export,
                "read",
                version,
                user,
                inodes[n],
            ];
            sent.insert(key.map(str::to_owned).to_vec(), times + more);
        }
    }
    let after = settled(server, &[agent])?;
    let (op, all, home) = (op.end()?, all.end()?, home.end()?);
    let paths = ["/run/exp", "/run/exp/home"].into_iter().zip(&inodes);
    let paths = paths.map(|(export, inode)| {
        (
            vec![format!("{export}:{inode}")],
            Ok(format!("{export}/known")),
        )
    });
    let paths = paths.collect::<BTreeMap<_, _>>();
    let mut told = named.end()?.paths;
    let seen = window(&before, &after, 0).1;
    let missed = missed(agent, "nfsd")?;
    println!(
        "break-down: {} rows, {} bytes of kernel memory, {:.6} s of CPU time for {} operations",
        all.rows.len(),
        all.header.kernel_bytes,
        all.intervals.iter().map(|i| i.cost_seconds).sum::<f64>(),
        all.total().count
    );
    ensure!(op.header.kernel_bytes > 1 << 20, "{:?}", op.header);
    are_the_counters(&op, &window(&first, &after, 0).1)?;
    are_the_counters(&all, &seen)?;
    let reads: BTreeMap<_, _> = (all.rows.iter())
        .filter(|(key, _)| key[2] == "read")
        .map(|(key, times)| (key.clone(), times.count))
        .collect();
    agree_each("READs", &reads, &sent, missed)?;
    // A file's name contains its export if no other label has it.
    let mut of_home = BTreeMap::new();
    for (key, n) in sent.iter().filter(|(key, _)| key[1] == "/run/exp/home") {
        let file = format!("{}:{}", key[1], key[5]);
        *of_home.entry(vec![key[4].clone(), file]).or_default() += n;
    }
    agree_each(
        "READs of an export",
        &home.counts(&["user", "file"]),
        &of_home,
        missed,
    )?;
    // Operations without a file handle have no file.
    let files = all.counts(&["op", "file"]);
    for op in ["sequence", "exchange_id"] {
        let of_op = files.keys().filter(|k| k[0] == op).map(|k| k[1].as_str());
        ensure!(of_op.collect::<Vec<_>>() == ["none"], "{files:?}");
    }
    // On a busy machine a line may come before a path has been looked up. A later line has the path.
    for _ in 0..10 {
        if told == paths {
            break;
        }
        let named = Breakdown::begin(agent.address(), by_file)?;
        for export in ["/run/exp", "/run/exp/home"] {
            server.run_clients(&format!(
                "read --file known --from 127.9.0.1 --export {export} --nfs 3 --times 20 --every 100"
            ))?;
        }
        told.extend(named.end()?.paths);
    }
    ensure!(told == paths, "{told:?}");
    // The agent notices a closed stream a moment later.
    server.sh("sleep 2.5")?;
    let left = self::tables(server, agent)?;
    ensure!(left == tables, "{left} tables, {tables} before");
    Ok(())
}

/// Files that were made at the same time. On ZFS they have the same generation, in the place where tmpfs has the inode number.
pub fn names_each_file(server: &Server, agent: &Agent) -> Result<()> {
    const FILES: usize = 6;
    server.client(0).unmount_all()?;
    let make = "cd /run/exp && for n in 1 2 3 4 5 6; do echo known >six$n; done && stat -c %i six?";
    let made = server.sh(make)?.stdout;
    let inodes: Vec<&str> = made.split_whitespace().collect();
    ensure!(inodes.len() == FILES, "{made}");
    let stream = Breakdown::begin(agent.address(), "by=file&where=op:read")?;
    let mut sent = BTreeMap::new();
    for (n, inode) in (1..).zip(&inodes) {
        let times = 10 * n;
        let read = format!("read --file six{n} --from 127.9.0.1 --nfs 3 --times {times}");
        server.run_clients(&read)?;
        sent.insert(vec![format!("/run/exp:{inode}")], times);
    }
    let told = stream.end()?;
    let missed = missed(agent, "nfsd")?;
    agree_each("READs of files", &told.counts(&["file"]), &sent, missed)
}

/// More clients than a table has rows: a client without a row is counted in `other`, and none is missing.
pub fn counts_what_finds_no_room(server: &Server, agent: &Agent) -> Result<()> {
    const CLIENTS: u32 = 40;
    server.clients().try_for_each(|c| c.unmount_all())?;
    let before = settled(server, &[agent])?;
    let stream = Breakdown::begin(agent.address(), "by=client,op,version")?;
    // All clients call at once: each interval begins with an empty table.
    let load = format!("getattr --from 127.8.0.1 --clients {CLIENTS} --times 40");
    server.run_clients(&load)?;
    let after = settled(server, &[agent])?;
    let told = stream.end()?;
    let evicted: u64 = told.intervals.iter().map(|i| i.evicted).sum();
    println!(
        "{} rows, {evicted} of {} operations found no room",
        told.rows.len(),
        told.total().count
    );
    ensure!(evicted > 0 && told.other.count == evicted, "{evicted}");
    ensure!(!told.rows.is_empty(), "nobody has a row");
    let seen = window(&before, &after, 0).1;
    let total = merged(&seen, &family::OP_DURATION.info, |_| true);
    let total = total.context("no operations")?;
    ensure!(
        total.count() == told.total().count,
        "{} operations, {} of them broken down",
        total.count(),
        told.total().count
    );
    Ok(())
}

/// Listener that opens and closes a stream again and again: the labels that distinguish operations change while operations run.
struct Listener {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<Result<u32>>,
}

fn comes_and_goes(agent: SocketAddr) -> Listener {
    let ends = Arc::new(AtomicBool::new(false));
    let told = ends.clone();
    let thread = thread::spawn(move || {
        let mut times = 0;
        while !told.load(Ordering::Relaxed) {
            drop(Breakdown::begin(
                agent,
                "by=client,user,version&where=op:getattr",
            )?);
            times += 1;
            lab::pass(Duration::from_millis(100));
        }
        Ok(times)
    });
    Listener { ends, thread }
}

impl Listener {
    fn end(self) -> Result<u32> {
        self.ends.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| anyhow!("it panicked"))?
    }
}

/// Checks that count, time and buckets of each operation equal the gain of the counters.
fn are_the_counters(told: &Told, seen: &Snapshot) -> Result<()> {
    let mut counted = BTreeMap::new();
    for series in seen.series(&family::OP_DURATION.info) {
        let (Sample::Histogram(h), [version, op]) = (&series.sample, &series.labels[..]) else {
            continue;
        };
        if h.count() > 0 {
            counted.insert(vec![op.clone(), version.clone()], h.count());
        }
    }
    let broken_down = told.counts(&["op", "version"]);
    ensure!(broken_down == counted, "{broken_down:?}, not {counted:?}");
    let total = merged(seen, &family::OP_DURATION.info, |_| true).context("no operations")?;
    let all = told.total();
    ensure!(
        (all.sum_seconds - total.sum).abs() <= total.sum * 1e-9,
        "{} s, not {} s",
        all.sum_seconds,
        total.sum
    );
    let moved = moved(seen);
    ensure!(all.moved == moved, "{:?}, not {moved:?}", all.moved);
    let mut buckets = BTreeMap::new();
    for (edge, n) in all.buckets {
        *buckets.entry(edge.map(f64::to_bits)).or_default() += n;
    }
    for (i, n) in total.sparse() {
        let edge = Some(total.scheme.upper(i.into())).filter(|e| e.is_finite());
        let has = buckets.remove(&edge.map(f64::to_bits));
        ensure!(has == Some(n), "bucket {edge:?}: {has:?}, not {n}");
    }
    ensure!(buckets.is_empty(), "{buckets:?}");
    Ok(())
}

/// Number of hash tables that the agent has in the kernel.
fn tables(server: &Server, agent: &Agent) -> Result<u64> {
    let count = format!(
        "cat /proc/$(pidof {})/fdinfo/* | grep -c '^map_type:[[:space:]]*1$' || true",
        agent.process()
    );
    Ok(server.sh(&count)?.stdout.trim().parse()?)
}
