/* SPDX-License-Identifier: GPL-2.0-only */
/* Adds durations to histograms in maps. */
#ifndef NFSCOPE_TIME_HIST_H
#define NFSCOPE_TIME_HIST_H

#include "histogram.h"
#include "tables.h"

static __always_inline void time_hist_count(struct time_hist *h, u64 ns, void (*adder)(u64 *, u64))
{
	u64 b = time_bucket(ns);

	barrier_var(b);
	if (b < TIME_BUCKETS)
		adder(&h->count[b], 1);
	adder(&h->sum_ns, ns);
}

/* Adds to a histogram that other CPUs may add to at the same time. */
static __always_inline void time_hist_add(struct time_hist *h, u64 ns)
{
	time_hist_count(h, ns, add);
}

/* Adds to a histogram in a row of this CPU's own: see add_own. */
static __always_inline void time_hist_add_own(struct time_hist *h, u64 ns)
{
	time_hist_count(h, ns, add_own);
}

#endif
