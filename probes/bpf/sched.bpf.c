/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sched: waits of a thread that executes an NFS operation, except for those that a log probe sees.
 *
 * With the scheduler's books (lib/waits.h): waits for I/O. Cost: two programs each time that a task of the host blocks
 * for I/O, which end at its name if it is no nfsd thread (`lab bench --per-program`); nothing at a context switch. The
 * same two each time that a task is throttled, or reclaims memory, both of which take far longer.
 *
 * Without the books: when the thread leaves its CPU, and when it comes back. Cost: one program at every context switch
 * of the host. For a task that is no nfsd thread it reads the first half of the name and ends.
 */
#include "lib/kernel.h"
#include "lib/tables.h"
#include "lib/waits.h"

#ifndef NFSCOPE_RAW
SEC("fentry/io_schedule")
int PROGRAM(sched_io_begin)
{
	disk_enter();
}

SEC("fexit/io_schedule")
int PROGRAM(sched_io_end)
{
	disk_leave();
}

SEC("fentry/io_schedule_timeout")
int PROGRAM(sched_iot_begin)
{
	disk_enter();
}

SEC("fexit/io_schedule_timeout")
int PROGRAM(sched_iot_end)
{
	disk_leave();
}

/* Too many pages of the device, or of all devices, are dirty: a writer waits until some are stored. */
SEC("fentry/balance_dirty_pages")
int PROGRAM(sched_dirty)
{
	rare_enter(THROTTLE);
}

SEC("fexit/balance_dirty_pages")
int PROGRAM(sched_dirty_end)
{
	rare_leave(THROTTLE);
}

/* Only the thread's sleep in this function counts: the rest of reclaim is CPU time. */
TP(mm_vmscan_direct_reclaim_begin)
int PROGRAM(sched_reclaim)
{
	rare_enter(RECLAIM);
}

TP(mm_vmscan_direct_reclaim_end)
int PROGRAM(sched_reclaimed)
{
	rare_leave(RECLAIM);
}
#endif

TP(sched_switch)
int PROGRAM(sched_switched, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	struct request_record *r;

	if (maybe_nfsd(prev)) {
		r = request_of(prev->pid);
		if (r && r->stage == RUNNING)
			switched_out(r, prev, bpf_ktime_get_ns());
	}
	if (maybe_nfsd(next)) {
		r = request_of(next->pid);
		if (r && r->wait_from)
			switched_in(r, bpf_ktime_get_ns());
	}
}

char LICENSE[] SEC("license") = "GPL";
