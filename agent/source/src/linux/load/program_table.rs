//! All probes and their programs: hooks, data, and fallbacks for modules without BTF.

use super::program::{Alternative, ON_DEMAND, Probe, Program, SAME, When, program};

/// Program at the beginning or end of a function in which threads wait for a log.
const fn wait_half(name: &'static str, btf: &'static str, gives: &'static str) -> Program {
    program(
        name,
        btf,
        Err("it sleeps, and a return probe on a function that sleeps loses returns"),
        gives,
        false,
    )
}

const NO_PHASES: &str =
    "phases of operations cannot be measured without fexit on the functions that wait";

/// Program at the beginning or end of a function in which threads wait for I/O.
const fn io_half(name: &'static str, btf: &'static str) -> Program {
    Program {
        when: When::Books,
        ..program(
            name,
            btf,
            Err(NO_PHASES),
            "phases of operations: their waits for disks",
            false,
        )
    }
}

/// Program at the beginning or end of a function in which threads seldom wait. Without it such a wait is part of `lock` or `disk`.
const fn rare_half(name: &'static str, btf: &'static str, gives: &'static str) -> Program {
    program(name, btf, Err(NO_PHASES), gives, false)
}

const RECALLS: &str = "which waits of an operation are for clients to return delegations";
const THROTTLING: &str = "which waits of an operation are for dirty pages to be stored";
const RECLAIM: &str = "which waits of an operation are for memory";

/// Program at the beginning or end of a function in which threads wait for a daemon.
const fn upcall_half(name: &'static str, btf: &'static str) -> Program {
    program(
        name,
        btf,
        Err("it sleeps, and a return probe on a function that sleeps loses returns"),
        "how long threads wait for rpc.mountd and other daemons",
        false,
    )
}

const RECALLED: &str = "delegations that are recalled, and how long clients take to return them";
const LAYOUTS_RECALLED: &str =
    "pNFS layouts that are recalled, and how long clients take to return them";
const LAUNDROMAT: &str = "when the laundromat of NFSv4 state ran last";

/// Program for the state that NFSv4 clients hold.
const fn of_state(name: &'static str, btf: &'static str, gives: &'static str) -> Program {
    program(
        name,
        btf,
        Err("the layout of its states is unknown"),
        gives,
        false,
    )
}

const SLOT_WAITS: &str = "how long RPCs of NFSv4 mounts wait for a slot of their session";
/// Program without which this host's own mounts are read from mountstats.
pub const CLIENT_RPC_END: &str = "client_rpc_end";

/// Program for this host's own mounts.
const fn of_mounts(name: &'static str, btf: &'static str, gives: &'static str) -> Program {
    program(
        name,
        btf,
        Err("the layout of its structures is unknown; /proc/self/mountstats tells sums"),
        gives,
        false,
    )
}

/// Data of the programs without which phase `log` is not reported.
pub const LOG_WAITS: &str =
    "how long threads wait for the log, and which waits of an operation are for it";
/// Data of the other programs for logs: without them such a wait, which is rare, is part of `lock` or `disk`.
const ROOM_WAITS: &str = "which waits of an operation are for room in the log";

/// Data of the programs for XFS metadata: without them such a wait is part of `lock`.
const METADATA: &str = "which waits of an operation are for XFS metadata on a disk";
const METADATA_OF_OTHERS: &str =
    "which waits of an operation are for XFS metadata that others read or write";

/// All probes. They attach from the last to the first, but `sched` before all others.
pub static PROBES: [Probe; 10] = [
    Probe {
        word: "nfsd",
        object: &nfscope_probes::NFSD,
        modules: &["sunrpc", "nfsd"],
        programs: &[
            program(
                "nfsd_held",
                ON_DEMAND,
                Ok(SAME),
                "operation and file of a request that is stuck",
                false,
            ),
            program(
                "nfsd_pending",
                ON_DEMAND,
                Err("without BTF of sunrpc nothing tells whose a connection is"),
                "connections with requests that no thread takes",
                false,
            ),
            program(
                "nfsd_transports",
                "iter/task",
                Err("the layout of the server's lists is not known"),
                "open connections by transport, and the kernel's limit",
                false,
            ),
            program(
                "nfsd_send",
                "tp_btf/svc_send",
                Ok(SAME),
                "end of a replied request",
                true,
            ),
            program(
                "nfsd_drop",
                "tp_btf/svc_drop",
                Ok(SAME),
                "end of a dropped request",
                false,
            ),
            program(
                "nfsd_defer",
                "tp_btf/svc_defer",
                Ok(SAME),
                "requests deferred for an upcall",
                false,
            ),
            program(
                "nfsd_reply",
                "tp_btf/svc_stats_latency",
                Ok(SAME),
                "end of execution, start of the reply",
                true,
            ),
            program(
                "nfsd_op_end",
                "tp_btf/nfsd_compound_status",
                Ok(SAME),
                "end of each NFSv4 component op",
                true,
            ),
            program(
                "nfsd_ops_begin",
                "tp_btf/nfsd_compound",
                Ok(SAME),
                "start of a COMPOUND's first op",
                true,
            ),
            program(
                "nfsd_read_done",
                "tp_btf/nfsd_read_io_done",
                Ok(SAME),
                "bytes of each READ",
                false,
            ),
            // With BTF the WRITE's own result has its bytes, and no program is needed.
            Program {
                when: When::Raw,
                ..program(
                    "nfsd_write_done",
                    "tp_btf/nfsd_write_io_done",
                    Ok(SAME),
                    "bytes of each WRITE",
                    false,
                )
            },
            program(
                "nfsd_upcall",
                "tp_btf/cache_entry_upcall",
                Ok(SAME),
                "whom threads ask: rpc.mountd, rpc.idmapd, rpc.svcgssd",
                false,
            ),
            upcall_half(
                "nfsd_answer",
                "fexit/wait_for_completion_interruptible_timeout",
            ),
            upcall_half(
                "nfsd_ask",
                "fentry/wait_for_completion_interruptible_timeout",
            ),
            upcall_half("nfsd_tracked", "fexit/nfsd4_client_record_create"),
            upcall_half("nfsd_track", "fentry/nfsd4_client_record_create"),
            upcall_half("nfsd_looked_up", "fexit/nfsd4_client_record_check"),
            upcall_half("nfsd_lookup", "fentry/nfsd4_client_record_check"),
            upcall_half("nfsd_untracked", "fexit/nfsd4_client_record_remove"),
            upcall_half("nfsd_untrack", "fentry/nfsd4_client_record_remove"),
            rare_half("nfsd_recalled", "fexit/nfsd_wait_for_delegreturn", RECALLS),
            rare_half("nfsd_recall", "fentry/nfsd_wait_for_delegreturn", RECALLS),
            of_state("nfsd_deleg_free", "fentry/nfs4_free_deleg", RECALLED),
            of_state(
                "nfsd_deleg_take",
                "tp_btf/nfsd_stid_revoke",
                "delegations that are revoked",
            ),
            of_state(
                "nfsd_deleg_back",
                "tp_btf/nfsd_deleg_return",
                "delegations that are returned",
            ),
            of_state("nfsd_deleg_ask", "tp_btf/nfsd_cb_recall", RECALLED),
            of_state(
                "nfsd_deleg_r",
                "tp_btf/nfsd_deleg_read",
                "delegations that are granted",
            ),
            Program {
                when: When::WriteDelegations,
                ..of_state(
                    "nfsd_deleg_w",
                    "tp_btf/nfsd_deleg_write",
                    "delegations that are granted for writing",
                )
            },
            Program {
                when: When::DirectoryDelegations,
                ..of_state(
                    "nfsd_deleg_dir",
                    "fexit/nfsd_get_dir_deleg",
                    "delegations of directories that are granted",
                )
            },
            of_state(
                "nfsd_layout_end",
                "tp_btf/nfsd_layoutstate_free",
                "pNFS layouts that end",
            ),
            of_state(
                "nfsd_layout_got",
                "tp_btf/nfsd_layout_recall_release",
                LAYOUTS_RECALLED,
            ),
            of_state(
                "nfsd_layout_out",
                "tp_btf/nfsd_layout_recall_fail",
                "clients that are kept from the storage",
            ),
            of_state(
                "nfsd_layout_ask",
                "tp_btf/nfsd_layout_recall",
                LAYOUTS_RECALLED,
            ),
            of_state(
                "nfsd_layout_new",
                "tp_btf/nfsd_layoutstate_alloc",
                "pNFS layouts that are granted",
            ),
            of_state("nfsd_laundered", "fexit/laundromat_main", LAUNDROMAT),
            of_state("nfsd_launder", "fentry/laundromat_main", LAUNDROMAT),
            program(
                "nfsd_receive",
                "tp_btf/svcsock_tcp_recv",
                Ok(SAME),
                "queue time over TCP; UDP and RDMA have no clock of a request's arrival and stay without",
                false,
            ),
            program(
                "nfsd_exit",
                "tp_btf/sched_process_exit",
                Ok(SAME),
                "forgets threads that have ended",
                false,
            ),
            // The program attaches before nfsd_detach, which would otherwise count a connection that was given up as one closed by the
            // limit.
            program(
                "nfsd_closing",
                "tp_btf/svc_xprt_close",
                Err("the layout of its sockets is not known"),
                "connections that the server gives up",
                false,
            ),
            program(
                "nfsd_detach",
                "tp_btf/svc_xprt_detach",
                Err("the layout of its sockets is not known"),
                "why connections are closed",
                false,
            ),
            program(
                "nfsd_xprt_free",
                "tp_btf/svc_xprt_free",
                Ok(SAME),
                "forgets closed connections",
                false,
            ),
            program(
                "nfsd_accept",
                "tp_btf/svc_xprt_accept",
                Err("the layout of its sockets is not known"),
                "accepted connections, and the arrival of first calls that come before that",
                false,
            ),
            Program {
                others: &[Alternative {
                    name: "nfsd_arrive_tp",
                    btf: "tp_btf/svcsock_data_ready",
                    first: When::Casts,
                }],
                ..program(
                    "nfsd_arrive",
                    "fentry/svc_data_ready",
                    Ok("kprobe/svc_data_ready"),
                    "arrival of requests on TCP sockets",
                    false,
                )
            },
            program(
                "nfsd_dequeue",
                "tp_btf/svc_xprt_dequeue",
                Ok(SAME),
                "a thread takes a request",
                false,
            ),
            Program {
                when: When::Preemptible,
                ..program(
                    "nfsd_idle",
                    "fentry/svc_recv",
                    Err("only for kernels that run tracepoints preemptibly"),
                    "requests whose end the kernel skipped",
                    false,
                )
            },
            program(
                "nfsd_run",
                "tp_btf/svc_process",
                Ok(SAME),
                "start of execution",
                true,
            ),
        ],
    },
    Probe {
        word: "sched",
        object: &nfscope_probes::SCHED,
        modules: &["nfsd"],
        programs: &[
            io_half("sched_io_end", "fexit/io_schedule"),
            io_half("sched_io_begin", "fentry/io_schedule"),
            io_half("sched_iot_end", "fexit/io_schedule_timeout"),
            io_half("sched_iot_begin", "fentry/io_schedule_timeout"),
            rare_half("sched_dirty_end", "fexit/balance_dirty_pages", THROTTLING),
            rare_half("sched_dirty", "fentry/balance_dirty_pages", THROTTLING),
            rare_half(
                "sched_reclaimed",
                "tp_btf/mm_vmscan_direct_reclaim_end",
                RECLAIM,
            ),
            rare_half(
                "sched_reclaim",
                "tp_btf/mm_vmscan_direct_reclaim_begin",
                RECLAIM,
            ),
            Program {
                when: When::NoBooks,
                ..program(
                    "sched_switched",
                    "tp_btf/sched_switch",
                    Err(NO_PHASES),
                    "phases of operations",
                    false,
                )
            },
        ],
    },
    Probe {
        word: "jbd2",
        object: &nfscope_probes::JBD2,
        modules: &["ext4", "jbd2"],
        programs: &[
            program(
                "jbd2_wait_end",
                "fexit/jbd2_log_wait_commit",
                Err(
                    "it sleeps, and a return probe on a function that sleeps loses returns (58 to 90 % of them measured); needs BTF of module jbd2 for fexit",
                ),
                LOG_WAITS,
                false,
            ),
            program(
                "jbd2_wait_begin",
                "fentry/jbd2_log_wait_commit",
                Err("of no use without its end, jbd2_wait_end"),
                LOG_WAITS,
                false,
            ),
            wait_half("jbd2_fast_end", "fexit/ext4_fc_commit", LOG_WAITS),
            wait_half("jbd2_fast_begin", "fentry/ext4_fc_commit", LOG_WAITS),
            wait_half("jbd2_lock_end", "fexit/wait_transaction_locked", ROOM_WAITS),
            wait_half(
                "jbd2_lock_begin",
                "fentry/wait_transaction_locked",
                ROOM_WAITS,
            ),
            wait_half(
                "jbd2_room_end",
                "fexit/__jbd2_log_wait_for_space",
                ROOM_WAITS,
            ),
            wait_half(
                "jbd2_room_begin",
                "fentry/__jbd2_log_wait_for_space",
                ROOM_WAITS,
            ),
            program(
                "jbd2_written",
                "tp_btf/jbd2_end_commit",
                Err("the layout of the journal's structures is unknown"),
                "bytes written to the journal",
                false,
            ),
            program(
                "jbd2_committed",
                "tp_btf/jbd2_run_stats",
                Ok(SAME),
                "how long a journal commit takes",
                false,
            ),
            program(
                "jbd2_commit",
                "tp_btf/jbd2_start_commit",
                Ok(SAME),
                "start of such a commit",
                false,
            ),
            program(
                "jbd2_fast_stop",
                "tp_btf/ext4_fc_commit_stop",
                Ok(SAME),
                "how long a fast commit takes, and its bytes",
                false,
            ),
            program(
                "jbd2_fast_start",
                "tp_btf/ext4_fc_commit_start",
                Ok(SAME),
                "start of such a commit, and of the wait for it",
                false,
            ),
        ],
    },
    Probe {
        word: "xfs",
        object: &nfscope_probes::XFS,
        modules: &["xfs"],
        programs: &[
            wait_half("xfs_seq_end", "fexit/xfs_log_force_seq", LOG_WAITS),
            wait_half("xfs_seq_begin", "fentry/xfs_log_force_seq", LOG_WAITS),
            wait_half("xfs_force_end", "fexit/xfs_log_force", LOG_WAITS),
            wait_half("xfs_force_begin", "fentry/xfs_log_force", LOG_WAITS),
            wait_half("xfs_room_end", "fexit/xlog_grant_head_wait", ROOM_WAITS),
            wait_half("xfs_room_begin", "fentry/xlog_grant_head_wait", ROOM_WAITS),
            rare_half("xfs_io_end", "tp_btf/xfs_buf_iowait_done", METADATA),
            rare_half("xfs_io_begin", "tp_btf/xfs_buf_iowait", METADATA),
            rare_half("xfs_lock_end", "fexit/__down", METADATA_OF_OTHERS),
            rare_half("xfs_lock_begin", "fentry/__down", METADATA_OF_OTHERS),
            program(
                "xfs_write_end",
                "fentry/xlog_state_done_syncing",
                Err("the layout of the log's structures is unknown"),
                "how long a write of the log takes",
                false,
            ),
            program(
                "xfs_write_begin",
                "fentry/xlog_write_iclog",
                Err("the layout of the log's structures is unknown"),
                "start of such a write, and its bytes",
                false,
            ),
        ],
    },
    Probe {
        word: "btrfs",
        object: &nfscope_probes::BTRFS,
        modules: &["btrfs"],
        programs: &[
            wait_half("btrfs_log_end", "fexit/btrfs_sync_log", LOG_WAITS),
            wait_half("btrfs_log_begin", "fentry/btrfs_sync_log", LOG_WAITS),
            wait_half("btrfs_txn_end", "fexit/btrfs_commit_transaction", LOG_WAITS),
            wait_half(
                "btrfs_txn_begin",
                "fentry/btrfs_commit_transaction",
                LOG_WAITS,
            ),
            wait_half(
                "btrfs_written",
                "fexit/write_all_supers",
                "how long a write of the tree log takes",
            ),
            wait_half(
                "btrfs_write",
                "fentry/btrfs_write_marked_extents",
                "start of such a write",
            ),
        ],
    },
    Probe {
        word: "zfs",
        object: &nfscope_probes::ZFS,
        modules: &["zfs"],
        programs: &[
            program(
                "zfs_wait_end",
                "fexit/zil_commit_impl",
                Ok("kretprobe/zil_commit_impl"),
                "how long threads wait for the intent log, and which waits of an operation are for it",
                false,
            ),
            program(
                "zfs_wait_begin",
                "fentry/zil_commit_impl",
                Ok("kprobe/zil_commit_impl"),
                "start of such a wait",
                false,
            ),
            program(
                "zfs_commit",
                "fentry/zil_commit",
                Ok("kprobe/zil_commit"),
                "commits that sync=disabled acknowledges without durability",
                false,
            ),
            program(
                "zfs_txg_wait",
                "fentry/txg_wait_synced",
                Ok("kprobe/txg_wait_synced"),
                "commits that waited for a whole transaction group",
                false,
            ),
            program(
                "zfs_lwb_flushed",
                "fentry/zil_lwb_flush_vdevs_done",
                Ok("kprobe/zil_lwb_flush_vdevs_done"),
                "how long the log takes to commit and to flush a block",
                false,
            ),
            program(
                "zfs_lwb_written",
                "fentry/zil_lwb_write_done",
                Ok("kprobe/zil_lwb_write_done"),
                "how long the log takes to write a block, its bytes and its target",
                false,
            ),
            program(
                "zfs_lwb_issue",
                "fentry/zil_lwb_add_block",
                Ok("kprobe/zil_lwb_add_block"),
                "issue of a block of the log",
                false,
            ),
            program(
                "zfs_vdev_write",
                "fentry/vdev_queue_io",
                Ok("kprobe/vdev_queue_io"),
                "devices that the log is on, and their bytes",
                false,
            ),
            program(
                "zfs_sync_end",
                "fexit/spa_sync",
                Ok("kretprobe/spa_sync"),
                "how long a transaction group takes to sync",
                false,
            ),
            program(
                "zfs_sync_begin",
                "fentry/spa_sync",
                Ok("kprobe/spa_sync"),
                "start of such a sync",
                false,
            ),
            program(
                "zfs_unthrottle",
                "fexit/dmu_tx_wait",
                Ok("kretprobe/dmu_tx_wait"),
                "how long writers wait in the throttle",
                false,
            ),
            program(
                "zfs_throttle",
                "fentry/dmu_tx_wait",
                Ok("kprobe/dmu_tx_wait"),
                "start of such a wait",
                false,
            ),
        ],
    },
    Probe {
        word: "block",
        object: &nfscope_probes::BLOCK,
        modules: &[],
        programs: &[
            program(
                "block_complete",
                "tp_btf/block_rq_complete",
                Ok(SAME),
                "device time, bytes, FUA",
                false,
            ),
            program(
                "block_requeue",
                "tp_btf/block_rq_requeue",
                Ok(SAME),
                "requests that a busy device gave back",
                false,
            ),
            program(
                "block_issue",
                "tp_btf/block_rq_issue",
                Ok(SAME),
                "end of queueing, start of device time",
                false,
            ),
            program(
                "block_insert",
                "tp_btf/block_rq_insert",
                Ok(SAME),
                "start of queueing",
                false,
            ),
            program(
                "block_thread_io",
                "iter/task",
                Err("the block layer needs no module"),
                "bytes that nfsd threads read and change",
                false,
            ),
        ],
    },
    Probe {
        word: "client",
        object: &nfscope_probes::CLIENT,
        modules: &["nfs", "sunrpc"],
        programs: &[
            of_mounts(
                "client_gone",
                "tp_btf/rpc_clnt_free",
                "keeps what ended mounts have counted apart",
            ),
            of_mounts("client_wake", "tp_btf/rpc_task_wakeup", SLOT_WAITS),
            of_mounts("client_sleep", "tp_btf/rpc_task_sleep", SLOT_WAITS),
            of_mounts(
                "client_mounted",
                "fentry/nfs_show_stats",
                "what is mounted, its minor version, and the round-trip time of the network",
            ),
            of_mounts(
                CLIENT_RPC_END,
                "tp_btf/rpc_stats_latency",
                "backlog, round trip and duration of each RPC of this host's NFS mounts",
            ),
        ],
    },
    Probe {
        word: "recall",
        object: &nfscope_probes::RECALL,
        modules: &["nfsv4", "nfs", "sunrpc"],
        programs: &[program(
            "recall_asked",
            "tp_btf/nfs4_cb_recall",
            Err("the layout of its structures is unknown"),
            "delegations that servers ask this host to return",
            false,
        )],
    },
    Probe {
        word: "lockd",
        object: &nfscope_probes::LOCKD,
        modules: &["lockd", "sunrpc"],
        programs: &[program(
            "lockd_answered",
            "fexit/nlmsvc_dispatch",
            Err("the layout of its structures is unknown"),
            "locks of NFSv3 (NLM): requests, their time, and what was answered",
            false,
        )],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_the_kernels_fifteen_characters() {
        for p in &PROBES {
            assert!(p.word.len() <= 15);
            for x in p.programs {
                let others = x.others.iter().map(|o| o.name);
                for name in others.chain([x.name]) {
                    assert!(name.len() <= 15, "{name}");
                }
            }
        }
    }
}
