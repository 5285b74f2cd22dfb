/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When the bytes of a TCP connection came.
 *
 * The transport's own clocks do not know a request's arrival: a connection is enqueued once for many requests, and
 * `wakeup-us` is stale under load. But TCP's sequence numbers do. Each time data is ready, the connection's ring keeps
 * (rcv_nxt, time); once a record is read, copied_seq is its end, and the first entry that reaches it tells when its
 * last byte was ready. Requests are read in order under XPT_BUSY, so entries before copied_seq never matter again: O(1)
 * a request, amortised.
 *
 * The file that includes this header defines u32, s32, u64, bool and __always_inline: the probe, and the host for a
 * test.
 */
#ifndef NFSCOPE_ARRIVALS_H
#define NFSCOPE_ARRIVALS_H

#define RING 128 /* segments that wait unread on one connection; more of them share an entry, see below */

struct arrivals {
	u32 head; /* next entry to write */
	u32 tail; /* first entry that may still matter */
	u64 ready_ns[RING];
	u32 end_seq[RING];
};

/*
 * Number of entries that may still matter. If a connection is cleared while a request of it is matched, the tail can
 * end past the head: then no entry matters, and the ring begins anew.
 */
static __always_inline u32 arrivals_waiting(struct arrivals *a)
{
	u32 waiting = a->head - a->tail;

	if (waiting <= RING)
		return waiting;
	a->tail = a->head;
	return 0;
}

/*
 * Notes that everything up to `end_seq` is ready. A full ring widens its last entry: the requests in it keep the time
 * of the earlier segment, so their wait can read too long by less than the time between two of 128 waiting segments.
 *
 * Returns false if the ring was full.
 */
static __always_inline bool arrival_note(struct arrivals *a, u32 end_seq, u64 now)
{
	u32 waiting = arrivals_waiting(a), i = a->head;
	bool full;

	/* Sequence numbers do not go back: the entries belong to an earlier connection whose end was not seen. */
	if (waiting && (s32)(end_seq - a->end_seq[(i - 1) % RING]) < 0) {
		a->tail = i;
		waiting = 0;
	}
	full = waiting == RING;
	if (full)
		i--;
	else
		a->ready_ns[i % RING] = now;
	a->end_seq[i % RING] = end_seq;
	if (!full)
		a->head = i + 1;
	return !full;
}

/* Time at which the byte before `copied_seq` was ready; 0 if that was not seen. */
static __always_inline u64 arrival_match(struct arrivals *a, u32 copied_seq)
{
	u32 waiting = arrivals_waiting(a), i = a->tail;

	for (u32 n = 0; n < RING && n < waiting; n++, i++) {
		if ((s32)(a->end_seq[i % RING] - copied_seq) >= 0) {
			a->tail = i;
			return a->ready_ns[i % RING];
		}
	}
	a->tail = i;
	return 0;
}

#endif
