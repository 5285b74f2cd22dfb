/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sched: when a thread that executes an NFS operation leaves its CPU, and when it comes back.
 *
 * Cost: one program at every context switch of the host. Of a task that is no nfsd thread it reads the first half of
 * its name and ends; `make bench` counts what such a switch costs.
 */
#include "lib/kernel.h"
#include "lib/tables.h"
#include "lib/waits.h"

/* "nfsd", as a number; whether such a task has requests, its record says. */
static __always_inline bool maybe_nfsd(struct task_struct *t)
{
	return *(u32 *)t->comm == ('n' | 'f' << 8 | 's' << 16 | 'd' << 24);
}

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
