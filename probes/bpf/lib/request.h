/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The request that an RPC service thread has in hand.
 *
 * A thread serves one request at a time and does so itself from the socket's read to the reply's send, so the thread is
 * the key: a record a thread, to which hooks add. Nothing is allocated for a request.
 *
 * Records stand in one array, at the thread id modulo its size or one of the three places behind. nfsd's threads are
 * started one after the other, so nearly always the first place is right and finding the record costs some fifteen
 * instructions (task storage: 85, and it does not exist before 5.11). A place belongs to the thread whose id it holds,
 * and can be claimed once that thread has dequeued nothing for a minute.
 */
#ifndef NFSCOPE_REQUEST_H
#define NFSCOPE_REQUEST_H

#include "../wait_kind.h"

enum stage {
	IDLE,
	DEQUEUED, /* dequeued: reading, authenticating; or nothing was there to read */
	RUNNING, /* an NFS call that the kernel counted */
	REPLYING, /* executed, its reply under way */
};

struct request_record {
	u64 t_dequeue; /* dequeued by the thread */
	u64 t_arrive; /* last byte on the socket; 0: not seen */
	u64 t_run; /* dispatched */
	u64 t_first; /* NFSv4: start of the first component op */
	u64 t_op; /* NFSv4: end of the component op before */
	u64 t_reply; /* executed */
	u64 t_busy; /* counted busy since; 0: not counted */
	u64 ops; /* NFSv4: struct nfsd4_op[] of this COMPOUND; 0: not known */
	u64 rqst; /* struct svc_rqst */
	u64 xprt; /* struct svc_xprt, where `connection` is set */
	u64 argp; /* its arguments and its results */
	u64 resp;
	u64 client[2]; /* address, IPv4 as mapped into IPv6 */
	u64 t_off; /* switched out since; 0: on a CPU. This and what follows: lib/waits.h */
	u64 off_ns; /* the last wait, not yet split into sleep and runqueue */
	u64 run_delay; /* the kernel's count of waits for a CPU, when that wait began */
	u64 wait_ns[WAITS];
	u32 tid; /* owner */
	u32 received;
	u32 io_bytes;
	u32 status; /* of the last operation */
	u32 unused;
	u32 connection; /* its place, plus one; 0: not TCP */
	u32 row; /* NFSv3, NFSACL and NULL: row of the operation table */
	u16 pool;
	u16 nops;
	u8 stage;
	u8 version;
	u8 compound;
	u8 io_done; /* a READ or WRITE moved io_bytes since the last op */
	u8 stability; /* what the WRITE asked for */
	u8 off_wait; /* enum wait: what it sleeps for */
	u8 log_depth; /* functions entered that wait for a log */
	u8 waited; /* it was switched out since the operation began */
};

#define REQUESTS 8192
#define REQUEST_PLACES 4
#define REQUEST_STALE_NS 60000000000ULL

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, REQUESTS);
	__type(key, u32);
	__type(value, struct request_record);
} nfsd_request SEC(".maps");

static __always_inline struct request_record *request_at(u32 tid, u32 place)
{
	u32 i = (tid + place) % REQUESTS;

	return bpf_map_lookup_elem(&nfsd_request, &i);
}

/* Not at its first place. */
static __noinline struct request_record *request_elsewhere(u32 tid)
{
	for (u32 n = 1; n < REQUEST_PLACES; n++) {
		struct request_record *r = request_at(tid, n);

		if (r && r->tid == tid)
			return r;
	}
	return 0;
}

static __always_inline struct request_record *request_of(u32 tid)
{
	struct request_record *r = request_at(tid, 0);

	return r && r->tid == tid ? r : request_elsewhere(tid);
}

/* The record of this thread; 0 for a thread that never dequeued a request. */
static __always_inline struct request_record *request_get(void)
{
	return request_of(bpf_get_current_pid_tgid());
}

static __noinline struct request_record *request_claim(u32 tid, u64 now)
{
	struct request_record *r;

	for (u32 n = 0; n < REQUEST_PLACES; n++) {
		r = request_at(tid, n);
		if (!r || r->stage >= RUNNING || r->t_busy || (r->t_dequeue && now - r->t_dequeue < REQUEST_STALE_NS))
			continue;
#ifdef NFSCOPE_RAW /* no atomics that return a value: two threads that claim one place at once share one request's \
		      times */
		r->tid = tid;
#else
		u32 owner = r->tid;

		if (__sync_val_compare_and_swap(&r->tid, owner, tid) != owner)
			continue;
#endif
		r->stage = IDLE;
		/* What its thread did before belongs to nobody here. */
		r->t_run = now;
		return r;
	}
	return 0;
}

/* The record of this thread, made where it has none; 0 where there is no place. */
static __always_inline struct request_record *request_make(u64 now)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct request_record *r = request_of(tid);

	return r ?: request_claim(tid, now);
}

#endif
