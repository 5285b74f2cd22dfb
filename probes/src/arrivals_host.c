/* SPDX-License-Identifier: GPL-2.0-only */
/* bpf/lib/arrivals.h compiled for the host. */
#include <stdbool.h>
#include <stdint.h>

typedef int32_t s32;
typedef uint32_t u32;
typedef uint64_t u64;

#ifndef __always_inline /* glibc has it, musl has not */
#define __always_inline inline __attribute__((always_inline))
#endif

#include "arrivals.h"

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
