/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NFSCOPE_BLOCK_H
#define NFSCOPE_BLOCK_H

enum block_op { BLOCK_READ, BLOCK_WRITE, BLOCK_FLUSH, BLOCK_DISCARD, BLOCK_OTHER };

struct block_key {
	u32 dev; /* major << 20 | minor, as dev_t in the kernel */
	u32 op;
};

/* Per device, op and CPU. */
struct block_row {
	struct time_hist queue;
	struct time_hist device;
	u64 bytes;
	u64 fua;
	u64 issued; /* less requeued; issued - ended over all CPUs is what the device has in hand */
	u64 ended;
};

enum block_event {
	EV_BLOCK_FULL, /* more (device, op) pairs than rows */
	EV_BLOCK_UNMATCHED, /* completed without having been seen at its issue */
	BLOCK_EVENTS,
};

#endif
