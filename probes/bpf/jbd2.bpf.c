/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * jbd2: how long threads wait for the ext4 journal, how long the journal takes to commit, how much it writes, and which
 * of an NFS operation's waits are for it.
 *
 * Cost: two programs a wait, three a commit, two a sync; nothing on operations that do not wait.
 *
 * ext4 with fast_commit writes its log in the thread that waits, in ext4_fc_commit(), through which every sync goes.
 * Changes that cannot be written that way are left to a transaction, for which ext4_fc_commit() waits inside.
 */
#include "lib/kernel.h"
#define LOG_MAP jbd2_log
#define LOG_EVENT_MAP jbd2_event
#define LOG_THREAD_MAP jbd2_thread
#include "lib/log.h"
#include "lib/waits.h"

/* Functions in which threads wait. */
enum { TRANSACTION, FAST };

#ifndef NFSCOPE_RAW /* a return probe on a function that sleeps loses returns: nothing stands in for fexit */
static __always_inline u32 device_of(struct journal_s *j)
{
	return READ(j, j_fs_dev, bd_dev);
}

static __always_inline void journal_written(struct journal_s *j, u64 blocks)
{
	log_written(device_of(j), READ(j, j_dev, bd_dev) != device_of(j), blocks * READ(j, j_blocksize));
}

SEC("fentry/jbd2_log_wait_commit")
int PROGRAM(jbd2_wait_begin, struct journal_s *j)
{
	log_wait_begin(device_of(j), TRANSACTION, FAST);
	log_enter();
}

SEC("fexit/jbd2_log_wait_commit")
int PROGRAM(jbd2_wait_end)
{
	log_leave();
	log_wait_end(TRANSACTION, FAST);
}

SEC("fentry/ext4_fc_commit")
int PROGRAM(jbd2_fast_begin)
{
	struct log_thread *t = log_thread();

	log_enter();
	/* A wait that is left over: its end was skipped. Without fast_commit no later program would find it. */
	if (t && t->t_wait && t->in == FAST) {
		t->t_wait = 0;
		log_count(EV_LOG_UNMATCHED);
	}
}

SEC("fexit/ext4_fc_commit")
int PROGRAM(jbd2_fast_end, struct journal_s *j)
{
	struct log_thread *t = log_thread();

	log_leave();
	if (!t)
		return;
	if (t->t_wait && t->in == FAST)
		log_wait_end(FAST, ALONE);
	if (t->blocks) {
		journal_written(j, t->blocks);
		t->blocks = 0;
	}
}

/* A thread may make no new changes while a commit gathers those before it. */
SEC("fentry/wait_transaction_locked")
int PROGRAM(jbd2_lock_begin)
{
	log_enter();
}

SEC("fexit/wait_transaction_locked")
int PROGRAM(jbd2_lock_end)
{
	log_leave();
}

/* The journal is full, until a checkpoint has made room. */
SEC("fentry/__jbd2_log_wait_for_space")
int PROGRAM(jbd2_room_begin)
{
	log_enter();
}

SEC("fexit/__jbd2_log_wait_for_space")
int PROGRAM(jbd2_room_end)
{
	log_leave();
}

/*
 * Last tracepoint of a commit: it has the journal's head before and after. The difference counts every block of the
 * transaction; the statistics of jbd2_run_stats leave out blocks that revoke.
 */
TP(jbd2_end_commit)
int PROGRAM(jbd2_written, struct journal_s *j, struct transaction_s *t)
{
	u64 from, to;

	if (!j || !t)
		return;
	from = READ(t, t_log_start);
	to = READ(j, j_head);
	if (to < from)
		to += READ(j, j_last) - READ(j, j_first);
	journal_written(j, to - from);
}
#endif

TP(jbd2_start_commit)
int PROGRAM(jbd2_commit)
{
	log_write_begin();
}

/* Last tracepoint but one of a commit. It names the device without the layout of any structure. */
TP(jbd2_run_stats)
int PROGRAM(jbd2_committed, u32 dev)
{
	u64 ns = log_write_end();

	if (ns)
		log_committed(dev, ns);
}

#define EXT4_FAST_COMMIT 0x10 /* fs/ext4/ext4.h, EXT4_MOUNT2_JOURNAL_FAST_COMMIT: the same from 5.10 to 6.12 */

/*
 * True if the file system has fast_commit. Without it some kernels (RHEL 9.0, Ubuntu's 5.15) still pass the first of
 * these tracepoints, and not the second; later ones pass neither.
 */
static __always_inline bool has_fast_commit(struct super_block *sb)
{
	struct ext4_sb_info *ext4 = READ(sb, s_fs_info);

	if (!bpf_core_field_exists(ext4->s_mount_opt2))
		return true;
	/* The compiler must not compute the field's address before the branch: without one, that is fatal. */
	barrier_var(ext4);
	return load32(ADDRESS(ext4->s_mount_opt2)) & EXT4_FAST_COMMIT;
}

TP(ext4_fc_commit_start)
int PROGRAM(jbd2_fast_start, struct super_block *sb)
{
	if (!sb || !has_fast_commit(sb))
		return;
#ifndef NFSCOPE_RAW
	log_wait_begin(READ(sb, s_dev), FAST, ALONE);
#endif
	log_write_begin();
}

/* `status` 0: committed by this thread; else by another one, or left to a transaction. */
TP(ext4_fc_commit_stop)
int PROGRAM(jbd2_fast_stop, struct super_block *sb, int blocks, int status)
{
	struct log_thread *t;
	u64 ns;

	if (!sb || !has_fast_commit(sb))
		return;
	ns = log_write_end();
	if (!ns || status || blocks <= 0)
		return;
	log_committed(READ(sb, s_dev), ns);
	t = log_thread();
	if (t)
		t->blocks = blocks;
}

char LICENSE[] SEC("license") = "GPL";
