/* SPDX-License-Identifier: GPL-2.0-only */
/* Types that lib/nfs4_state.h keeps for delegations, layouts and the laundromat. */
#ifndef NFSCOPE_NFS4_STATE_H
#define NFSCOPE_NFS4_STATE_H

/* Recalls that are under way at a time. A recall without a free entry is counted, but has no duration. */
#define STATE_RECALLS 1024
/* Clients whose recalls and layouts are counted apart. User space empties the table before it is full. */
#define STATE_CLIENTS 512

enum state_kind { STATE_DELEGATION, STATE_LAYOUT, STATE_KINDS };

/* Row for each enum state_kind. */
struct state_row {
	struct time_hist returned; /* durations of recalls until the client returned the state */
	struct time_hist taken; /* durations of recalls until the server took the state away */
	u64 granted[3]; /* delegations: for reading, for writing, of a directory; layouts: the first */
	u64 ended; /* delegations: DELEGRETURNs; layouts: all that ended */
	u64 recalls;
	u64 forfeited; /* delegations revoked; recalls of layouts that the client did not follow */
};

/* A state's id without its generation. */
struct state_key {
	u32 id[3];
};

/* A recall that has not ended. */
struct state_recall {
	u64 since;
	u64 client[2];
	u32 kind;
	u32 failed; /* the client was given up */
};

struct state_client_key {
	u64 client[2]; /* address, as in client_key */
};

struct state_client {
	u64 recalls; /* of delegations */
	u64 ended; /* recalls among them that ended */
	u64 ended_ns; /* time of these recalls */
	u64 forfeited;
	u64 layouts; /* granted */
};

/* Times when the laundromat began and ended last: CLOCK_MONOTONIC. */
struct state_laundry {
	u64 begun;
	u64 ended;
};

#endif
