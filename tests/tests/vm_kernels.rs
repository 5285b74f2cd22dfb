//! Machines of each kernel, and their checks. Checks share machines, because machines cost more than checks. A failed check names
//! itself, and does not stop the checks after it.
//!
//! Checks that depend on the kernel run on the oldest and on the newest one that has everything (6.1, 7.2). On 6.12, between them, every
//! operation and every log is counted again; scenarios, recordings, workloads and campaigns run on it, too. Code that is the same on every
//! kernel, or with every file system, is checked once: the comment there has the reason.

use anyhow::{Result, ensure};
use lab::{Agent, Checks, Kernel, Server};
use nfscope_model::ProbeState;

use crate::phases::books::BySwitches;
use crate::phases::{Watch, causes, conservation, slow, who};
use crate::{
    breakdown, call_counts, client_view, conformance, connections, coverage, disks, durability,
    faults, hot_plug, layouts, lifecycle, logs, many_threads, matrix, measures, memory, namespaces,
    nfs4_state, outstanding, put_off, rdma, recalls, refused, sessions, starvation, stuck,
    versions, workloads,
};

/// The machine has one CPU: this kernel counts with plain increments of shared integers, which two CPUs lose at times.
#[test]
fn vm_5_10_matrix_and_fallbacks() -> Result<()> {
    let kernel = Kernel::V5_10;
    let mut checks = Checks::new("5.10");
    let server = Server::boot(kernel)
        .driven()
        .cpus(1)
        .export("ext4")
        .external_log()
        .clients(2)
        .start()?;
    checks.run("the kernel", || call_counts::the_kernel_is(&server, kernel));
    checks.run("fallbacks", || {
        faults::without_module_btf_it_falls_back(&server)
    });
    checks.run("matrix", || matrix::is_as_check_says(&server));
    let agent = server.agent(&["--client"])?;
    checks.run("the agent's matrix", || {
        matrix::is_as_the_agent_says(&server, &agent)
    });
    checks.run("raw calls", || {
        call_counts::raw_calls_are_counted(&server, &agent)
    });
    checks.run("a mixed load", || {
        call_counts::a_mixed_load_is_counted(&server, &agent, 5_000)
    });
    checks.run("the client's view", || {
        client_view::is_read_from_mountstats(&server, &agent)
    });
    checks.run("the agent stops", || agent.stop());
    checks.finish()
}

#[test]
fn vm_6_1_operations_and_causes() -> Result<()> {
    let mut checks = Checks::new("6.1 operations and causes");
    let (server, agent) = operations(Kernel::V6_1, &mut checks)?;
    time_is_where_it_went(&server, &agent, &mut checks)?;
    checks.run("a short lease", || {
        recalls::a_short_lease_ends(&server, &agent)
    });
    checks.run("the agent stops", || agent.stop());
    checks.run("kernel memory", || memory::is_bounded(&server, POSSIBLE));
    checks.finish()
}

/// Checks of code that is the same on each kernel.
#[test]
fn vm_6_12_operations() -> Result<()> {
    let mut checks = Checks::new("6.12 operations");
    let (server, agent) = operations(Kernel::V6_12, &mut checks)?;
    checks.run("threads whatever their numbers", || {
        many_threads::are_timed_whatever_their_numbers(&server, &agent)
    });
    // Data that programs keep by CPU are the same on every kernel.
    checks.run("CPUs come and go", || {
        hot_plug::loses_nothing(&server, &agent).inspect_err(|_| drop(server.all_cpus()))
    });
    // The status NFS4ERR_DELAY is the same on each kernel.
    checks.run("a client that is put off", || {
        put_off::a_client_is_told(&server, &agent)
    });
    server.clients().try_for_each(|c| c.unmount_all())?;
    checks.run("replies that are lost", || {
        outstanding::replies_that_are_lost(&server, &agent)
    });
    server.clients().try_for_each(|c| c.unmount_all())?;
    checks.run("a lock that is held", || {
        outstanding::a_lock_that_is_held(&server, &agent)
    });
    server.clients().try_for_each(|c| c.unmount_all())?;
    checks.run("the agent stops", || agent.stop());
    // The agent gives rows back, and their maps are the same on every kernel.
    let few = server.agent(&[
        "--max-clients",
        "1000",
        "--max-pairs",
        "1000",
        "--test-breakdown-rows",
        "8",
    ])?;
    checks.run("more clients than rows", || {
        who::asks_without_end(&mut Watch::begin(&server, &few)?)
    });
    // The table is the kernel's own, of a kind that all kernels have.
    checks.run("a break-down without room", || {
        breakdown::counts_what_finds_no_room(&server, &few)
    });
    checks.run("an agent with few rows stops", || few.stop());
    checks.finish()
}

#[test]
fn vm_7_2_operations_and_causes() -> Result<()> {
    let mut checks = Checks::new("7.2 operations and causes");
    let (server, agent) = operations(Kernel::V7_2, &mut checks)?;
    time_is_where_it_went(&server, &agent, &mut checks)?;
    checks.run("the agent stops", || agent.stop());
    checks.finish()
}

/// CPUs that could be added to the machine of 6.1, as to many virtual machines. Later kernels take none of QEMU's absent CPUs for
/// possible.
const POSSIBLE: u32 = 64;

pub fn serving(kernel: Kernel) -> Result<(Server, Agent)> {
    let server = Server::boot(kernel).driven();
    let server = match kernel {
        Kernel::V6_1 => server.possible_cpus(POSSIBLE),
        _ => server,
    };
    let server = server
        .export("ext4")
        .delayed()
        .external_log()
        .also_export("home")
        .also_export("scratch")
        .clients(3)
        .start()?;
    // The agent has as many series as there will be clients: none is counted in `other`.
    let agent = server.agent(&["--max-clients", "1000"])?;
    Ok((server, agent))
}

/// Checks that every operation is counted, for its client and its export.
fn operations(kernel: Kernel, checks: &mut Checks) -> Result<(Server, Agent)> {
    let (server, agent) = serving(kernel)?;
    checks.run("the kernel", || call_counts::the_kernel_is(&server, kernel));
    checks.run("every program is known here", || {
        for p in agent.snapshot()?.probes {
            ensure!(p.state != ProbeState::Unsupported, "{p:?}");
        }
        Ok(())
    });
    // The first operation of each kind shows a difference between kernels. The number of operations matters only if events may be
    // missed at any time: with two CPUs, and on 7.2, where the kernel skips some programs.
    let operations = if kernel == Kernel::V6_1 {
        10_000
    } else {
        12_000
    };
    let sent = checks.run("everything is sent", || {
        coverage::everything_is_sent(&server, &agent, operations)
    });
    if let Some(counted) = &sent {
        checks.run("every operation is counted", || {
            counted.every_op_is_counted()
        });
        checks.run("phases add up", || conservation::phases_add_up(counted));
    }
    run_all(
        &server,
        &agent,
        checks,
        &[
            ("three clients", who::each_of_three_clients),
            ("exports", who::each_export),
            ("walks", who::each_walk),
            ("many clients", |w| {
                who::each_of_many_clients(w.server, w.agent)
            }),
        ],
    )?;
    checks.run("a break-down", || {
        breakdown::tells_who_did_what(&server, &agent)
    });
    server.clients().try_for_each(|c| c.unmount_all())?;
    match kernel {
        // The harness is the same on each kernel.
        Kernel::V6_12 => {
            checks.run("conformance", || {
                conformance::suites_are_counted(&server, &agent)
            });
        }
        _ => states_and_connections(&server, &agent, checks),
    }
    checks.run("the kernel log", || {
        call_counts::the_kernel_log_is_clean(&server)
    });
    // 6.1 skips no program by itself, and its replies have no pointer to their status (rq_accept_statp, 6.4).
    if kernel != Kernel::V6_1 {
        checks.run("skipped programs", || {
            coverage::survives_skipped_programs(&server)
        });
    }
    // The programs are the same on 6.12; this kernel skips some by itself.
    if kernel == Kernel::V7_2 {
        checks.run("first requests of threads", || {
            coverage::first_requests_are_counted(&server)
        });
    }
    Ok((server, agent))
}

/// Checks what clients hold, what they are refused, and how they are connected.
fn states_and_connections(server: &Server, agent: &Agent, checks: &mut Checks) {
    checks.run("sessions", || sessions::are_counted(server, agent));
    checks.run("calls that are refused", || {
        refused::calls_are_no_operations(server, agent)
    });
    checks.run("refused calls have senders", || {
        refused::calls_are_their_senders(server, agent)
    });
    checks.run("what is no call has a sender", || {
        refused::what_is_no_call_is_its_senders(server, agent)
    });
    checks.run("writes that may be lost", || {
        durability::is_told(server, agent)
    });
    checks.run("connections", || connections::are_counted(server, agent));
    checks.run("RDMA", || rdma::is_counted(server, agent));
    checks.run("what clients hold", || {
        nfs4_state::is_as_the_kernel_lists_it(server, agent)
    });
    checks.run("locks of NFSv3", || {
        outstanding::locks_of_nfsv3(server, agent)
    });
    checks.run("delegations and recalls", || {
        recalls::are_as_traced(server, agent)
    });
    checks.run("network namespaces", || {
        namespaces::are_told_apart(server, agent)
    });
}

/// Checks that the time that a cause adds is in its phase, and that slow operations are reported one by one.
fn time_is_where_it_went(server: &Server, agent: &Agent, checks: &mut Checks) -> Result<()> {
    causes::make_files(server)?;
    let switches = BySwitches::begin(server, agent)?;
    run_all(server, agent, checks, &causes::ON_EXT4)?;
    checks.run("books and context switches agree", || {
        switches.agree(server, agent)
    });
    checks.run("requests that are stuck", || {
        stuck::requests_are_told(server, agent)
    });
    checks.run("a server that does not stop", || {
        outstanding::a_server_that_does_not_stop(server, agent)
    });
    run_all(
        server,
        agent,
        checks,
        &[("slow operations", slow::operations_are_reported)],
    )
}

pub type Check = fn(&mut Watch) -> Result<()>;

/// Script that brings every CPU online, and restores the kernel's own sizes of socket buffers (net/ipv4/tcp.c).
const USUAL: &str = "
cpus_online 1
echo 4096 16384 4194304 >/proc/sys/net/ipv4/tcp_wmem
";

/// Runs checks whose windows follow each other. A failed check's unfinished work is not part of the next one's window.
fn run_all(
    server: &Server,
    agent: &Agent,
    checks: &mut Checks,
    all: &[(&str, Check)],
) -> Result<()> {
    let mut watch = Watch::begin(server, agent)?;
    for (name, check) in all {
        if checks.run(name, || check(&mut watch)).is_none() {
            disks::all_are_fast(server)?;
            server.set_threads(8)?;
            server.sh(USUAL)?;
            watch = Watch::begin(server, agent)?;
        }
    }
    Ok(())
}

#[test]
fn vm_6_1_logs_and_disks() -> Result<()> {
    logs_and_disks(Kernel::V6_1)
}

#[test]
fn vm_6_12_logs_and_disks() -> Result<()> {
    logs_and_disks(Kernel::V6_12)
}

#[test]
fn vm_7_2_matrix_and_logs_and_disks() -> Result<()> {
    logs_and_disks(Kernel::V7_2)
}

/// Boots a server with one client, whose disk and log disk can be made slow.
fn with_a_log_disk(kernel: Kernel) -> Result<Server> {
    let server = Server::boot(kernel).driven().export("ext4").delayed();
    server.external_log().clients(1).start()
}

/// Writes to one file system after the other, with the agent's counts equal to the kernel's; then checks that measurements are true.
fn logs_and_disks(kernel: Kernel) -> Result<()> {
    let mut checks = Checks::new(&format!("{kernel} logs and disks"));
    let server = with_a_log_disk(kernel)?;
    // The probe of mounts is on all the time, so that the kernel accepts both at once.
    let agent = server.agent(&["--client"])?;
    if kernel == Kernel::V7_2 {
        checks.run("matrix", || matrix::is_as_the_agent_says(&server, &agent));
    }
    // Logs are measured without phases, too.
    let bare = match kernel {
        Kernel::V6_1 => Some(server.agent(&["--no-phases"])?),
        _ => None,
    };
    let writes = if kernel == Kernel::V6_12 { 300 } else { 200 };
    logs::journals::are_counted(
        &server,
        bare.as_ref().unwrap_or(&agent),
        writes,
        &mut checks,
        |checks, fs| on(fs, &server, &agent, checks),
    )?;
    if let Some(bare) = bare {
        checks.run("the agent without phases stops", || bare.stop());
    }
    measures::are_true(&server, &agent, &mut checks)?;
    client_view::is_exact(&server, &agent, &mut checks);
    checks.run("the agent stops", || agent.stop());
    checks.finish()
}

/// Further checks while this file system is exported. The raw client calls another file system on each kernel.
fn on(fs: &str, server: &Server, agent: &Agent, checks: &mut Checks) {
    let kernel = server.kernel();
    let mut run = |name: &str, check: &dyn Fn() -> Result<()>| {
        let ended = checks.run(&format!("{name} on {fs}"), check);
        if ended.is_none() {
            // The next checks need disks without a delay.
            let _ = disks::all_are_fast(server);
        }
    };
    match fs {
        "xfs with a log disk" => {
            run("a sync write waits for the log", &|| {
                causes::are_found_on_xfs(&mut Watch::begin(server, agent)?)
            });
            if kernel == Kernel::V6_12 {
                run("raw calls", &|| {
                    call_counts::raw_calls_are_counted(server, agent)
                });
                run("a mixed load", &|| {
                    call_counts::a_mixed_load_is_counted(server, agent, 3_000)
                });
                run("disks", &|| disks::are_as_slow_as_told(server));
            }
        }
        "xfs" => run("layouts", &|| layouts::are_counted(server, agent)),
        "btrfs" => {
            run("a sync write waits for log and disk", &|| {
                causes::are_found_on_btrfs(&mut Watch::begin(server, agent)?)
            });
            if kernel == Kernel::V6_1 {
                run("raw calls", &|| {
                    call_counts::raw_calls_are_counted(server, agent)
                });
                run("a mixed load", &|| {
                    call_counts::a_mixed_load_is_counted(server, agent, 3_000)
                });
            }
        }
        _ => {}
    }
}

/// BTF of this kernel's modules has copies of the kernel's own types. The verifier may refuse a program that needs a type proven
/// here, and an alternative must do.
#[test]
fn vm_6_18_matrix_and_types_of_their_own() -> Result<()> {
    let kernel = Kernel::V6_18;
    let mut checks = Checks::new("6.18");
    let server = with_a_log_disk(kernel)?;
    checks.run("the kernel", || call_counts::the_kernel_is(&server, kernel));
    let agent = server.agent(&["--client"])?;
    checks.run("matrix", || matrix::is_as_the_agent_says(&server, &agent));
    checks.run("raw calls", || {
        call_counts::raw_calls_are_counted(&server, &agent)
    });
    causes::make_files(&server)?;
    checks.run("too few threads", || {
        starvation::is_measured_and_named(&server, &agent)
    });
    checks.run("the agent stops", || agent.stop());
    checks.finish()
}

#[test]
fn vm_6_12_outlives_changes_and_says_what_is_missing() -> Result<()> {
    let mut checks = Checks::new("6.12 changes");
    let server = Server::boot(Kernel::V6_12)
        .driven()
        .export("ext4")
        .clients(1)
        .without_nfsd()
        .start()?;
    checks.run("a client without a server", || {
        client_view::needs_no_server(&server)
    });
    lifecycle::of_everything(&server, &mut checks)?;
    checks.run("nfsd comes and goes", || {
        lifecycle::nfsd_comes_and_goes(&server)
    });
    checks.run("no privileges", || {
        faults::without_privileges_it_names_the_capabilities(&server)
    });
    checks.run("no BTF", || faults::without_btf_it_says_so(&server));
    checks.run("paths that hang", || {
        faults::a_path_that_hangs_stops_neither_scrapes_nor_signals(&server)
    });
    let agent = server.agent(&[])?;
    checks.run("an address in use", || {
        faults::an_address_in_use_is_named(&server, &agent)
    });
    checks.run("probes are detached on request", || {
        lifecycle::probes_are_detached_on_request(&server, &agent)
    });
    server.client(0).unmount_all()?;
    workloads::run_over_nfs(&server, &agent, &mut checks)?;
    versions::are_counted(&server, &agent, &mut checks);
    checks.run("versions by threads", || {
        versions::the_scale_and_the_precision_are_told(&server, &agent)
    });
    checks.run("a version that is refused", || {
        versions::a_refused_version_is_told(&server, &agent)
    });
    checks.run("versions and a signal", || {
        versions::a_signal_leaves_nothing_behind(&server)
    });
    checks.run("the agent stops", || agent.stop());
    checks.finish()
}

/// The nfsd of this kernel has dynamic threads.
#[test]
fn vm_7_2_outlives_changes() -> Result<()> {
    let mut checks = Checks::new("7.2 changes");
    let server = Server::boot(Kernel::V7_2)
        .driven()
        .export("tmpfs")
        .clients(1)
        .without_nfsd()
        .start()?;
    lifecycle::of_everything(&server, &mut checks)?;
    server.client(0).unmount_all()?;
    let agent = server.agent(&[])?;
    checks.run("a short lease", || {
        recalls::a_short_lease_ends(&server, &agent)
    });
    checks.run("raw calls", || {
        call_counts::raw_calls_are_counted(&server, &agent)
    });
    checks.run("a mixed load", || {
        call_counts::a_mixed_load_is_counted(&server, &agent, 3_000)
    });
    server.client(0).unmount_all()?;
    // A call without a delegation depends on the client alone, and was counted on 6.12.
    versions::are_counted_with_delegations(&server, &agent, &mut checks);
    checks.run("the agent stops", || agent.stop());
    checks.finish()
}

#[test]
fn vm_6_1_matrix_and_zfs() -> Result<()> {
    zfs(Kernel::V6_1)
}

#[test]
fn vm_6_12_matrix_and_zfs() -> Result<()> {
    zfs(Kernel::V6_12)
}

/// ZFS with BTF of the module (6.12) and without (6.1).
fn zfs(kernel: Kernel) -> Result<()> {
    let mut checks = Checks::new(&format!("{kernel} ZFS"));
    let server = Server::boot(kernel)
        .driven()
        .export("zfs")
        .spare_log()
        .clients(1)
        .start()?;
    crate::zfs::is_told_as_it_counts_itself(&server, &mut checks)?;
    checks.finish()
}
