//! Calls that are counted three times: by the raw client that sent them, by the kernel and by the agent.

use anyhow::{Result, ensure};
use lab::raw::Sent;
use lab::reconcile::{assert_same_operations, lost, settled, window};
use lab::{Agent, Kernel, KernelCounters, Load, Server};
use nfscope_model::family;

/// Each of the raw client's scenarios, one by one. No client may have the server mounted, because kernel clients send calls of their
/// own.
pub fn raw_calls_are_counted(server: &Server, agent: &Agent) -> Result<()> {
    let kernel = server.kernel();
    let mut before = settled(server, &[agent])?;
    for (scenario, _) in lab::raw::SCENARIOS {
        let what = format!("{kernel} {scenario}");
        let sent = server.raw(scenario)?;
        let after = settled(server, &[agent])?;
        let (counted, seen) = window(&before, &after, 0);
        assert_agree(&what, &sent, &counted);
        assert_same_operations(&what, &counted, &seen);
        // The kernel has no counter for operations that do not exist; the raw client knows how many it sent.
        let illegal =
            lab::reconcile::merged(&seen, &family::OP_DURATION.info, |l| l[1] == "illegal");
        assert_eq!(
            illegal.map_or(0, |h| h.count()),
            sent.illegal_ops,
            "{what}: operations that do not exist; lost: {:?}",
            lost(&seen)
        );
        before = after;
    }
    Ok(())
}

/// A load of kernel clients, with every kind of operation.
pub fn a_mixed_load_is_counted(server: &Server, agent: &Agent, operations: u64) -> Result<()> {
    let kernel = server.kernel();
    let before = settled(server, &[agent])?;
    let report = server.load(Load::mixed().ops(operations))?;
    let after = settled(server, &[agent])?;
    let (counted, seen) = window(&before, &after, 0);
    println!("{kernel}: {report:?}");
    ensure!(report.operations >= operations, "{report:?}");
    assert_same_operations(kernel.name(), &counted, &seen);
    has_every_kind(&counted);
    server.clients().try_for_each(|c| c.unmount_all())
}

/// Checks that the load had operations of every kind.
pub fn has_every_kind(counted: &KernelCounters) {
    for name in ["write", "commit", "read", "create", "rename", "readdirplus"] {
        assert!(counted.proc3(name) > 0, "no v3 {name}: {counted:?}");
    }
    for name in ["write", "commit", "open", "rename", "readdir"] {
        assert!(counted.op4(name) > 0, "no v4 {name}: {counted:?}");
    }
    // Newer clients read with READ_PLUS.
    assert!(counted.op4("read") + counted.op4("read_plus") > 0);
}

/// The machine runs the kernel that was asked for.
pub fn the_kernel_is(server: &Server, kernel: Kernel) -> Result<()> {
    assert_eq!(server.sh("uname -r")?.stdout.trim(), kernel.release()?);
    Ok(())
}

/// PREEMPT_RT turns more locks into sleeping ones. A program that takes one where it must not sleep shows in the log only.
pub fn the_kernel_log_is_clean(server: &Server) -> Result<()> {
    // Stalls and soft lockups come from slow emulation, and are no fault of a program.
    let faults = "scheduling while atomic|sleeping function|BUG: using|BUG: unable|kernel BUG at|Oops|invalid wait context";
    let found = server.sh(&format!("dmesg | grep -E '{faults}' || true"))?;
    ensure!(found.stdout.trim().is_empty(), "{}", found.stdout);
    Ok(())
}

fn assert_agree(what: &str, sent: &Sent, counted: &KernelCounters) {
    assert_eq!(counted.procs3(), sent.proc3, "{what}: v3 procedures");
    assert_eq!(counted.ops4_by_name(), sent.ops4, "{what}: v4 operations");
    assert_eq!(counted.compounds, sent.compounds, "{what}: compounds");
    assert_eq!(counted.null4, sent.null4, "{what}: v4 NULL");
    assert_eq!(counted.cache_hits, sent.cache_hits, "{what}: cache hits");
    assert_eq!(counted.net_tcp, sent.calls, "{what}: calls");
    assert_eq!(
        counted.net_connections, sent.connections,
        "{what}: connections"
    );
    assert_eq!(
        counted.rpc_bad,
        sent.bad_format + sent.bad_auth,
        "{what}: refused"
    );
}
