//! Operations by client and by export equal those that each client sent.

use std::collections::BTreeMap;
use std::iter;

use anyhow::{Result, ensure};
use lab::reconcile::{agree_each, missed, moved, moved_by_name};
use lab::{Agent, Kernel, Load, Server};
use nfscope_model::Snapshot;
use nfscope_model::breakdown::Moved;
use nfscope_model::family;
use nfscope_model::family::Info;

use super::Watch;

/// Number of clients, many more than the busy ones; [`asks_without_end`] has more than rows.
const CLIENTS: u32 = 200;
/// Number of clients that send more than the others, each a different number.
const BUSY: usize = 10;

/// Kernel clients with mounts over v3 and v4.2, one after the other, so that the kernel's counts are one client's. The kernel does
/// not count all that the agent times: NFSACL, and NULL of version 4.
pub fn each_of_three_clients(watch: &mut Watch) -> Result<()> {
    let (mut sent, mut reported) = (BTreeMap::new(), BTreeMap::new());
    let (mut called, mut requested) = (BTreeMap::new(), BTreeMap::new());
    for (client, ops) in watch.server.clients().zip([100, 200, 300]) {
        let (counted, seen) = watch.during(|| {
            client.load(&Load::mixed().ops(ops))?;
            client.unmount_all()
        })?;
        let (v3, v4) = lab::reconcile::operations(&seen);
        let timed: u64 = v3.values().chain(v4.values()).sum();
        assert_eq!(timed, counted.operations(), "operations of {client:?}");
        // The mixed load reads and writes, and no other client does at the same time.
        let all = moved(&seen);
        ensure!(all.read > 0 && all.written > 0, "{all:?}");
        let of_client = BTreeMap::from([(client.address().to_string(), all)]);
        ensure_same(moved_by_name(&seen, &family::CLIENT_IO_BYTES), of_client)?;
        let of_export = BTreeMap::from([("/run/exp".to_owned(), all)]);
        ensure_same(moved_by_name(&seen, &family::EXPORT_IO_BYTES), of_export)?;
        let all = lab::reconcile::merged(&seen, &family::OP_DURATION.info, |_| true);
        sent.insert(client.address().to_string(), all.map_or(0, |h| h.count()));
        called.insert(client.address().to_string(), counted.rpc_calls);
        for (family, all) in [
            (&family::CLIENT_OPS, &mut reported),
            (&family::CLIENT_REQUESTS, &mut requested),
        ] {
            for (name, n) in by_name(&seen, &family.info) {
                *all.entry(name).or_default() += n;
            }
        }
    }
    println!("three clients: {reported:?}");
    let late = 2 * missed(watch.agent, "nfsd")?;
    agree_each("operations of three clients", &reported, &sent, late)?;
    agree_each("requests of three clients", &requested, &called, late)?;
    Ok(())
}

fn ensure_same(told: BTreeMap<String, Moved>, moved: BTreeMap<String, Moved>) -> Result<()> {
    ensure!(told == moved, "bytes {told:?}, not {moved:?}");
    Ok(())
}

pub fn each_export(watch: &mut Watch) -> Result<()> {
    let server = watch.server;
    let mut total = 0;
    let (_, seen) = watch.during(|| {
        for (export, version, times) in [
            ("/run/exp/home", "3", 30),
            ("/run/exp/home", "4.0", 20),
            ("/run/exp/scratch", "3", 7),
            ("/run/exp/scratch", "4.2", 50),
            ("/run/exp", "3", 11),
        ] {
            let clients = server.run_clients(&format!(
                "getattr --export {export} --nfs {version} --times {times}"
            ))?;
            total += clients.iter().map(|c| c.operations).sum::<u64>();
        }
        Ok(())
    })?;
    let reported = by_name(&seen, &family::EXPORT_OPS.info);
    println!("exports: {reported:?}");
    // Operations with a file handle: over 4.0 each has a PUTFH, over 4.2 that and a SEQUENCE. Operations that make and end a session
    // have no file handle.
    let mut sent = BTreeMap::from([
        ("/run/exp/home".to_owned(), 30 + 2 * 20),
        ("/run/exp/scratch".to_owned(), 7 + 3 * 50),
        ("/run/exp".to_owned(), 11),
    ]);
    sent.insert("none".to_owned(), total - sent.values().sum::<u64>());
    let late = 2 * missed(watch.agent, "nfsd")?;
    agree_each("operations of exports", &reported, &sent, late)?;
    Ok(())
}

/// Clients that send GETATTR, LOOKUP and ACCESS by turns: two of three requests only walk a path, and none opens.
pub fn each_walk(watch: &mut Watch) -> Result<()> {
    for (version, major) in [("3", "3"), ("4.0", "4"), ("4.2", "4")] {
        let load =
            format!("revalidate --from 127.5.0.1 --clients 3 --times 30 --more 6 --nfs {version}");
        let seen = watch.run_clients(&load)?;
        let walks = lab::reconcile::by_last_label(&seen, &family::CLIENT_WALKS.info, |_| true);
        println!("walks over {version}: {walks:?}");
        let of = |n: u32| {
            let client = format!("127.5.0.{}", n + 1);
            let told = seen.value(&family::CLIENT_WALKS, [&client, major]);
            (client, told.unwrap_or(0.0) as u64)
        };
        let late = 2 * missed(watch.agent, "nfsd")?;
        let told = (0..3).map(of).collect();
        let sent = (0..3).map(|n| (of(n).0, u64::from(20 + 4 * n))).collect();
        agree_each(&format!("walks over {version}"), &told, &sent, late)?;
        let opens: f64 = seen.numbers(&family::CLIENT_OPENS).map(|(_, n)| n).sum();
        assert_eq!(opens, 0.0, "opens over {version}");
    }
    Ok(())
}

/// The given agent has a series for each client, a second one only for the busiest. The second agent selects those in its own
/// process, alike on every kernel: one kernel is enough.
pub fn each_of_many_clients(server: &Server, agent: &Agent) -> Result<()> {
    let few = match server.kernel() {
        Kernel::V6_12 => Some(server.agent(&["--max-clients", &BUSY.to_string()])?),
        _ => None,
    };
    let both: Vec<&Agent> = iter::once(agent).chain(&few).collect();
    let call = || -> Result<_> {
        let (mut sent, mut called) = (BTreeMap::new(), BTreeMap::new());
        for load in [
            format!("--clients {CLIENTS} --at-once 4 --times 2"),
            format!("--clients {BUSY} --at-once 4 --times 10 --more 5"),
        ] {
            for client in server.run_clients(&format!("getattr --from 127.1.0.1 {load}"))? {
                let name = client.address.to_string();
                *called.entry(name.clone()).or_default() += client.requests;
                *sent.entry(name).or_default() += client.operations;
            }
        }
        Ok((sent, called))
    };
    // The first call teaches the second agent which clients are the busiest.
    call()?;
    let before = lab::reconcile::settled(server, &both)?;
    let (sent, called): (BTreeMap<String, u64>, BTreeMap<String, u64>) = call()?;
    let after = lab::reconcile::settled(server, &both)?;
    let late = |agent: &Agent| anyhow::Ok(2 * missed(agent, "nfsd")?);

    let all = lab::reconcile::window(&before, &after, 0).1;
    let reported = by_name(&all, &family::CLIENT_OPS.info);
    agree_each("operations of each client", &reported, &sent, late(agent)?)?;
    let requested = by_name(&all, &family::CLIENT_REQUESTS.info);
    agree_each("requests of each client", &requested, &called, late(agent)?)?;

    let Some(few) = few else {
        return Ok(());
    };
    let some = lab::reconcile::window(&before, &after, 1).1;
    let reported = by_name(&some, &family::CLIENT_OPS.info);
    println!("the busiest of {CLIENTS} clients: {reported:?}");
    let mut busiest: Vec<_> = sent.iter().collect();
    busiest.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    let (busiest, rest) = busiest.split_at(BUSY);
    let mut expected: BTreeMap<String, u64> = busiest
        .iter()
        .map(|(name, n)| ((*name).clone(), **n))
        .collect();
    expected.insert("other".to_owned(), rest.iter().map(|(_, n)| **n).sum());
    agree_each("the busiest clients", &reported, &expected, late(&few)?)?;
    few.stop()?;
    Ok(())
}

/// More pairs of client and export than this agent has rows: all rows are given back in between. A client without a row is counted in
/// `other`; afterwards every client has a name again, also those that stayed connected.
pub fn asks_without_end(watch: &mut Watch) -> Result<()> {
    const MANY: u32 = 1100;
    let server = watch.server;
    let stays = server.client(0);
    let mount = stays.mount_v3()?;
    let look = || stays.sh(&format!("for n in 1 2 3 4 5; do touch {mount}/f$n; done"));
    look()?;
    watch.during(|| Ok(()))?;
    let mut sent = 0;
    let (_, seen) = watch.during(|| {
        let clients = server.run_clients(&format!(
            "getattr --from 127.2.0.1 --clients {MANY} --at-once 8 --times 1"
        ))?;
        sent = clients.iter().map(|c| c.operations).sum();
        Ok(())
    })?;
    let reported: u64 = by_name(&seen, &family::CLIENT_OPS.info).values().sum();
    assert_eq!(
        reported, sent,
        "operations of {MANY} clients, others included"
    );

    let mut sent = BTreeMap::new();
    let (_, seen) = watch.during(|| {
        look()?;
        let busy = "getattr --from 127.1.0.1 --clients 5 --at-once 2 --times 20 --more 5";
        for client in server.run_clients(busy)? {
            sent.insert(client.address.to_string(), client.operations);
        }
        Ok(())
    })?;
    let all = lab::reconcile::merged(&seen, &family::OP_DURATION.info, |_| true);
    let stayed = all.map_or(0, |h| h.count()) - sent.values().sum::<u64>();
    assert!(
        stayed >= 5,
        "only {stayed} operations of the one that stayed"
    );
    sent.insert(stays.address().to_string(), stayed);
    assert_eq!(
        by_name(&seen, &family::CLIENT_OPS.info),
        sent,
        "operations of six clients afterwards"
    );
    let rows = seen
        .value(&family::MAP_ENTRIES, ["nfsd_client"])
        .unwrap_or(0.0);
    assert!(
        rows < 100.0,
        "{rows} rows are in use: they were not given back"
    );
    stays.unmount_all()
}

/// Counters by their only label, without those that have not moved.
pub fn by_name(seen: &Snapshot, info: &Info) -> BTreeMap<String, u64> {
    let all = lab::reconcile::by_last_label(seen, info, |_| true);
    let moved = all.into_iter().filter(|(_, n)| *n > 0.0);
    moved.map(|(name, n)| (name, n as u64)).collect()
}
