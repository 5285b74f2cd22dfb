//! Calls that the server answers from a slot, or refuses before it executes anything: the agent's counts equal the kernel's for every
//! status. The clients that send such calls are named.

use anyhow::{Result, ensure};
use lab::reconcile::{assert_same_operations, by_last_label, lost, settled, window};
use lab::refused::cases;
use lab::{Agent, Server};
use nfscope_model::family;

/// Each case by itself. No client may have the server mounted, because kernel clients send calls of their own.
pub fn calls_are_no_operations(server: &Server, agent: &Agent) -> Result<()> {
    let kernel = server.kernel();
    let mut before = settled(server, &[agent])?;
    for case in cases() {
        let what = format!("{kernel} {case}");
        let answers = server.refused(case)?;
        let after = settled(server, &[agent])?;
        let (counted, seen) = window(&before, &after, 0);
        println!("{what}: {answers:?}; lost {:?}", lost(&seen));
        assert_eq!(counted.compounds, answers.compounds, "{what}: compounds");
        assert_same_operations(&what, &counted, &seen);
        let replays: f64 = seen.numbers(&family::SESSION_REPLAYS).map(|(_, n)| n).sum();
        assert_eq!(replays as u64, answers.replays, "{what}: replays");
        let covered = after.1[0].value(&family::COVERAGE, ["4"]);
        ensure!(covered <= Some(1.0), "{what}: coverage {covered:?}");
        before = after;
    }
    Ok(())
}

/// Calls without an operation are counted for their sender, as many as it sent.
pub fn calls_are_their_senders(server: &Server, agent: &Agent) -> Result<()> {
    let before = settled(server, &[agent])?;
    let sent = server.raw("rpc-errors")?;
    let after = settled(server, &[agent])?;
    let (counted, seen) = window(&before, &after, 0);
    let refused = by_last_label(&seen, &family::CLIENT_REFUSED.info, |l| l[0] == "127.0.0.1");
    println!(
        "{:?}; refused {refused:?}, lost {:?}",
        sent.replies,
        lost(&seen)
    );
    let of = |why: &str| refused.get(why).copied().unwrap_or(0.0) as u64;
    ensure!(counted.rpc_bad == sent.bad_format + sent.bad_auth);
    assert_eq!(of("format"), sent.bad_format, "of a wrong form");
    assert_eq!(of("auth"), sent.bad_auth, "with bad credentials");
    let garbage = sent.replies.iter().filter(|(_, r)| r == "garbage_args");
    assert_eq!(of("arguments"), garbage.count() as u64, "without arguments");

    // Each kernel has the module for Kerberos, which needs neither keys nor a daemon to refuse a context.
    server.sh("modprobe auth_rpcgss")?;
    let before = after;
    server.refused(lab::refused::NO_CONTEXT)?;
    let after = settled(server, &[agent])?;
    let (counted, seen) = window(&before, &after, 0);
    let refused = by_last_label(&seen, &family::CLIENT_REFUSED.info, |l| l[0] == "127.0.0.1");
    println!("Kerberos: {refused:?}, lost {:?}", lost(&seen));
    let calls = u64::from(lab::refused::NO_CONTEXT_CALLS);
    assert_eq!(counted.rpc_bad, calls, "the kernel's, without a context");
    assert_eq!(refused.get("auth").copied(), Some(calls as f64));
    Ok(())
}

/// Messages that are no calls get no reply, and are counted for their sender: if one is too short, the kernel closes the connection
/// and counts nothing.
pub fn what_is_no_call_is_its_senders(server: &Server, agent: &Agent) -> Result<()> {
    const MESSAGES: u64 = 20;
    let before = settled(server, &[agent])?;
    server.refused(lab::refused::NO_CALLS)?;
    let after = settled(server, &[agent])?;
    let (counted, seen) = window(&before, &after, 0);
    let refused = by_last_label(&seen, &family::CLIENT_REFUSED.info, |l| l[0] == "127.0.0.1");
    println!(
        "the kernel counts {} as bad; {refused:?}; lost {:?}",
        counted.rpc_bad,
        lost(&seen)
    );
    assert_eq!(refused.get("format").copied(), Some(MESSAGES as f64));
    let limited: Vec<f64> = (after.1[0].numbers(&family::LIMITED_CONNECTIONS))
        .map(|(_, n)| n)
        .collect();
    ensure!(limited.iter().all(|n| n.abs() < 1e6), "{limited:?}");
    Ok(())
}
