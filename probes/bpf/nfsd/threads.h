/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads: how many of a pool have a request in hand, and since when no thread is free. */
#ifndef NFSCOPE_THREADS_H
#define NFSCOPE_THREADS_H

/*
 * Number of threads of a pool. `read` is READ where the verifier knows the pointer, else BPF_CORE_READ. The compiler
 * must compute no field's address before the branch, because without the field that is fatal. Nor may it make one load
 * of both.
 */
#define POOL_THREADS(read, pool)                                         \
	({                                                               \
		struct svc_pool *_p = pool;                              \
		struct svc_pool___atomic *_old = (void *)_p;             \
		u32 _n;                                                  \
		if (bpf_core_field_exists(_old->sp_nrthreads.counter)) { \
			barrier_var(_old);                               \
			_n = read(_old, sp_nrthreads.counter);           \
			barrier_var(_n);                                 \
		} else {                                                 \
			barrier_var(_p);                                 \
			_n = read(_p, sp_nrthreads);                     \
		}                                                        \
		_n;                                                      \
	})

static __always_inline void busy_begin(struct request_record *r, u64 now, u32 threads, u32 limit)
{
#ifndef NFSCOPE_RAW /* needs atomics that return a value: BPF v3, 5.12 */
	struct pool_now *p = row_of(&nfsd_pool_now, r->pool);

	if (!p || r->t_busy)
		return;
	r->t_busy = now;
	/* A store only on a change: all CPUs share the cache line. */
	if (p->threads != threads)
		p->threads = threads;
	if (p->limit != limit)
		p->limit = limit;
	if (__sync_fetch_and_add(&p->busy, 1) + 1 >= threads && !p->saturated_since)
		p->saturated_since = now;
#endif
}

static __always_inline void busy_end(struct request_record *r, u64 now)
{
#ifndef NFSCOPE_RAW
	struct pool_now *p;
	struct pool_row *row;
	u64 since;

	if (!r->t_busy)
		return;
	p = row_of(&nfsd_pool_now, r->pool);
	row = pool_row(r->pool);
	if (p && row) {
		__sync_fetch_and_add(&p->busy, -1);
		if (p->saturated_since) {
			since = __sync_lock_test_and_set(&p->saturated_since, 0);
			if (since)
				add(&p->saturated_ns, elapsed(since, now));
		}
		add(&row->busy_ns, elapsed(r->t_busy, now));
	}
	r->t_busy = 0;
#endif
}

#endif
