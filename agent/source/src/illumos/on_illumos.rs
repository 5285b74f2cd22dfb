//! Families that illumos has, and how it measures them. The reference page, `nfscope metrics` and the tests read this one list.

use nfscope_model::Info;

/// Way in which a family is measured on illumos.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnIllumos {
    /// Measured by these probes, or by other means.
    Yes(&'static str),
    /// Not measured, for this reason: it has no series there.
    No(&'static str),
}

impl std::fmt::Display for OnIllumos {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            OnIllumos::Yes(how) => write!(f, "yes: {how}"),
            OnIllumos::No(why) => write!(f, "no: {why}"),
        }
    }
}

use OnIllumos::{No, Yes};

const CLIENT_VIEW: &str = "the agent reads it from Linux's SunRPC client";
const OWN: &str = "the agent reads it from Linux's /proc/self/stat";

const WALKS: &str = "requests are not told apart by client and what they ask for";

const BYTES: &str = "the scripts add bytes up by version and operation alone";

const SLOTS: &str = "its NFSv4 provider has no operation of NFSv4.1";

const LOCKS: &str = "its lock manager is another one (klmmod), which has no script here";
const STATE: &str = "no file lists what clients hold";

/// Families by name without the prefix `nfscope_`, as the metric table has them.
const LIST: &[(&str, OnIllumos)] = &[
    (
        "op_duration_seconds",
        Yes("nfsv3 and nfsv4 op-*-start to op-*-done, without the encoding of the reply"),
    ),
    (
        "op_phase_seconds_total",
        Yes(
            "sched off-cpu and wakeup; log is asleep in zil_commit, disk in zio_wait, throttle in dmu_tx_wait, upcall in door_upcall, recall in rfs4_check_delegated_byfp and rfs4_dbe_twait, reclaim in page_create_throttle (fbt)",
        ),
    ),
    (
        "op_errors_total",
        Yes("status in the results of op-*-done; operations that NFSv4.1 added have none"),
    ),
    (
        "compound_duration_seconds",
        Yes("nfsv4 compound-start to compound-done"),
    ),
    (
        "compound_ops",
        Yes("length of the results at compound-done"),
    ),
    (
        "io_size_bytes",
        Yes("counts in the results of op-read-done and op-write-done"),
    ),
    (
        "write_total",
        Yes("stable in the arguments of op-write-start"),
    ),
    (
        "write_bytes_total",
        Yes("count in the results of op-write-done"),
    ),
    (
        "durable_writes_total",
        No("exports' options are not looked up"),
    ),
    (
        "unsafe_writes_total",
        No("exports' options are not looked up"),
    ),
    ("session_slots_used", No(SLOTS)),
    ("session_requests_total", No(SLOTS)),
    ("session_replays_total", No(SLOTS)),
    ("nfs4_clients", No(STATE)),
    ("nfs4_states", No(STATE)),
    ("nfs4_callbacks", No(STATE)),
    ("nfs4_revoked_states", No(STATE)),
    ("nfs4_oldest_renewal_seconds", No(STATE)),
    ("nfs4_partial", No(STATE)),
    ("nfs4_in_grace", No(STATE)),
    (
        "server_change_seconds",
        No("smf(7) has the service's state: svcs nfs/server"),
    ),
    ("nfs4_delegations_granted_total", No(STATE)),
    ("nfs4_delegations_returned_total", No(STATE)),
    ("nfs4_delegation_recalls_total", No(STATE)),
    ("nfs4_delegations_revoked_total", No(STATE)),
    ("nfs4_layouts_granted_total", No(STATE)),
    ("nfs4_layouts_ended_total", No(STATE)),
    ("nfs4_layout_recalls_total", No(STATE)),
    ("nfs4_layout_recalls_failed_total", No(STATE)),
    ("nfs4_recall_seconds", No(STATE)),
    ("nfs4_recalls_pending", No(STATE)),
    ("nfs4_oldest_recall_seconds", No(STATE)),
    ("nfs4_laundromat_age_seconds", No(STATE)),
    (
        "rpc_duration_seconds",
        Yes("svc_queuereq to the return of svc_getreq (fbt); version 4 without its minor version"),
    ),
    (
        "rpc_phase_seconds_total",
        Yes("svc_queuereq, svc_getreq, rfs_dispatch, svc_sendreply, door_upcall (fbt)"),
    ),
    (
        "upcall_wait_seconds",
        Yes(
            "door_upcall of threads with a request in hand (fbt); upcall is other: nothing stable tells the daemon",
        ),
    ),
    (
        "upcalls_total",
        Yes("questions that a thread waited for, as above"),
    ),
    (
        "rpc_queue_seconds",
        Yes("svc_queuereq to svc_getreq by message (fbt)"),
    ),
    (
        "rpc_received_bytes_total",
        No("no probe tells the length of a call"),
    ),
    (
        "rpc_sent_bytes_total",
        No("no probe tells the length of a reply"),
    ),
    (
        "rpc_dropped_total",
        Yes("garbage only: badlen and xdrcall of kstats unix:0:rpc_*_server"),
    ),
    (
        "rpc_no_clock_total",
        Yes("requests whose arrival svc_queuereq did not see"),
    ),
    (
        "reply_cache_total",
        Yes("hit and miss: dupreqs and dupchecks of kstats unix:0:rpc_*_server"),
    ),
    (
        "threads",
        Yes("fields of the pool at svc_poll (fbt); pool is 1, the number of the NFS pool"),
    ),
    ("threads_busy", Yes("threads in svc_getreq (fbt)")),
    (
        "threads_limit",
        Yes("p_maxthreads of the pool at svc_poll (fbt)"),
    ),
    ("thread_busy_seconds_total", Yes("time in svc_getreq (fbt)")),
    (
        "threads_saturated_seconds_total",
        Yes(
            "from svc_getreq with no thread asleep or looking for work, by members of the pool, to svc_poll (fbt)",
        ),
    ),
    (
        "stuck_requests",
        Yes("threads between svc_getreq and its return (fbt), and what their operation sleeps for"),
    ),
    ("oldest_request_seconds", Yes("as above")),
    (
        "pending_connections",
        No("no probe of illumos tells a connection's unread bytes"),
    ),
    (
        "oldest_pending_seconds",
        No("no probe of illumos tells a connection's unread bytes"),
    ),
    (
        "connections",
        No("no probe of illumos tells the server's connections"),
    ),
    (
        "listeners",
        No("no probe of illumos tells the server's connections"),
    ),
    (
        "limited_connections",
        No("no probe of illumos tells the server's connections"),
    ),
    (
        "connection_limit",
        No("no probe of illumos tells the server's connections"),
    ),
    (
        "connections_accepted_total",
        No("no probe of illumos tells the server's connections"),
    ),
    (
        "connections_closed_total",
        No("no probe of illumos tells the server's connections"),
    ),
    (
        "listener_drops_total",
        No("no probe of illumos tells the server's connections"),
    ),
    (
        "unacknowledged_connections",
        No("no probe of illumos tells the server's connections"),
    ),
    (
        "client_unacknowledged_bytes",
        No("no probe of illumos tells the server's connections"),
    ),
    (
        "client_unacknowledged_seconds",
        No("no probe of illumos tells the server's connections"),
    ),
    (
        "client_unacknowledged_retransmissions",
        No("no probe of illumos tells the server's connections"),
    ),
    (
        "client_zero_window_bytes",
        No("no probe of illumos tells the server's connections"),
    ),
    (
        "log_wait_seconds",
        Yes("zil_commit where sync is not disabled (fbt)"),
    ),
    (
        "log_commit_seconds",
        Yes("zil_lwb_write_issue to zil_lwb_flush_vdevs_done (fbt)"),
    ),
    (
        "log_bytes_total",
        Yes("used bytes of blocks at zil_lwb_write_issue, in units of 4096 (fbt)"),
    ),
    (
        "log_separate",
        Yes("whether the newest block went to a separate device (fbt)"),
    ),
    (
        "zfs_commits_total",
        Yes("zil_commit and the property sync (fbt)"),
    ),
    (
        "zfs_zil_commits_total",
        No("the kernel keeps no kstats of the intent log"),
    ),
    (
        "zfs_zil_writers_total",
        No("the kernel keeps no kstats of the intent log"),
    ),
    (
        "zfs_itx_bytes_total",
        Yes("sdt zil-process-commit-itx and zil-process-normal-itx"),
    ),
    (
        "zfs_txg_waits_total",
        Yes("any: txg_wait_synced inside of zil_commit (fbt)"),
    ),
    (
        "zfs_lwb_write_seconds",
        Yes("zil_lwb_write_issue to zil_lwb_write_done (fbt)"),
    ),
    (
        "zfs_lwb_flush_seconds",
        Yes("zil_lwb_write_done to zil_lwb_flush_vdevs_done (fbt)"),
    ),
    ("zfs_txg_sync_seconds", Yes("spa_sync (fbt)")),
    ("zfs_throttle_seconds", Yes("dmu_tx_wait (fbt)")),
    (
        "zfs_dataset_info",
        No("a probe sees the last part of a dataset's name only"),
    ),
    (
        "zfs_log_device_bytes_total",
        No("no probe that is traced tells the disk of a log block"),
    ),
    (
        "block_queue_seconds",
        No("the io provider has no probe between queue and device"),
    ),
    (
        "block_device_seconds",
        Yes("io start to done by buffer; cache flushes do not pass these probes"),
    ),
    ("block_bytes_total", Yes("b_bcount at io done")),
    ("block_fua_total", No("the io provider does not tell it")),
    (
        "block_inflight",
        Yes("rcnt of the kstats of sd, blkdev and cmdk"),
    ),
    (
        "block_busy_seconds_total",
        Yes("rtime of the kstats of sd, blkdev and cmdk"),
    ),
    ("export_device_info", No("exports are not looked up")),
    ("export_not_durable_info", No("exports are not looked up")),
    (
        "thread_io_bytes_total",
        No("the kernel accounts no I/O to threads"),
    ),
    (
        "client_ops_total",
        Yes("ci_remote in the arguments of op-*-done"),
    ),
    (
        "client_op_seconds_total",
        Yes("ci_remote in the arguments of op-*-done"),
    ),
    (
        "client_reply_seconds_total",
        No("replies are not told apart by client"),
    ),
    ("client_io_bytes_total", No(BYTES)),
    ("client_requests_total", No(WALKS)),
    ("client_walk_requests_total", No(WALKS)),
    ("client_open_requests_total", No(WALKS)),
    ("client_open_seconds_total", No(WALKS)),
    ("client_rtt_seconds", No("no stable probe tells it")),
    ("client_min_rtt_seconds", No("no stable probe tells it")),
    (
        "client_retried_answers_total",
        No("errors are not told apart by client"),
    ),
    (
        "client_locks_granted_total",
        No("operations are not told apart by client"),
    ),
    (
        "client_refused_rpcs_total",
        No("kstats count malformed calls of all clients together"),
    ),
    ("client_lock_states", No(STATE)),
    ("lockd_request_seconds", No(LOCKS)),
    ("lockd_answers_total", No(LOCKS)),
    ("client_lockd_answers_total", No(LOCKS)),
    ("client_lock_wait_seconds", No(LOCKS)),
    ("lockd_waiting_clients", No(LOCKS)),
    ("client_session_requests_total", No(SLOTS)),
    ("client_session_slots", No(SLOTS)),
    ("client_delegation_recalls_total", No(STATE)),
    ("client_delegation_recall_seconds_total", No(STATE)),
    ("client_delegation_recalls_pending", No(STATE)),
    ("client_layouts_granted_total", No(STATE)),
    ("client_evictions_total", Yes("by the agent")),
    ("client_view_rpcs_total", No(CLIENT_VIEW)),
    ("client_view_rpc_duration_seconds", No(CLIENT_VIEW)),
    ("client_view_stage_seconds_total", No(CLIENT_VIEW)),
    ("client_view_backlog_seconds", No(CLIENT_VIEW)),
    ("client_view_round_trip_seconds", No(CLIENT_VIEW)),
    ("client_view_slot_wait_seconds", No(CLIENT_VIEW)),
    ("client_view_network_seconds", No(CLIENT_VIEW)),
    ("client_view_retransmits_total", No(CLIENT_VIEW)),
    ("client_view_timeouts_total", No(CLIENT_VIEW)),
    ("client_view_errors_total", No(CLIENT_VIEW)),
    ("client_view_bytes_total", No(CLIENT_VIEW)),
    ("client_view_recalls_total", No(CLIENT_VIEW)),
    ("client_view_source_info", No(CLIENT_VIEW)),
    (
        "export_ops_total",
        Yes("noi_shrpath in the arguments of op-*-done, since February 2020"),
    ),
    (
        "export_op_seconds_total",
        Yes("noi_shrpath in the arguments of op-*-done, since February 2020"),
    ),
    ("export_io_bytes_total", No(BYTES)),
    ("export_evictions_total", Yes("by the agent")),
    ("cpus", Yes("kstats cpu:*:sys")),
    (
        "cpu_idle_seconds_total",
        Yes("kstats cpu:*:sys:cpu_nsec_idle"),
    ),
    (
        "bottleneck_active",
        Yes("by the agent; findings that need what is missing here are unknown"),
    ),
    ("bottleneck_score_ratio", Yes("by the agent")),
    (
        "finding_info",
        Yes("by the agent; without a client, because scripts count by none on demand"),
    ),
    ("change_gain_ratio", Yes("by the agent")),
    ("recommended_threads", Yes("by the agent")),
    ("build_info", Yes("by the agent")),
    ("probe_attached", Yes("a program is a script")),
    ("probe_success", Yes("by the agent")),
    (
        "probe_read_seconds",
        No("scripts print what they have by themselves"),
    ),
    (
        "probe_runs_total",
        No("DTrace does not count the runs of a script"),
    ),
    (
        "probe_run_seconds_total",
        No("DTrace does not count the time of a script"),
    ),
    (
        "kernel_memory_bytes",
        No("DTrace does not tell the size of its buffers"),
    ),
    (
        "events_lost_total",
        Yes(
            "what dtrace says it dropped: drops, aggregation_drops, dynamic_variable_drops, script_error; and unreadable lines",
        ),
    ),
    ("map_entries", No("there are no maps")),
    ("map_capacity", No("there are no maps")),
    ("scrape_seconds", Yes("by the agent")),
    (
        "host_read_errors_total",
        No("what its tools print has frames that tell errors"),
    ),
    ("http_sandbox", Yes("by the agent")),
    ("http_process_ends_total", Yes("by the agent")),
    ("process_cpu_seconds_total", No(OWN)),
    ("process_resident_memory_bytes", No(OWN)),
    ("process_virtual_memory_bytes", No(OWN)),
    ("process_open_fds", Yes("by the agent")),
    ("process_max_fds", Yes("by the agent")),
    ("process_start_time_seconds", No(OWN)),
    (
        "coverage_ratio",
        Yes(
            "timed over counted operations; replies from the duplicate request cache have no probe",
        ),
    ),
    (
        "kernel_ops_total",
        Yes("kstats nfs:0:rfsproccnt_v3 and rfsproccnt_v4"),
    ),
    ("timed_ops_total", Yes("operations of script nfs")),
    (
        "kernel_rpcs_total",
        No("the kernel counts the calls of other programs along with NFS"),
    ),
    ("timed_rpcs_total", No("there is no count to compare with")),
    (
        "kernel_io_bytes_total",
        No("the kernel does not count them"),
    ),
    (
        "timed_io_bytes_total",
        No("there is no count to compare with"),
    ),
];

/// Way in which illumos measures this family, or the reason why it does not.
pub fn on_illumos(family: &Info) -> OnIllumos {
    let found = LIST.iter().find(|(name, _)| family.short_name() == *name);
    found.map_or(No("not listed"), |(_, how)| *how)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::family::ALL;

    #[test]
    fn every_family_is_listed_in_the_order_of_the_table() {
        let table: Vec<_> = ALL.iter().map(|f| f.short_name()).collect();
        let listed: Vec<_> = LIST.iter().map(|(name, _)| *name).collect();
        assert_eq!(listed, table);
        for family in ALL {
            assert_ne!(on_illumos(family), No("not listed"));
        }
    }
}
