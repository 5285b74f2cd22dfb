//! Clients that wait outside the server: replies that the network loses, as the kernel's own socket lists them, and a lock that
//! another client holds.

use anyhow::{Context, Result, bail, ensure};
use lab::{Agent, Server, finally};
use nfscope_diagnose::evaluate;
use nfscope_model::finding::{Diagnosis, Kind};
use nfscope_model::{Snapshot, Unacknowledged, family};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use crate::lifecycle::eventually;

/// All packets from the server to one client are lost. The bytes that TCP keeps for the client equal those of `ss`. Neither
/// `diagnose` nor `stuck` calls the server idle.
pub fn replies_that_are_lost(server: &Server, agent: &Agent) -> Result<()> {
    let client = server.client(0);
    let address = client.address().to_string();
    let mount = client.mount_v3()?;
    client.sh(&format!("ls {mount} >/dev/null"))?;
    let before = agent.snapshot()?;
    ensure!(
        Unacknowledged::all(&before) == Some(Vec::new()),
        "a quiet client is one that waits"
    );
    server.sh("modprobe sch_netem; tc qdisc add dev s0 root netem loss 100%")?;
    let waits = client.spawn(&format!("ls -la {mount} >/dev/null; touch {mount}/lost"))?;
    let found = eventually(|| {
        let after = agent.snapshot()?;
        let d = evaluate(&after.since(&before), &[]);
        Ok(d.finding(Kind::UnacknowledgedReplies)
            .is_some()
            .then_some((after, d)))
    });
    let listed = server.sh(&format!(
        "ss -Htn state established 'sport = :2049 and dst {address}' | awk '{{ sum += $2 }} END {{ print sum + 0 }}'"
    ));
    let nfscope = server.nfscope_path()?;
    let stuck = server.sh(&format!(
        "{} stuck --url http://127.0.0.1:{}; echo exit $?",
        nfscope.display(),
        agent.port()
    ));
    server.sh("tc qdisc del dev s0 root")?;
    waits.kill()?;
    let (after, d) = found?;
    says(
        &d,
        Kind::UnacknowledgedReplies,
        &[&address, "acknowledges no replies"],
    )?;
    let kept: f64 = listed?.stdout.trim().parse()?;
    let told = after.value(&family::UNACKED_BYTES, [&address]);
    ensure!(
        kept > 0.0 && told == Some(kept),
        "{told:?} instead of {kept}"
    );
    let stuck = stuck?.stdout;
    let line = format!("of replies to {address} have not been acknowledged");
    ensure!(stuck.contains(&line) && stuck.contains("exit 2"), "{stuck}");
    eventually(|| {
        let now = Unacknowledged::all(&agent.snapshot()?);
        Ok((now == Some(Vec::new())).then_some(()))
    })
    .context("the network is whole again")
}

/// A client of NFSv4.0 repeats its request for a lock that another one holds.
pub fn a_lock_that_is_held(server: &Server, agent: &Agent) -> Result<()> {
    let [holder, waiter] = [0, 1].map(|n| server.client(n));
    let (held, wanted) = (holder.mount_v4_0()?, waiter.mount_v4_0()?);
    server.sh("echo x >/run/exp/lockfile; chmod 666 /run/exp/lockfile")?;
    let holds = holder.spawn(&format!(
        "exec 9>>{held}/lockfile; flock -x 9; exec sleep 600"
    ))?;
    let locked = "cat /proc/fs/nfsd/clients/*/states | grep -c 'type: lock' || true";
    eventually(|| Ok((server.sh(locked)?.stdout.trim() != "0").then_some(())))?;
    let before = agent.snapshot()?;
    let polls = waiter.spawn(&format!("exec 8>>{wanted}/lockfile; flock -x 8"))?;
    let found = eventually(|| {
        let after = agent.snapshot()?.since(&before);
        let d = evaluate(&after, &[]);
        let names = after.delta.series(&family::CLIENT_LOCKS_HELD.info).len();
        let found = d.finding(Kind::RetryLater).is_some() && names > 0;
        Ok(found.then_some(d))
    });
    polls.kill()?;
    // A repetition between the readings of two tables is in one of them alone. No client asks now.
    let counts = || -> Result<_> {
        let w = agent.snapshot()?.since(&before);
        let in_all = w.delta.value(&family::OP_ERRORS, ["4.0", "lock", "denied"]);
        let waiter = waiter.address().to_string();
        let of_one = (w.delta).value(&family::CLIENT_RETRIED, [&waiter, "4.0", "lock", "denied"]);
        Ok((in_all, of_one))
    };
    let agreed = eventually(|| {
        let (in_all, of_one) = counts()?;
        Ok((in_all == of_one && in_all >= Some(2.0)).then_some(()))
    });
    holds.kill()?;
    let d = found?;
    let (one, other) = (waiter.address().to_string(), holder.address().to_string());
    let asks = format!("{one} asks again and again for a lock");
    says(&d, Kind::RetryLater, &[&asks, &format!("{other} (1)")])?;
    agreed.with_context(|| format!("of all and of one client: {:?}", counts()))
}

/// A server is to stop while a thread cannot end its request: it says nothing of its threads until then. The agent tells for how long,
/// and waits for no answer. Started again, the server is in its grace period for as long as the kernel says.
pub fn a_server_that_does_not_stop(server: &Server, agent: &Agent) -> Result<()> {
    let mount = server.client(0).mount_v3()?;
    server.client(0).sh(&format!("touch {mount}/stops"))?;
    // The kernel skips the grace period without a client to wait for (nfs4_state_start_net). This one is recorded when it opens a file,
    // and comes back when it renews its lease: after 60 s without an operation.
    let idle = server.client(1);
    let mounted = idle.mount("grace", "vers=4.2,proto=tcp,hard", "/")?;
    idle.sh(&format!("touch {mounted}/grace"))?;
    let threads = server.sh("cat /proc/fs/nfsd/threads")?.stdout;
    let threads = threads.trim();
    finally(
        || stops_and_starts(server, agent, &mount, threads),
        || {
            // fsfreeze fails if the file system is not frozen any more.
            server.sh(&format!(
                "fsfreeze -u /run/exp 2>/dev/null\nnfsd_up {threads} && grace_over"
            ))?;
            idle.sh(&format!("umount {mounted}")).map(drop)
        },
    )
}

/// Stops the server in the way described above, and starts it without `nfsd_up`, which ends the grace period.
fn stops_and_starts(server: &Server, agent: &Agent, mount: &str, threads: &str) -> Result<()> {
    let before = agent.snapshot()?;
    let change = |s: &Snapshot| s.value(&family::SERVER_CHANGE, []);
    ensure!(change(&before) == Some(0.0), "{:?}", change(&before));
    server.sh("fsfreeze -f /run/exp")?;
    let writes = server
        .client(0)
        .spawn(&format!("echo x >{mount}/stops; sync {mount}/stops"))?;
    server.sh("sleep 1; (rpc.nfsd 0 >/dev/null 2>&1 &) ; sleep 1")?;
    let told = eventually(|| {
        let now = agent.snapshot()?;
        Ok(change(&now).is_some_and(|s| s >= 1.0).then_some(now))
    })?;
    server.sh("fsfreeze -u /run/exp")?;
    let d = evaluate(&told.since(&before), &[]);
    let says = "the server has been starting, stopping or changing its threads for ";
    let said = d.outside.iter().chain([&d.reason]);
    ensure!(said.into_iter().any(|s| s.contains(says)), "{d:#?}");
    eventually(|| Ok((change(&agent.snapshot()?) == Some(0.0)).then_some(())))
        .context("the server has stopped")?;
    server.sh(&format!("rpc.nfsd --grace-time 10 {threads}"))?;
    let mut seen: Vec<GraceMoment> = Vec::new();
    // Ten seconds of grace, and some more.
    for _ in 0..100 {
        let ended = server.sh("cat /proc/fs/nfsd/v4_end_grace")?.stdout;
        let now = agent.snapshot()?;
        seen.push(GraceMoment {
            at: now.at,
            in_grace: ended.trim() == "N",
            told: now.value(&family::IN_GRACE, []),
        });
        let over = seen.iter().find(|m| !m.in_grace);
        if over.is_some_and(|m| now.at.saturating_sub(m.at) > 2 * REPEATED) {
            break;
        }
        lab::pass(Duration::from_millis(300));
    }
    writes.kill()?;
    grace_is_the_kernels(&seen)
}

/// Longest time for which the agent repeats an answer of the kernel: it asks every two seconds (READ_AGAIN of agent/source).
const REPEATED: Duration = Duration::from_secs(4);

/// Answers about the grace period: the kernel's, and then the agent's.
#[derive(Debug, Clone, Copy)]
struct GraceMoment {
    /// Time of the agent's snapshot.
    at: Duration,
    in_grace: bool,
    told: Option<f64>,
}

/// Fails unless the agent tells what the kernel has said for longer than the agent repeats an answer, in the grace period and after it.
fn grace_is_the_kernels(seen: &[GraceMoment]) -> Result<()> {
    let mut compared = Vec::new();
    for (i, now) in seen.iter().enumerate() {
        let same = |m: &&GraceMoment| m.in_grace == now.in_grace;
        let first = seen[..i].iter().rev().take_while(same).last();
        let lasts = first.is_some_and(|m| now.at.saturating_sub(m.at) >= REPEATED);
        // The kernel's next answer is younger than the agent's.
        if lasts && seen.get(i + 1).as_ref().is_some_and(same) {
            let expected = Some(f64::from(u8::from(now.in_grace)));
            ensure!(now.told == expected, "{now:?} of {seen:#?}");
            compared.push(now.in_grace);
        }
    }
    for (in_grace, what) in [(true, "in"), (false, "after")] {
        ensure!(
            compared.contains(&in_grace),
            "no answer {what} the grace period was compared: {seen:#?}"
        );
    }
    Ok(())
}

#[test]
fn an_agent_that_never_tells_a_grace_period_is_refused() {
    // Seconds, what the kernel says, what the agent says.
    let seen = |all: &[(u64, bool, f64)]| -> Vec<_> {
        let moment = |(at, in_grace, told): &(u64, bool, f64)| GraceMoment {
            at: Duration::from_secs(*at),
            in_grace: *in_grace,
            told: Some(*told),
        };
        all.iter().map(moment).collect()
    };
    let right = [
        (0, true, 0.0),
        (3, true, 1.0),
        (6, true, 1.0),
        (9, true, 1.0),
        (10, false, 1.0),
        (14, false, 0.0),
        (18, false, 0.0),
    ];
    assert!(grace_is_the_kernels(&seen(&right)).is_ok());
    let never = right.map(|(at, in_grace, _)| (at, in_grace, 0.0));
    assert!(grace_is_the_kernels(&seen(&never)).is_err());
    let always = right.map(|(at, in_grace, _)| (at, in_grace, 1.0));
    assert!(grace_is_the_kernels(&seen(&always)).is_err());
    let skipped = right.map(|(at, _, _)| (at, false, 0.0));
    assert!(grace_is_the_kernels(&seen(&skipped)).is_err());
}

/// Two clients of NFSv3 want the same lock. lockd's answers are counted by client. The client that waits is named until it has the
/// lock, even if the kernel does not list waiting clients.
pub fn locks_of_nfsv3(server: &Server, agent: &Agent) -> Result<()> {
    let file = "/run/exp/nlm";
    let mount = server.client(0).mount_v3()?;
    server.client(0).sh(&format!("ls {mount}"))?;
    server.sh(&format!("echo x >{file}; chmod 666 {file}"))?;
    let before = agent.snapshot()?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("guest/nlm.py");
    // Answers to the clients, by client, procedure and status.
    let mut answered: BTreeMap<(usize, String, String), f64> = BTreeMap::new();
    let mut ask = |n: usize, procedures: &str| -> Result<String> {
        let told = server.client(n).sh(&format!(
            "python3 {} 10.9.{n}.1 {file} {n} {procedures}",
            script.display()
        ))?;
        let words: Vec<_> = told.stdout.split_whitespace().collect();
        for one in words.chunks(2) {
            let procedure = one[0].trim_end_matches("_wait").to_owned();
            let key = (n, procedure, nlm_status(one[1])?.to_owned());
            *answered.entry(key).or_default() += 1.0;
        }
        Ok(words.join(" "))
    };
    let told = [
        ask(0, "null nm_lock")?,
        ask(1, "nm_lock test nm_lock_wait")?,
    ];
    ensure!(
        told == ["null nothing nm_lock 0", "nm_lock 1 test 1 nm_lock_wait 3"],
        "{told:?}"
    );
    let other = server.client(1).address().to_string();
    let d = eventually(|| {
        let w = agent.snapshot()?.since(&before);
        let waits = w.delta.value(&family::CLIENT_NLM_WAIT, [&other]);
        let d = evaluate(&w, &[]);
        Ok((waits > Some(10.0) && d.finding(Kind::RetryLater).is_some()).then_some(d))
    })?;
    says(
        &d,
        Kind::RetryLater,
        &[&format!(
            "{other} has been told to wait for a lock (NLM4_BLOCKED)"
        )],
    )?;
    ask(0, "unlock")?;
    // A kernel that lists waiting clients grants the lock to this client, and calls it. It does not listen, and gives that lock back
    // first.
    let told = ask(1, "unlock nm_lock unlock")?;
    ensure!(told == "unlock 0 nm_lock 0 unlock 0", "{told}");
    let w = agent.snapshot()?.since(&before);
    let mut procedures: BTreeMap<(&str, &str), f64> = BTreeMap::new();
    for ((n, procedure, answer), seen) in &answered {
        *procedures.entry((procedure, answer)).or_default() += seen;
        if procedure == "nm_lock" {
            let client = server.client(*n).address().to_string();
            let counted = w.delta.value(&family::CLIENT_NLM, [&client, answer]);
            ensure!(
                counted == Some(*seen),
                "{client} {answer}: {counted:?}, not {seen}"
            );
        }
    }
    for ((procedure, answer), seen) in &procedures {
        let counted = w.delta.value(&family::NLM_ANSWERS, [procedure, answer]);
        ensure!(
            counted == Some(*seen),
            "{procedure} {answer}: {counted:?}, not {seen}"
        );
    }
    let timed = w.delta.hist(&family::NLM_DURATION, ["nm_lock"]);
    let timed = timed.map(|h| (h.count() as f64, h.sum > 0.0));
    let locks = procedures.iter().filter(|((p, _), _)| *p == "nm_lock");
    let locks: f64 = locks.map(|(_, n)| n).sum();
    ensure!(timed == Some((locks, true)), "{timed:?}, not {locks}");
    eventually(|| {
        let waits = agent.snapshot()?.value(&family::NLM_WAITING, []);
        Ok((waits == Some(0.0)).then_some(()))
    })
    .context("somebody still waits")
}

/// Label of a status that the client printed.
fn nlm_status(printed: &str) -> Result<&'static str> {
    Ok(match printed {
        "0" => "granted",
        "1" => "denied",
        "3" => "blocked",
        "nothing" => "none",
        other => bail!("status {other}"),
    })
}

fn says(d: &Diagnosis, kind: Kind, sentences: &[&str]) -> Result<()> {
    let finding = d.finding(kind).with_context(|| format!("{d:#?}"))?;
    let text = format!("{finding:#?}");
    println!("{text}");
    for sentence in sentences {
        ensure!(text.contains(sentence), "{sentence}: {text}");
    }
    Ok(())
}
