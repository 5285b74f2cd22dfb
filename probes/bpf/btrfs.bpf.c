/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * btrfs: how long threads wait for its tree log, or for a whole transaction where the log cannot serve, how long the
 * tree log takes to be written, and which of an NFS operation's waits are for these.
 *
 * Cost: two short programs a sync of the log, three more if it writes the log; nothing on operations that sync none.
 *
 * btrfs has no series of bytes: only a program at every block written could count them.
 */
#include "lib/kernel.h"
#define LOG_MAP btrfs_log
#define LOG_EVENT_MAP btrfs_event
#define LOG_THREAD_MAP btrfs_thread
#include "lib/log.h"
#include "lib/waits.h"

/* Functions in which threads wait; neither calls the other. */
enum { TREE_LOG, TRANSACTION };

/* The device by which mounts name the file system; the number in its s_dev belongs to no device. */
static __always_inline u32 device_of(struct btrfs_fs_info *fs)
{
	struct btrfs_fs_devices *all = READ(fs, fs_devices);
	struct btrfs_fs_devices___latest_bdev *old = (void *)all;

	if (bpf_core_field_exists(old->latest_bdev))
		return READ(old, latest_bdev, bd_dev);
	/* The compiler must not compute the field's address before the branch: without one, that is fatal. */
	barrier_var(all);
	struct btrfs_device *latest = READ(all, latest_dev);
	return READ(latest, bdev, bd_dev);
}

SEC("fentry/btrfs_sync_log")
int PROGRAM(btrfs_log_begin, struct btrfs_trans_handle *trans, struct btrfs_root *root)
{
	struct log_thread *t;

	log_wait_begin(device_of(READ(root, fs_info)), TREE_LOG, ALONE);
	log_enter();
	t = log_thread();
	if (t)
		t->t_write = 0;
}

SEC("fexit/btrfs_sync_log")
int PROGRAM(btrfs_log_end)
{
	log_leave();
	log_wait_end(TREE_LOG, ALONE);
}

/* Waits of the file system's own thread are not counted: it commits every 30 seconds, and no request waits for it. */
SEC("fentry/btrfs_commit_transaction")
int PROGRAM(btrfs_txn_begin, struct btrfs_trans_handle *trans)
{
	struct btrfs_fs_info *fs = READ(trans, fs_info);
	bool own = READ(fs, transaction_kthread, pid) == (u32)bpf_get_current_pid_tgid();

	log_wait_begin(own ? 0 : device_of(fs), TRANSACTION, ALONE);
	log_enter();
}

SEC("fexit/btrfs_commit_transaction")
int PROGRAM(btrfs_txn_end)
{
	log_leave();
	log_wait_end(TRANSACTION, ALONE);
}

/* State of a thread that writes the log which it syncs; 0 for a thread that writes something else. */
static __always_inline struct log_thread *writer(void)
{
	struct log_thread *t = log_thread();

	return t && t->t_wait && t->in == TREE_LOG ? t : 0;
}

/* Write of the log, by one of the threads that sync it together: its blocks, those of the tree of logs, ... */
SEC("fentry/btrfs_write_marked_extents")
int PROGRAM(btrfs_write)
{
	struct log_thread *t = writer();

	if (t && !t->t_write)
		t->t_write = bpf_ktime_get_ns();
}

/* ... and, when all these are durable, the superblocks that name it. */
SEC("fexit/write_all_supers")
int PROGRAM(btrfs_written)
{
	struct log_thread *t = writer();
	u64 ns;

	if (!t)
		return;
	ns = log_write_end();
	if (ns)
		log_committed(t->dev, ns);
}

char LICENSE[] SEC("license") = "GPL";
