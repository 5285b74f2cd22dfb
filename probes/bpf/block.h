/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NFSCOPE_BLOCK_H
#define NFSCOPE_BLOCK_H

enum block_op { BLOCK_READ, BLOCK_WRITE, BLOCK_FLUSH, BLOCK_DISCARD, BLOCK_OTHER, BLOCK_OPS };

/* Times of a request. */
struct block_times {
	u64 rq; /* struct request; 0: free */
	u64 t_insert; /* 0: not in a queue */
	u64 t_issue; /* 0: not at the device */
	u32 dev; /* major << 20 | minor, as dev_t in the kernel */
	u16 device; /* number of the device; 0: none */
	u16 row; /* row of the device and operation; 0: none */
};

/* Row for each device, operation and shard. */
struct block_row {
	struct time_hist queue;
	struct time_hist device;
	u64 bytes;
	u64 fua;
};

enum block_event {
	EV_BLOCK_FULL, /* more (device, op) pairs than rows */
	EV_BLOCK_UNMATCHED, /* completed without having been seen at its issue */
	EV_BLOCK_REQUEST_FULL, /* more requests in hand than places: one is not timed */
	BLOCK_EVENTS,
};

#endif
