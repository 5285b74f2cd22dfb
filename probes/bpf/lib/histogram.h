/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Durations in exponential buckets, the standard schema 2 of Prometheus native histograms: bucket i holds durations up
 * to and including 2^((i - 80) / 4) seconds. A value on an edge belongs to the bucket below it, as `le` says.
 *
 * Finding the bucket costs about 20 instructions: the power of two of the nanoseconds and the four bits below its
 * highest name a cell that holds one edge at most. The tables come from build.rs, which also gives them to Rust.
 *
 * Compiles for the host too, so that a test can compare it with the Rust side value by value.
 */
#ifndef NFSCOPE_HISTOGRAM_H
#define NFSCOPE_HISTOGRAM_H

#include "time_edges.h" /* generated: TIME_BUCKETS, time_edge_ns[], time_cell[], power_of[] */

struct time_hist {
	u64 sum_ns;
	u64 count[TIME_BUCKETS];
};

/* floor(log2(v)) by the table's eight bits at a time; small values, which are the most, first. */
static __always_inline u64 log2_u64(u64 v)
{
	u64 shift;

	if (v < 1ULL << 24)
		shift = v < 1ULL << 16 ? (v < 1ULL << 8 ? 0 : 8) : 16;
	else if (v < 1ULL << 40)
		shift = v < 1ULL << 32 ? 24 : 32;
	else
		return v >> 48 ? 48 : 40; /* more than any table here asks for */
	v >>= shift;
	barrier_var(v);
	return v < 256 ? shift + power_of[v] : 0;
}

/* The bucket of a duration, 0 to TIME_BUCKETS - 1. */
static __always_inline u64 time_bucket(u64 ns)
{
	u64 e = log2_u64(ns), cell, b;

	/* The compiler knows what follows from what; verifiers want to see each bound on the value that is used. */
	barrier_var(e);
	if (e >= TIME_POWERS)
		return TIME_BUCKETS - 1;
	if (e < 4)
		return 0;
	cell = e * 16 + (ns >> (e - 4) & 15);
	barrier_var(cell);
	if (cell >= TIME_POWERS * 16)
		return TIME_BUCKETS - 1;
	b = time_cell[cell];
	barrier_var(b);
	if (b >= TIME_BUCKETS - 1)
		return TIME_BUCKETS - 1;
	return b + (ns > time_edge_ns[b]);
}

/* The power of two that holds a size or a small count: bucket i holds values up to and including 2^i. */
static __always_inline u64 size_bucket(u64 v, u64 buckets)
{
	u64 b = v > 1 ? log2_u64(v - 1) + 1 : 0;

	if (b >= buckets)
		b = buckets - 1;
	barrier_var(b);
	return b;
}

/*
 * Adds one duration. The histogram belongs to this CPU; the adds are atomic all the same, because a task that preempts
 * another on it, or a kernel that runs tracepoints preemptibly, must not lose one. Uncontended, that is one
 * instruction.
 */
static __always_inline void time_hist_add(struct time_hist *h, u64 ns)
{
	u64 b = time_bucket(ns);

	barrier_var(b);
	if (b < TIME_BUCKETS)
		__sync_fetch_and_add(&h->count[b], 1);
	__sync_fetch_and_add(&h->sum_ns, ns);
}

#endif
