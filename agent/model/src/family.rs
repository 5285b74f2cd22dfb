//! The metric contract: one table of families, read by the encoder, the reference page (`nfscope metrics`) and the
//! tests. A family that is not here cannot be filled: [`Family`] carries its number of labels in its type.

use crate::Scheme;

/// Prometheus type of a family.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Value that only rises; it starts at 0 with the agent.
    Counter,
    /// Value that goes up and down.
    Gauge,
    /// Exponential buckets, exposed as a classic and as a native histogram.
    Histogram(Scheme),
}

/// A label and its possible values.
#[derive(Debug, Clone, Copy)]
pub struct Label {
    /// Name in the exposition.
    pub name: &'static str,
    /// Values of the label: the closed set, or in words what bounds it.
    pub values: &'static str,
}

/// Properties of a family that do not depend on its number of labels.
#[derive(Debug)]
pub struct Info {
    /// Full name, unit and `_total` included.
    pub name: &'static str,
    /// Sentence for the `# HELP` line and the reference.
    pub help: &'static str,
    /// Prometheus type.
    pub kind: Kind,
    /// Labels in the order in which series carry them.
    pub labels: &'static [Label],
    /// First release of nfscope that has the family.
    pub since: &'static str,
}

impl Info {
    /// Name without the prefix `nfscope_`. Families that every exporter has for its own process (`process_`) have no such prefix.
    pub fn short_name(&self) -> &'static str {
        self.name.strip_prefix("nfscope_").unwrap_or(self.name)
    }
}

/// A family with `N` labels.
#[derive(Debug)]
pub struct Family<const N: usize> {
    /// Properties of the family, without its number of labels.
    pub info: Info,
}

macro_rules! labels {
    ($($id:ident = $name:literal : $values:literal;)*) => {
        $(const $id: Label = Label { name: $name, values: $values };)*
    };
}

labels! {
    VERSION = "version": "3, 4.0, 4.1, 4.2; 4 for a v4 request without a minor version known to this host (NULL, wrong minor version, undecodable header)";
    OP = "op": "the RFC's procedure or operation name in lower case";
    IO_OP = "op": "read, write";
    STATUS = "status": "the RFC's status in lower case without its prefix (noent, stale); a number where it has no name";
    STABILITY = "stability": "unstable, data_sync, file_sync";
    PHASE = "phase": "queue, receive, upcall, execute, reply";
    OP_PHASES = "phase": "cpu, runqueue, log, disk, lock, throttle, upcall, recall, reclaim (these four have no series before they first occur)";
    UPCALL = "upcall": "client, groups, export, handle (rpc.mountd), idmap (rpc.idmapd), gss (rpc.svcgssd), client_tracking (nfsdcld), other";
    HELD_WAIT = "wait": "cpu (runs, or waits for a CPU), log, disk, throttle, upcall (an answer of rpc.mountd or another daemon), recall, reclaim, lock (other waits: locks, other threads, anything that is not named), reply (the client or the network); unknown where phases are not measured";
    CLIENT = "client": "address without port, the busiest 100 (--max-clients); local for a transport without addresses; other for the rest";
    EXPORT = "export": "path, the busiest 100 (--max-exports); none for requests without a (valid) file handle; unknown for exports that are not in the kernel's list (/proc/net/rpc/nfsd.fh/content, which only root may read); other for the rest";
    EXPORT_PATH = "export": "path in the table of exportfs(8)";
    NOT_DURABLE_WHY = "reason": "async (the export's option), sync_disabled (the property of its ZFS dataset)";
    MAJOR = "version": "3, 4";
    SLOTS = "slots": "free, full (every slot that the server grants the session was in use)";
    UNSAFE_WHY = "reason": "async (the export's option), sync_disabled (the property of its ZFS dataset), no_wait (a WRITE of another export on ext4, XFS, btrfs or ZFS whose thread waited for no log and no disk), commit_no_wait (the same of a COMMIT, which may have found everything stored)";
    NFS4_STATUS = "status": "confirmed, unconfirmed, courtesy (it has been silent for longer than its lease, and nobody wants what it holds), expirable (somebody does)";
    NFS4_CALLBACK = "state": "up, unknown (not tried yet), down, fault";
    NFS4_TYPE = "type": "open, lock, delegation_read, delegation_write, layout, other";
    DELEGATION = "type": "read, write, directory: those that this kernel grants";
    RECALLED_STATE = "state": "delegation, layout";
    RECALL_END = "end": "returned (by the client), taken (the server took it away, or its client is gone)";
    HOLDER = "client": "address without port, those with the longest recalls, 100 at most (--max-clients); local for one without an address";
    POOL = "pool": "nfsd thread pool number";
    UNACKED_CLIENT = "client": "address without port, those that have acknowledged nothing for longest, 100 at most (--max-clients)";
    NLM_PROCEDURE = "procedure": "the procedure of NLM in lower case (RFC 1813, appendix II): test, lock, cancel, unlock and so on";
    NLM_ANSWER = "answer": "NLM's status in lower case (granted, denied, denied_nolocks, blocked, denied_grace_period, deadlock, rofs, stale_fh, fbig, failed); none (the reply has none, or krb5i or krb5p covers it); no_reply (dropped, or refused before it was executed)";
    NLM_CLIENT = "client": "address without port; 512 series at most, those used last";
    NLM_LOCKS = "answer": "as that of nfscope_lockd_answers_total, and cancelled";
    RETRYING_CLIENT = "client": "address without port; 512 series at most";
    REFUSED_WHY = "reason": "format (no such RPC version, program, version or procedure, or no call at all), auth (its credentials), arguments (the procedure's arguments cannot be decoded; the kernel counts it as an operation)";
    LOCK_HOLDER = "client": "address without port, the 100 that hold most";
    REASON = "reason": "dropped, deferred, garbage, auth";
    TRANSPORT = "transport": "tcp, rdma, udp, other";
    CLOSED_WHY = "reason": "client (it closed the connection, or the network did), limit (too many were open when the server accepted another one, and this was the oldest), idle (silent for six minutes or longer, or the server's address went away), error (what came is no RPC, or a reply could not be sent), shutdown (the server stopped)";
    LIMITED = "which": "all (of the server; the limit is 20 for each thread and 60 more, unless it was set), unproven (from Linux 6.12 on: those whose client has not shown a valid file handle yet)";
    RESULT = "result": "hit, miss, nocache";
    FS = "fs": "ext4, xfs, btrfs, zfs";
    VOLUME = "volume": "block device that the file system is mounted from, or the ZFS pool";
    TARGET = "target": "main (in the file system's device or pool), separate (external journal, logdev, SLOG)";
    ZFS_POOL = "volume": "ZFS pool";
    ZFS_POOLS = "volume": "ZFS pool; all before OpenZFS 2.2, which counts this for all pools together";
    SYNC = "sync": "standard, always, disabled: the dataset's property";
    LOGBIAS = "logbias": "latency, throughput: the dataset's property";
    DATASET = "dataset": "ZFS dataset, at most 1024";
    ITX = "kind": "indirect (the data went to the main devices, the log refers to them), copied, needcopy (the log has the data)";
    TXG_WHY = "reason": "any; error, stall, suspend (from OpenZFS 2.3 on), crash (2.4)";
    DEVICE = "device": "block device name as the kernel shows it, at most 159";
    BLOCK_OP = "op": "read, write, flush, discard, other";
    FINDING = "kind": "stuck_requests, retry_later, unacknowledged_replies, unsafe_writes, slot_starvation, state_recovery_storm, pnfs_fallback, connection_limit, bad_rpcs, thread_starvation, slow_intent_log, slow_disk, write_throttle, slow_upcall, delegation_recalls, memory_reclaim, cpu_saturation, lock_contention, unknown_waits, slow_reply, chatty_client, small_sync_writes, slow_mount";
    CHANGE = "change": "threads (as nfscope_recommended_threads has it), log and disk (devices of 0.1 ms a request), cpus (twice as many)";
    PROBE = "probe": "nfsd, sched, jbd2, xfs, btrfs, zfs, client, recall, lockd, block; client and recall with --client; on illumos nfsd, sched, zfs, block, kstat";
    READ = "probe": "nfsd, jbd2, xfs, btrfs, zfs, block, client, lockd; sched has no tables of its own";
    MOUNT = "mount": "what the client mounts (server:/export), the first 15; a server's address alone for what its mounts share (sessions, leases), and for mounts that the agent cannot see; other for the rest";
    MOUNT_VERSION = "version": "3, 4.0, 4.1, 4.2 of the mount; 4 where the minor version is not known; other for the mount other";
    MOUNT_OP = "op": "the client's procedure as mountstats has it, in lower case, the first 120 pairs of mount and op; other for the rest";
    STAGE = "stage": "backlog, round_trip, completion";
    DIRECTION = "direction": "sent, received";
    VIEW_SOURCE = "source": "tracepoints, mountstats";
    PROGRAM = "program": "program names, see /probes; all";
    LOST = "reason": "what was lost, see the help of the family";
    MAP = "map": "BPF map names";
    TABLE = "table": "files and directories that the agent reads, most of /proc and /sys; ID, PID, TID, FD, DEVICE and MODULE stand for any";
    SANDBOX = "part": "user (not root), seccomp (a filter of system calls), landlock (no files, connections and signals)";
    HTTP_END = "reason": "ended (by itself, or by somebody else), no_answer (it did not answer the agent within ten seconds, as one that is stopped), misbehaved (it asked what no such process asks)";
    BUILD_VERSION = "version": "release";
    REVISION = "revision": "git commit";
}

/// Release that has the family first: 0.1.0 unless the table names a later one behind the help: `"...", since "0.2.0";`.
macro_rules! since {
    () => {
        "0.1.0"
    };
    ($release:literal) => {
        $release
    };
}

macro_rules! families {
    ($(
        $(#[doc = $doc:literal])*
        $id:ident: $name:literal $kind:expr, [$($label:ident),*], $help:literal $(, since $since:literal)?;
    )*) => {
        $(
            #[doc = $help]
            $(#[doc = $doc])*
            pub static $id: Family<{ <[&str]>::len(&[$(stringify!($label)),*]) }> = Family {
                info: Info {
                    name: $name,
                    help: $help,
                    kind: $kind,
                    labels: &[$($label),*],
                    since: since!($($since)?),
                },
            };
        )*
        /// Every family, in the order of the exposition.
        pub static ALL: &[&Info] = &[$(&$id.info),*];
    };
}

use Kind::{Counter, Gauge, Histogram};

/// Device of an export whose devices cannot be found (`nfscope_export_device_info`).
pub const UNKNOWN_DEVICE: &str = "unknown";

families! {
    OP_DURATION: "nfscope_op_duration_seconds" Histogram(Scheme::TIME), [VERSION, OP],
        "Server execution time of one NFSv3 procedure (dispatch, from decode to encoded reply) or one NFSv4 component operation (its encoding included)";
    OP_PHASE: "nfscope_op_phase_seconds_total" Counter, [VERSION, OP, OP_PHASES],
        "The time of nfscope_op_duration_seconds by what the nfsd thread did: cpu (on a CPU), runqueue (runnable, waiting for a CPU), log (asleep until the journal or intent log is durable), disk (asleep for block I/O outside the log), throttle (asleep because too much written data waits to be stored), upcall (asleep until a daemon answers), recall (asleep until a client returns a delegation), reclaim (asleep in direct memory reclaim), lock (other waits: locks, other threads, anything that is not named)";
    OP_ERRORS: "nfscope_op_errors_total" Counter, [VERSION, OP, STATUS],
        "NFSv3 procedures and NFSv4 component operations that answered with a status other than OK";
    COMPOUND_DURATION: "nfscope_compound_duration_seconds" Histogram(Scheme::TIME), [VERSION],
        "One NFSv4 COMPOUND, all its component operations (dispatch, from decode to encoded reply)";
    COMPOUND_OPS: "nfscope_compound_ops" Histogram(Scheme::COUNT), [VERSION],
        "Component operations executed per NFSv4 COMPOUND";
    IO_SIZE: "nfscope_io_size_bytes" Histogram(Scheme::SIZE), [VERSION, OP],
        "Bytes that one READ returned or one WRITE stored";
    WRITE: "nfscope_write_total" Counter, [VERSION, STABILITY],
        "WRITEs by the stability that the client asked for";
    WRITE_BYTES: "nfscope_write_bytes_total" Counter, [VERSION, STABILITY],
        "Bytes stored by WRITEs, by the stability that the client asked for";
    DURABLE_WRITES: "nfscope_durable_writes_total" Counter, [],
        "WRITEs that asked for DATA_SYNC or FILE_SYNC, and COMMITs, that were answered with OK: their clients take the data for durable; those of known exports, of the first 2,047 pairs of a client and an export";
    UNSAFE_WRITES: "nfscope_unsafe_writes_total" Counter, [UNSAFE_WHY],
        "Those of nfscope_durable_writes_total that were answered although the data may not be durable; the reasons that need waits have no series where phases are not measured";
    SESSION_SLOTS_USED: "nfscope_session_slots_used" Histogram(Scheme::COUNT), [VERSION],
        "Slots of its session that a client has in use when it sends a request, that request's included, as its SEQUENCE says (sa_highest_slotid, plus one); requests whose SEQUENCE succeeded";
    SESSION_REQUESTS: "nfscope_session_requests_total" Counter, [VERSION, SLOTS],
        "These requests by whether the client had every slot in use that the server granted its session by then: behind a full session further requests wait in the client";
    SESSION_REPLAYS: "nfscope_session_replays_total" Counter, [VERSION],
        "COMPOUNDs that were answered from their slot, without being executed: the client sent them again; one without a file handle (SEQUENCE alone) is taken for a first call where the session allows replies as large as any reply of this server; refused SEQUENCEs are in nfscope_op_errors_total";
    NFS4_CLIENTS: "nfscope_nfs4_clients" Gauge, [NFS4_STATUS],
        "NFSv4 clients of this server by status (/proc/fs/nfsd/clients, looked at every 10 s; Linux before 5.19 knows no courtesy)";
    NFS4_STATES: "nfscope_nfs4_states" Gauge, [NFS4_TYPE],
        "What these clients hold, and what was taken away from them and is still listed (Linux 6.9 and later)";
    NFS4_CALLBACKS: "nfscope_nfs4_callbacks" Gauge, [NFS4_CALLBACK],
        "These clients by the state of the path on which the server calls them back: without it they get no delegations, and give none back";
    NFS4_REVOKED: "nfscope_nfs4_revoked_states" Gauge, [],
        "States that an administrator has taken away, as by /proc/fs/nfsd/unlock_filesystem, and whose client has not acknowledged that (Linux 6.9 and later, while there are clients)";
    NFS4_OLDEST_RENEWAL: "nfscope_nfs4_oldest_renewal_seconds" Gauge, [],
        "Time since the client renewed its lease that did so longest ago";
    NFS4_PARTIAL: "nfscope_nfs4_partial" Gauge, [],
        "1 where clients have more than the agent looks at (2,000 clients, 2 MiB of their states): nfscope_nfs4_clients and nfscope_nfs4_states are then too low";
    IN_GRACE: "nfscope_nfs4_in_grace" Gauge, [],
        "1 while the server is in its grace period after a start: clients may only claim what they had, and are told to come again for anything else (/proc/fs/nfsd/v4_end_grace). 0 without a server";
    SERVER_CHANGE: "nfscope_server_change_seconds" Gauge, [],
        "Time for which the server has been starting, stopping or changing its threads, by when the kernel last said their number (/proc/fs/nfsd/threads); 0 while it does neither. A thread whose request does not end makes it long";
    DELEGATIONS_GRANTED: "nfscope_nfs4_delegations_granted_total" Counter, [DELEGATION],
        "Delegations that the server has granted; no series of a type that this kernel does not grant";
    DELEGATIONS_RETURNED: "nfscope_nfs4_delegations_returned_total" Counter, [],
        "Delegations that clients have returned (DELEGRETURN), asked or not";
    DELEGATION_RECALLS: "nfscope_nfs4_delegation_recalls_total" Counter, [],
        "Recalls of delegations, because somebody else uses the file; one that is recalled for readers, and then for writers, counts twice";
    DELEGATIONS_REVOKED: "nfscope_nfs4_delegations_revoked_total" Counter, [],
        "Delegations that the server took away: their client did not return them within a lease, or an administrator revoked them";
    LAYOUTS_GRANTED: "nfscope_nfs4_layouts_granted_total" Counter, [],
        "Layouts (pNFS) that the server has granted: one for a client and a file, whatever its number of LAYOUTGETs";
    LAYOUTS_ENDED: "nfscope_nfs4_layouts_ended_total" Counter, [],
        "Layouts that have ended: returned as a whole, taken away, or gone with their client";
    LAYOUT_RECALLS: "nfscope_nfs4_layout_recalls_total" Counter, [],
        "Recalls of layouts, because somebody else uses the file";
    LAYOUT_RECALLS_FAILED: "nfscope_nfs4_layout_recalls_failed_total" Counter, [],
        "Recalls of layouts whose client refused, or did not return them within two leases: the server fences it where the storage can do that (SCSI reservations), else it runs nfsd-recall-failed";
    RECALL_SECONDS: "nfscope_nfs4_recall_seconds" Histogram(Scheme::TIME), [RECALLED_STATE, RECALL_END],
        "From a recall until the state was returned, or taken away; at most 1,024 recalls are under way at a time, and those beyond have no duration";
    RECALLS_PENDING: "nfscope_nfs4_recalls_pending" Gauge, [RECALLED_STATE],
        "Recalls whose state is neither returned nor taken away";
    OLDEST_RECALL: "nfscope_nfs4_oldest_recall_seconds" Gauge, [RECALLED_STATE],
        "Time since the oldest of these recalls; 0 without any";
    LAUNDROMAT_AGE: "nfscope_nfs4_laundromat_age_seconds" Gauge, [],
        "Time since the kernel's laundromat ended its last run, which ends the leases of silent clients and revokes delegations: once in a lease at the latest (/proc/fs/nfsd/nfsv4leasetime); no series before the first run that the agent has seen";
    RPC_DURATION: "nfscope_rpc_duration_seconds" Histogram(Scheme::TIME), [VERSION],
        "Residence on the server: from the request's arrival on its socket until its reply was handed to the socket";
    RPC_PHASE: "nfscope_rpc_phase_seconds_total" Counter, [VERSION, PHASE],
        "Residence split into queue (arrived, no thread took it), receive (read from the socket, authentication), upcall (asleep meanwhile, until a daemon answered), execute (dispatch), reply (send)";
    UPCALL_WAIT: "nfscope_upcall_wait_seconds" Histogram(Scheme::TIME), [UPCALL],
        "One sleep of an nfsd thread until a daemon answered or the kernel gave up (5 s, or 1 s where no thread is free): several threads can wait for one answer; of requests that are deferred after it, too";
    UPCALL_ASKED: "nfscope_upcalls_total" Counter, [UPCALL],
        "Questions of nfsd threads to daemons, those that nobody waited for included; client_tracking is not counted";
    RPC_QUEUE: "nfscope_rpc_queue_seconds" Histogram(Scheme::TIME), [POOL],
        "From the request's arrival on its socket until an nfsd thread took it";
    RPC_RECEIVED_BYTES: "nfscope_rpc_received_bytes_total" Counter, [VERSION],
        "Bytes of RPC calls received (TCP)";
    RPC_SENT_BYTES: "nfscope_rpc_sent_bytes_total" Counter, [VERSION],
        "Bytes of RPC replies sent";
    RPC_DROPPED: "nfscope_rpc_dropped_total" Counter, [REASON],
        "RPC calls that got no or no proper answer: dropped without a reply, deferred for an upcall, garbage (malformed), auth (refused)";
    RPC_NO_CLOCK: "nfscope_rpc_no_clock_total" Counter, [],
        "RPC requests over UDP or RDMA, which have no queue time: no clock tells when such a request arrived";
    REPLY_CACHE: "nfscope_reply_cache_total" Counter, [RESULT],
        "Duplicate request cache look-ups as the kernel counts them: hit (answered from the cache), miss, nocache (idempotent)";
    THREADS: "nfscope_threads" Gauge, [POOL],
        "nfsd threads running now";
    THREADS_BUSY: "nfscope_threads_busy" Gauge, [POOL],
        "nfsd threads with a request in hand now (read to replied)";
    THREADS_LIMIT: "nfscope_threads_limit" Gauge, [POOL],
        "Most nfsd threads that the pool may have";
    THREAD_BUSY: "nfscope_thread_busy_seconds_total" Counter, [POOL],
        "Sum over threads of the time spent on a request; its rate over nfscope_threads is utilization";
    THREADS_SATURATED: "nfscope_threads_saturated_seconds_total" Counter, [POOL],
        "Time during which every running thread of the pool had a request in hand";
    STUCK_REQUESTS: "nfscope_stuck_requests" Gauge, [HELD_WAIT],
        "Requests that an nfsd thread has had in hand for a second or longer, by what the thread waits for now";
    OLDEST_REQUEST: "nfscope_oldest_request_seconds" Gauge, [HELD_WAIT],
        "Age of the oldest request that an nfsd thread has in hand, by what the thread waits for now; 0 without a request older than half a second";
    PENDING_CONNECTIONS: "nfscope_pending_connections" Gauge, [],
        "TCP connections with a request that arrived a second ago or longer and that no nfsd thread has taken; of the 2048 connections that arrivals are kept for. Without connections that use TLS, whose client takes no replies, or that no thread has accepted, and without what arrived before the agent";
    OLDEST_PENDING: "nfscope_oldest_pending_seconds" Gauge, [],
        "Time since the oldest of these requests arrived; 0 without one";
    CONNECTIONS: "nfscope_connections" Gauge, [TRANSPORT],
        "Connections that the NFS server has accepted and that are open; UDP has none";
    LISTENERS: "nfscope_listeners" Gauge, [TRANSPORT],
        "Sockets on which the NFS server waits for connections, and for requests over UDP";
    LIMITED_CONNECTIONS: "nfscope_limited_connections" Gauge, [LIMITED],
        "Open connections that the kernel's limit is for; where they exceed it when the server accepts another one, the kernel closes the oldest of them; below zero where the kernel has counted wrong, which only a restart of the NFS server mends";
    CONNECTION_LIMIT: "nfscope_connection_limit" Gauge, [LIMITED],
        "That limit (svc_check_conn_limits() in net/sunrpc/svc_xprt.c): until Linux 6.13 what /proc/fs/nfsd/max_connections has, unless it is 0";
    CONNECTIONS_ACCEPTED: "nfscope_connections_accepted_total" Counter, [TRANSPORT],
        "Connections that the NFS server accepted";
    CONNECTIONS_CLOSED: "nfscope_connections_closed_total" Counter, [TRANSPORT, CLOSED_WHY],
        "Accepted connections that were closed; of RDMA nothing tells an error from the client's doing";
    LISTENER_DROPS: "nfscope_listener_drops_total" Counter, [],
        "Packets of new TCP connections that the kernel dropped at the server's listeners, nearly always because as many connections as fit (64) waited for a thread to accept them; clients send them again (sk_drops of the sockets; starts anew with a listener)";
    UNACKED_CONNECTIONS: "nfscope_unacknowledged_connections" Gauge, [],
        "TCP connections of clients with replies of which nothing has been acknowledged for a second or longer, 64 at most; without connections over RDMA, and without UDP";
    UNACKED_BYTES: "nfscope_client_unacknowledged_bytes" Gauge, [UNACKED_CLIENT],
        "Bytes that TCP keeps for the client on these connections, sent or not";
    UNACKED_SECONDS: "nfscope_client_unacknowledged_seconds" Gauge, [UNACKED_CLIENT],
        "Time for which at least nothing has been acknowledged on that of these connections where it is longest";
    UNACKED_RETRANSMISSIONS: "nfscope_client_unacknowledged_retransmissions" Gauge, [UNACKED_CLIENT],
        "Times that TCP has sent the oldest of these bytes again meanwhile, on that of these connections where it is most (icsk_retransmits)";
    UNACKED_ZERO_WINDOW: "nfscope_client_zero_window_bytes" Gauge, [UNACKED_CLIENT],
        "Of these bytes, those of connections whose client announces that it takes no more for now (a TCP window of zero, or one that is too small for the next packet)";
    LOG_WAIT: "nfscope_log_wait_seconds" Histogram(Scheme::TIME), [FS, VOLUME],
        "One wait by a thread for its changes to be durable in the log (ext4: for a transaction of the journal, or one fast commit; XFS: one synchronous log force; btrfs: one sync of the tree log, or one commit of a transaction where the log cannot serve; ZFS: zil_commit_impl, of which the kstat zil_commit_count counts each)";
    LOG_COMMIT: "nfscope_log_commit_seconds" Histogram(Scheme::TIME), [FS, VOLUME],
        "One write of the log itself (ext4: one transaction of the journal, or one fast commit that wrote; XFS: one iclog, from its write until it is durable; btrfs: one write of the tree log, its superblocks included; ZFS: one log block, from its issue until it is written and flushed)";
    LOG_BYTES: "nfscope_log_bytes_total" Counter, [FS, VOLUME, TARGET],
        "Bytes written to the log (ext4: the blocks of transactions and fast commits, without the journal's superblock; XFS: whole iclogs); btrfs has none: nothing tells them apart from those of its other trees";
    LOG_SEPARATE: "nfscope_log_separate" Gauge, [FS, VOLUME],
        "1 where the log is on a separate device (external journal, logdev, SLOG), 0 where it is on the file system's device, as btrfs's log always is";
    ZFS_COMMITS: "nfscope_zfs_commits_total" Counter, [ZFS_POOL, SYNC],
        "Commits that were asked of the intent log by the dataset's property sync: those of disabled were acknowledged without durability and are no log waits (zil_commit(), OpenZFS 2.1 to 2.4; a COMMIT by NFS does not even ask then)";
    ZFS_ZIL_COMMITS: "nfscope_zfs_zil_commits_total" Counter, [ZFS_POOLS],
        "Commits of the intent log as OpenZFS counts them (kstat zil_commit_count, OpenZFS 2.0 to 2.4)";
    ZFS_ZIL_WRITERS: "nfscope_zfs_zil_writers_total" Counter, [ZFS_POOLS],
        "Those of them that wrote; the others found their changes written by one of these (kstat zil_commit_writer_count, OpenZFS 2.0 to 2.4)";
    ZFS_ITX_BYTES: "nfscope_zfs_itx_bytes_total" Counter, [ZFS_POOLS, ITX],
        "Bytes of changes that were committed to the intent log; where nfscope_log_separate is 1, indirect ones have gone past the log device (kstats zil_itx_*_bytes, OpenZFS 2.0 to 2.4)";
    ZFS_TXG_WAITS: "nfscope_zfs_txg_waits_total" Counter, [ZFS_POOLS, TXG_WHY],
        "Commits that waited for a whole transaction group instead of the log: any as seen in txg_wait_synced() (OpenZFS 2.1 to 2.3; a dataset's first commit is one), the others as kstats tell them (zil_commit_*_count)";
    ZFS_LWB_WRITE: "nfscope_zfs_lwb_write_seconds" Histogram(Scheme::TIME), [ZFS_POOL, TARGET],
        "One block of the intent log from its issue until it is written (zil_lwb_write_done, OpenZFS 2.1 to 2.4)";
    ZFS_LWB_FLUSH: "nfscope_zfs_lwb_flush_seconds" Histogram(Scheme::TIME), [ZFS_POOL, TARGET],
        "From there until the devices have flushed their caches, for blocks before it, too (zil_lwb_flush_vdevs_done, OpenZFS 2.1 to 2.4)";
    ZFS_TXG_SYNC: "nfscope_zfs_txg_sync_seconds" Histogram(Scheme::TIME), [ZFS_POOL],
        "Writing out one transaction group (spa_sync, OpenZFS 2.1 to 2.4)";
    ZFS_THROTTLE: "nfscope_zfs_throttle_seconds" Histogram(Scheme::TIME), [ZFS_POOL],
        "One wait of a writer because the pool has too much unwritten data (dmu_tx_wait, OpenZFS 2.1 to 2.4)";
    ZFS_DATASET: "nfscope_zfs_dataset_info" Gauge, [ZFS_POOL, DATASET, SYNC, LOGBIAS],
        "Always 1; how a dataset's properties stood at its last commit (zilog of OpenZFS 2.1 to 2.4)";
    ZFS_LOG_DEVICE: "nfscope_zfs_log_device_bytes_total" Counter, [ZFS_POOL, DEVICE, TARGET],
        "Bytes of intent log blocks by the disk or the file that they were written to, copies on mirrors included (vdev_queue_io, OpenZFS 2.1 to 2.4)";
    BLOCK_QUEUE: "nfscope_block_queue_seconds" Histogram(Scheme::TIME), [DEVICE, BLOCK_OP],
        "Block request from its insertion into a scheduler or software queue to its issue; requests issued directly have none";
    BLOCK_DEVICE: "nfscope_block_device_seconds" Histogram(Scheme::TIME), [DEVICE, BLOCK_OP],
        "Block request from its issue to the device to its completion";
    BLOCK_BYTES: "nfscope_block_bytes_total" Counter, [DEVICE, BLOCK_OP],
        "Bytes of completed block requests; a flush has none";
    BLOCK_FUA: "nfscope_block_fua_total" Counter, [DEVICE],
        "Completed writes that carried FUA (force unit access)";
    BLOCK_INFLIGHT: "nfscope_block_inflight" Gauge, [DEVICE],
        "Block requests issued to the device and not completed";
    BLOCK_BUSY: "nfscope_block_busy_seconds_total" Counter, [DEVICE],
        "Time in which the device had at least one request in flight, as the kernel counts it (/proc/diskstats); a device that serves many requests at once has room even at 1 s per second";
    EXPORT_DEVICE: "nfscope_export_device_info" Gauge, [EXPORT_PATH, DEVICE],
        "Always 1; a block device that the export's file system lies on, through device mapper, RAID and partitions, without the device of a separate log; device unknown where it cannot be told, as for a ZFS pool; above 64 pairs each device has one export";
    NOT_DURABLE: "nfscope_export_not_durable_info" Gauge, [EXPORT_PATH, NOT_DURABLE_WHY],
        "Always 1; an export whose writes are acknowledged before they are durable: a crash of the server loses them, and clients do not know; at most 512 for each reason";
    THREAD_IO: "nfscope_thread_io_bytes_total" Counter, [IO_OP],
        "Bytes that nfsd threads had read from block devices, read-ahead included, and bytes that they have changed in memory, which are written later, as the kernel accounts I/O to threads (CONFIG_TASK_IO_ACCOUNTING)";
    CLIENT_OPS: "nfscope_client_ops_total" Counter, [CLIENT],
        "Operations by client, all that nfscope_op_duration_seconds counts (NFSACL procedures and NULL, too); counted for a client from when it is among the busiest, for other before and after";
    CLIENT_OP_SECONDS: "nfscope_client_op_seconds_total" Counter, [CLIENT],
        "Server execution time of those operations";
    CLIENT_REPLY_SECONDS: "nfscope_client_reply_seconds_total" Counter, [CLIENT],
        "Time of handing replies to the client's sockets; long where a client or the network to it takes them late";
    CLIENT_IO_BYTES: "nfscope_client_io_bytes_total" Counter, [CLIENT, IO_OP],
        "Bytes that READ and READ_PLUS returned to the client (read), and that its WRITEs stored (write). Without other: nfscope_io_size_bytes has those of all";
    CLIENT_REQUESTS: "nfscope_client_requests_total" Counter, [CLIENT],
        "RPC requests of those operations: an NFSv4 request has several operations. Without other";
    CLIENT_WALKS: "nfscope_client_walk_requests_total" Counter, [CLIENT, MAJOR],
        "Of the client's requests, those that only walk a path: LOOKUP, LOOKUPP, ACCESS and READLINK, with operations that frame a COMPOUND (SEQUENCE, PUTFH, GETFH, SAVEFH, GETATTR). In the first 2,047 pairs of a client and an export; without other";
    CLIENT_OPENS: "nfscope_client_open_requests_total" Counter, [CLIENT],
        "The client's requests with an OPEN (NFSv4), in the same pairs. With those that walk: how many round trips an open takes";
    CLIENT_OPEN_SECONDS: "nfscope_client_open_seconds_total" Counter, [CLIENT],
        "Server execution time of the client's NFSv4 requests that walk or open, in the same pairs";
    CLIENT_RTT: "nfscope_client_rtt_seconds" Gauge, [CLIENT],
        "Smoothed round-trip time of the TCP connection that the client used last, as the kernel's TCP estimates it";
    CLIENT_MIN_RTT: "nfscope_client_min_rtt_seconds" Gauge, [CLIENT],
        "Lowest round-trip time of that connection in the last five minutes (net.ipv4.tcp_min_rtt_wlen), in the same pairs as nfscope_client_walk_requests_total: how far away the client is. The smoothed time also holds the time for which a client delays its acknowledgements";
    CLIENT_RETRIED: "nfscope_client_retried_answers_total" Counter, [RETRYING_CLIENT, VERSION, OP, STATUS],
        "Answers after which a client asks again, or recovers its state and asks again, by client; the other statuses are final. With more than 256 groups of client, operation and status all begin at 0 again";
    CLIENT_LOCKS: "nfscope_client_locks_granted_total" Counter, [RETRYING_CLIENT],
        "Locks of NFSv4 (LOCK) that the client was granted; begins at 0 again with nfscope_client_retried_answers_total";
    CLIENT_REFUSED: "nfscope_client_refused_rpcs_total" Counter, [RETRYING_CLIENT, REFUSED_WHY],
        "RPC calls of the client that the server refused before it executed anything, those that it dropped as no call included. nfscope_rpc_dropped_total has the kernel's counts of all clients; begins at 0 again with nfscope_client_retried_answers_total";
    CLIENT_LOCKS_HELD: "nfscope_client_lock_states" Gauge, [LOCK_HOLDER],
        "Lock states of NFSv4 that the client holds: one for each file and owner of locks on it (/proc/fs/nfsd/clients/*/states)";
    NLM_DURATION: "nfscope_lockd_request_seconds" Histogram(Scheme::TIME), [NLM_PROCEDURE],
        "Time of one request of lockd, which serves the locks of NFSv3: from when it was read from the socket until its reply is encoded; without time in the queue";
    NLM_ANSWERS: "nfscope_lockd_answers_total" Counter, [NLM_PROCEDURE, NLM_ANSWER],
        "Requests of lockd by what was answered. A client whose LOCK was answered with blocked sleeps until the server calls it, and asks again after 30 s";
    CLIENT_NLM: "nfscope_client_lockd_answers_total" Counter, [NLM_CLIENT, NLM_LOCKS],
        "LOCK requests of lockd by client and answer; locks that were granted later (GRANTED_RES) count as granted, and requests to give up (CANCEL) as cancelled";
    CLIENT_NLM_WAIT: "nfscope_client_lock_wait_seconds" Gauge, [NLM_CLIENT],
        "For how long lockd has told a client of NFSv3 to wait for a lock, without one that was granted to it since, and until it gives up or has not asked for 45 s; no series for clients that do not wait. A client whose other program is granted a lock meanwhile begins anew";
    NLM_WAITING: "nfscope_lockd_waiting_clients" Gauge, [],
        "Clients of NFSv3 that wait for a lock: those with nfscope_client_lock_wait_seconds";
    CLIENT_SESSION_REQUESTS: "nfscope_client_session_requests_total" Counter, [CLIENT, SLOTS],
        "Requests of the client's NFSv4.1 and 4.2 sessions, as nfscope_session_requests_total has them, in the first 2,047 pairs of a client and an export; without other";
    CLIENT_SESSION_SLOTS: "nfscope_client_session_slots" Gauge, [CLIENT],
        "Slots that the server granted the session that the client used last";
    CLIENT_RECALLS: "nfscope_client_delegation_recalls_total" Counter, [HOLDER],
        "Recalls of delegations by the client that holds them; of more than 384 clients all begin at 0 again";
    CLIENT_RECALL_SECONDS: "nfscope_client_delegation_recall_seconds_total" Counter, [HOLDER],
        "Time of those of these recalls that have ended, added up: several can be under way at a time";
    CLIENT_RECALLS_PENDING: "nfscope_client_delegation_recalls_pending" Gauge, [HOLDER],
        "Recalls of delegations that this client has not returned yet";
    CLIENT_LAYOUTS: "nfscope_client_layouts_granted_total" Counter, [HOLDER],
        "Layouts (pNFS) granted, by client";
    CLIENT_EVICTIONS: "nfscope_client_evictions_total" Counter, [],
        "Clients that lost their series to a busier one";
    VIEW_RPCS: "nfscope_client_view_rpcs_total" Counter, [MOUNT, MOUNT_VERSION, MOUNT_OP],
        "RPCs of this host's own NFS mounts that ended, NFSACL included; the agent counts from its start on, mountstats from the mount on (agent --client)";
    VIEW_DURATION: "nfscope_client_view_rpc_duration_seconds" Histogram(Scheme::TIME), [MOUNT, MOUNT_VERSION, MOUNT_OP],
        "One RPC of a mount from its start in the client to its end (execute in mountstats); not with mountstats as the source";
    VIEW_STAGE: "nfscope_client_view_stage_seconds_total" Counter, [MOUNT, MOUNT_VERSION, MOUNT_OP, STAGE],
        "The time of those RPCs: backlog (until the request was sent: waits for a slot of the session and for the connection), round_trip (until the reply came: the network and the server), completion (until the client was done with it)";
    VIEW_BACKLOG: "nfscope_client_view_backlog_seconds" Histogram(Scheme::TIME), [MOUNT, MOUNT_VERSION],
        "Backlog of one RPC of the mount; not with mountstats as the source";
    VIEW_ROUND_TRIP: "nfscope_client_view_round_trip_seconds" Histogram(Scheme::TIME), [MOUNT, MOUNT_VERSION],
        "Round trip of one RPC of the mount; not with mountstats as the source";
    VIEW_SLOT_WAIT: "nfscope_client_view_slot_wait_seconds" Histogram(Scheme::TIME), [MOUNT, MOUNT_VERSION],
        "One sleep of an RPC until its NFSv4 session has a free slot, or is usable again: a part of the backlog; not with mountstats as the source";
    VIEW_NETWORK: "nfscope_client_view_network_seconds" Gauge, [MOUNT, MOUNT_VERSION],
        "Lowest round-trip time of the mount's first TCP connection in the last five minutes (net.ipv4.tcp_min_rtt_wlen): what the network alone takes of a round trip; not with mountstats as the source";
    VIEW_RETRANSMITS: "nfscope_client_view_retransmits_total" Counter, [MOUNT, MOUNT_VERSION],
        "Requests that the client sent once more";
    VIEW_TIMEOUTS: "nfscope_client_view_timeouts_total" Counter, [MOUNT, MOUNT_VERSION],
        "Major timeouts of RPCs that ended: no reply within the timeout of the mount (timeo, retrans)";
    VIEW_ERRORS: "nfscope_client_view_errors_total" Counter, [MOUNT, MOUNT_VERSION],
        "RPCs that ended with an error, the server's answers other than OK included";
    VIEW_BYTES: "nfscope_client_view_bytes_total" Counter, [MOUNT, MOUNT_VERSION, DIRECTION],
        "Bytes of those RPCs: requests sent, each as often as it was sent, and replies received";
    VIEW_RECALLS: "nfscope_client_view_recalls_total" Counter, [MOUNT, MOUNT_VERSION],
        "Delegations that the server asked this host to return; mount other for files that the host no longer knows; no series before NFSv4 is in use";
    VIEW_SOURCE_INFO: "nfscope_client_view_source_info" Gauge, [VIEW_SOURCE],
        "Always 1; where the families nfscope_client_view_ come from: the kernel's tracepoints, or /proc/self/mountstats where these cannot be had, with sums alone";
    EXPORT_OPS: "nfscope_export_ops_total" Counter, [EXPORT],
        "Operations by export, as by client; those of a COMPOUND count for the export of its last file handle";
    EXPORT_OP_SECONDS: "nfscope_export_op_seconds_total" Counter, [EXPORT],
        "Server execution time of those operations";
    EXPORT_IO_BYTES: "nfscope_export_io_bytes_total" Counter, [EXPORT, IO_OP],
        "Bytes that READs of the export returned and WRITEs stored, as by client; those of a COMPOUND count for the export of its last file handle";
    EXPORT_EVICTIONS: "nfscope_export_evictions_total" Counter, [],
        "Exports that lost their series to a busier one";
    CPUS: "nfscope_cpus" Gauge, [],
        "CPUs online, to compare the idle time with";
    CPU_IDLE: "nfscope_cpu_idle_seconds_total" Counter, [],
        "Idle time of all CPUs together (waiting for I/O included), as the kernel counts it in /proc/stat";
    BOTTLENECK_ACTIVE: "nfscope_bottleneck_active" Gauge, [FINDING],
        "1 while this finding is active; the agent evaluates every 10 s, and every kind has its series";
    BOTTLENECK_SCORE: "nfscope_bottleneck_score_ratio" Gauge, [FINDING],
        "Share of the server's residence time (nfscope_rpc_duration_seconds) that this cause explains, in the last 10 s";
    CHANGE_GAIN: "nfscope_change_gain_ratio" Gauge, [CHANGE],
        "While a finding is active that a change may cure: how many times as many requests the server would serve with it, or how many times shorter each would stay, whichever is more; the low end of the interval that the model of nfscope what-if gives. No series where the model cannot tell";
    RECOMMENDED_THREADS: "nfscope_recommended_threads" Gauge, [],
        "nfsd threads of all pools together that gain nearly as much as any number, by the same model; no series where more threads gain nothing";
    BUILD_INFO: "nfscope_build_info" Gauge, [BUILD_VERSION, REVISION],
        "Always 1; what is running";
    PROBE_ATTACHED: "nfscope_probe_attached" Gauge, [PROBE, PROGRAM],
        "1 where the probe program is attached, 0 where not: /probes and nfscope check give the reason; one series with the program all where no program of a probe is attached, each for the same reason, and where all programs of a probe are that operations can be timed without";
    PROBE_SUCCESS: "nfscope_probe_success" Gauge, [PROBE],
        "1 where every program of the probe is attached, or observes what this host does not use; 0 where one waits, is detached or cannot be had";
    PROBE_READ_SECONDS: "nfscope_probe_read_seconds" Gauge, [READ],
        "Time that reading the tables of this probe took for this scrape";
    PROBE_RUNS: "nfscope_probe_runs_total" Counter, [PROBE, PROGRAM],
        "Runs of the probe program; only while the host keeps BPF run-time statistics";
    PROBE_RUN_SECONDS: "nfscope_probe_run_seconds_total" Counter, [PROBE, PROGRAM],
        "Time spent in the probe program; only while the host keeps BPF run-time statistics";
    KERNEL_MEMORY: "nfscope_kernel_memory_bytes" Gauge, [PROBE],
        "Kernel memory of the probe's maps and programs, by the kernel's account (memlock in fdinfo; copies of maps for each possible CPU included from Linux 6.4 on)";
    EVENTS_LOST: "nfscope_events_lost_total" Counter, [PROBE, LOST],
        "Events that a probe could not measure, or only in part: recursion (the kernel skipped a program because the same one was preempted on that CPU), late (counted by a later program instead, with a less exact time), record and map_full (no room), unmatched (an end without its start), arrival_unknown and arrival_merged (no or no exact queue time), pool_outside, recall_full (a recall without a duration), client_full (no row for a client and export: its operations count for other), wait_outside (a wait that did not fit into its operation), other_netns (requests to the NFS server of another network namespace, which an agent there measures)";
    MAP_ENTRIES: "nfscope_map_entries" Gauge, [MAP],
        "Entries in use of a BPF map that can fill";
    MAP_CAPACITY: "nfscope_map_capacity" Gauge, [MAP],
        "Most entries of that map";
    SCRAPE_SECONDS: "nfscope_scrape_seconds" Gauge, [],
        "Time that reading the probes took for this scrape";
    HOST_READ_ERRORS: "nfscope_host_read_errors_total" Counter, [TABLE],
        "Times that this host's table was there and could not be read: what it has was unknown then; `nfscope check` has the reason";
    HTTP_SANDBOX: "nfscope_http_sandbox" Gauge, [SANDBOX],
        "1 where this part holds the process that serves HTTP, 0 where it does not: the process said so before it served anybody";
    HTTP_ENDS: "nfscope_http_process_ends_total" Counter, [HTTP_END],
        "Processes that served HTTP and ended; each was followed by another, and probes and counts went on";
    PROCESS_CPU: "process_cpu_seconds_total" Counter, [],
        "CPU time of the agent, all its threads together";
    PROCESS_RESIDENT: "process_resident_memory_bytes" Gauge, [],
        "Memory of the agent that is in use";
    PROCESS_VIRTUAL: "process_virtual_memory_bytes" Gauge, [],
        "Address space of the agent";
    PROCESS_FDS: "process_open_fds" Gauge, [],
        "Open file descriptors of the agent";
    PROCESS_MAX_FDS: "process_max_fds" Gauge, [],
        "Most file descriptors that the agent may open";
    PROCESS_START: "process_start_time_seconds" Gauge, [],
        "Start of the agent, in seconds since 1970";
    COVERAGE: "nfscope_coverage_ratio" Gauge, [VERSION],
        "Operations that the probes timed over operations that the kernel counted since the probes attached (1 is exact); over a window: nfscope_timed_ops_total over nfscope_kernel_ops_total";
    KERNEL_OPS: "nfscope_kernel_ops_total" Counter, [VERSION],
        "Operations that the kernel counted since the probes attached: NFSv3 procedures, NFSv4 component operations (/proc/net/rpc/nfsd)";
    TIMED_OPS: "nfscope_timed_ops_total" Counter, [VERSION],
        "Those of nfscope_op_duration_seconds that the kernel counts, too, to compare with nfscope_kernel_ops_total";
    KERNEL_RPCS: "nfscope_kernel_rpcs_total" Counter, [],
        "RPC calls that the kernel counted since the probes attached, without malformed and refused ones and without NFSv2 (/proc/net/rpc/nfsd)";
    TIMED_RPCS: "nfscope_timed_rpcs_total" Counter, [],
        "RPC calls of nfscope_rpc_duration_seconds, to compare with nfscope_kernel_rpcs_total";
    KERNEL_IO_BYTES: "nfscope_kernel_io_bytes_total" Counter, [IO_OP],
        "Bytes that the kernel counted as read and written since the probes attached (/proc/net/rpc/nfsd)";
    TIMED_IO_BYTES: "nfscope_timed_io_bytes_total" Counter, [IO_OP],
        "Bytes of nfscope_io_size_bytes, to compare with nfscope_kernel_io_bytes_total";
}

/// Families that recordings from before the first release have under another name.
const RENAMED: [(&str, &Info); 2] = [
    ("nfscope_processors", &CPUS.info),
    ("nfscope_processor_idle_seconds_total", &CPU_IDLE.info),
];

/// Current name of the family that has or had this name.
pub fn current_name(name: &str) -> &str {
    let renamed = RENAMED.iter().find(|(old, _)| *old == name);
    renamed.map_or(name, |(_, info)| info.name)
}

impl Info {
    /// Position of this family in [`ALL`].
    pub fn index(&self) -> usize {
        ALL.iter()
            .position(|i| i.name == self.name)
            .expect("a family outside the table: the macro registers every one")
    }
}

#[cfg(test)]
#[path = "family_tests.rs"]
mod tests;
