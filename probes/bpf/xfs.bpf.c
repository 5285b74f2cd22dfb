/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * xfs: how long threads wait for the XFS log, how long its buffers (iclogs) take to be written, and how many bytes they
 * have. It also finds which of an NFS operation's waits are for the log (for a checkpoint to be durable, or for room),
 * and which are for a disk, because XFS does not wait for its metadata in io_schedule().
 *
 * Cost: two short programs a log force, two a written iclog; two a buffer of metadata that is read or written while a
 * thread waits for it, and two each time that a thread of the host sleeps for a semaphore. Nothing on operations that
 * do none of these.
 *
 * A log force without XFS_LOG_SYNC only starts the write: the kernel's own threads do that, and wait for nothing.
 */
#include "lib/kernel.h"
#define LOG_MAP xfs_log
#define LOG_EVENT_MAP xfs_event
#define LOG_THREAD_MAP xfs_thread
#include "lib/log.h"
#include "lib/waits.h"

#define XFS_LOG_SYNC 0x1 /* fs/xfs/xfs_log.h: the same on every kernel */
/* fs/xfs/xfs_buf.h: the same on every kernel. Set while the buffer is read or written, and not before or after. */
#define XBF_READ (1U << 0)
#define XBF_WRITE (1U << 1)

enum { FORCE };

/*
 * Iclogs that are being written; a log has eight at most. It is a plain hash: one that forgets the oldest entries (LRU)
 * would reserve 128 of them for each CPU before 6.16.
 */
struct iclog_write {
	u64 since;
	u32 dev;
	u32 unused;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 2048);
	__type(key, u64); /* struct xlog_in_core */
	__type(value, struct iclog_write);
} xfs_iclog SEC(".maps");

static __always_inline u32 device_of(struct xfs_mount *mp)
{
	return READ(mp, m_super, s_dev);
}

static __always_inline void begin(struct xfs_mount *mp, u32 flags)
{
	if (flags & XFS_LOG_SYNC)
		log_wait_begin(device_of(mp), FORCE, ALONE);
	log_enter();
}

static __always_inline void end(u32 flags)
{
	log_leave();
	if (flags & XFS_LOG_SYNC)
		log_wait_end(FORCE, ALONE);
}

SEC("fentry/xfs_log_force_seq")
int PROGRAM(xfs_seq_begin, struct xfs_mount *mp, s64 seq, u32 flags)
{
	begin(mp, flags);
}

SEC("fexit/xfs_log_force_seq")
int PROGRAM(xfs_seq_end, struct xfs_mount *mp, s64 seq, u32 flags)
{
	end(flags);
}

SEC("fentry/xfs_log_force")
int PROGRAM(xfs_force_begin, struct xfs_mount *mp, u32 flags)
{
	begin(mp, flags);
}

SEC("fexit/xfs_log_force")
int PROGRAM(xfs_force_end, struct xfs_mount *mp, u32 flags)
{
	end(flags);
}

SEC("fentry/xlog_grant_head_wait")
int PROGRAM(xfs_room_begin)
{
	log_enter();
}

SEC("fexit/xlog_grant_head_wait")
int PROGRAM(xfs_room_end)
{
	log_leave();
}

/* A thread waits for a buffer that it reads or writes itself: wait_for_completion() in xfs_buf_iowait(). */
TP(xfs_buf_iowait)
int PROGRAM(xfs_io_begin)
{
	disk_enter();
}

TP(xfs_buf_iowait_done)
int PROGRAM(xfs_io_end)
{
	disk_leave();
}

/*
 * True if a semaphore is the lock of a buffer that is being read or written: ahead of its use, or by another thread.
 * A thread that waits for the lock then waits for the disk. A thread that holds it otherwise has a transaction.
 */
static __always_inline bool is_under_io(u64 semaphore)
{
	u64 offset = __builtin_preserve_field_info(((struct xfs_buf *)0)->b_sema, BPF_FIELD_BYTE_OFFSET);
	struct xfs_buf *bp = (void *)(semaphore - offset);
	struct xfs_mount *mp = BPF_CORE_READ(bp, b_mount);

	/* A semaphore of something else has no such pointers around it. */
	if (!mp || BPF_CORE_READ(bp, b_target, bt_mount) != mp)
		return false;
	return BPF_CORE_READ(bp, b_flags) & (XBF_READ | XBF_WRITE);
}

/* Only threads that sleep call this function. All threads pass the tracepoints xfs_buf_lock and xfs_buf_lock_done. */
SEC("fentry/__down")
int PROGRAM(xfs_lock_begin)
{
	u64 semaphore;

	if (!maybe_nfsd(current_task()))
		return;
	/* Reads the argument as a number. */
	bpf_probe_read_kernel(&semaphore, sizeof(semaphore), ctx);
	if (is_under_io(semaphore))
		disk_enter();
}

SEC("fexit/__down")
int PROGRAM(xfs_lock_end)
{
	disk_leave();
}

SEC("fentry/xlog_write_iclog")
int PROGRAM(xfs_write_begin, struct xlog *log, struct xlog_in_core *iclog, u64 block, u32 bytes)
{
	struct xfs_mount *mp = READ(log, l_mp);
	struct iclog_write w = { .since = bpf_ktime_get_ns(), .dev = device_of(mp) };
	u64 key = (u64)iclog;

	bpf_map_update_elem(&xfs_iclog, &key, &w, BPF_ANY);
	log_written(w.dev, READ(log, l_targ, bt_dev) != READ(mp, m_ddev_targp, bt_dev), bytes);
}

/* The iclog is durable; threads that wait for it are about to be woken. */
SEC("fentry/xlog_state_done_syncing")
int PROGRAM(xfs_write_end, struct xlog_in_core *iclog)
{
	u64 key = (u64)iclog;
	struct iclog_write *w = bpf_map_lookup_elem(&xfs_iclog, &key);

	if (!w) {
		log_count(EV_LOG_UNMATCHED);
		return;
	}
	log_committed(w->dev, elapsed(w->since, bpf_ktime_get_ns()));
	bpf_map_delete_elem(&xfs_iclog, &key);
}

char LICENSE[] SEC("license") = "GPL";
