/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * block: how long requests wait for their issue to a device, and how long the device takes.
 *
 * Cost: one program at each of insert, issue and completion. A request's two times stand in an array, with its device,
 * at a place that the request's address names. blk-mq uses the same addresses again and again, so that the steady
 * state needs no look-up in a hash and no allocation. User space counts the requests in flight in the same array.
 *
 * Only leaf devices have requests; a dm or md device shows as the devices below it.
 */
#include "lib/kernel.h"
#include "lib/histogram.h"
#include "block.h"
#include "lib/tables.h"
#include "lib/time_hist.h"

#define REQ_OP_MASK 0xff /* include/linux/blk_types.h: the low 8 bits on every kernel since 4.10 */

/* Slots of through_memory. */
enum number { IN_INSERT, IN_ISSUE, IN_REQUEUE, IN_COMPLETE, NUMBERS };

TABLE(block_number, NUMBERS, enum number, u64);

static __always_inline u64 as_number(struct request *rq, enum number slot)
{
	return through_memory(&block_number, (u64)rq, slot);
}

#define BLOCK_STALE_NS 60000000000ULL

/* Requests in hand keep their places. Queued ones keep theirs for a minute only, because a merged request leaves its
 * queue unseen. */
#define BLOCK_REQUESTS 16384
#define BLOCK_REQUEST_BITS 14
#define BLOCK_PLACES 8

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, BLOCK_REQUESTS);
	__type(key, u32);
	__type(value, struct block_times);
} block_request SEC(".maps");

/* Rows of devices: five for each, one for each operation. Device 0 means no device. */
#define BLOCK_DEVICES 160
#define BLOCK_ROWS (BLOCK_DEVICES * BLOCK_OPS)

SHARDED(block_row, BLOCK_ROWS, u32, struct block_row);

/* Numbers of devices. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, BLOCK_DEVICES);
	__type(key, u32);
	__type(value, u32);
} block_device SEC(".maps");

/* Device numbers not in use. Filled by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, BLOCK_DEVICES);
	__type(value, u32);
} block_free SEC(".maps");

TABLE(block_event, BLOCK_EVENTS, enum block_event, u64);

static __always_inline void count(enum block_event e)
{
	u64 *n = row_of(&block_event, e);

	if (n)
		add(n, 1);
}

/* Device number as the kernel has it; 0 for SCSI requests of a device without a disk (tapes, enclosures). */
static __always_inline u32 device_of(struct request *rq)
{
	struct gendisk *disk;
	struct request___rq_disk *old = (void *)rq;
	struct request_queue *q = READ(rq, q);

	if (bpf_core_field_exists(old->rq_disk)) {
		disk = READ(old, rq_disk);
	} else {
		/* The compiler must not compute the field's address before the branch: without one, that is fatal. */
		barrier_var(q);
		disk = READ(q, disk);
	}
	return disk ? (u32)READ(disk, major) << 20 | (u32)READ(disk, first_minor) : 0;
}

/* Returns the number of a device, and assigns one if it has none; 0 without a free number. */
static __noinline u32 device_find(u32 dev)
{
	u32 n = 0, *known = bpf_map_lookup_elem(&block_device, &dev);

	if (known)
		return *known;
	if (bpf_map_pop_elem(&block_free, &n)) {
		count(EV_BLOCK_FULL);
		return 0;
	}
	if (bpf_map_update_elem(&block_device, &dev, &n, BPF_NOEXIST))
		bpf_map_push_elem(&block_free, &n, 0);
	/* Another CPU may have assigned the number first. */
	known = bpf_map_lookup_elem(&block_device, &dev);
	return known ? *known : 0;
}

/* Notes the row in which this request counts until it is issued again; 0: no row. */
static __always_inline void row_note(struct block_times *t, struct request *rq, u32 flags)
{
	u32 dev = device_of(rq), op = flags & REQ_OP_MASK, n = t->device;

	if (t->dev != dev || !n) {
		n = dev ? device_find(dev) : 0;
		t->dev = dev;
		t->device = n;
	}
	t->row = n ? n * BLOCK_OPS + (op < BLOCK_OTHER ? op : BLOCK_OTHER) : 0;
}

static __always_inline struct block_row *row_noted(struct block_times *t)
{
	u32 row = t->row;

	return row && row < BLOCK_ROWS ? shard_row(&block_row, BLOCK_ROWS, table_shape.block_mask, row) : 0;
}

static __always_inline struct block_times *times_at(u32 i)
{
	i %= BLOCK_REQUESTS;
	return bpf_map_lookup_elem(&block_request, &i);
}

static __always_inline u32 place_of(u64 rq)
{
	return (u32)(rq >> 6) * 0x9e3779b1U >> (32 - BLOCK_REQUEST_BITS);
}

/* Finds the times of a request that is not at its first place. */
static __noinline struct block_times *times_elsewhere(u64 rq)
{
	u32 i = place_of(rq);

	for (u32 n = 1; n < BLOCK_PLACES; n++) {
		struct block_times *t = times_at(i + n);

		if (t && t->rq == rq)
			return t;
	}
	return 0;
}

static __always_inline struct block_times *times_of(u64 rq)
{
	struct block_times *t = times_at(place_of(rq));

	return t && t->rq == rq ? t : times_elsewhere(rq);
}

/*
 * Finds a place for a request: a free one, or that of a request which is not in hand. The stores are plain, because
 * 5.10 has no atomics that return a value: of two requests that take one place at the same moment, one will be
 * unmatched.
 */
static __noinline struct block_times *times_claim(u64 rq, u64 now)
{
	u32 i = place_of(rq);

	for (u32 n = 0; n < BLOCK_PLACES; n++) {
		struct block_times *t = times_at(i + n);

		if (!t || t->t_issue || (t->t_insert && now - t->t_insert < BLOCK_STALE_NS))
			continue;
		t->rq = rq;
		t->t_insert = 0;
		return t;
	}
	count(EV_BLOCK_REQUEST_FULL);
	return 0;
}

static __always_inline struct block_times *times_make(u64 rq, u64 now)
{
	return times_of(rq) ?: times_claim(rq, now);
}

TP(block_rq_insert)
int PROGRAM(block_insert, struct request *rq)
{
	u64 now = bpf_ktime_get_ns();
	struct block_times *t = times_make(as_number(rq, IN_INSERT), now);

	if (t)
		t->t_insert = now;
}

TP(block_rq_issue)
int PROGRAM(block_issue, struct request *rq)
{
	u64 now = bpf_ktime_get_ns();
	struct block_times *t;
	struct block_row *b;

	if (!rq)
		return;
	t = times_make(as_number(rq, IN_ISSUE), now);
	if (!t)
		return;
	row_note(t, rq, READ(rq, cmd_flags));
	b = row_noted(t);
	t->t_issue = b ? now : 0;
	if (b && t->t_insert)
		time_hist_add(&b->queue, elapsed(t->t_insert, now));
	t->t_insert = 0;
}

/* The device was busy: the request goes back to its queue, and will be issued again. */
TP(block_rq_requeue)
int PROGRAM(block_requeue, struct request *rq)
{
	struct block_times *t = times_of(as_number(rq, IN_REQUEUE));

	if (t)
		t->t_issue = 0;
}

/*
 * Some bytes of a request are done, at its last completion all that remain. A flush has no bytes. A write that carries
 * a flush is completed once more, without bytes and without an issue, when its flushes are done.
 */
TP(block_rq_complete)
int PROGRAM(block_complete, struct request *rq, int error, u32 bytes)
{
	struct block_times *t;
	struct block_row *b;
	u32 flags, left;

	if (!rq)
		return;
	flags = READ(rq, cmd_flags);
	left = READ(rq, __data_len);
	t = times_of(as_number(rq, IN_COMPLETE));
	if (!t || !t->t_issue) {
		if (bytes || (flags & REQ_OP_MASK) == BLOCK_FLUSH)
			count(EV_BLOCK_UNMATCHED);
		return;
	}
	b = row_noted(t);
	if (b)
		add(&b->bytes, bytes);
	if (bytes < left)
		return;
	if (b) {
		time_hist_add(&b->device, elapsed(t->t_issue, bpf_ktime_get_ns()));
		if (flags & 1U << bpf_core_enum_value(enum req_flag_bits, __REQ_FUA))
			add(&b->fua, 1);
	}
	t->t_issue = 0;
}

#ifndef NFSCOPE_RAW
#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */
#define NFSD (u64)('n' | 'f' << 8 | 's' << 16 | 'd' << 24)

/*
 * I/O of nfsd's threads: the kernel accounts I/O to the thread that causes it. The program runs for each thread of the
 * host when user space reads, and at no event. It writes four words for each nfsd thread: its number, its start, bytes
 * that it caused to be read, and bytes that it has changed.
 */
SEC("iter/task")
int block_thread_io(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	u64 name = 0;

	if (!task || !(task->flags & PF_KTHREAD) || !bpf_core_field_exists(task->ioac.read_bytes))
		return 0;
	/* Five bytes compare the terminating zero, too. */
	if (bpf_probe_read_kernel(&name, 5, ADDRESS(task->comm)) || name != NFSD)
		return 0;
	u64 words[] = { task->pid, task->start_time, task->ioac.read_bytes, task->ioac.write_bytes };

	bpf_seq_write(ctx->meta->seq, words, sizeof(words));
	return 0;
}
#endif

char LICENSE[] SEC("license") = "GPL";
