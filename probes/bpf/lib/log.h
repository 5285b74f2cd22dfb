/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Log of any file system: how long threads wait for it, how long its own writes take, and how many bytes they have.
 *
 * The file that includes this header names its maps: LOG_MAP, LOG_EVENT_MAP and LOG_THREAD_MAP.
 *
 * A function that waits for a log may call another one that does. Only the outer one counts as a wait: an inner one is
 * recognised by the function that may call it. Any other function expects that no wait has begun. A wait that it finds
 * was left over when the kernel skipped an end: it counts as unmatched, and is removed.
 */
#ifndef NFSCOPE_LOG_H
#define NFSCOPE_LOG_H

#include "histogram.h"
#include "../log_row.h"
#include "tables.h"
#include "time_hist.h"

/*
 * Row of each file system, for all CPUs: a wait for a log takes some hundred microseconds, so that CPUs rarely meet
 * here. A row is allocated on demand; the loader clears that flag where the kernel has no allocator for tracing
 * programs (struct bpf_mem_alloc, 6.1).
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, struct log_row);
} LOG_MAP SEC(".maps");

TABLE(LOG_EVENT_MAP, LOG_EVENTS, enum log_event, u64);

/* State of a thread with regard to a log. */
struct log_thread {
	u64 t_wait; /* start of its wait; 0: it does not wait */
	u64 t_write; /* start of its write of the log; 0: it does not write */
	u32 dev; /* of the file system whose log it waits for */
	u32 in; /* the function in which it waits */
	u32 blocks; /* blocks that it has written */
	u32 unused;
};

#ifdef NFSCOPE_RAW
/* Plain hash: one that forgets the oldest entries (LRU) would reserve 128 of them for each CPU before 6.16. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, struct log_thread);
} LOG_THREAD_MAP SEC(".maps");

/* State of this thread; 0 if the thread never began a wait or write. */
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

/* Removes the state of this thread. */
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

/* State of this thread; 0 if the thread never began a wait or write. */
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
	/* Nothing to do: the state goes with its thread. */
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

/* Outer function of functions that no other function calls. */
#define ALONE (~0U)

/*
 * The thread begins to wait in function `in`, which function `outer` may call. `dev` 0: no request waits, and nothing
 * will be counted. Without memory for the state, the end counts as unmatched.
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

/* Duration of the write, at least 1; 0 if its beginning was not seen. */
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
