/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * jbd2: how long threads wait for the ext4 journal, and how long the journal takes to commit.
 *
 * Cost: two programs a wait, two a commit; nothing on operations that do not wait. ext4 with fast_commit writes its log
 * in the waiting thread and does not pass jbd2_log_wait_commit().
 */
#include "lib/kernel.h"
#include "lib/histogram.h"
#include "jbd2.h"
#include "lib/tables.h"

TABLE(journal_event, JOURNAL_EVENTS, enum journal_event, u64);

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 64);
	__type(key, u32);
	__type(value, struct journal_row);
} journal SEC(".maps");

/* Since when this thread waits; or, for a journal's own thread, since when it commits. */
#ifdef NFSCOPE_RAW
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u32);
	__type(value, u64);
} journal_since SEC(".maps");

static __always_inline u64 *since(void)
{
	u32 tid = bpf_get_current_pid_tgid();
	u64 zero = 0;

	bpf_map_update_elem(&journal_since, &tid, &zero, BPF_NOEXIST);
	return bpf_map_lookup_elem(&journal_since, &tid);
}
#else
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} journal_since SEC(".maps");

static __always_inline u64 *since(void)
{
	return bpf_task_storage_get(&journal_since, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}
#endif

static __always_inline void count(enum journal_event e)
{
	u64 *n = row_of(&journal_event, e);

	if (n)
		add(n, 1);
}

static const struct journal_row no_journal;

static __always_inline struct journal_row *journal_row_of(u32 dev)
{
	struct journal_row *j = bpf_map_lookup_elem(&journal, &dev);

	if (j)
		return j;
	bpf_map_update_elem(&journal, &dev, &no_journal, BPF_NOEXIST);
	j = bpf_map_lookup_elem(&journal, &dev);
	if (!j)
		count(EV_JOURNAL_FULL);
	return j;
}

static __always_inline void begin(void)
{
	u64 *t = since();

	if (t)
		*t = bpf_ktime_get_ns();
	else
		count(EV_JOURNAL_UNMATCHED);
}

static __always_inline u64 end(void)
{
	u64 *t = since(), from;

	if (!t || !*t) {
		count(EV_JOURNAL_UNMATCHED);
		return 0;
	}
	from = *t;
	*t = 0;
	/* 0 means no start; a clock that did not move still counts as one. */
	return elapsed(from, bpf_ktime_get_ns()) ?: 1;
}

#ifndef NFSCOPE_RAW /* a return probe on a function that sleeps loses returns: nothing stands in for fexit */
SEC("fentry/jbd2_log_wait_commit")
int PROGRAM(wait_begin)
{
	begin();
}

SEC("fexit/jbd2_log_wait_commit")
int PROGRAM(wait_end, struct journal_s *j)
{
	u64 ns = end();
	struct journal_row *row = ns ? journal_row_of(READ(j, j_fs_dev, bd_dev)) : 0;

	if (row)
		time_hist_add(&row->wait, ns);
}
#endif

TP(jbd2_start_commit)
int PROGRAM(commit_begin)
{
	begin();
}

/* The commit's last tracepoint but one, and the one that names the device. */
TP(jbd2_run_stats)
int PROGRAM(commit_end, u32 dev)
{
	u64 ns = end();
	struct journal_row *row = ns ? journal_row_of(dev) : 0;

	if (row)
		time_hist_add(&row->commit, ns);
}

char LICENSE[] SEC("license") = "GPL";
