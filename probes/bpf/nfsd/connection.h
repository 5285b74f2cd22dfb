/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State of a TCP connection: arrival times of the requests that wait on it, and the rows in which its client is
 * counted.
 *
 * Connections stand in one array, at a place that their transport's address names or one of the seven behind it,
 * because two look-ups in a hash cost each request some 200 instructions more. If all eight are taken, a new connection
 * displaces the one that was silent the longest.
 */
#ifndef NFSCOPE_CONNECTION_H
#define NFSCOPE_CONNECTION_H

#include "arrivals.h"

#define KNOWN_EXPORTS 4 /* exports whose rows a connection remembers */

/* Slots of through_memory; the last one is the loader's. */
enum number {
	IN_ARRIVE,
	IN_RECEIVE,
	IN_XPRT_FREE,
	IN_ACCEPT,
	IN_CLOSE,
	IN_DETACH,
	IN_DELEG_R,
	IN_DELEG_W,
	IN_DELEG_DIR,
	IN_DELEG_BACK,
	IN_DELEG_ASK,
	IN_DELEG_TAKE,
	IN_DELEG_FREE,
	IN_LAYOUT_NEW,
	IN_LAYOUT_END,
	IN_LAYOUT_ASK,
	IN_LAYOUT_OUT,
	IN_LAYOUT_GOT,
	IN_LAUNDER,
	IN_LAUNDERED,
	ATTACHED, /* when the last of the programs was attached, CLOCK_MONOTONIC; 0 until then */
	NUMBERS
};

TABLE(nfsd_number, NUMBERS, enum number, u64);

static __always_inline u64 as_number(u64 pointer, enum number slot)
{
	return through_memory(&nfsd_number, pointer, slot);
}

struct connection {
	u64 xprt; /* struct svc_xprt; 0: free */
	u64 sk;
	u64 ready; /* when data came last */
	u32 srtt_us; /* smoothed round-trip time, times eight */
	u32 place; /* its own place in the array, plus one */
	u32 epoch; /* epoch of the rows that follow */
	u32 min_rtt_us; /* lowest round-trip time of the last minutes (net.ipv4.tcp_min_rtt_wlen) */
	u64 client[2]; /* client of the rows: another one's connection may stand here, if its end was skipped */
	u64 known[KNOWN_EXPORTS]; /* see nfsd/client_accounting.h */
	struct arrivals arrivals;
};

#define CONNECTIONS 2048
#define CONNECTION_BITS 11
#define CONNECTION_PLACES 8

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CONNECTIONS);
	__type(key, u32);
	__type(value, struct connection);
} nfsd_connection SEC(".maps");

/* Place for an address in a table of 2^bits. */
static __always_inline u32 address_place(u64 address, u32 bits)
{
	return (u32)(address >> 6) * 0x9e3779b1U >> (32 - bits);
}

static __always_inline u32 connection_place(u64 xprt)
{
	return address_place(xprt, CONNECTION_BITS);
}

static __always_inline struct connection *connection_at(u32 i)
{
	i %= CONNECTIONS;
	return bpf_map_lookup_elem(&nfsd_connection, &i);
}

/* Finds a connection that is not at its first place. */
static __noinline struct connection *connection_elsewhere(u64 xprt)
{
	u32 i = connection_place(xprt);

	for (u32 n = 1; n < CONNECTION_PLACES; n++) {
		struct connection *c = connection_at(i + n);

		if (c && c->xprt == xprt)
			return c;
	}
	return 0;
}

static __always_inline struct connection *connection_of(u64 xprt)
{
	struct connection *c = connection_at(connection_place(xprt));

	return c && c->xprt == xprt ? c : connection_elsewhere(xprt);
}

static __always_inline void connection_clear(struct connection *c)
{
	c->arrivals.head = c->arrivals.tail = 0;
	c->srtt_us = c->min_rtt_us = 0;
	for (int i = 0; i < KNOWN_EXPORTS; i++)
		c->known[i] = 0;
}

/* Finds a place for a new connection: a free one, or that of the connection that was silent the longest. */
static __noinline struct connection *connection_make(u64 xprt)
{
	u32 i = connection_place(xprt);
	struct connection *best = 0;
	u64 owner = 0;
	u32 place = 0;

	for (u32 n = 0; n < CONNECTION_PLACES; n++) {
		struct connection *c = connection_at(i + n);
		u64 has;

		if (!c)
			continue;
		has = c->xprt;
		/* Another CPU has added the connection meanwhile, and may have noted an arrival. */
		if (has == xprt)
			return c;
		if (!best || !has || c->ready < best->ready) {
			best = c;
			owner = has;
			place = (i + n) % CONNECTIONS + 1;
		}
		if (!has)
			break;
	}
	if (!best)
		return 0;
#ifdef NFSCOPE_RAW
	if (best->xprt != owner)
		return 0;
	best->xprt = xprt;
#else
	if (__sync_val_compare_and_swap(&best->xprt, owner, xprt) != owner)
		return best->xprt == xprt ? best : 0;
#endif
	connection_clear(best);
	best->place = place;
	return best;
}

#endif
