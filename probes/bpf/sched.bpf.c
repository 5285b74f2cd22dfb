/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sched: where a thread that executes an NFS operation waits, as far as no log tells it.
 *
 * With the scheduler's books (lib/waits.h): when it waits for I/O. Cost: two programs each time that a task of the host
 * blocks for I/O, which end at its name where it is no nfsd thread (`lab bench --per-program`); nothing at a context
 * switch.
 *
 * Without them: when it leaves its CPU, and when it comes back. Cost: one program at every context switch of the host.
 * Of a task that is no nfsd thread it reads the first half of its name and ends.
 *
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
		if (r && r->t_off)
			switched_in(r, bpf_ktime_get_ns());
	}
}

char LICENSE[] SEC("license") = "GPL";
