//! pNFS layouts: what the raw client was granted and gave back is what the agent counts, and so is what the kernel traces. The server
//! exports XFS, whose blocks it hands out.

use anyhow::{Context, Result, ensure};
use lab::{Agent, Server};
use nfscope_diagnose::evaluate;
use nfscope_model::finding::Kind;
use nfscope_model::{Snapshot, family as f};

use crate::client_view::trace::Trace;
use crate::lifecycle::eventually;

const EVENTS: [&str; 5] = [
    "nfsd/nfsd_layoutstate_alloc",
    "nfsd/nfsd_layoutstate_free",
    "nfsd/nfsd_layout_recall",
    "nfsd/nfsd_layout_recall_fail",
    "nfsd/nfsd_layout_recall_release",
];

const FILES: &str = "layout-1 layout-2 layout-3 layout-4 layout-5";
const HOLDER: &str = "127.0.0.1";

/// Later kernels grant no layout while lockd waits for clients that had locks before the server started.
const LOCKS_ARE_RECLAIMED: &str = "echo Y >/proc/fs/lockd/nlm_end_grace";

/// How often the kernel wrote an event down.
fn traced(trace: &Trace, event: &str) -> Result<u64> {
    let text = trace.text()?;
    let is = |line: &&str| line.split_whitespace().any(|word| word == event);
    Ok(text.lines().filter(is).count() as u64)
}

pub fn are_counted(server: &Server, agent: &Agent) -> Result<()> {
    server.clients().try_for_each(|c| c.unmount_all())?;
    server.sh(&format!(
        "set -e; cd /run/exp
         for f in {FILES}; do dd if=/dev/urandom of=$f bs=4096 count=4 status=none; done
         sync .; export_with pnfs; {LOCKS_ARE_RECLAIMED}"
    ))?;
    let told = told(server, agent);
    server.sh(&format!(
        "set -e; export_with no_subtree_check; cd /run/exp; rm -f {FILES}"
    ))?;
    told
}

fn told(server: &Server, agent: &Agent) -> Result<()> {
    let before = agent.snapshot()?;
    // One who asks for none may read through the server.
    server.layouts(&format!("{FILES} --reads 10"))?;
    let read = agent.snapshot()?;
    let window = read.since(&before);
    is_granted(&window.delta, 0, 0)?;
    let diagnosis = evaluate(&window, &[]);
    ensure!(
        diagnosis.finding(Kind::PnfsFallback).is_none(),
        "{diagnosis:#?}"
    );

    let trace = Trace::begin(server, &EVENTS, "")?;
    let asked = server.layouts(&format!("{FILES} --layouts 4 --returned 2 --reads 10"))?;
    println!("{asked:?}");
    assert_eq!((asked.granted, asked.returned), (4, 2));
    let fallen_back = agent.snapshot()?;
    let window = fallen_back.since(&read);
    is_granted(&window.delta, asked.granted, asked.returned)?;
    assert_eq!(
        traced(&trace, "nfsd_layoutstate_alloc:")?,
        asked.granted,
        "as traced"
    );
    assert_eq!(
        traced(&trace, "nfsd_layoutstate_free:")?,
        asked.returned,
        "as traced"
    );
    let of_client = window.delta.value(&f::CLIENT_LAYOUTS, [HOLDER]);
    assert_eq!(of_client, Some(asked.granted as f64), "{HOLDER}");
    let diagnosis = evaluate(&window, &[]);
    let finding = diagnosis.finding(Kind::PnfsFallback);
    println!("{finding:#?}");
    let text = format!("{finding:#?}");
    let names = format!("layouts granted to {HOLDER}; in this window 4 layouts");
    ensure!(text.contains(&names), "{diagnosis:#?}");

    // A program of the server changes a file whose layout is out. The client has gone, and returns nothing.
    let mut writer = server.spawn("echo again >>/run/exp/layout-4")?;
    eventually(|| Ok((traced(&trace, "nfsd_layout_recall:")? > 0).then_some(())))
        .context("no layout is recalled")?;
    let list = "grep -l 127.0.0.1 /proc/fs/nfsd/clients/*/info";
    server.sh(&format!(
        "for c in $({list}); do echo expire >${{c%info}}ctl; done"
    ))?;
    writer
        .wait(std::time::Duration::from_secs(120))?
        .ok("the writer")?;
    let after = eventually(|| {
        let ended = traced(&trace, "nfsd_layoutstate_free:")? >= asked.granted;
        let seen = agent.snapshot()?;
        let pending = seen.value(&f::RECALLS_PENDING, ["layout"]);
        Ok((ended && pending == Some(0.0)).then_some(seen))
    })
    .context("the client's layouts do not end")?;
    let seen = after.since(&read).delta;
    is_granted(&seen, asked.granted, asked.granted)?;
    assert_eq!(
        traced(&trace, "nfsd_layoutstate_free:")?,
        asked.granted,
        "as traced"
    );
    for (family, event) in [
        (&f::LAYOUT_RECALLS, "nfsd_layout_recall:"),
        (&f::LAYOUT_RECALLS_FAILED, "nfsd_layout_recall_fail:"),
    ] {
        let traced = traced(&trace, event)?;
        println!("{event} {traced}");
        assert_eq!(seen.value(family, []), Some(traced as f64), "{event}");
    }
    let recalls = ["returned", "taken"].map(|end| {
        let h = seen.hist(&f::RECALL_SECONDS, ["layout", end]);
        h.map_or(0, |h| h.count())
    });
    println!(
        "recalls that ended: {recalls:?}, and released as traced: {}",
        traced(&trace, "nfsd_layout_recall_release:")?
    );
    assert_eq!(
        recalls.iter().sum::<u64>(),
        traced(&trace, "nfsd_layout_recall_release:")?,
        "recalls that ended"
    );
    assert_eq!(after.value(&f::RECALLS_PENDING, ["layout"]), Some(0.0));
    trace.end()
}

fn is_granted(seen: &Snapshot, granted: u64, ended: u64) -> Result<()> {
    for (family, n) in [(&f::LAYOUTS_GRANTED, granted), (&f::LAYOUTS_ENDED, ended)] {
        let seen = seen.value(family, []);
        assert_eq!(seen, Some(n as f64), "{}", family.info.name);
    }
    Ok(())
}
