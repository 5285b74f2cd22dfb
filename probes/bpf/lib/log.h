/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The log of a file system, whichever it is: how long threads wait for it, how long its own writes take, and how many
 * bytes they have.
 *
 * Who includes this names its maps: LOG_MAP, LOG_EVENT_MAP and LOG_THREAD_MAP.
 *
 * A function that waits for a log may call another one that does. Only the outer one is a wait: an inner one is
 * recognised by the function in which it can lie. All others find nothing begun; what they find is what the kernel left
 * over when it skipped an end, counts as unmatched, and goes.
 */
#ifndef NFSCOPE_LOG_H
#define NFSCOPE_LOG_H

#include "histogram.h"
#include "../log_row.h"
#include "tables.h"
#include "time_hist.h"

/*
 * Of all CPUs: a wait for a log takes some hundred microseconds, so that they do not meet here. A row is allocated on
 * demand; the loader clears that flag where the kernel has no allocator for tracing programs (struct
 * bpf_mem_alloc, 6.1).
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, struct log_row);
} LOG_MAP SEC(".maps");

TABLE(LOG_EVENT_MAP, LOG_EVENTS, enum log_event, u64);

/* What a thread is in the middle of. */
struct log_thread {
	u64 t_wait; /* waits since; 0: does not */
	u64 t_write; /* writes the log since; 0: does not */
	u32 dev; /* of the file system whose log it waits for */
	u32 in; /* the function in which it waits */
	u32 blocks; /* that it has written */
	u32 unused;
};

#ifdef NFSCOPE_RAW
/* Not one that forgets the oldest (LRU): before 6.16 each CPU would keep 128 of its entries to itself. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, struct log_thread);
} LOG_THREAD_MAP SEC(".maps");

/* 0 where this thread never began anything. */
static __always_inline struct log_thread *log_thread(void)
{
	u32 tid = bpf_get_current_pid_tgid();

	return bpf_map_lookup_elem(&LOG_THREAD_MAP, &tid);
}

static __always_inline struct log_thread *log_thread_make(void)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct log_thread none = {};

	bpf_map_update_elem(&LOG_THREAD_MAP, &tid, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&LOG_THREAD_MAP, &tid);
}

/* This thread is in the middle of nothing. */
static __always_inline void log_thread_idle(void)
{
	u32 tid = bpf_get_current_pid_tgid();

	bpf_map_delete_elem(&LOG_THREAD_MAP, &tid);
}
#else
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct log_thread);
} LOG_THREAD_MAP SEC(".maps");

/* 0 where this thread never began anything. */
static __always_inline struct log_thread *log_thread(void)
{
	return bpf_task_storage_get(&LOG_THREAD_MAP, bpf_get_current_task_btf(), 0, 0);
}

static __always_inline struct log_thread *log_thread_make(void)
{
	return bpf_task_storage_get(&LOG_THREAD_MAP, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

static __always_inline void log_thread_idle(void)
{
	/* The record goes with its thread. */
}
#endif

static __always_inline void log_count(enum log_event e)
{
	u64 *n = row_of(&LOG_EVENT_MAP, e);

	if (n)
		add(n, 1);
}

static const struct log_row no_log;

static __always_inline struct log_row *log_row_of(u32 dev)
{
	struct log_row *row = bpf_map_lookup_elem(&LOG_MAP, &dev);

	if (row)
		return row;
	bpf_map_update_elem(&LOG_MAP, &dev, &no_log, BPF_NOEXIST);
	row = bpf_map_lookup_elem(&LOG_MAP, &dev);
	if (!row)
		log_count(EV_LOG_FULL);
	return row;
}

static __always_inline void log_written(u32 dev, bool separate, u64 bytes)
{
	struct log_row *row = log_row_of(dev);

	if (row)
		add(separate ? &row->bytes[LOG_SEPARATE] : &row->bytes[LOG_MAIN], bytes);
}

static __always_inline void log_committed(u32 dev, u64 ns)
{
	struct log_row *row = log_row_of(dev);

	if (row)
		time_hist_add(&row->commit, ns);
}

/* What lies in no other function that waits. */
#define ALONE (~0U)

/*
 * The thread begins to wait in a function, which may lie in another one. `dev` 0: it waits for nobody, and nothing will
 * be counted. Where there is no memory for the record, the end counts as unmatched.
 */
static __always_inline void log_wait_begin(u32 dev, u32 in, u32 outer)
{
	struct log_thread *t = log_thread_make();

	if (!t || (t->t_wait && t->in == outer))
		return;
	if (t->t_wait)
		log_count(EV_LOG_UNMATCHED);
	t->dev = dev;
	t->in = in;
	t->t_wait = bpf_ktime_get_ns();
}

static __always_inline void log_wait_end(u32 in, u32 outer)
{
	struct log_thread *t = log_thread();
	struct log_row *row;

	if (t && t->t_wait && t->in == outer)
		return;
	if (!t || !t->t_wait || t->in != in) {
		log_count(EV_LOG_UNMATCHED);
		return;
	}
	row = t->dev ? log_row_of(t->dev) : 0;
	if (row)
		time_hist_add(&row->wait, elapsed(t->t_wait, bpf_ktime_get_ns()));
	t->t_wait = 0;
}

/* This thread begins to write the log itself. */
static __always_inline void log_write_begin(void)
{
	struct log_thread *t = log_thread_make();

	if (!t)
		return;
	if (t->t_write)
		log_count(EV_LOG_UNMATCHED);
	t->t_write = bpf_ktime_get_ns();
}

/* How long that took, at least 1; 0 where its beginning was not seen. */
static __always_inline u64 log_write_end(void)
{
	struct log_thread *t = log_thread();
	u64 from;

	if (!t || !t->t_write) {
		log_count(EV_LOG_UNMATCHED);
		return 0;
	}
	from = t->t_write;
	t->t_write = 0;
	log_thread_idle();
	return elapsed(from, bpf_ktime_get_ns()) ?: 1;
}

#endif
