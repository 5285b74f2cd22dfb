/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nfsd: every NFS request, from its arrival on the socket to its reply, and every operation in it.
 *
 * Cost: eight short programs a request and one more for each NFSv4 component op, READ or WRITE; no allocation, no event
 * to user space. `make bench` counts the instructions.
 *
 * Operations are counted where the kernel counts them (sunrpc: tp svc_process stands behind vs_count[]++; nfsd: tp
 * nfsd_compound_status stands beside nfsd4_increment_op_stats()). Both counts therefore agree exactly, with
 * duplicate-cache hits, garbage arguments and drops.
 */
#include "lib/kernel.h"
#include "nfsd/comes_again.h"
#include "lib/histogram.h"
#include "nfsd.h"
#include "lib/tables.h"
#include "lib/time_hist.h"
#include "lib/request.h"
#include "nfsd/connection.h"
#include "nfsd/nfsd_tables.h"
#include "nfsd/threads.h"
#include "lib/waits.h"
#include "lib/client_address.h"
#include "nfsd/client_accounting.h"
#include "nfsd/slow.h"
#include "nfsd/breakdown.h"
#include "nfsd/watched.h"
#include "nfsd/ops.h"
#include "nfsd/stages.h"
#ifndef NFSCOPE_BENCH
#include "nfsd/held.h"
#include "nfsd/transports.h"
#include "nfsd/pending.h"
#ifndef NFSCOPE_RAW
#include "nfsd/nfs4_state.h"
#include "nfsd/upcall.h"
#endif
#endif

static __always_inline struct connection *connection_with(u64 sk, u64 xprt)
{
	struct connection *c;

	if (!xprt)
		return 0;
	c = connection_of(xprt) ?: connection_make(xprt);
	/* The transport has the address of an earlier one, which was freed unseen. */
	if (c && c->sk != sk) {
		c->sk = sk;
		connection_clear(c);
	}
	return c;
}

static __always_inline void arrived(u64 sk, u64 xprt, u32 end_seq, u32 srtt_us, u32 min_rtt_us)
{
	struct connection *c = connection_with(sk, xprt);
	u64 now;

	if (!c)
		return;
	now = bpf_ktime_get_ns();
	c->ready = now;
	c->srtt_us = srtt_us;
	c->min_rtt_us = min_rtt_us;
	if (!arrival_note(&c->arrivals, end_seq, now))
		count(EV_ARRIVAL_MERGED);
}

/*
 * Data is ready on a socket of a service. The hook runs in softirq, or in the thread that held the socket's lock.
 * sk_user_data is the struct svc_sock, which begins with its svc_xprt. UDP and RDMA do not pass here or keep no
 * sequence: their requests have no queue time.
 */
#ifdef NFSCOPE_RAW
SEC("kprobe/svc_data_ready")
int nfsd_arrive(struct pt_regs *ctx)
{
	struct sock *sk = (void *)PT_REGS_PARM1(ctx);

	arrived((u64)sk, (u64)BPF_CORE_READ(sk, sk_user_data), BPF_CORE_READ((struct tcp_sock *)sk, rcv_nxt),
		BPF_CORE_READ((struct tcp_sock *)sk, srtt_us), BPF_CORE_READ((struct tcp_sock *)sk, rtt_min.s[0].v));
	return 0;
}
#else
/*
 * Only one of the next two programs is loaded (Program::others in program_table.rs). The second needs a proof by the
 * verifier that the socket is TCP's. The proof fails if BTF of sunrpc has types of its own in place of the kernel's
 * (Debian's 6.16 to 7.3 backports, DKMS modules). The first needs no proof; without bpf_rdonly_cast it costs three more
 * calls.
 */
#ifndef NFSCOPE_BENCH
TP(svcsock_data_ready)
int PROGRAM(nfsd_arrive_tp, struct svc_xprt *xprt)
{
	struct svc_sock *svsk;
	struct tcp_sock *tcp;

	if (!xprt || READ(xprt, xpt_class, xcl_ident) != 6 /* IPPROTO_TCP */)
		return;
	svsk = (void *)as_number((u64)xprt, IN_ARRIVE);
	tcp = (void *)load64(ADDRESS(svsk->sk_sk));
	arrived((u64)tcp, (u64)svsk, load32(ADDRESS(tcp->rcv_nxt)), load32(ADDRESS(tcp->srtt_us)),
		load32(ADDRESS(tcp->rtt_min.s[0].v)));
}
#endif

SEC("fentry/svc_data_ready")
int PROGRAM(nfsd_arrive, struct sock *sk)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	if (tcp)
		arrived((u64)sk, as_number((u64)sk->sk_user_data, IN_ARRIVE), tcp->rcv_nxt, tcp->srtt_us,
			tcp->rtt_min.s[0].v);
}
#endif

#if !defined(NFSCOPE_BENCH) && !defined(NFSCOPE_RAW)
/*
 * A thread has accepted a connection. Its first call may have come before that, without svc_data_ready: clients send it
 * at once. TCP's clock of the connection then says when the last segment came, because the server has sent nothing but
 * acknowledgements: that segment is the call itself, or one behind it.
 */
TP(svc_xprt_accept)
int PROGRAM(nfsd_accept, struct svc_xprt *xprt)
{
	struct request_record *r = request_get();
	struct svc_sock *svsk;
	struct connection *c;
	struct tcp_sock *tcp;
	u32 end_seq;

	if (!xprt)
		return;
	svsk = (void *)as_number((u64)xprt, IN_ACCEPT);
	if (!svsk || connection_accepted((void *)svsk, r ? r->t_dequeue : 0) != TRANSPORT_TCP)
		return;
	/* An arrival before the thread was told of this connection belongs to an earlier one at the same address, whose
	 * end was skipped. */
	c = connection_of((u64)svsk);
	if (c && r && c->ready < r->t_dequeue)
		connection_clear(c);
	tcp = (void *)load64(ADDRESS(svsk->sk_sk));
	end_seq = load32(ADDRESS(tcp->rcv_nxt));
	if (end_seq == load32(ADDRESS(tcp->copied_seq)))
		return;
	c = connection_with((u64)tcp, (u64)svsk);
	if (!c || c->arrivals.head)
		return;
	c->ready = load64(ADDRESS(tcp->tcp_mstamp)) * 1000;
	c->srtt_us = load32(ADDRESS(tcp->srtt_us));
	c->min_rtt_us = load32(ADDRESS(tcp->rtt_min.s[0].v));
	arrival_note(&c->arrivals, end_seq, c->ready);
}
#endif

/* A connection is freed: its memory may serve another one. */
TP(svc_xprt_free)
int PROGRAM(nfsd_xprt_free, struct svc_xprt *xprt)
{
	u64 key = as_number((u64)xprt, IN_XPRT_FREE);
	struct connection *c = connection_of(key);

	if (c)
		c->xprt = 0;
#if !defined(NFSCOPE_BENCH) && !defined(NFSCOPE_RAW)
	was_given_up(key);
#endif
}

/* A thread dequeues a transport. A third of the time nothing is there to read, and the thread goes back to sleep. */
TP(svc_xprt_dequeue)
int PROGRAM(nfsd_dequeue, struct svc_rqst *rqst)
{
	u64 now = bpf_ktime_get_ns();
	struct request_record *r = request_get();

	/* The name is compared, because threads of other services dequeue here, too. */
	if (!r && maybe_nfsd(current_task()))
		r = request_claim(bpf_get_current_pid_tgid(), now);
	if (!r)
		return;
	if (r->stage >= RUNNING || r->t_busy)
		end_late(r, now);
	r->t_dequeue = now;
	r->t_arrive = 0;
	r->connection = 0;
	r->received_upcall = 0;
	r->rqst = (u64)rqst;
	r->stage = DEQUEUED;
	if (!r->server && rqst)
		is_here(rqst, r);
}

/* Bytes of a record were read, at the last call all of it; the transport is still this thread's alone. */
TP(svcsock_tcp_recv)
int PROGRAM(nfsd_receive, struct svc_xprt *xprt)
{
	struct request_record *r = request_get();
	struct connection *c;
	struct tcp_sock *tcp;
	u64 at;

	if (!r || r->stage != DEQUEUED)
		return;
	at = as_number((u64)xprt, IN_RECEIVE);
	r->xprt = at;
	c = connection_of(at);
	if (!c)
		return;
	r->connection = c->place;
	tcp = (void *)c->sk;
	r->t_arrive = arrival_match(&c->arrivals, load32(ADDRESS(tcp->copied_seq)));
}

/* Marks a thread that asks a daemon as busy: it may sleep for seconds before the call is known. */
static __always_inline void asks(struct request_record *r)
{
	struct svc_rqst *rqst = (void *)r->rqst;
	struct svc_pool *p;

	if (r->stage != DEQUEUED)
		return;
	p = BPF_CORE_READ(rqst, rq_pool);
	r->pool = BPF_CORE_READ(p, sp_id);
	busy_begin(r, bpf_ktime_get_ns(), POOL_THREADS(BPF_CORE_READ, p),
		   bpf_core_field_exists(p->sp_nrthrmax) ? BPF_CORE_READ(p, sp_nrthrmax) : 0);
}

/* The record of an nfsd thread of the server that is measured. */
static __always_inline struct request_record *asking_thread(void)
{
	struct request_record *r = request_get();

	return r && r->server != SERVER_ELSEWHERE ? r : 0;
}

#ifdef NFSCOPE_BENCH
struct cache_detail;
#endif

TP(cache_entry_upcall)
int PROGRAM(nfsd_upcall, struct cache_detail *cache)
{
	struct request_record *r = asking_thread();

	if (!r)
		return;
#if !defined(NFSCOPE_RAW) && !defined(NFSCOPE_BENCH)
	if (cache)
		upcall_named(cache);
#endif
	asks(r);
}

#if !defined(NFSCOPE_RAW) && !defined(NFSCOPE_BENCH)
/* An nfsd thread waits in this function for nothing else, and other tasks seldom call it. */
SEC("fentry/wait_for_completion_interruptible_timeout")
int PROGRAM(nfsd_ask)
{
	struct request_record *r = maybe_nfsd(current_task()) ? asking_thread() : 0;

	if (!r || (r->stage != DEQUEUED && r->stage != RUNNING))
		return;
	asks(r);
	upcall_sleep(r, 0);
}

SEC("fexit/wait_for_completion_interruptible_timeout")
int PROGRAM(nfsd_answer)
{
	struct request_record *r = maybe_nfsd(current_task()) ? asking_thread() : 0;

	if (r)
		upcall_awake(r, 0);
}

/* Functions that ask nfsdcld: stable storage of the known clients, so that they can reclaim their state after a restart
 * (RFC 8881, 8.4.2.1).
 */
#define TRACKING(function, begin, end)                      \
	SEC("fentry/" #function) int PROGRAM(begin)         \
	{                                                   \
		struct request_record *r = asking_thread(); \
                                                            \
		if (r && r->stage == RUNNING)               \
			upcall_sleep(r, UPCALL_TRACKING);   \
	}                                                   \
	SEC("fexit/" #function) int PROGRAM(end)            \
	{                                                   \
		struct request_record *r = asking_thread(); \
                                                            \
		if (r)                                      \
			upcall_awake(r, UPCALL_TRACKING);   \
	}

TRACKING(nfsd4_client_record_create, nfsd_track, nfsd_tracked)
TRACKING(nfsd4_client_record_check, nfsd_lookup, nfsd_looked_up)
TRACKING(nfsd4_client_record_remove, nfsd_untrack, nfsd_untracked)

/* A SETATTR, REMOVE or RENAME gives clients a moment to return a delegation before the answer is NFS4ERR_DELAY:
 * NFSD_DELEGRETURN_TIMEOUT. */
SEC("fentry/nfsd_wait_for_delegreturn")
int PROGRAM(nfsd_recall)
{
	rare_enter(RECALL);
}

SEC("fexit/nfsd_wait_for_delegreturn")
int PROGRAM(nfsd_recalled)
{
	rare_leave(RECALL);
}
#endif

/* A thread ends; the kernel may give its number to another one at once. */
TP(sched_process_exit)
int PROGRAM(nfsd_exit, struct task_struct *t)
{
	struct request_record *r;
	u32 tid;

	if (!maybe_nfsd(t))
		return;
	tid = READ(t, pid);
	r = request_of(tid);
	if (!r)
		return;
	if (r->stage >= RUNNING || r->t_busy)
		end_late(r, bpf_ktime_get_ns());
	request_forget(r, tid);
}

/* The call is read, authenticated, known and counted by the kernel; dispatch comes next. */
TP(svc_process)
int PROGRAM(nfsd_run, struct svc_rqst *rqst)
{
	struct request_record *r;
	u64 now;

	if (!rqst || !is_nfs(rqst))
		return;
	now = bpf_ktime_get_ns();
	r = request_make(now);
	if (r)
		begin(r, rqst, now);
	else
		count(EV_RECORD_FAILED);
}

/* A COMPOUND is decoded, its minor version is served, its ops come next. */
TP(nfsd_compound)
int PROGRAM(nfsd_ops_begin, struct svc_rqst *rqst)
{
	struct request_record *r = request_get();
	u64 now = bpf_ktime_get_ns();

	if (!r)
		return;
	if (r->stage != RUNNING && rqst && is_here(rqst, r))
		begin_skipped(r, rqst, now); /* the program nfsd_run was skipped */
	if (r->stage != RUNNING)
		return;
#ifndef NFSCOPE_RAW
	compound_args(r, true);
#endif
	/* Decoding belongs to the COMPOUND, not to its first op. */
	waits_skip(r);
	r->t_first = now;
	r->t_op = now;
}

#ifdef NFSCOPE_RAW
/* Without BTF of nfsd the op's number is out of reach, but the tracepoint has its name. Filled by the loader. */
struct op_name {
	char name[32];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 128);
	__type(key, struct op_name);
	__type(value, u32);
} nfsd_op_number SEC(".maps");
#endif

/* A component op is executed and encoded. */
TP(nfsd_compound_status)
int PROGRAM(nfsd_op_end, u32 asked, u32 done, u32 status, const char *name)
{
	struct request_record *r = request_get();
	u64 now;

	if (!r || r->stage != RUNNING)
		return;
	now = bpf_ktime_get_ns();
#ifdef NFSCOPE_RAW
	struct op_name key = {};
	u32 *known;

	bpf_probe_read_kernel_str(&key, sizeof(key), name);
	known = bpf_map_lookup_elem(&nfsd_op_number, &key);
	if (r->io_bytes && known) {
		struct version_row *v = version_row(r->version);

		if (v)
			io_done(r, v, *known == OP_WRITE);
	}
	op_done(r, ROW_V4 + (known ? *known : V4_ILLEGAL), elapsed(r->t_op, now), bpf_ntohl(status));
	r->io_bytes = 0;
	r->nops++;
#else
	u64 ns = elapsed(r->t_op, now);

	/* The arguments may be unknown: an op out of order is answered without tp nfsd_compound. */
	if (!r->ops)
		compound_args(r, false);
	done--;
	if (done > r->nops && done < MOST_OPS) {
		ns /= done - r->nops + 1;
		ops_unseen(r, done, ns);
	}
	op_ended(r, done, ns, status);
	r->nops = done + 1;
#endif
	r->t_op = now;
}

static __always_inline void io(u32 len)
{
	struct request_record *r = request_get();

	if (r && r->stage == RUNNING)
		io_add(r, len);
}

TP(nfsd_read_io_done)
int PROGRAM(nfsd_read_done, void *rqst, void *fh, u64 offset, u32 len)
{
	io(len);
}

#ifdef NFSCOPE_RAW /* with BTF the WRITE's own result tells, for less */
TP(nfsd_write_io_done)
int PROGRAM(nfsd_write_done, void *rqst, void *fh, u64 offset, u32 len)
{
	io(len);
}
#endif

/* The reply is encoded; sending it comes next. Of the two tracepoints at this point, this one has the request. */
TP(svc_stats_latency)
int PROGRAM(nfsd_reply, struct svc_rqst *rqst)
{
	struct request_record *r = request_at_end(rqst);

	if (!r || !rqst)
		return;
	/* The record is of the request before: all programs from its sending to this one's beginning were skipped. */
	if (r->stage == REPLYING)
		end_late(r, bpf_ktime_get_ns());
	if (r->stage < RUNNING)
		begin_late(r, rqst);
#ifndef NFSCOPE_BENCH
	if (r->stage == DEQUEUED || READ(rqst, rq_res.len) < SHORTEST_RESULT)
		reply_without_result(r, rqst);
#endif
	if (r->stage == RUNNING)
		executed(r);
}

/* The reply was handed to the transport, or failed to be (status < 0). */
TP(svc_send)
int PROGRAM(nfsd_send, struct svc_rqst *rqst, int status)
{
	request_end(rqst, status);
}

TP(svc_drop)
int PROGRAM(nfsd_drop, struct svc_rqst *rqst)
{
	struct request_record *r = request_get();
	u32 length = rqst ? READ(rqst, rq_arg.len) : SHORTEST_CALL;

	/* The length is read here, while the verifier knows the pointer: after a comparison with a number the compiler
	 * would use the number. */
	barrier_var(length);
	if (rqst && is_nfs(rqst) && is_here(rqst, r))
		count(EV_DROPPED);
	/*
	 * Refuses a message that is too short for a call: the thread asked no daemon, and the kernel has not deferred
	 * it. Longer ones are dropped for other reasons, too.
	 */
	if (r && r->stage == DEQUEUED && !r->t_busy && r->rqst == (u64)rqst && length < SHORTEST_CALL)
		refused_for(r, rqst, REFUSED_FORMAT);
	request_end(rqst, 0);
}

/* The kernel defers the request until mountd answers: it drops it now, and serves it again as a new request. */
TP(svc_defer)
int PROGRAM(nfsd_defer, struct svc_rqst *rqst)
{
	struct request_record *r = request_get();

	if (rqst && is_nfs(rqst) && is_here(rqst, r))
		count(EV_DEFERRED);
	/* The drop that follows has nothing to do with the request's form. */
	if (r && r->stage == DEQUEUED)
		r->rqst = 0;
}

#ifndef NFSCOPE_RAW
/*
 * The thread looks for work: it has no request. The program is loaded only where programs can be skipped, so that no
 * request is left over.
 */
SEC("fentry/svc_recv")
int PROGRAM(nfsd_idle, struct svc_rqst *rqst)
{
	struct request_record *r = request_at_end(rqst);

	if (!r)
		return;
	/* All programs of the last call that this thread read were skipped: it never began here. */
	if (r->stage < RUNNING && (u64)rqst->rq_stime > r->t_run)
		begin_late(r, rqst);
	if (r->stage >= RUNNING || r->t_busy)
		end_late(r, bpf_ktime_get_ns());
	/* The transport that the thread dequeued held no call. If the next dequeue is skipped, this one must not stand
	 * for it. */
	r->stage = IDLE;
}
#endif

char LICENSE[] SEC("license") = "GPL";
