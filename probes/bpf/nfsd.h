/* SPDX-License-Identifier: GPL-2.0-only */
/* Types that nfsd.bpf.c keeps. The Rust side gets these types from the object's BTF. */
#ifndef NFSCOPE_NFSD_H
#define NFSCOPE_NFSD_H

#include "nfs4_state.h"
#include "wait_kind.h"

/*
 * Index of a version: one for NFSv3, one for each NFSv4 minor version, and one for NFSv4 requests without a minor
 * version that this kernel serves (NULL, minor version mismatch, undecodable header).
 */
enum version {
	V3,
	V4_0,
	V4_1,
	V4_2,
	V4_NONE,
	VERSIONS,
};

/*
 * Rows of the operation table. NFSv3 procedures 0 to 21 (RFC 1813), then the four of NFSACL, which Linux clients speak
 * beside NFSv3; for each NFSv4 minor version its operations by number (RFC 7530, 8881, 7862, 8276: 3 to 75), with
 * ILLEGAL (10044) in the row behind the last.
 */
enum op_row {
	ROW_V3 = 0,
	V3_PROCS = 22,
	ROW_ACL = ROW_V3 + V3_PROCS,
	ACL_PROCS = 4,
	FIRST_V4_OP = 3,
	V4_ILLEGAL = 76,
	V4_OPS = V4_ILLEGAL + 1 - FIRST_V4_OP,
	/* Row of operation 0, which does not exist: the first operation then has the first free row. */
	ROW_V4 = ROW_ACL + ACL_PROCS - FIRST_V4_OP,
	ROW_V4_NULL = ROW_V4 + FIRST_V4_OP + 3 * V4_OPS,
	OP_ROWS,
};

enum stability { UNSTABLE, DATA_SYNC, FILE_SYNC, STABILITIES };

/* Phases of a request. ASKING is the part of RECEIVE that waits for a daemon of user space. */
enum phase { QUEUE, RECEIVE, ASKING, EXECUTE, REPLY, PHASES };

/* Daemons that an nfsd thread asks: through the kernel's caches that daemons fill (net/sunrpc/cache.c), and nfsdcld. */
enum upcall {
	UPCALL_OTHER, /* a cache that is not in this list */
	UPCALL_CLIENT, /* auth.unix.ip: rpc.mountd */
	UPCALL_GROUPS, /* auth.unix.gid: rpc.mountd */
	UPCALL_EXPORT, /* nfsd.export: rpc.mountd */
	UPCALL_HANDLE, /* nfsd.fh: rpc.mountd */
	UPCALL_IDMAP, /* nfs4.nametoid, nfs4.idtoname: rpc.idmapd */
	UPCALL_GSS, /* auth.rpcsec.init, auth.rpcsec.context: rpc.svcgssd */
	UPCALL_TRACKING, /* nfsdcld */
	UPCALLS,
};

/* Row for each enum upcall. */
struct upcall_row {
	struct time_hist wait; /* waits of threads; several can wait for one answer */
	u64 asked;
};

#define SIZE_BUCKETS 32
#define COUNT_BUCKETS 12
/* Number of slots in use up to which each value has a counter, which is cheaper than a bucket; buckets that these
 * values fill. */
#define SLOTS_TOLD 9
#define SLOTS_BUCKETS_TOLD 4

/* Row for each operation and shard. */
struct op_times {
	struct time_hist duration;
	u64 wait_ns[ALL_WAITS]; /* parts of the same time; the rest is CPU time */
};

/* A client and an export: its address (IPv4 as mapped into IPv6), its number (see nfsd/client_accounting.h). */
struct client_key {
	u64 client[2];
	u64 export;
};

#define CLIENT_SEEN_SHIFT 30

/*
 * Row for each client, export and shard. Requests and operations share a word, which costs one addition and no memory:
 * the low REQUEST_BITS bits are requests, the others operations. User space adds up differences between two readings,
 * every ten seconds. They are exact while fewer than 2^32 of each come in between, in spite of overflows.
 */
#define REQUEST_BITS 32

struct client_row {
	u64 requests_ops;
	u64 ns;
	u64 reply_ns; /* time to send replies */
	u64 read_bytes; /* that READs returned */
	u64 write_bytes; /* that WRITEs stored */
	u32 seen; /* when the last request ended: nanoseconds >> CLIENT_SEEN_SHIFT */
	u32 srtt_us; /* its connection's, times eight; 0: not TCP */
};

/* Additional counts for the first rows of clients and exports, shared by all CPUs. */
#define SESSION_ROWS 2048

struct session_row {
	u64 slots_free; /* requests of a session that were sent while another slot was free */
	u64 slots_full; /* requests that were sent with every slot in use */
	u64 stable; /* WRITEs that asked for DATA_SYNC or FILE_SYNC, and COMMITs: acknowledged ones */
	u64 unwaited_writes; /* WRITEs among them that waited for no log and no disk */
	u64 unwaited_commits;
	u64 v3_walks; /* requests that only walk a path: LOOKUP, ACCESS and READLINK, with ops that frame them */
	u64 v4_walks;
	u64 opens; /* requests with an OPEN */
	u64 open_ns; /* execution time of opens and v4_walks */
	u32 slots; /* slots that its session was granted when it was used last; 0: no session */
	u32 min_rtt_us; /* lowest round-trip time of the connection used last, in the last minutes; 0: not known */
};

#define HANDLE_BYTES 128
#define ROW_WORDS ((OP_ROWS + 63) / 64)

/* Selects the operations that are reported one by one. Set by user space, and only while there is a subscriber. */
struct slow_want {
	u64 over_ns; /* longer than that; all ones: none */
	u64 client[2]; /* this address; zero: any */
	u64 per_second;
	u64 rows[ROW_WORDS]; /* bits: which rows of the operation table */
};

/* Number of operations that were reported, and of those left out for lack of room or because of the limit. */
struct slow_count {
	u64 second; /* begin of the current second */
	u64 in_second;
	u64 left_out;
};

/* Numbers that slow_event.offset and slow_event.length hold. */
enum slow_asks {
	ASKS_NOTHING, /* the operation has no such argument, or it is not to be had */
	ASKS_RANGE, /* offset and length of a READ, WRITE or COMMIT */
	ASKS_SIZE, /* offset is the size that a SETATTR, CREATE or OPEN sets */
};

/* An operation that took longer than slow_want.over_ns. */
struct slow_event {
	u64 end_ns; /* CLOCK_MONOTONIC */
	u64 ns;
	u64 wait_ns[ALL_WAITS];
	u64 client[2];
	u64 offset;
	u32 length;
	enum slow_asks asks;
	u32 row;
	u32 status;
	u32 bytes;
	u32 stability;
	u32 handle_size; /* of its file handle; 0: none, or not to be had */
	u32 other_size; /* of the handle in `other` */
	u32 xid; /* RFC 5531, big-endian; 0: not to be had */
	u32 unused;
	u8 handle[HANDLE_BYTES];
	u8 other[HANDLE_BYTES]; /* NFSv3: the file that a LOOKUP found or a CREATE made; the target of a RENAME or LINK */
};

/* Dimensions by which operations are grouped, as bits; a file includes its export. */
enum breakdown_by {
	BY_CLIENT = 1,
	BY_EXPORT = 2,
	BY_OP = 4, /* and version */
	BY_USER = 8,
	BY_FILE = 16,
	BY_NOTHING = 32, /* all operations in one row */
};

#define BREAKDOWN_OTHER 0xffffffff
#define BREAKDOWN_NO_USER 0xffffffff

/* Selects the operations that are grouped, and the dimensions. Set by user space, and only while there is a
 * subscriber. */
struct breakdown_want {
	u64 client[2]; /* this address; zero: any */
	enum breakdown_by by; /* 0: no subscriber */
	u32 unused;
	u64 rows[ROW_WORDS]; /* bits: which rows of the operation table */
};

/* Operations with the same key. */
struct breakdown_row {
	struct time_hist times;
	u64 read_bytes;
	u64 write_bytes;
};

/* Estimated cost of the break-down itself, and operations without any row. */
struct breakdown_count {
	u64 cost_ns;
	u64 lost;
};

/* Key of a row; zero in dimensions by which operations are not grouped. */
struct breakdown_key {
	u64 client[2];
	u64 export; /* its number: nfsd/client_accounting.h */
	u8 file[24]; /* the file system's own id of the file; its first bytes if it is longer */
	u64 file_hash; /* hash of all bytes of a longer id */
	u32 user;
	u32 row; /* row of the operation table; BREAKDOWN_OTHER: operations without a row of their own */
	u32 shard;
	u8 file_kind; /* enum fid_type */
	u8 file_size; /* bytes of the id, all of them */
	u8 file_known; /* the request has a file handle */
	u8 unused;
};

/* Operation that a thread has in hand. User space asks for it by the thread's number: nfsd/held.h. */
struct held_op {
	u32 row; /* of the operation table; OP_ROWS: none, or not to be had */
	u32 handle_size; /* of its file handle; 0: none, or not to be had */
	u32 xid; /* RFC 5531, big-endian; 0: not to be had */
	u8 handle[HANDLE_BYTES];
};

/* Connections with requests that no thread takes. User space asks for them: nfsd/pending.h. */
struct pending {
	u64 connections;
	u64 since_ns; /* the oldest of them, CLOCK_MONOTONIC; 0: none */
};

/* Transports of requests: net/sunrpc. */
enum transport { TRANSPORT_TCP, TRANSPORT_RDMA, TRANSPORT_UDP, TRANSPORT_OTHER, TRANSPORTS };

/* Why a connection is closed. */
enum closed_by {
	CLOSED_CLIENT, /* the client closed it, or the network did */
	CLOSED_LIMIT, /* too many were open: the kernel closes the oldest */
	CLOSED_IDLE, /* silent for six minutes or longer, or the server's address went away */
	CLOSED_ERROR, /* the server gave it up: what came is no RPC, or a reply could not be sent */
	CLOSED_SHUTDOWN, /* the server stops */
	CLOSED_REASONS,
};

/* Connections that came and went since the programs attached. */
struct transport_counts {
	u64 accepted[TRANSPORTS];
	u64 closed[TRANSPORTS][CLOSED_REASONS];
};

/* The server's sockets at the moment. User space asks for them: nfsd/transports.h. */
struct transports_now {
	u64 server; /* struct svc_serv; 0: none was seen */
	u64 open[TRANSPORTS]; /* connections */
	u64 listening[TRANSPORTS];
	u64 drops; /* packets of new connections that TCP dropped at listeners */
	u32 limited; /* connections for which the kernel's limit is */
	u32 threads;
	u32 most; /* the limit that was set; 0: the kernel's own */
	u32 torn; /* a list changed meanwhile: the counts are incomplete */
	u32 unacked; /* connections in nfsd_unacked, and those that found no room there */
	u32 unacked_known; /* this kernel has the fields that are needed */
};

#define UNACKED_ROWS 64

/* A connection that has replies which its client may not be taking. */
struct unacked {
	u64 xprt;
	u64 client[2];
	u64 delivered_us; /* nothing has arrived at the client since, though data was sent; 0: nothing is on its way */
	u32 first; /* sequence number of the oldest byte that is not acknowledged */
	u32 bytes; /* not acknowledged */
	u32 retransmits; /* of the oldest byte, since anything was acknowledged */
	u32 window; /* bytes that the client takes */
};

/*
 * Answer of an operation to a client: a status of nfsd/comes_again.h, or a lock that was granted. Row OP_ROWS is for
 * calls that became no operation; their status is enum refused_for.
 */
struct client_answer_key {
	u64 client[2];
	u32 row;
	u32 status;
};

/* Why a call was refused as an RPC (RFC 5531, 9), or got no reply at all. */
enum refused_for {
	REFUSED_FORMAT = 1, /* no such RPC version, program, version or procedure; or no call */
	REFUSED_AUTH, /* its credentials */
	REFUSED_ARGUMENTS, /* the procedure's arguments cannot be decoded: the kernel counts it as an operation */
	REFUSED_END,
};

#define CLIENT_ANSWERS 256

/* Row for each version and shard. Read and written bytes are those that READ returned and WRITE stored. */
struct version_row {
	struct time_hist residence;
	struct time_hist compound;
	u64 phase_ns[PHASES];
	u64 received_bytes;
	u64 sent_bytes;
	u64 compound_ops[COUNT_BUCKETS];
	u64 compound_ops_sum;
	u64 read_size[SIZE_BUCKETS];
	u64 read_bytes;
	u64 write_size[SIZE_BUCKETS];
	u64 write_bytes;
	u64 stable_writes[STABILITIES];
	u64 stable_bytes[STABILITIES];
	u64 slots[SLOTS_TOLD]; /* requests by slots in use */
	u64 slots_more[COUNT_BUCKETS - SLOTS_BUCKETS_TOLD]; /* by powers of two, of those with SLOTS_TOLD and more */
	u64 slots_more_sum;
	u64 slots_full; /* requests among all that were sent with every slot in use */
	u64 replays; /* COMPOUNDs answered from their slot */
	/* Sums of the rows of clients and exports and of operations without a row: added after those rows. */
	u64 accounted_ops;
	u64 accounted_ns;
};

/* Row for each pool and shard. */
struct pool_row {
	struct time_hist queue;
	u64 busy_ns;
};

/* State of each pool, shared by all CPUs because it needs one truth. */
struct pool_now {
	u64 busy;
	u64 saturated_since; /* 0 while a thread is free */
	u64 saturated_ns;
	u32 threads; /* threads that ran at the last request */
	u32 limit; /* most that may run; 0 where the kernel has no dynamic pools */
	u64 unused[12]; /* two lines, which processors fetch together: pools that CPUs do not share share none */
};

struct error_key {
	u32 row;
	u32 status;
	u32 shard;
};

/* Rare events, per CPU. */
enum event {
	EV_DROPPED,
	EV_DEFERRED,
	EV_RECORD_FAILED, /* a request went untimed: no free place for its thread's record */
	EV_ARRIVAL_MERGED, /* more segments waiting on a connection than its ring holds */
	EV_ARRIVAL_UNKNOWN, /* a request whose arrival was not seen: no queue time */
	EV_POOL_OUTSIDE, /* pool number beyond the table */
	/*
	 * Seen late. From 7.x on tracepoints run preemptibly, and the kernel skips a program on a CPU where a preempted
	 * task is inside the same program. Later programs notice and count what was skipped, with less exact times.
	 */
	EV_SKIPPED,
	EV_ERROR_FULL, /* no room for another (op, status) pair */
	EV_CLIENT_FULL, /* no row for another client and export */
	EV_ELSEWHERE, /* request to the NFS server of another network namespace */
	EV_ELSEWHERE_V3, /* of EV_ELSEWHERE an NFSv3 procedure, which kernels count together with those here */
	EV_NO_CLOCK, /* a request over UDP or RDMA: nothing tells when it arrived */
	EV_RECALL_FULL, /* a recall without a duration: STATE_RECALLS are under way */
	EV_WAIT_OUTSIDE, /* a wait that does not fit into the duration of its operation: its rest belongs to none */
	EVENTS,
};

#endif
