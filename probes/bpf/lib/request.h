/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Request that an RPC service thread has in hand.
 *
 * A thread serves one request at a time and does so itself from the socket's read to the reply's send, so the thread is
 * the key: a record a thread, to which hooks add. Nothing is allocated for a request.
 *
 * Records stand in one array, at the thread id modulo its size. nfsd's threads are started one after the other, so
 * that this place is nearly always right, and finding the record costs some fifteen instructions (task storage: 85,
 * and it does not exist before 5.11). If two batches of threads meet in a place, the second thread's record stands at
 * one of three places that its id is scattered to. If these are taken, too, it stands in a hash. A place belongs to
 * the thread whose id it holds until that thread ends. Because that end may not have been seen, another thread may
 * take the place, but not while its thread dequeues a request every minute. An entry of the hash stays until the end
 * is seen.
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

/* Servers: each network namespace can have one of its own. */
enum server { SERVER_UNKNOWN, SERVER_HERE, SERVER_ELSEWHERE };

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
	u64 argp; /* its arguments and its results */
	u64 resp;
	u64 client[2]; /* address, IPv4 as mapped into IPv6 */
	/*
	 * State of the current wait; for this and the next fields see lib/waits.h. With the scheduler's books: their
	 * account of time off CPUs, and the count of waits for a CPU, when the thread entered the function in which it
	 * waits. Without: the time when it was switched out, 0 on a CPU; and the last wait, not yet split into sleep
	 * and runqueue.
	 */
	u64 wait_from;
	u64 wait_last;
	u64 run_delay; /* the kernel's count of waits for a CPU, when that wait or the operation began */
	u64 wait_ns[WAITS];
	u64 books_off; /* the scheduler's account of its time off CPUs, when the operation began */
	u64 inside_ns; /* sleep in functions that wait for a known cause, since the operation began */
	union {
		struct {
			u32 read_bytes; /* that its READs returned */
			u32 write_bytes; /* that its WRITEs stored */
		};
		u64 moved; /* both, to compare and zero them at once */
	};
	u32 rare_wait[RARE_WAITS]; /* nanoseconds >> RARE_SHIFT */
	u32 switches; /* the kernel's count of times that it was given a CPU, when the operation began */
	u32 inside_switches;
	u32 tid; /* owner */
	u32 received;
	u32 io_bytes; /* that a READ or WRITE moved since the last op */
	u32 received_upcall; /* waited for daemons before the call was known: nanoseconds >> RARE_SHIFT */
	u32 xprt; /* the low half of its struct svc_xprt's address, where `connection` is set */
	u16 status; /* of the last operation */
	u16 connection; /* its place, plus one; 0: not TCP */
	u16 row; /* NFSv3, NFSACL and NULL: row of the operation table */
	u16 pool;
	u16 slots_used; /* slots of its session in use, by the client's word; its own slot if it says nothing */
	u16 slots_granted; /* slots that the server allows; 0: no SEQUENCE has succeeded */
	union {
		struct {
			u8 nops; /* NFSv4: component ops that have ended */
			u8 stable; /* WRITEs and COMMITs of which the client takes the answer for durable */
			u8 unwaited_writes; /* WRITEs among them that waited for no log and no disk */
			u8 unwaited_commits;
		};
		u32 counts; /* these four as one, to zero them at once */
	};
	u8 stage;
	u8 version;
	u8 compound; /* enum compound; 0: a procedure */
	u8 server; /* enum server, of its thread */
	u8 stability; /* stability that the WRITE asked for */
	u8 off_wait; /* enum wait: cause of its sleep */
	u8 log_depth; /* functions entered that wait for a log */
	u8 waited; /* it was switched out since the operation began */
	u8 books; /* its waits are read from the scheduler's books */
	u8 disk_depth; /* functions entered that wait for disks */
	u8 sharing; /* operations that end now share their time and their waits */
	u8 rare; /* enum wait: the rare wait that it is in; 0: none */
};

/* Records of neighbours in the array belong to threads that run at the same time. */
_Static_assert(sizeof(struct request_record) == 256, "records share no cache line");

#define RARE_SHIFT 10
/* All rare waits are compared at once in lib/waits.h. */
_Static_assert(RARE_WAITS == 4, "two words");

/*
 * Effects of the ops of a COMPOUND so far, besides framing. SEQUENCE, PUTFH and its kin, GETFH, GETATTR, RESTOREFH and
 * SAVEFH frame it.
 */
enum compound {
	COMPOUND = 1,
	WALKS = 2, /* LOOKUP, LOOKUPP, ACCESS, READLINK */
	OPENS = 4,
	DOES = 8, /* anything else */
};

#define REQUESTS 8192
#define REQUESTS_MORE 512
#define REQUEST_PLACES 4
#define REQUEST_STALE_NS 60000000000ULL

/* Array that user space maps: values of such arrays begin on a page. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, REQUESTS);
	__type(key, u32);
	__type(value, struct request_record);
} nfsd_request SEC(".maps");

/* Records by thread id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, REQUESTS_MORE);
	__type(key, u32);
	__type(value, struct request_record);
} nfsd_more SEC(".maps");

/* True for threads of all services that have this name; the record says if one has requests. */
static __always_inline bool maybe_nfsd(struct task_struct *t)
{
#ifdef NFSCOPE_RAW
	u32 comm = 0;

	bpf_probe_read_kernel(&comm, sizeof(comm), __builtin_preserve_access_index(&t->comm));
#else
	u32 comm = *(u32 *)t->comm;
#endif
	return comm == ('n' | 'f' << 8 | 's' << 16 | 'd' << 24);
}

static __always_inline struct request_record *request_at(u32 tid, u32 place)
{
	u32 i = (place ? tid * 0x9e3779b1U >> 5 * place : tid) % REQUESTS;

	return bpf_map_lookup_elem(&nfsd_request, &i);
}

/* Finds the record of a thread that is not at its first place. */
static __noinline struct request_record *request_elsewhere(u32 tid)
{
	for (u32 n = 1; n < REQUEST_PLACES; n++) {
		struct request_record *r = request_at(tid, n);

		if (r && r->tid == tid)
			return r;
	}
	return bpf_map_lookup_elem(&nfsd_more, &tid);
}

static __always_inline struct request_record *request_of(u32 tid)
{
	struct request_record *r = request_at(tid, 0);

	return r && r->tid == tid ? r : request_elsewhere(tid);
}

/* The record of this thread; 0 for a thread that never dequeued a request. */
static __always_inline struct request_record *request_get(void)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct request_record *r = request_at(tid, 0);

	if (r && r->tid == tid)
		return r;
	/* The name is compared first, because any thread of the host may wait for a log, or for mountd. */
	return maybe_nfsd(current_task()) ? request_elsewhere(tid) : 0;
}

static const struct request_record no_request;

static __noinline struct request_record *request_claim(u32 tid, u64 now)
{
	struct request_record *r;

	for (u32 n = 0; n < REQUEST_PLACES; n++) {
		r = request_at(tid, n);
		if (!r)
			continue;
		if (r->tid &&
		    (r->stage >= RUNNING || r->t_busy || (r->t_dequeue && now - r->t_dequeue < REQUEST_STALE_NS)))
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
		r->server = SERVER_UNKNOWN;
		/* Requests that the thread read before now were not seen, and are not counted. */
		r->t_run = now;
		return r;
	}
	bpf_map_update_elem(&nfsd_more, &tid, &no_request, BPF_NOEXIST);
	r = bpf_map_lookup_elem(&nfsd_more, &tid);
	if (r) {
		r->tid = tid;
		r->t_run = now;
	}
	return r;
}

/* The record of this thread, made if it has none; 0 without a free place. */
static __always_inline struct request_record *request_make(u64 now)
{
	u32 tid = bpf_get_current_pid_tgid();
	struct request_record *r = request_of(tid);

	return r ?: request_claim(tid, now);
}

/* Frees the record of a thread that has ended. */
static __always_inline void request_forget(struct request_record *r, u32 tid)
{
	if (bpf_map_delete_elem(&nfsd_more, &tid)) {
		r->stage = IDLE;
		r->t_dequeue = 0;
		r->tid = 0;
	}
}

#endif
