//! A delay of the device shows in every wait for the device, and in nothing else.

use anyhow::{Context, Result};
use lab::{Agent, Server};
use nfscope_model::family;
use nfscope_model::family::Info;
use nfscope_model::{Histogram, Snapshot};

use super::{DELAY, SLOW};

const WRITES: u64 = 12;
const COMMITS: u64 = 6;
const STATS: u64 = 30;

pub fn hold_the_delay(server: &Server, agent: &Agent) -> Result<()> {
    let client = server.client(0);
    // actimeo=0: every stat() is a GETATTR.
    let v3 = client.mount("v3", "vers=3,nolock,proto=tcp,hard,actimeo=0", "/run/exp")?;
    let v4 = client.mount("v4.2", "vers=4.2,proto=tcp,hard,actimeo=0", "/")?;
    for (version, mount) in [("3", v3), ("4.2", v4)] {
        // The server makes the file: a client that had made it could hold a delegation, and would know its attributes.
        server.sh(&format!("echo quiet > /run/exp/quiet-{version}"))?;
        let beside = format!(
            "for i in $(seq 6); do sleep 0.1; \
             stat {0} {0} {0} {0} {0} > /dev/null; done",
            format_args!("{mount}/quiet-{version}")
        );

        // O_DIRECT writes of a page are FILE_SYNC.
        let sync = during(
            server,
            agent,
            &format!(
                "{beside} & dd if=/dev/zero of={mount}/sync-{version} bs=4k count={WRITES} oflag=direct status=none; wait"
            ),
        )?;
        let stable = sync.value(&family::WRITE, [version, "file_sync"]);
        assert_eq!(stable, Some(WRITES as f64), "v{version}: FILE_SYNC WRITEs");
        let write = op(&sync, version, "write")?;
        assert_eq!(write.count(), WRITES, "v{version}: other WRITEs");
        holds_the_delay(&format!("v{version} FILE_SYNC WRITE"), &write);
        has_no_delay(
            &format!("v{version} GETATTR beside WRITEs"),
            &op(&sync, version, "getattr")?,
        );
        the_journal_and_the_device_hold_it(&format!("v{version} WRITEs"), &sync)?;

        let commits = during(
            server,
            agent,
            &format!(
                "{beside} & for i in $(seq {COMMITS}); do \
             dd if=/dev/zero of={mount}/commit-{version} bs=64k count=16 conv=fsync status=none; done; wait"
            ),
        )?;
        let commit = op(&commits, version, "commit")?;
        assert!(
            commit.count() >= COMMITS,
            "v{version}: {} COMMITs",
            commit.count()
        );
        holds_the_delay(&format!("v{version} COMMIT"), &commit);
        has_no_delay(
            &format!("v{version} GETATTR beside COMMITs"),
            &op(&commits, version, "getattr")?,
        );
        the_journal_and_the_device_hold_it(&format!("v{version} COMMITs"), &commits)?;
    }
    Ok(())
}

fn the_journal_and_the_device_hold_it(when: &str, seen: &Snapshot) -> Result<()> {
    let wait = only(seen, &family::LOG_WAIT.info, &["ext4", SLOW])?;
    holds_the_delay(&format!("{when}: wait for jbd2"), &wait);
    let commit = only(seen, &family::LOG_COMMIT.info, &["ext4", SLOW])?;
    holds_the_delay(&format!("{when}: jbd2 commit"), &commit);
    for kind in ["write", "flush"] {
        let device = only(seen, &family::BLOCK_DEVICE.info, &[SLOW, kind])?;
        holds_the_delay(&format!("{when}: device {kind}"), &device);
        let least = device.quantile(0.0).unwrap_or_default();
        assert!(
            least >= just_below_the_delay(),
            "{when}: device {kind}: one took only {least} s"
        );
    }
    Ok(())
}

/// Difference of the agent's snapshots over a script of the client.
fn during(server: &Server, agent: &Agent, script: &str) -> Result<Snapshot> {
    let before = lab::reconcile::settled(server, &[agent])?;
    server.client(0).sh(script)?;
    let after = lab::reconcile::settled(server, &[agent])?;
    Ok(lab::reconcile::window(&before, &after, 0).1)
}

fn holds_the_delay(what: &str, h: &Histogram) {
    let median = h.quantile(0.5).unwrap_or_default();
    tell(what, h);
    assert!(
        median >= DELAY.as_secs_f64(),
        "{what}: median {median} s of {} are less than the device's",
        h.count()
    );
}

/// Checks that a histogram is without the delay: preemption on a busy host may add to some durations, but the device's delay would be
/// in all.
fn has_no_delay(what: &str, h: &Histogram) {
    let most = h.quantile(0.9).unwrap_or_default();
    tell(what, h);
    assert!(h.count() >= STATS, "{what}: only {}", h.count());
    assert!(
        most < DELAY.as_secs_f64() / 2.0,
        "{what}: p90 {most} s of {} have the device's delay",
        h.count()
    );
}

fn tell(what: &str, h: &Histogram) {
    let at = |q| h.quantile(q).unwrap_or_default() * 1e3;
    println!(
        "{what}: {} of them, p10 {:.2} p50 {:.2} p90 {:.2} ms",
        h.count(),
        at(0.1),
        at(0.5),
        at(0.9)
    );
}

/// Edge below the bucket of the delay.
fn just_below_the_delay() -> f64 {
    let scheme = nfscope_model::Scheme::TIME;
    scheme.edge(scheme.bucket(DELAY.as_secs_f64()) - 1)
}

fn op(seen: &Snapshot, version: &str, op: &str) -> Result<Histogram> {
    only(seen, &family::OP_DURATION.info, &[version, op])
}

fn only(seen: &Snapshot, info: &Info, labels: &[&str]) -> Result<Histogram> {
    lab::reconcile::merged(seen, info, |l| l == labels)
        .with_context(|| format!("{} has no series {labels:?}", info.name))
}
