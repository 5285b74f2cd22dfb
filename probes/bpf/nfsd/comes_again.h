/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Statuses after which a client asks again or recovers, as bits: agent/model/src/comes_again.rs has their names. A test
 * compares both, by the same code compiled for the host.
 */
#ifndef NFSCOPE_COMES_AGAIN_H
#define NFSCOPE_COMES_AGAIN_H

static __always_inline u64 comes_again(u32 status)
{
	u32 i = status - 10008; /* NFS4ERR_DELAY and NFS3ERR_JUKEBOX: lower ones are final */

	return i < 128 && (i < 64 ? 0x10a6b1c00e87ca6dULL : 0xc074ULL) >> (i & 63) & 1;
}

#endif
