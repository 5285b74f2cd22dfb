//! Delegations and the laundromat: grants, recalls, returns and revocations equal the kernel's trace, one by one, and so do the times
//! from each recall to its return.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::raw::delegation::Kept;
use lab::{Agent, Kernel, Server, finally};
use nfscope_model::{HeldRequests, Snapshot, family as f};

use crate::client_view::trace::Trace;
use crate::lifecycle::eventually;
use crate::nfs4_state;

const EVENTS: [&str; 5] = [
    "nfsd/nfsd_deleg_read",
    "nfsd/nfsd_deleg_write",
    "nfsd/nfsd_deleg_return",
    "nfsd/nfsd_cb_recall",
    "nfsd/nfsd_stid_revoke",
];

/// Files that the client holds delegations of.
const FILES: u32 = 6;
/// Number of these files that programs on the server change.
const CHANGED: u32 = 4;

/// Counts of the kernel's trace.
#[derive(Debug, Default, PartialEq)]
pub struct Traced {
    granted: [u64; 2],
    returned: u64,
    pub recalled: u64,
    pub revoked: u64,
    /// Seconds from each recall to the return of the same state.
    waits: Vec<f64>,
    /// Seconds from each recall to the revocation of the state.
    until_taken: Vec<f64>,
}

impl Traced {
    pub fn of(text: &str) -> Result<Traced> {
        let mut t = Traced::default();
        let mut asked = BTreeMap::new();
        for line in text.lines() {
            let words = || line.split_whitespace();
            let at = words().find_map(|w| w.strip_suffix(':')?.parse::<f64>().ok());
            let at = at.with_context(|| line.to_owned())?;
            // The generation of a state is cut off.
            let state = || -> Result<String> {
                let after = words().skip_while(|w| *w != "stateid").nth(1);
                let id = after.and_then(|id| id.split_once(':'));
                Ok(id.with_context(|| line.to_owned())?.0.to_owned())
            };
            match words().find(|w| w.starts_with("nfsd_")).unwrap_or("") {
                "nfsd_deleg_read:" => t.granted[0] += 1,
                "nfsd_deleg_write:" => t.granted[1] += 1,
                "nfsd_stid_revoke:" => {
                    t.revoked += 1;
                    t.until_taken
                        .extend(asked.remove(&state()?).map(|since| at - since));
                }
                "nfsd_cb_recall:" => {
                    t.recalled += 1;
                    asked.entry(state()?).or_insert(at);
                }
                "nfsd_deleg_return:" => {
                    t.returned += 1;
                    t.waits
                        .extend(asked.remove(&state()?).map(|since| at - since));
                }
                _ => {}
            }
        }
        Ok(t)
    }
}

/// Events of [`EVENTS`] that this kernel has.
pub fn events(kernel: Kernel) -> Vec<&'static str> {
    let all = EVENTS.iter().copied();
    all.filter(|e| has_write_delegations(kernel) || !e.ends_with("_write"))
        .collect()
}

/// True if this kernel grants delegations for writing.
fn has_write_delegations(kernel: Kernel) -> bool {
    kernel != Kernel::V6_1
}

pub fn are_as_traced(server: &Server, agent: &Agent) -> Result<()> {
    server.clients().try_for_each(|c| c.unmount_all())?;
    let writes = has_write_delegations(server.kernel());
    let events = events(server.kernel());
    let [client, cut_off] = [0, 1].map(|n| server.client(n));
    server.sh(&format!(
        "mkdir -p /run/exp/held; cd /run/exp/held; for n in $(seq 0 {FILES}); do echo hello >$n; done; sleep 2"
    ))?;
    let before = agent.snapshot()?;
    let trace = Trace::begin(server, &events, "")?;
    let mount = client.mount_v4_2()?;
    // Files are opened again: the server grants no delegation before it knows that it can call the client back.
    let read = format!("for n in $(seq {FILES}); do cat {mount}/held/$n; done >/dev/null");
    let listed = "cat /proc/fs/nfsd/clients/*/states | grep -c 'type: deleg' || true";
    let mut tries = 0;
    loop {
        client.sh(&read)?;
        let held: u32 = server.sh(listed)?.stdout.trim().parse()?;
        if held >= FILES {
            break;
        }
        tries += 1;
        ensure!(tries < 20, "{held} delegations");
        server.sh("sleep 0.5")?;
    }
    if writes {
        client.sh(&format!("exec 3<>{mount}/held/0; sleep 0.2"))?;
    }
    // A delay of the network makes the time between the kernel's event and the probe beside it negligible.
    server.sh(&format!(
        "tc qdisc add dev s0 root netem delay 20ms
         cd /run/exp/held; for n in $(seq {CHANGED}); do echo again >>$n; done
         tc qdisc del dev s0 root; sleep 1"
    ))?;
    let traced = Traced::of(&trace.text()?)?;
    println!("{traced:?}");
    ensure!(traced.recalled >= u64::from(CHANGED), "{traced:?}");
    ensure!(traced.waits.len() >= CHANGED as usize, "{traced:?}");
    let seen = agent.snapshot()?.since(&before).delta;
    are_equal(&seen, &traced, server.kernel())?;
    let address = client.address().to_string();
    let of_client = seen.value(&f::CLIENT_RECALLS, [&address]);
    assert_eq!(of_client, Some(traced.recalled as f64), "{address}");

    // A client that cannot answer, and ends without having returned anything.
    let mount = cut_off.mount_v4_2()?;
    let mut tries = 0;
    let one = "grep -l 'type: deleg' $(grep -l 10.9.1. /proc/fs/nfsd/clients/*/info | sed s/info/states/) | grep -c . || true";
    while server.sh(one)?.stdout.trim() == "0" {
        cut_off.sh(&format!("cat {mount}/held/{FILES} >/dev/null"))?;
        tries += 1;
        ensure!(tries < 20, "the server gives no delegation");
        server.sh("sleep 0.5")?;
    }
    let others = recalls(&agent.snapshot()?, "taken");
    server.sh("ip link set s1 down")?;
    let mut writer = server.spawn(&format!("echo again >>/run/exp/held/{FILES}"))?;
    server.sh("sleep 2")?;
    let waits = agent.snapshot()?;
    let pending = waits.value(&f::RECALLS_PENDING, ["delegation"]);
    let oldest = waits.value(&f::OLDEST_RECALL, ["delegation"]);
    println!("{pending:?} recalls are under way, the oldest for {oldest:?} s");
    assert_eq!(pending, Some(1.0));
    ensure!(oldest > Some(0.5), "{oldest:?}");
    let address = cut_off.address().to_string();
    let of_client = waits.value(&f::CLIENT_RECALLS_PENDING, [&address]);
    assert_eq!(of_client, Some(1.0), "{address}");
    server.sh(
        "for c in $(grep -l 10.9.1. /proc/fs/nfsd/clients/*/info); do echo expire >${c%info}ctl; done",
    )?;
    writer.wait(Duration::from_secs(120))?.ok("the writer")?;
    server.sh("ip link set s1 up; sleep 1")?;
    let after = agent.snapshot()?;
    assert_eq!(after.value(&f::RECALLS_PENDING, ["delegation"]), Some(0.0));
    assert_eq!(recalls(&after, "taken"), others + 1);
    let traced = Traced::of(&trace.text()?)?;
    println!("{traced:?}");
    are_equal(&after.since(&before).delta, &traced, server.kernel())?;
    trace.end()?;
    server.clients().try_for_each(|c| c.unmount_all())
}

fn recalls(s: &Snapshot, end: &str) -> u64 {
    s.hist(&f::RECALL_SECONDS, ["delegation", end])
        .map_or(0, |h| h.count())
}

/// Checks the numbers of delegations granted, returned, recalled and revoked.
pub fn are_as_many(seen: &Snapshot, traced: &Traced, kernel: Kernel) {
    let granted = |kind| seen.value(&f::DELEGATIONS_GRANTED, [kind]);
    assert_eq!(granted("read"), Some(traced.granted[0] as f64), "read");
    // The family has no series for writing if the kernel grants no such delegation.
    let expected = has_write_delegations(kernel).then_some(traced.granted[1] as f64);
    assert_eq!(granted("write"), expected, "write");
    for (family, traced) in [
        (&f::DELEGATIONS_RETURNED, traced.returned),
        (&f::DELEGATION_RECALLS, traced.recalled),
        (&f::DELEGATIONS_REVOKED, traced.revoked),
    ] {
        let seen = seen.value(family, []);
        assert_eq!(seen, Some(traced as f64), "{}", family.info.name);
    }
}

fn are_equal(seen: &Snapshot, traced: &Traced, kernel: Kernel) -> Result<()> {
    are_as_many(seen, traced, kernel);
    let h = seen.hist(&f::RECALL_SECONDS, ["delegation", "returned"]);
    let h = h.context("no recall times")?;
    assert_eq!(
        h.count(),
        traced.waits.len() as u64,
        "returned after a recall"
    );
    let sum: f64 = traced.waits.iter().sum();
    println!("{} s from recalls to returns, {sum} s as traced", h.sum);
    // The kernel's events are next to the probes, so that times differ by little.
    ensure!(
        (h.sum / sum - 1.0).abs() < 0.1,
        "{} s, traced {sum} s",
        h.sum
    );
    Ok(())
}

/// Kretprobe of the laundromat: the kernel traces its ends.
const LAUNDROMAT: &str =
    "echo 'r:lab/laundromat laundromat_main' >>/sys/kernel/tracing/kprobe_events";

/// Checks of a server that has just started, with a short lease: its laundromat, and clients that lose their lease.
pub fn a_short_lease_ends(server: &Server, agent: &Agent) -> Result<()> {
    let ends = || {
        laundromat_is_seen(server, agent)?;
        nfs4_state::of_clients_without_a_lease_is_told(server, agent)?;
        a_living_client_returns_nothing(server, agent)
    };
    finally(ends, || {
        server.nfsd_stop()?;
        server.sh("echo 90 >/proc/fs/nfsd/nfsv4leasetime")?;
        server.nfsd_start()
    })
}

/// Seconds of the short lease.
pub const LEASE: u64 = 10;

/// A client that renews its lease, answers the recall, and keeps its delegation: the server revokes it a lease later.
fn a_living_client_returns_nothing(server: &Server, agent: &Agent) -> Result<()> {
    const REPORT: &str = "/run/kept.json";
    server.sh(&format!(
        "rm -f {REPORT}; echo hello >/run/exp/kept; sleep 2"
    ))?;
    let before = agent.snapshot()?;
    let trace = Trace::begin(server, &events(server.kernel()), "")?;
    let lab = server.lab_path().display();
    let holder = server.spawn(&format!("exec {lab} delegation kept --report {REPORT}"))?;
    let reported = |is: fn(&Kept) -> bool| {
        let report = server.sh(&format!("cat {REPORT} 2>/dev/null || true"))?;
        let kept: Option<Kept> = serde_json::from_str(report.stdout.trim()).ok();
        Ok(kept.filter(is))
    };
    eventually(|| reported(|_| true))
        .with_context(|| format!("no delegation is held: {:?}", holder.output_so_far()))?;
    let mut writer = server.spawn("echo again >>/run/exp/kept")?;
    eventually(|| reported(|kept| kept.asked > 0)).context("the client is not asked")?;
    let waits = agent.snapshot()?;
    for (what, pending) in [
        ("all", waits.value(&f::RECALLS_PENDING, ["delegation"])),
        (
            "the client's",
            waits.value(&f::CLIENT_RECALLS_PENDING, ["127.0.0.1"]),
        ),
    ] {
        assert_eq!(pending, Some(1.0), "{what}");
    }
    writer.wait(Duration::from_secs(120))?.ok("the writer")?;
    let kept = eventually(|| reported(|kept| kept.lost))
        .with_context(|| format!("the client loses nothing: {:?}", holder.output_so_far()))?;
    let after = agent.snapshot()?;
    let traced = Traced::of(&trace.text()?)?;
    println!("{kept:?} {traced:?}");
    let seen = after.since(&before).delta;
    are_as_many(&seen, &traced, server.kernel());
    assert_eq!((traced.recalled, traced.revoked), (1, 1), "{traced:?}");
    // The server repeats a recall if an answer comes late.
    ensure!(kept.asked >= traced.recalled, "{kept:?} {traced:?}");
    assert_eq!(after.value(&f::RECALLS_PENDING, ["delegation"]), Some(0.0));
    let taken = seen.hist(&f::RECALL_SECONDS, ["delegation", "taken"]);
    let taken = taken.context("nothing was taken")?;
    let sum: f64 = traced.until_taken.iter().sum();
    println!("taken after {} s, {sum} s as traced", taken.sum);
    assert_eq!(taken.count(), 1);
    ensure!(sum >= LEASE as f64, "{traced:?}");
    ensure!((taken.sum / sum - 1.0).abs() < 0.1, "{} s", taken.sum);
    holder.kill()?;
    trace.end()
}

fn laundromat_is_seen(server: &Server, agent: &Agent) -> Result<()> {
    server.clients().try_for_each(|c| c.unmount_all())?;
    server
        .sh("mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing")?;
    server.sh(LAUNDROMAT)?;
    let trace = Trace::begin(server, &["lab/laundromat"], "")?;
    server.nfsd_stop()?;
    let stopped = agent.snapshot()?;
    assert_eq!(
        stopped.value(&f::LAUNDROMAT_AGE, []),
        None,
        "no server runs"
    );
    // The laundromat runs at least once in a lease.
    server.sh(&format!("echo {LEASE} >/proc/fs/nfsd/nfsv4leasetime"))?;
    server.nfsd_start()?;
    let mut runs = Vec::new();
    for _ in 0..60 {
        server.sh("sleep 1")?;
        let text = trace.text()?;
        let at = |line: &str| {
            let mut words = line.split_whitespace();
            words.find_map(|w| w.strip_suffix(':')?.parse::<f64>().ok())
        };
        runs = text.lines().filter_map(at).collect();
        if !runs.is_empty() {
            break;
        }
    }
    // The agent repeats an answer for a quarter of a second.
    server.sh("sleep 1")?;
    let seen = agent.snapshot()?;
    let age = seen.value(&f::LAUNDROMAT_AGE, []).context("no age")?;
    let ended = seen.at.as_secs_f64() - age;
    println!("the laundromat ended at {runs:?}, and by its age at {ended}");
    let traced = *runs.last().context("the laundromat has not run")?;
    ensure!((ended - traced).abs() < 0.5, "{traced} {ended}");
    let held: HeldRequests = serde_json::from_str(&agent.get("/stuck?over=1s")?)?;
    let laundromat = held.laundromat.context("nothing is said of it")?;
    ensure!(laundromat.idle_seconds >= Some(age), "{laundromat:?}");
    assert_eq!(laundromat.running_seconds, None);
    trace.end()?;
    server
        .sh("echo '-:lab/laundromat' >>/sys/kernel/tracing/kprobe_events")
        .map(drop)
}
