/* SPDX-License-Identifier: GPL-2.0-only */
/* bpf/nfsd/arrivals.h, bpf/nfsd/comes_again.h and bpf/lib/histogram.h compiled for the host. */
#include <stdbool.h>
#include <stdint.h>

typedef int32_t s32;
typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

#ifndef __always_inline /* glibc has it, musl has not */
#define __always_inline inline __attribute__((always_inline))
#endif
#define barrier_var(v) ((void)(v))

#include "arrivals.h"
#include "comes_again.h"
#include "histogram.h"

u32 nfscope_time_bucket(u64 ns)
{
	return time_bucket(ns);
}

u32 nfscope_size_bucket(u64 v, u32 buckets)
{
	return size_bucket(v, buckets);
}

bool nfscope_comes_again(u32 status)
{
	return comes_again(status);
}

u32 nfscope_arrivals_size(void)
{
	return sizeof(struct arrivals);
}

bool nfscope_arrival_note(struct arrivals *a, u32 end_seq, u64 now)
{
	return arrival_note(a, end_seq, now);
}

u64 nfscope_arrival_match(struct arrivals *a, u32 copied_seq)
{
	return arrival_match(a, copied_seq);
}
