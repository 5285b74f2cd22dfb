/* SPDX-License-Identifier: GPL-2.0-only */
/* Types that client.bpf.c keeps. The Rust side gets these types from the object's BTF. */
#ifndef NFSCOPE_CLIENT_H
#define NFSCOPE_CLIENT_H

/* RPC clients of the kernel that are counted apart at a time: two or three a mount. Number 0 means none. */
#define CLIENT_MOUNTS 256
/* Procedures of one RPC client by their number in its statistics: 75 for NFSv4 today. */
#define CLIENT_PROCS 96
/* Rows for pairs of RPC client and procedure. Row 0 means none. */
#define CLIENT_ROWS 1024
#define CLIENT_ADDRESS 48
#define CLIENT_NAME 24

/* An RPC client (struct rpc_clnt): each mount has one, NFSACL another, and the mounts of a server share one. */
struct client_mount {
	u64 clnt; /* struct rpc_clnt; 0: not filled in yet */
	u64 gone; /* 1: the kernel has freed it */
	u32 version; /* of NFS: 3, 4 */
	u32 minor; /* plus one; 0: not known */
	u32 dev; /* of the mount's super block: major << 20 | minor; 0: not known, or shared by mounts */
	u32 min_rtt_us; /* of its TCP connection, in the last minutes; 0: not known */
	u8 address[CLIENT_ADDRESS];
	struct time_hist backlog;
	struct time_hist round_trip;
	struct time_hist slot_wait;
};

/* A procedure of an RPC client. */
struct client_rpc {
	u64 mount; /* number of its RPC client; 0: free */
	u8 name[CLIENT_NAME];
	struct time_hist execute;
	u64 backlog_ns;
	u64 round_trip_ns;
	u64 retransmissions;
	u64 timeouts;
	u64 errors;
	u64 sent_bytes;
	u64 received_bytes;
};

enum client_event {
	EV_CLIENT_MOUNTS_FULL, /* an RPC of a mount without a number */
	EV_CLIENT_ROWS_FULL, /* an RPC without a row */
	CLIENT_EVENTS,
};

#endif
