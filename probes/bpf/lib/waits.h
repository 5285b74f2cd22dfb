/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waits of the operation in hand; wait_kind.h has the kinds. CPU time is not added up here: it is the rest of the
 * duration.
 *
 * Waits come from the scheduler's books. A task's sum_exec_runtime is the time that it has run, and exec_start the
 * moment up to which that counts, by its run queue's clock. Both move together while it runs; their difference grows by
 * exactly the time that it does not run. Two readings of the difference give all waits in between. Two readings of the
 * run delay (task_struct sched_info.run_delay) give the part that was a wait for a CPU. An operation that was never
 * switched out pays for the reading at its beginning and for one comparison; a context switch of the host pays for
 * nothing. Sleep in a function that waits for a log, or for I/O (sched.bpf.c), is read in the same way when the thread
 * enters and leaves the function. So is sleep in functions that wait for something rarer (throttle, upcall, recall,
 * reclaim): if such functions call each other, the outer one counts. The rest of the sleep is LOCK.
 *
 * Run queues' clocks agree as far as the CPUs' do (sched_clock()). Where the kernel accounts for interrupts and stolen
 * time apart, they count as waits in operations that waited, and as CPU time in others.
 *
 * Without the books (the kernel allows no fexit, or hides its run queues) sched.bpf.c notes in the thread's record when
 * it is switched out and in. nfsd.bpf.c folds that into the operation at its end. The kernel updates the run delay when
 * the thread runs again. A wait is therefore not split into sleep and wait for a CPU when it ends, but at the next
 * switch, or at the operation's end. That spares a program at every wake-up in the system.
 */
#ifndef NFSCOPE_WAITS_H
#define NFSCOPE_WAITS_H

#include "request.h"

/* Time for which this task has waited for a CPU, as the kernel counts it; 0 where it does not: those waits count as
 * sleep. */
static __always_inline u64 run_delay(struct task_struct *t)
{
	return bpf_core_field_exists(t->sched_info.run_delay) ? READ(t, sched_info.run_delay) : 0;
}

/* Adds to a wait. The part below the unit of a rare wait is added to LOCK. */
static __always_inline void wait_add(struct request_record *r, u32 kind, u64 ns)
{
	u32 rare = kind - WAITS;

	barrier_var(kind);
	if (kind < WAITS) {
		r->wait_ns[kind] += ns;
		return;
	}
	barrier_var(rare);
	if (rare < RARE_WAITS) {
		u64 all = r->rare_wait[rare] + (ns >> RARE_SHIFT);
		/* The counter of a rare wait holds about an hour; the rest is added to LOCK. */
		u32 fits = all > ~0U ? ~0U : all;

		ns -= (u64)(fits - r->rare_wait[rare]) << RARE_SHIFT;
		r->rare_wait[rare] = fits;
	}
	r->wait_ns[LOCK] += ns;
}

static __always_inline bool rare_waited(struct request_record *r)
{
	return ((u64 *)r->rare_wait)[0] | ((u64 *)r->rare_wait)[1];
}

/* Splits the last wait, `delay` being the run delay now. */
static __always_inline void wait_split(struct request_record *r, u64 delay)
{
	u64 off = r->wait_last, queued = delay - r->run_delay;
	u32 kind = r->off_wait;

	/* The run delay has another clock (the run queue's), and began before. */
	if (queued > off)
		queued = off;
	r->wait_ns[RUNQUEUE] += queued;
	wait_add(r, kind, off - queued);
	r->wait_last = 0;
}

/* The thread is about to leave its CPU. */
static __always_inline void switched_out(struct request_record *r, struct task_struct *t, u64 now)
{
	u64 delay = run_delay(t);

	if (r->wait_last)
		wait_split(r, delay);
	r->run_delay = delay;
	if (r->rare)
		r->off_wait = r->rare;
	else
		r->off_wait = r->log_depth ? LOG : r->disk_depth || BPF_CORE_READ_BITFIELD(t, in_iowait) ? DISK : LOCK;
	r->wait_from = now;
	r->waited = 1;
}

/* The thread is about to run again. */
static __always_inline void switched_in(struct request_record *r, u64 now)
{
	r->wait_last = elapsed(r->wait_from, now);
	r->wait_from = 0;
}

/* Number of times that the kernel has given the task a CPU. */
static __always_inline u32 switches(struct task_struct *t)
{
	return READ(t, sched_info.pcount);
}

/* Time that the clock of the books leaves out: interrupts and hypervisors, on the CPU that the task is on. */
static __always_inline u64 books_apart(struct task_struct *t)
{
	struct rq *rq = 0;
	u64 clock, apart = 0;

	if (!bpf_core_field_exists(rq->prev_irq_time) && !bpf_core_field_exists(rq->prev_steal_time_rq))
		return 0;
	if (!bpf_core_field_exists(t->se.cfs_rq))
		return 0;
#ifdef NFSCOPE_RAW
	rq = BPF_CORE_READ(t, se.cfs_rq, rq);
#else
	rq = t->se.cfs_rq->rq;
#endif
	for (u32 i = 0; i < 2; i++) {
		clock = READ(rq, clock);
		barrier();
		apart = clock - READ(rq, clock_task);
		barrier();
		if (clock == READ(rq, clock))
			break;
	}
	return apart;
}

/* Time for which this task, which runs, has not run, plus a constant. */
static __always_inline u64 books_off(struct task_struct *t)
{
	u64 since, off = 0;

	/* A tick in between may bring the books up to date: then read again. */
	for (u32 i = 0; i < 2; i++) {
		since = READ(t, se.exec_start);
		barrier();
		off = since - READ(t, se.sum_exec_runtime);
		barrier();
		if (since == READ(t, se.exec_start))
			break;
	}
	return off + books_apart(t);
}

/* Sleep between two readings of the books, and wait for a CPU. */
struct books_wait {
	u64 slept;
	u64 queued;
};

static __always_inline struct books_wait books_between(u64 off, u64 off_now, u64 delay, u64 delay_now)
{
	struct books_wait w = { .slept = elapsed(off, off_now), .queued = delay_now - delay };

	/* The kernel counts the run delay by other readings of the same clock. */
	if (w.queued > w.slept)
		w.queued = w.slept;
	w.slept -= w.queued;
	return w;
}

/* The thread enters a function that waits for a known cause. */
static __always_inline void inside_begin(struct request_record *r, struct task_struct *t)
{
	r->inside_switches = switches(t);
	/* The order matters: a thread that is preempted in between (a preemptible kernel) has waited for a CPU, and not
	 * slept. */
	r->wait_last = run_delay(t);
	barrier();
	r->wait_from = books_off(t);
}

/* The thread leaves that function. */
POINTERS_VERIFIED_ONCE int inside_end(struct request_record *r, u32 kind)
{
	struct task_struct *t = current_task();
	struct books_wait w;

	if (!r || r->inside_switches == switches(t))
		return 0;
	w = books_between(r->wait_from, books_off(t), r->wait_last, run_delay(t));
	wait_add(r, kind, w.slept);
	r->inside_ns += w.slept;
	r->waited = 1;
	return 0;
}

/* Makes the books count for the operation that begins, or for the next one. */
static __always_inline void books_open(struct request_record *r, struct task_struct *t)
{
	r->switches = switches(t);
	r->books_off = books_off(t);
	r->run_delay = run_delay(t);
	r->inside_ns = 0;
	/* Depths are left over from a skipped end. */
	r->log_depth = 0;
	r->disk_depth = 0;
	r->rare = 0;
}

/* Adds up the waits of an operation that was switched out. */
POINTERS_VERIFIED_ONCE int books_fold(struct request_record *r)
{
	struct task_struct *t = current_task();
	struct books_wait w;

	if (!r)
		return 0;
	/* The end of a function that the thread entered was skipped. */
	if (r->rare || r->log_depth || r->disk_depth)
		inside_end(r, r->rare ?: r->log_depth ? LOG : DISK);
	w = books_between(r->books_off, books_off(t), r->run_delay, run_delay(t));
	r->wait_ns[RUNQUEUE] += w.queued;
	r->wait_ns[LOCK] += elapsed(r->inside_ns, w.slept);
	r->waited = 1;
	books_open(r, t);
	return 0;
}

/* Drops waits that belong to no operation. */
static __always_inline void waits_forget(struct request_record *r)
{
	r->wait_last = 0;
	r->wait_from = 0;
	r->waited = 0;
	for (u32 i = 0; i < WAITS; i++)
		r->wait_ns[i] = 0;
	if (!rare_waited(r))
		return;
	for (u32 i = 0; i < RARE_WAITS; i++)
		r->rare_wait[i] = 0;
}

/* Begins the waits of an operation. */
static __always_inline void waits_begin(struct request_record *r)
{
	if (r->waited)
		waits_forget(r);
	r->log_depth = 0;
	r->disk_depth = 0;
	r->rare = 0;
	r->books = table_shape.books != 0;
	if (table_shape.books)
		books_open(r, current_task());
}

/* Drops waits since the last operation: that time belongs to no operation. */
static __always_inline void waits_skip(struct request_record *r)
{
	struct task_struct *t;

	if (r->waited)
		waits_forget(r);
	if (!table_shape.books)
		return;
	t = current_task();
	if (r->switches != switches(t))
		books_open(r, t);
}

/* Ends the waits of an operation: all of them are in the record then. */
static __always_inline void waits_end(struct request_record *r)
{
	if (table_shape.books) {
		if (r->switches != switches(current_task()))
			books_fold(r);
		r->rare = 0;
	} else if (r->waited && r->wait_last) {
		wait_split(r, run_delay(current_task()));
	}
}

/*
 * Ends the rare wait that the thread is in, because the next wait is of another kind: its end was skipped, or the
 * thread waits inside for a known cause. Only RECLAIM may write to a log or to a disk, and a throttled thread sleeps as
 * if for a disk.
 */
static __always_inline void rare_interrupted(struct request_record *r)
{
	if (table_shape.books && r->books)
		inside_end(r, r->rare);
	r->rare = 0;
}

/* The thread enters a function that waits for a log, or leaves it. Such functions may call each other. */
static __always_inline void log_enter(void)
{
	struct request_record *r = request_get();

	if (!r)
		return;
	if (r->rare && r->rare != RECLAIM)
		rare_interrupted(r);
	if (table_shape.books && r->books && !r->log_depth && !r->rare) {
		/* The end of a wait for a disk was skipped, or comes later: from here on it is a wait for the log. */
		if (r->disk_depth)
			inside_end(r, DISK);
		inside_begin(r, current_task());
	}
	if (!r->rare)
		r->disk_depth = 0;
	r->log_depth++;
}

static __always_inline void log_leave(void)
{
	struct request_record *r = request_get();

	if (!r || !r->log_depth)
		return;
	r->log_depth--;
	if (r->log_depth)
		return;
	if (r->rare)
		return;
	r->disk_depth = 0;
	if (table_shape.books && r->books)
		inside_end(r, LOG);
}

/* The thread enters a function that waits for disks, or leaves it. A function that waits for a log may wait for a disk
 * inside. */
static __always_inline void disk_enter(void)
{
	struct request_record *r;

	if (!maybe_nfsd(current_task()))
		return;
	r = request_get();
	if (!r || r->stage != RUNNING)
		return;
	if (r->rare == UPCALL || r->rare == RECALL)
		rare_interrupted(r);
	if (table_shape.books && r->books && !r->log_depth && !r->disk_depth && !r->rare)
		inside_begin(r, current_task());
	r->disk_depth++;
}

static __always_inline void disk_leave(void)
{
	struct request_record *r;

	if (!maybe_nfsd(current_task()))
		return;
	r = request_get();
	if (!r || !r->disk_depth)
		return;
	r->disk_depth--;
	if (table_shape.books && r->books && !r->log_depth && !r->disk_depth && !r->rare)
		inside_end(r, DISK);
}

/*
 * The thread enters a function that waits for something rare, or leaves it. Any task of the host may call such a
 * function. The outer one counts: memory may be reclaimed by writing to a log.
 */
static __always_inline void rare_enter(enum wait kind)
{
	struct request_record *r;

	if (!maybe_nfsd(current_task()))
		return;
	r = request_get();
	if (!r || r->stage != RUNNING || r->rare || r->log_depth)
		return;
	if (table_shape.books && r->books) {
		if (r->disk_depth)
			inside_end(r, DISK);
		inside_begin(r, current_task());
	}
	r->disk_depth = 0;
	r->rare = kind;
}

static __always_inline void rare_leave(enum wait kind)
{
	struct request_record *r;

	if (!maybe_nfsd(current_task()))
		return;
	r = request_get();
	if (!r || r->rare != kind)
		return;
	r->rare = 0;
	/* A wait that began inside is over: its end was skipped. */
	r->log_depth = 0;
	r->disk_depth = 0;
	if (table_shape.books && r->books)
		inside_end(r, kind);
}

#endif
