//! pNFS layouts: the agent's counts equal the raw client's and the kernel's traces. The server exports XFS, whose blocks it hands
//! out.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::raw::layouts::Asked;
use lab::reconcile::operations;
use lab::{Agent, Kernel, Server, finally};
use nfscope_diagnose::evaluate;
use nfscope_model::finding::Kind;
use nfscope_model::{Snapshot, family as f};

use crate::client_view::stats::stats;
use crate::client_view::trace::Trace;
use crate::lifecycle::eventually;
use crate::versions;

const EVENTS: [&str; 5] = [
    "nfsd/nfsd_layoutstate_alloc",
    "nfsd/nfsd_layoutstate_free",
    "nfsd/nfsd_layout_recall",
    "nfsd/nfsd_layout_recall_fail",
    "nfsd/nfsd_layout_recall_release",
];

const RECALL: &str = "nfsd_layout_recall:";
const FAILURE: &str = "nfsd_layout_recall_fail:";
const FREE: &str = "nfsd_layoutstate_free:";
const RELEASE: &str = "nfsd_layout_recall_release:";

const SIGSTOP: i32 = 19;

const FILES: &str = "layout-1 layout-2 layout-3 layout-4 layout-5";
const HOLDER: &str = "127.0.0.1";
/// File with the answers of the client that stays.
const REPORT: &str = "/run/layouts.json";
/// Time limit for a program that waits for a layout.
const PATIENCE: Duration = Duration::from_secs(120);

/// Script that ends all states of the lab's clients. A client that has ended meanwhile is ignored.
const END_CLIENTS: &str = "for c in $(grep -l 127.0.0.1 /proc/fs/nfsd/clients/*/info || true); do { echo expire >${c%info}ctl; } 2>/dev/null || true; done";

/// Script that names the disk of a layout to the client's kernel: the one that the server has mounted.
const MAP_BLOCKS: &str = "modprobe blocklayoutdriver; exec unshare -m sh -c '
    mkdir -p /run/rpc_pipefs; mount -t rpc_pipefs rpc_pipefs /run/rpc_pipefs; exec blkmapd -f'";
/// Script that counts blkmapd's open pipes: it must listen first, because the kernel asks only once in two minutes.
const MAPS: &str = "ls -l /proc/$(pgrep -x blkmapd)/fd | grep -c /blocklayout || true";
const WRITTEN: &str = "/run/written";

/// Number of times that the kernel traced an event.
fn traced(trace: &Trace, event: &str) -> Result<u64> {
    let text = trace.text()?;
    let is = |line: &&str| line.split_whitespace().any(|word| word == event);
    Ok(text.lines().filter(is).count() as u64)
}

pub fn are_counted(server: &Server, agent: &Agent) -> Result<()> {
    server.clients().try_for_each(|c| c.unmount_all())?;
    let asks = || {
        server.sh(&format!(
            "set -e; cd /run/exp
             for f in {FILES}; do dd if=/dev/urandom of=$f bs=4096 count=4 status=none; done
             sync .; export_with pnfs"
        ))?;
        told(server, agent)?;
        for holder in [Holder::Refuses, Holder::Returns, Holder::IsSilent] {
            answers_are_told(server, agent, holder)?;
        }
        let map = server.client(0).spawn(MAP_BLOCKS)?;
        eventually(|| Ok((server.sh(MAPS)?.stdout.trim() == "1").then_some(())))
            .with_context(|| format!("no blkmapd listens: {:?}", map.output_so_far()))?;
        let used = || {
            storage_is_used(server, agent)?;
            is_told_by_versions(server, agent, true)
        };
        finally(
            || finally(used, || server.client(0).unmount_all()),
            || map.kill().map(drop),
        )?;
        is_told_by_versions(server, agent, false)
    };
    finally(asks, || {
        let clean = format!(
            "set -e; {END_CLIENTS}; export_with no_subtree_check; cd /run/exp; rm -f {FILES} {WRITTEN}"
        );
        server.sh(&clean).map(drop)
    })
}

/// Checks `nfscope versions`. `reaches_storage`: without blkmapd the client gets layouts, and cannot use them.
fn is_told_by_versions(server: &Server, agent: &Agent, reaches_storage: bool) -> Result<()> {
    match server.kernel() {
        // The output of the command is the same on every kernel.
        Kernel::V6_12 => versions::pnfs_is_told(server, agent, reaches_storage),
        _ => Ok(()),
    }
}

/// A client that reads and writes at the storage: the server grants layouts, and gets READs and WRITEs of parts of blocks only. On
/// 7.2 the client cannot.
fn storage_is_used(server: &Server, agent: &Agent) -> Result<()> {
    let client = server.client(0);
    let before = agent.snapshot()?;
    let trace = Trace::begin(server, &EVENTS, "")?;
    let mount = client.mount_v4_1()?;
    // Rows of four procedures of the mount after a script, and whether the mount uses SCSI layouts.
    let after_running = |script: &str| {
        let text = client.sh(&format!("set -e; {script}; cat /proc/self/mountstats"))?;
        let rows = stats(&text.stdout)?;
        let row = |op: &str| rows.get(&(mount.clone(), op.to_owned())).copied();
        let rows =
            ["layoutget", "read", "write", "getdeviceinfo"].map(|op| row(op).unwrap_or_default());
        Ok::<_, anyhow::Error>((rows, text.stdout.contains("pnfs=LAYOUT_SCSI")))
    };
    // The second part of the file is written under a lock.
    let ([layouts, reads, writes, devices], are_scsi) = after_running(&format!(
        "dd if=/dev/urandom of={WRITTEN} bs=1M count=8 status=none
         cd {mount}; dd if={WRITTEN} of=layout-1 bs=1M count=4 oflag=direct conv=notrunc,fsync status=none
         flock layout-1 dd if={WRITTEN} of=layout-1 bs=1M skip=4 seek=4 oflag=direct conv=notrunc,fsync status=none
         dd if=layout-1 bs=1M iflag=direct status=none | cmp - {WRITTEN}"
    ))?;
    ensure!(layouts[0] > 0, "the mount asks for no layout");
    // 7.2 offers SCSI layouts for disks of device mapper, as the lab's disk with a delay is, and then cannot name the disk.
    equal("SCSI layouts", are_scsi, server.kernel() == Kernel::V7_2)?;
    if are_scsi {
        let errors = devices[8];
        ensure!(errors > 0, "GETDEVICEINFO: {devices:?}");
        ensure!(reads[0] > 0 && writes[0] > 0, "{reads:?} {writes:?}");
        client.unmount_all()?;
        return trace.end();
    }
    equal("READs and WRITEs", (reads[0], writes[0]), (0, 0))?;
    server.sh("dmesg | grep 'pNFS: using block device'")?;
    let window = agent.snapshot()?.since(&before);
    let (_, ops) = operations(&window.delta);
    println!("{ops:?}");
    equal("LAYOUTGETs", ops.get("layoutget"), Some(&layouts[0]))?;
    ensure!(
        !ops.contains_key("read") && !ops.contains_key("write"),
        "{ops:?}"
    );
    let diagnosis = evaluate(&window, &[]);
    let fallback = diagnosis.finding(Kind::PnfsFallback);
    ensure!(fallback.is_none(), "{fallback:#?}");
    server.sh(&format!("cmp {WRITTEN} /run/exp/layout-1"))?;
    // Parts of blocks that the page cache does not complete go through the server.
    let ([_, reads, writes, _], _) = after_running(&format!(
        "cd {mount}; dd if={WRITTEN} of=layout-2 bs=1000 count=3 oflag=direct conv=notrunc status=none
         dd if=layout-2 of=/dev/null bs=1000 count=3 iflag=direct status=none"
    ))?;
    equal(
        "READs and WRITEs of parts of blocks",
        (reads[0], writes[0]),
        (3, 3),
    )?;
    client.unmount_all()?;
    let granted = traced(&trace, "nfsd_layoutstate_alloc:")?;
    let after = all_ended(&trace, agent, granted)?;
    are_granted(&after.since(&before).delta, granted, granted)?;
    trace.end()
}

/// Layouts that are granted, returned, and recalled by the server.
fn told(server: &Server, agent: &Agent) -> Result<()> {
    let before = agent.snapshot()?;
    // A client without layouts may read through the server.
    server.layouts(&format!("{FILES} --reads 10"))?;
    let read = agent.snapshot()?;
    let window = read.since(&before);
    are_granted(&window.delta, 0, 0)?;
    let diagnosis = evaluate(&window, &[]);
    ensure!(
        diagnosis.finding(Kind::PnfsFallback).is_none(),
        "{diagnosis:#?}"
    );

    let trace = Trace::begin(server, &EVENTS, "")?;
    let asked = server.layouts(&format!("{FILES} --layouts 4 --returned 2 --reads 10"))?;
    println!("{asked:?}");
    equal("asked", (asked.granted, asked.returned), (4, 2))?;
    let fallen_back = agent.snapshot()?;
    let window = fallen_back.since(&read);
    are_granted(&window.delta, asked.granted, asked.returned)?;
    are_traced(&trace, asked.granted, asked.returned)?;
    let of_client = window.delta.value(&f::CLIENT_LAYOUTS, [HOLDER]);
    equal(HOLDER, of_client, Some(asked.granted as f64))?;
    let diagnosis = evaluate(&window, &[]);
    let finding = diagnosis.finding(Kind::PnfsFallback);
    println!("{finding:#?}");
    let text = format!("{finding:#?}");
    let names = format!("layouts granted to {HOLDER}; in this window 4 layouts");
    ensure!(text.contains(&names), "{diagnosis:#?}");

    // A program of the server changes a file with a granted layout. The client has gone, and returns nothing.
    let mut writer = server.spawn("echo again >>/run/exp/layout-4")?;
    eventually(|| Ok((traced(&trace, RECALL)? > 0).then_some(())))
        .context("no layout is recalled")?;
    server.sh(END_CLIENTS)?;
    writer.wait(PATIENCE)?.ok("the writer")?;
    let after = all_ended(&trace, agent, asked.granted)?;
    let seen = after.since(&read).delta;
    are_granted(&seen, asked.granted, asked.granted)?;
    are_traced(&trace, asked.granted, asked.granted)?;
    // The client cannot be called back, and returned nothing.
    recalls_are_as_traced(&seen, &trace, 0)?;
    trace.end()
}

/// Reaction of a client that can be called, when its layout is recalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Returns,
    /// The kernel revokes the layout at once.
    Refuses,
    /// The kernel revokes the layout when the client's lease ends.
    IsSilent,
}

/// A writer waits until the recalled layout is back, returned or revoked.
fn answers_are_told(server: &Server, agent: &Agent, how: Holder) -> Result<()> {
    let before = agent.snapshot()?;
    let trace = Trace::begin(server, &EVENTS, "")?;
    let lab = server.lab_path().display();
    server.sh(&format!("rm -f {REPORT}"))?;
    let refuse = match how {
        Holder::Refuses => "--refuse",
        Holder::Returns | Holder::IsSilent => "",
    };
    let mut holder = server.spawn(&format!(
        "exec {lab} layouts layout-5 --layouts 1 --stay {REPORT} {refuse}"
    ))?;
    let reported = |answers: u64| {
        let report = server.sh(&format!("cat {REPORT} 2>/dev/null || true"))?;
        let asked: Option<Asked> = serde_json::from_str(report.stdout.trim()).ok();
        Ok(asked.filter(|asked| asked.refused + asked.returned >= answers))
    };
    let asked = eventually(|| reported(0))
        .with_context(|| format!("no layout is held: {:?}", holder.output_so_far()))?;
    equal("granted", asked.granted, 1)?;
    if how == Holder::IsSilent {
        holder.signal(SIGSTOP)?;
    }

    let mut writer = server.spawn("echo again >>/run/exp/layout-5")?;
    eventually(|| Ok((traced(&trace, RECALL)? > 0).then_some(()))).context("no recall")?;
    if how == Holder::IsSilent {
        // Expiring the client has the effect of the end of its lease.
        server.sh(END_CLIENTS)?;
    }
    eventually(|| Ok((traced(&trace, RELEASE)? > 0).then_some(())))
        .with_context(|| format!("no recall ends: {:?}", holder.output_so_far()))?;
    writer.wait(PATIENCE)?.ok("the writer")?;
    let after = all_ended(&trace, agent, asked.granted)?;
    let answers = u64::from(how != Holder::IsSilent);
    let answered = eventually(|| reported(answers)).context("the client was not asked")?;
    println!("{how:?}: {answered:?}\n{}", trace.text()?);
    holder.kill()?;
    server.sh(END_CLIENTS)?;
    let seen = after.since(&before).delta;
    are_granted(&seen, asked.granted, asked.granted)?;
    are_traced(&trace, asked.granted, asked.granted)?;
    equal("refused", answered.refused, traced(&trace, FAILURE)?)?;
    recalls_are_as_traced(&seen, &trace, answered.returned)?;
    trace.end()
}

/// Snapshot in which as many layouts have ended as were granted, and no recall is under way.
fn all_ended(trace: &Trace, agent: &Agent, granted: u64) -> Result<Snapshot> {
    eventually(|| {
        let ended = traced(trace, FREE)? >= granted;
        let seen = agent.snapshot()?;
        let pending = seen.value(&f::RECALLS_PENDING, ["layout"]);
        Ok((ended && pending == Some(0.0)).then_some(seen))
    })
    .context("the client's layouts do not end")
}

fn are_granted(seen: &Snapshot, granted: u64, ended: u64) -> Result<()> {
    for (family, n) in [(&f::LAYOUTS_GRANTED, granted), (&f::LAYOUTS_ENDED, ended)] {
        equal(family.info.name, seen.value(family, []), Some(n as f64))?;
    }
    Ok(())
}

fn are_traced(trace: &Trace, granted: u64, ended: u64) -> Result<()> {
    for (event, n) in [("nfsd_layoutstate_alloc:", granted), (FREE, ended)] {
        equal(event, traced(trace, event)?, n)?;
    }
    Ok(())
}

/// Checks that all recalls have ended: `returned` of them by the client, the others because the server revoked the layout.
fn recalls_are_as_traced(seen: &Snapshot, trace: &Trace, returned: u64) -> Result<()> {
    let [asked, failed, released] =
        [RECALL, FAILURE, RELEASE].map(|event| traced(trace, event).map(|n| (event, n)));
    let ((recall, asked), (failure, failed), (_, released)) = (asked?, failed?, released?);
    println!("as traced: {asked} recalls, {failed} failed, {released} released");
    for (family, event, n) in [
        (&f::LAYOUT_RECALLS, recall, asked),
        (&f::LAYOUT_RECALLS_FAILED, failure, failed),
    ] {
        equal(event, seen.value(family, []), Some(n as f64))?;
    }
    let ended = ["returned", "taken"].map(|end| {
        let h = seen.hist(&f::RECALL_SECONDS, ["layout", end]);
        h.map_or(0, |h| h.count())
    });
    println!("recalls that were returned, and taken: {ended:?}");
    equal("recalls that ended", ended, [returned, released - returned])
}

fn equal<T: PartialEq + Debug>(what: &str, seen: T, expected: T) -> Result<()> {
    ensure!(seen == expected, "{what} {seen:?}, not {expected:?}");
    Ok(())
}
