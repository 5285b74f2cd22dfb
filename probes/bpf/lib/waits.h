/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the operation in hand waits; wait_kind.h has the kinds.
 *
 * sched.bpf.c notes in the thread's record when it is switched out and in. nfsd.bpf.c folds that into the operation at
 * its end. An operation that was never switched out pays for one comparison. CPU time is not added up here: it is what
 * remains of the duration.
 *
 * The kernel's run delay (task_struct sched_info.run_delay) tells the wait for a CPU from the sleep before it. The
 * kernel updates it when the thread runs again. So a wait is split not when it ends but at the next occasion: the next
 * switch, or the operation's end. That spares a program at every wake-up in the system.
 */
#ifndef NFSCOPE_WAITS_H
#define NFSCOPE_WAITS_H

#include "request.h"

/* How long this task has waited for a CPU, as the kernel counts it; 0 where it does not: those waits count as sleep. */
static __always_inline u64 run_delay(struct task_struct *t)
{
	return bpf_core_field_exists(t->sched_info.run_delay) ? t->sched_info.run_delay : 0;
}

/* Splits the last wait, `delay` being the run delay now. */
static __always_inline void wait_split(struct request_record *r, u64 delay)
{
	u64 off = r->off_ns, queued = delay - r->run_delay;
	u32 kind = r->off_wait;

	/* Another clock (the runqueue's), and it began before. */
	if (queued > off)
		queued = off;
	r->wait_ns[RUNQUEUE] += queued;
	barrier_var(kind);
	if (kind < WAITS)
		r->wait_ns[kind] += off - queued;
	r->off_ns = 0;
}

/* The thread is about to leave its CPU. */
static __always_inline void switched_out(struct request_record *r, struct task_struct *t, u64 now)
{
	u64 delay = run_delay(t);

	if (r->off_ns)
		wait_split(r, delay);
	r->run_delay = delay;
	r->off_wait = r->log_depth ? LOG : BPF_CORE_READ_BITFIELD(t, in_iowait) ? DISK : LOCK;
	r->t_off = now;
	r->waited = 1;
}

/* It is about to run again. */
static __always_inline void switched_in(struct request_record *r, u64 now)
{
	r->off_ns = elapsed(r->t_off, now);
	r->t_off = 0;
}

/* What was waited for belongs to no operation. */
static __always_inline void waits_forget(struct request_record *r)
{
	r->off_ns = 0;
	r->t_off = 0;
	r->waited = 0;
	for (u32 i = 0; i < WAITS; i++)
		r->wait_ns[i] = 0;
}

/* The thread enters a function that waits for a log, or leaves it. Such functions may call each other. */
static __always_inline void log_enter(void)
{
	struct request_record *r = request_get();

	if (r)
		r->log_depth++;
}

static __always_inline void log_leave(void)
{
	struct request_record *r = request_get();

	if (r && r->log_depth)
		r->log_depth--;
}

#endif
