//! The server, its threads, other agents and this one come and go: nothing is counted wrongly, and nothing stays behind.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lab::reconcile::{missed, same_operations, settled, window};
use lab::{Agent, Checks, Load, Server};
use nfscope_model::Snapshot;
use nfscope_model::family;

const PATIENCE: Duration = Duration::from_secs(60);
/// Most threads of a server under load.
const MOST_THREADS: u32 = 64;

/// All checks, in a machine without nfsd, as it was booted, and nothing attached.
pub fn of_everything(server: &Server, checks: &mut Checks) -> Result<()> {
    let clean = attached(server)?;
    let Some(first) = checks.run("waits for the server", || waits_for_the_server(server)) else {
        return Ok(());
    };
    let second = server.agent(&[])?;
    checks.run("two agents while threads change", || {
        both_count_alike_while_threads_change(server, &[&first, &second])
    });
    checks.run("nfsd's restart", || {
        counts_on_after_a_restart(server, &[&first, &second])
    });
    checks.run("nothing stays behind", || {
        leaves_nothing_behind(server, &clean, first, second)
    });
    Ok(())
}

/// Test of the lab itself: modules that are loaded on request only, and files that outlive nfsd.
pub fn nfsd_comes_and_goes(server: &Server) -> Result<()> {
    let mount = server.client(0).mount_v4_2()?;
    server.client(0).sh(&format!("echo hello > {mount}/f"))?;
    server.set_threads(1)?;
    server.nfsd_stop()?;
    server.nfsd_start()?;
    assert_eq!(
        server.client(0).sh(&format!("cat {mount}/f"))?.stdout,
        "hello\n"
    );
    server.client(0).unmount_all()
}

/// An agent that is started before the server says what it waits for, and attaches by itself when the server comes.
fn waits_for_the_server(server: &Server) -> Result<Agent> {
    let loaded = server.sh("grep -c ^nfsd /proc/modules || true")?;
    assert_eq!(loaded.stdout, "0\n", "nfsd is there before it is asked for");
    let agent = server.agent_start(&[])?;
    let health = eventually(|| {
        let health = agent.get_raw("/healthz", &[])?;
        let attaching = health.text().contains("attaching");
        Ok((!attaching).then_some(health))
    })?;
    assert_eq!(health.status, 503);
    let why = health.text();
    for part in ["waiting", "module", "is not loaded", "the NFS server"] {
        assert!(why.contains(part), "/healthz says {why:?} and not {part:?}");
    }

    server.nfsd_start()?;
    agent.wait_until_healthy(PATIENCE)?;
    let before = settled(server, &[&agent])?;
    server.load(Load::mixed().ops(1_000))?;
    let after = settled(server, &[&agent])?;
    let (counted, seen) = window(&before, &after, 0);
    same_operations(&counted, &seen, missed(&agent, "nfsd")?).context("after nfsd came")?;
    Ok(agent)
}

/// Two agents at once count alike and right, while nfsd goes from 8 threads to 1 and to 64 under load.
fn both_count_alike_while_threads_change(server: &Server, agents: &[&Agent]) -> Result<()> {
    let before = settled(server, agents)?;
    let mut load = server.start_load(Load::mixed().endless())?;
    for threads in [8, 1, MOST_THREADS] {
        server.set_threads(threads)?;
        for agent in agents {
            eventually(|| {
                Ok((running(&agent.snapshot()?) == Some(f64::from(threads))).then_some(()))
            })
            .with_context(|| format!("waiting for nfscope_threads to be {threads}"))?;
        }
        lab::pass(Duration::from_secs(1)); // some load with these
    }
    load.signal(2)?;
    load.wait(PATIENCE)?;
    let after = settled(server, agents)?;
    for (agent, name) in ["the first agent", "the second agent"].iter().enumerate() {
        let (counted, seen) = window(&before, &after, agent);
        assert!(counted.operations() > 500, "no load: {counted:?}");
        println!("{name}: {} operations", counted.operations());
        same_operations(&counted, &seen, missed(agents[agent], "nfsd")?).context(*name)?;
        let most = seen.value(&family::THREADS_LIMIT, ["0"]);
        assert_eq!(
            most,
            Some(MOST_THREADS.into()),
            "{name}: the limit of the pool's threads"
        );
    }
    server.set_threads(8)
}

/// nfsd stops and starts, and no agent needs a restart.
fn counts_on_after_a_restart(server: &Server, agents: &[&Agent]) -> Result<()> {
    server.nfsd_stop()?;
    for agent in agents {
        let gone = || Ok((running(&agent.snapshot()?).unwrap_or(0.0) == 0.0).then_some(()));
        eventually(gone).context("waiting for nfscope_threads to be gone")?;
    }
    server.nfsd_start()?;
    let before = settled(server, agents)?;
    server.load(Load::mixed().ops(1_000).seed(2))?;
    let after = settled(server, agents)?;
    for (n, agent) in agents.iter().enumerate() {
        let (counted, seen) = window(&before, &after, n);
        same_operations(&counted, &seen, missed(agent, "nfsd")?).context("after nfsd's restart")?;
        assert_eq!(running(&seen), Some(8.0));
    }
    Ok(())
}

/// An agent that is stopped, killed, or stopped while it attaches leaves nothing in the kernel.
fn leaves_nothing_behind(
    server: &Server,
    clean: &str,
    mut first: Agent,
    second: Agent,
) -> Result<()> {
    let two = attached(server)?;
    println!("attached by two agents:\n{two}");
    for program in ["nfsd_run", "nfsd_send", "nfsd_op_end", "block_issue"] {
        assert!(two.contains(&format!("2 name {program}")), "{two}");
    }

    first.signal(9)?;
    first.wait(PATIENCE)?;
    second.stop()?;
    only_what_was_there(server, clean)
        .context("after kill -9 of one agent and SIGTERM to another")?;

    let started = Instant::now();
    let mut third = server.agent_start(&[])?;
    assert!(
        third.get("/probes")?.contains("[]") || third.log().contains("serving"),
        "{}",
        third.log()
    );
    third.signal(15)?;
    let ended = third.wait(PATIENCE)?;
    assert_eq!(ended.status, 0, "stopped while attaching: {}", ended.stderr);
    assert!(
        !ended.stderr.contains("being timed"),
        "it had attached: {}",
        ended.stderr
    );
    println!(
        "stopped {:?} after its start, with:\n{}",
        started.elapsed(),
        ended.stderr
    );
    only_what_was_there(server, clean).context("after SIGTERM during attach")
}

/// A module that probes hold can be replaced once they are detached, and the agent goes on.
pub fn probes_are_detached_on_request(server: &Server, agent: &Agent) -> Result<()> {
    server.sh("modprobe xfs")?;
    let port = agent.port();
    let change = |what: &str| -> Result<String> {
        let program = lab::nfscope_program()?;
        let url = format!("http://127.0.0.1:{port}");
        let said = server.sh(&format!("{} {what} --url {url}", program.display()))?;
        println!("{what}: {}", said.stdout.trim());
        Ok(said.stdout)
    };
    let of = |probe: &str, state: &str| -> Result<Option<()>> {
        let seen = agent.snapshot()?;
        let mut programs = seen.probes.iter().filter(|p| p.probe == probe);
        Ok(programs.all(|p| p.state.as_str() == state).then_some(()))
    };
    let unload = |module: &str| server.sh(&format!("rmmod {module} && echo gone || true"));

    eventually(|| of("xfs", "attached"))?;
    assert_eq!(unload("xfs")?.stdout, "", "probes do not hold their module");
    assert_eq!(change("detach xfs")?, "xfs: detached; module xfs is free\n");
    eventually(|| of("xfs", "detached"))?;
    assert_eq!(unload("xfs")?.stdout, "gone\n");
    eventually(|| of("xfs", "unused")).context("the module is gone")?;
    server.sh("modprobe xfs")?;
    eventually(|| of("xfs", "attached")).context("the module is back")?;

    // A detached probe stays detached while its module does, and comes back on request.
    change("detach xfs")?;
    lab::pass(Duration::from_secs(3));
    eventually(|| of("xfs", "detached"))?;
    change("attach xfs")?;
    eventually(|| of("xfs", "attached")).context("attached on request")?;

    // Without nfsd's probe nothing is timed, and with it everything again.
    change("detach nfsd")?;
    let health = agent.get_raw("/healthz", &[])?;
    assert_eq!(health.status, 503);
    assert!(
        health.text().contains("nfscope attach nfsd"),
        "{}",
        health.text()
    );
    server.load(Load::mixed().ops(200))?;
    change("attach nfsd")?;
    agent.wait_until_healthy(PATIENCE)?;
    let before = settled(server, &[agent])?;
    server.load(Load::mixed().ops(500))?;
    let after = settled(server, &[agent])?;
    let (counted, seen) = window(&before, &after, 0);
    same_operations(&counted, &seen, missed(agent, "nfsd")?).context("attached again")?;
    assert_eq!(seen.value(&family::COVERAGE, ["3"]), Some(1.0));
    Ok(())
}

/// Names of programs and number of links in the kernel, in a form that is the same at each reading.
fn attached(server: &Server) -> Result<String> {
    Ok(server.sh("bpftool prog list | grep -oP 'name \\S+' | sort | uniq -c; bpftool link list | grep -c '^[0-9]' || true")?.stdout)
}

/// The kernel detaches programs a moment after their owner has ended.
fn only_what_was_there(server: &Server, clean: &str) -> Result<()> {
    let mut last = String::new();
    eventually(|| {
        last = attached(server)?;
        Ok((last == clean).then_some(()))
    })
    .with_context(|| format!("before:\n{clean}\nnow:\n{last}"))
}

fn running(seen: &Snapshot) -> Option<f64> {
    seen.value(&family::THREADS, ["0"])
}

/// Repeats `look` until it finds something.
pub fn eventually<T>(mut look: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let started = Instant::now();
    loop {
        if let Some(found) = look()? {
            return Ok(found);
        }
        if started.elapsed() > PATIENCE {
            bail!("it did not happen within {PATIENCE:?}");
        }
        lab::pass(Duration::from_millis(300));
    }
}
