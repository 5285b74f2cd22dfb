/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When a request arrived on its TCP connection.
 *
 * The transport's own clocks do not know: a connection is enqueued once for many requests, and `wakeup-us` is stale
 * under load. But TCP's sequence numbers do. Each time data is ready, the connection's ring keeps (rcv_nxt, time); once
 * a record is read, copied_seq is its end, and the first entry that reaches it tells when its last byte was ready.
 *
 * Requests are read in order under XPT_BUSY, so entries before copied_seq never matter again: O(1) a request,
 * amortised.
 */
#ifndef NFSCOPE_ARRIVAL_H
#define NFSCOPE_ARRIVAL_H

#define RING 128 /* segments that wait unread on one connection; more share an entry, see below */

struct arrivals {
	u64 sk;
	u32 head; /* next entry to write */
	u32 tail; /* first entry that may still matter */
	u32 end_seq[RING];
	u64 ready_ns[RING];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 2048);
	__type(key, u64); /* struct svc_xprt */
	__type(value, struct arrivals);
} arrival SEC(".maps");

static const struct arrivals no_arrivals;

static __always_inline struct arrivals *arrivals_of(u64 xprt, u64 sk)
{
	struct arrivals *a = bpf_map_lookup_elem(&arrival, &xprt);

	if (!a) {
		bpf_map_update_elem(&arrival, &xprt, &no_arrivals, BPF_NOEXIST);
		a = bpf_map_lookup_elem(&arrival, &xprt);
		if (!a)
			return 0;
	}
	if (a->sk != sk) {
		a->sk = sk;
		a->head = a->tail = 0;
	}
	return a;
}

/*
 * Notes that everything up to `end_seq` is ready. A full ring widens its last entry: the requests in it keep the time
 * of the earlier segment, so their wait can read too long by less than the time between two of 128 waiting segments.
 *
 * Returns false where it had to.
 */
static __always_inline bool arrival_note(struct arrivals *a, u32 end_seq, u64 now)
{
	u32 i = a->head;
	bool full = i - a->tail >= RING;

	if (full)
		i--;
	else
		a->ready_ns[i % RING] = now;
	a->end_seq[i % RING] = end_seq;
	if (!full)
		a->head = i + 1;
	return !full;
}

/* When the byte before `copied_seq` was ready; 0 where that was not seen. */
static __always_inline u64 arrival_match(struct arrivals *a, u32 copied_seq)
{
	u32 i = a->tail, head = a->head;

	for (int n = 0; n < RING && i != head; n++, i++) {
		if ((s32)(a->end_seq[i % RING] - copied_seq) >= 0) {
			a->tail = i;
			return a->ready_ns[i % RING];
		}
	}
	a->tail = i;
	return 0;
}

#endif
