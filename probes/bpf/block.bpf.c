/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * block: how long requests wait for their issue to a device, and how long the device takes.
 *
 * Cost: one program at each of insert, issue and completion. A request's two times stay in an entry under its address,
 * which blk-mq uses again and again: no insertion or deletion in the steady state.
 *
 * Only leaf devices have requests; a dm or md device shows as the devices below it.
 */
#include "lib/kernel.h"
#include "lib/histogram.h"
#include "block.h"
#include "lib/tables.h"

#define REQ_OP_MASK 0xff /* include/linux/blk_types.h: the low 8 bits on every kernel since 4.10 */

struct request_times {
	u64 t_insert;
	u64 t_issue;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, u64); /* struct request */
	__type(value, struct request_times);
} block_request SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1024);
	__type(key, struct block_key);
	__type(value, struct block_row);
} block_device_op SEC(".maps");

TABLE(block_event, BLOCK_EVENTS, enum block_event, u64);

static __always_inline void count(enum block_event e)
{
	u64 *n = row_of(&block_event, e);

	if (n)
		add(n, 1);
}

static const struct block_row no_block;

static __always_inline struct block_row *block_row_of(struct request *rq, u32 flags)
{
	struct gendisk *disk;
	struct block_key key;
	struct block_row *b;
	u32 op = flags & REQ_OP_MASK;

	struct request___rq_disk *old = (void *)rq;
	struct request_queue *q = READ(rq, q);

	if (bpf_core_field_exists(old->rq_disk)) {
		disk = READ(old, rq_disk);
	} else {
		/* The compiler must not compute the field's address before the branch: without one, that is fatal. */
		barrier_var(q);
		disk = READ(q, disk);
	}
	/* SCSI requests of a device without a disk (tapes, enclosures). */
	if (!disk)
		return 0;
	key.dev = (u32)READ(disk, major) << 20 | (u32)READ(disk, first_minor);
	key.op = op < BLOCK_OTHER ? op : BLOCK_OTHER;
	b = bpf_map_lookup_elem(&block_device_op, &key);
	if (b)
		return b;
	bpf_map_update_elem(&block_device_op, &key, &no_block, BPF_NOEXIST);
	b = bpf_map_lookup_elem(&block_device_op, &key);
	if (!b)
		count(EV_BLOCK_FULL);
	return b;
}

static __always_inline struct request_times *times_of(struct request *rq)
{
	struct request_times *t, none = {};
	u64 key = (u64)rq;

	t = bpf_map_lookup_elem(&block_request, &key);
	if (t)
		return t;
	bpf_map_update_elem(&block_request, &key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&block_request, &key);
}

TP(block_rq_insert)
int PROGRAM(block_insert, struct request *rq)
{
	struct request_times *t = times_of(rq);

	if (t)
		t->t_insert = bpf_ktime_get_ns();
}

TP(block_rq_issue)
int PROGRAM(block_issue, struct request *rq)
{
	struct request_times *t;
	struct block_row *b;

	if (!rq)
		return;
	t = times_of(rq);
	b = block_row_of(rq, READ(rq, cmd_flags));
	if (!t || !b)
		return;
	t->t_issue = bpf_ktime_get_ns();
	add(&b->issued, 1);
	if (t->t_insert) {
		time_hist_add(&b->queue, elapsed(t->t_insert, t->t_issue));
		t->t_insert = 0;
	}
}

/* The device was busy: the request goes back, and will be issued again. */
TP(block_rq_requeue)
int PROGRAM(block_requeue, struct request *rq)
{
	struct request_times *t;
	struct block_row *b;

	if (!rq)
		return;
	t = times_of(rq);
	if (!t || !t->t_issue)
		return;
	t->t_issue = 0;
	b = block_row_of(rq, READ(rq, cmd_flags));
	if (b)
		add(&b->issued, -1);
}

/*
 * Bytes of a request are done, all that it has left the last time. A flush has none. A write that carries a flush is
 * completed once more, without bytes and without an issue, when its flushes are done.
 */
TP(block_rq_complete)
int PROGRAM(block_complete, struct request *rq, int error, u32 bytes)
{
	struct request_times *t;
	struct block_row *b;
	u32 flags, left;
	u64 key = (u64)rq, now;

	if (!rq)
		return;
	flags = READ(rq, cmd_flags);
	left = READ(rq, __data_len);
	t = bpf_map_lookup_elem(&block_request, &key);
	if (!t || !t->t_issue) {
		if (bytes || (flags & REQ_OP_MASK) == BLOCK_FLUSH)
			count(EV_BLOCK_UNMATCHED);
		return;
	}
	b = block_row_of(rq, flags);
	if (!b)
		return;
	add(&b->bytes, bytes);
	if (bytes < left)
		return;
	now = bpf_ktime_get_ns();
	time_hist_add(&b->device, elapsed(t->t_issue, now));
	t->t_issue = 0;
	add(&b->ended, 1);
	if (flags & 1U << bpf_core_enum_value(enum req_flag_bits, __REQ_FUA))
		add(&b->fua, 1);
}

char LICENSE[] SEC("license") = "GPL";
