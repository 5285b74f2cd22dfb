/* SPDX-License-Identifier: GPL-2.0-only */
/* bpf/lib/histogram.h compiled for the host. */
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

#ifndef __always_inline /* glibc has it, musl has not */
#define __always_inline inline __attribute__((always_inline))
#endif
#define barrier_var(v) ((void)(v))

#include "histogram.h"

u32 nfscope_time_bucket(u64 ns)
{
	return time_bucket(ns);
}

u32 nfscope_size_bucket(u64 v, u32 buckets)
{
	return size_bucket(v, buckets);
}
