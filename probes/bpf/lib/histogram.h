/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Durations in exponential buckets, the standard schema 2 of Prometheus native histograms: edges at 2^(n / 4) seconds
 * from n = -80 to 24. Powers of ten from 100 us to 100 ms are edges as well, because people set objectives by them:
 * each divides a bucket of the schema into two, which user space puts together again for native histograms. A value on
 * an edge belongs to the bucket below it, as `le` says.
 *
 * Finding the bucket costs about 20 instructions: the power of two of the nanoseconds and the four bits below its
 * highest name a cell that holds one edge at most, the powers of ten included. A power of ten therefore costs a bucket
 * and no instruction. The tables come from build.rs, which also gives them to Rust.
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

/* floor(log2(v)) by eight bits of the table at a time; small values, which are the most frequent, first. */
static __always_inline u64 log2_u64(u64 v)
{
	u64 shift;

	if (v < 1ULL << 24)
		shift = v < 1ULL << 16 ? (v < 1ULL << 8 ? 0 : 8) : 16;
	else if (v < 1ULL << 40)
		shift = v < 1ULL << 32 ? 24 : 32;
	else
		return v >> 48 ? 48 : 40; /* more than any table needs */
	v >>= shift;
	barrier_var(v);
	return v < 256 ? shift + power_of[v] : 0;
}

/* Bucket of a duration, 0 to TIME_BUCKETS - 1. */
static __always_inline u64 time_bucket(u64 ns)
{
	u64 e = log2_u64(ns), cell, b;

	/* The compiler derives bounds from other values; verifiers want to see each bound on the value that is used. */
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

/* Power of two that holds a size or a small count: bucket i holds values up to and including 2^i. */
static __always_inline u64 size_bucket(u64 v, u64 buckets)
{
	u64 b = v > 1 ? log2_u64(v - 1) + 1 : 0;

	if (b >= buckets)
		b = buckets - 1;
	barrier_var(b);
	return b;
}

#endif
