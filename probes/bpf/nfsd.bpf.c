/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * nfsd: every NFS request, from its arrival on the socket to its reply, and every operation in it.
 *
 * Cost: eight short programs a request and one more for each NFSv4 component op, READ or WRITE; no allocation, no event
 * to user space. `make bench` counts the instructions.
 *
 * Operations are counted where the kernel counts them (sunrpc: tp svc_process stands behind vs_count[]++; nfsd: tp
 * nfsd_compound_status stands beside nfsd4_increment_op_stats()), so that the two agree exactly, duplicate-cache hits,
 * garbage arguments and drops included.
 */
#include "lib/kernel.h"
#include "lib/histogram.h"
#include "nfsd.h"
#include "lib/tables.h"
#include "lib/request.h"
#include "lib/arrival.h"
#include "lib/nfsd_tables.h"
#include "lib/threads.h"
#include "lib/ops.h"

/* The request leaves: replied, or dropped. */
static __always_inline void leave(struct request_record *r, u64 now, int sent)
{
	struct version_row *v = row_of(&version, r->version);
	struct pool_row *p = row_of(&pool, r->pool);
	u64 from = r->t_arrive && r->t_arrive < r->t_take ? r->t_arrive : r->t_take;

	r->stage = IDLE;
	if (!v)
		return;
	if (!r->t_arrive)
		count(EV_ARRIVAL_UNKNOWN);
	else if (p)
		time_hist_add(&p->queue, r->t_take - from);
	else
		count(EV_POOL_OUTSIDE);
	time_hist_add(&v->residence, elapsed(from, now));
	add(&v->phase_ns[QUEUE], r->t_take - from);
	add(&v->phase_ns[RECEIVE], elapsed(r->t_take, r->t_run));
	add(&v->phase_ns[EXECUTE], elapsed(r->t_run, r->t_reply));
	add(&v->phase_ns[REPLY], elapsed(r->t_reply, now));
	add(&v->received_bytes, r->received);
	if (sent > 0)
		add(&v->sent_bytes, sent);
}

/* A request's end was skipped (EV_SKIPPED): it ended before now, and at the earliest when it had executed. */
static __noinline int end_late(struct request_record *r, u64 now)
{
	if (!r)
		return 0;
	if (r->stage == RUNNING)
		executed(r);
	if (r->stage == REPLYING) {
		leave(r, r->t_reply, 0);
		count(EV_SKIPPED);
	}
	busy_end(r, now);
	return 0;
}

static __always_inline void arrived(u64 sk, u64 xprt, u32 end_seq)
{
	struct arrivals *a = xprt ? arrivals_of(xprt, sk) : 0;

	if (a && !arrival_note(a, end_seq, bpf_ktime_get_ns()))
		count(EV_ARRIVAL_MERGED);
}

/*
 * Data is ready on a socket of a service. In softirq, or in the thread that held the socket's lock. sk_user_data is the
 * struct svc_sock, which begins with its svc_xprt. UDP and RDMA do not pass here or keep no sequence: their requests
 * have no queue time.
 */
#ifdef NFSCOPE_RAW
SEC("kprobe/svc_data_ready")
int arrive(struct pt_regs *ctx)
{
	struct sock *sk = (void *)PT_REGS_PARM1(ctx);

	arrived((u64)sk, (u64)BPF_CORE_READ(sk, sk_user_data), BPF_CORE_READ((struct tcp_sock *)sk, rcv_nxt));
	return 0;
}
#else
SEC("fentry/svc_data_ready")
int PROGRAM(arrive, struct sock *sk)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);

	if (tcp)
		arrived((u64)sk, (u64)sk->sk_user_data, tcp->rcv_nxt);
}
#endif

/* A connection's memory may serve another one. */
TP(svc_xprt_free)
int PROGRAM(xprt_free, struct svc_xprt *xprt)
{
	u64 key = (u64)xprt;

	bpf_map_delete_elem(&arrival, &key);
}

/* A thread takes a transport. A third of the time nothing is there to read, and the thread goes back to sleep. */
TP(svc_xprt_dequeue)
int PROGRAM(take, struct svc_rqst *rqst)
{
	u64 now = bpf_ktime_get_ns();
	struct request_record *r = request_make(now);

	if (!r) {
		count(EV_RECORD_FAILED);
		return;
	}
	if (r->stage >= RUNNING || r->t_busy)
		end_late(r, now);
	r->t_take = now;
	r->t_arrive = 0;
	r->rqst = (u64)rqst;
	r->stage = TAKEN;
}

/* Bytes of a record were read, all of it the last time; the transport is still this thread's alone. */
TP(svcsock_tcp_recv)
int PROGRAM(receive, struct svc_xprt *xprt)
{
	struct request_record *r = request_get();
	u64 key = (u64)xprt;
	struct tcp_sock *tcp;
	struct arrivals *a;

	if (!r || r->stage != TAKEN)
		return;
	a = bpf_map_lookup_elem(&arrival, &key);
	if (!a)
		return;
	tcp = (void *)a->sk;
	r->t_arrive = arrival_match(a, load32(ADDRESS(tcp->copied_seq)));
}

/* Asking mountd (export, client, user): the thread may sleep for seconds before the call is known. It is taken. */
TP(cache_entry_upcall)
int PROGRAM(upcall)
{
	struct request_record *r = request_get();
	struct svc_rqst *rqst;
	struct svc_pool *p;

	if (!r || r->stage != TAKEN)
		return;
	rqst = (void *)r->rqst;
	p = BPF_CORE_READ(rqst, rq_pool);
	r->pool = BPF_CORE_READ(p, sp_id);
	busy_begin(r, bpf_ktime_get_ns(), BPF_CORE_READ(p, sp_nrthreads),
		   bpf_core_field_exists(p->sp_nrthrmax) ? BPF_CORE_READ(p, sp_nrthrmax) : 0);
}

/* A call that the kernel counted begins to execute. */
static __always_inline void begin(struct request_record *r, struct svc_rqst *rqst, u64 now)
{
	u32 program = READ(rqst, rq_prog), vers = READ(rqst, rq_vers), proc = READ(rqst, rq_proc);
	struct svc_pool *p;

	/* Not only the end of the request before was skipped, but also that its thread took this one. */
	if (r->stage >= RUNNING)
		end_late(r, now);
	r->compound = 0;
	if (vers == 3 && program == NFS_PROGRAM && proc < V3_PROCS) {
		r->version = V3;
		r->row = ROW_V3 + proc;
	} else if (vers == 3 && program == NFSACL_PROGRAM && proc < ACL_PROCS) {
		r->version = V3;
		r->row = ROW_ACL + proc;
	} else if (vers == 4 && program == NFS_PROGRAM) {
		r->version = V4_NONE;
		r->row = ROW_V4_NULL;
		r->compound = proc == NFSPROC4_COMPOUND;
	} else {
		return;
	}
	r->t_run = now;
	if (r->stage != TAKEN) {
		r->t_take = now;
		r->t_arrive = 0;
	}
	r->stage = RUNNING;
	r->rqst = (u64)rqst;
	r->argp = (u64)READ(rqst, rq_argp);
	r->resp = (u64)READ(rqst, rq_resp);
	r->t_op = now;
	r->ops = 0;
	r->nops = 0;
	r->io_done = 0;
	r->received = READ(rqst, rq_arg.len);
	p = READ(rqst, rq_pool);
	r->pool = READ(p, sp_id);
	busy_begin(r, now, READ(p, sp_nrthreads), bpf_core_field_exists(p->sp_nrthrmax) ? READ(p, sp_nrthrmax) : 0);
}

static __always_inline bool is_nfs(struct svc_rqst *rqst)
{
	u32 program = READ(rqst, rq_prog);

	return program == NFS_PROGRAM || program == NFSACL_PROGRAM;
}

/* The call is read, authenticated, known and counted by the kernel; dispatch comes next. */
TP(svc_process)
int PROGRAM(run, struct svc_rqst *rqst)
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

/* A COMPOUND's arguments: its minor version and its ops, which are not inline above eight. */
static __always_inline void compound_args(struct request_record *r)
{
#ifndef NFSCOPE_RAW
	struct nfsd4_compoundargs *args = (void *)r->argp;
	u32 minor = load32(ADDRESS(args->minorversion));

	if (minor <= 2)
		r->version = V4_0 + minor;
	r->ops = load64(ADDRESS(args->ops));
#endif
}

/* A COMPOUND is decoded, its minor version is served, its ops come next. */
TP(nfsd_compound)
int PROGRAM(compound, struct svc_rqst *rqst)
{
	struct request_record *r = request_get();
	u64 now = bpf_ktime_get_ns();

	if (!r)
		return;
	if (r->stage != RUNNING && rqst)
		begin(r, rqst, now); /* run was skipped */
	compound_args(r);
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
} op_number SEC(".maps");
#endif

/* A component op is executed and encoded. */
TP(nfsd_compound_status)
int PROGRAM(op_status, u32 asked, u32 done, u32 status, const char *name)
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
	known = bpf_map_lookup_elem(&op_number, &key);
	op_done(ROW_V4 + (known ? *known : V4_ILLEGAL), elapsed(r->t_op, now), bpf_ntohl(status));
	if (r->io_done && known) {
		struct version_row *v = row_of(&version, r->version);

		if (v)
			io_done(r, v, *known == OP_WRITE);
		r->io_done = 0;
	}
	r->nops++;
#else
	u64 ns = elapsed(r->t_op, now);

	/* An op out of order is answered without tp nfsd_compound. */
	if (!r->ops)
		compound_args(r);
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
int PROGRAM(read_done, void *rqst, void *fh, u64 offset, u32 len)
{
	io(len);
}

#ifdef NFSCOPE_RAW /* with BTF the WRITE's own result tells, for less */
TP(nfsd_write_io_done)
int PROGRAM(write_done, void *rqst, void *fh, u64 offset, u32 len)
{
	io(len);
}
#endif

/*
 * Whether the kernel counted this call and executed it, by the reply that it is about to get (net/sunrpc/svc.c,
 * svc_process_common): refused calls carry an authentication status, or one of the accept statuses 1 to 3 (program,
 * version or procedure not there).
 */
static __always_inline bool was_run(struct svc_rqst *rqst)
{
#ifdef NFSCOPE_RAW
	return false;
#else
	u32 accepted;

	if (!bpf_core_field_exists(rqst->rq_accept_statp) || rqst->rq_auth_stat)
		return false;
	/* A call of another RPC version has no accept status: that of an earlier request, in its page, stands there. */
	if ((u64)rqst->rq_accept_statp - (u64)rqst->rq_res.head[0].iov_base >= 4096)
		return false;
	accepted = bpf_ntohl(load32(rqst->rq_accept_statp));
	return accepted == 0 || accepted > 3;
#endif
}

/* Begins late what was skipped: see EV_SKIPPED. */
static __always_inline void begin_late(struct request_record *r, struct svc_rqst *rqst)
{
#ifndef NFSCOPE_RAW
	if (!is_nfs(rqst) || !was_run(rqst))
		return;
	begin(r, rqst, rqst->rq_stime);
	if (r->compound)
		compound_args(r);
	count(EV_SKIPPED);
#endif
}

/* The reply is encoded; sending it comes next. Of the two tracepoints that stand here, the one that has the request. */
TP(svc_stats_latency)
int PROGRAM(reply, struct svc_rqst *rqst)
{
	struct request_record *r = request_get();

	if (!r || !rqst)
		return;
	if (r->stage < RUNNING)
		begin_late(r, rqst);
	if (r->stage == RUNNING)
		executed(r);
}

static __always_inline void request_end(struct svc_rqst *rqst, int sent)
{
	struct request_record *r = request_get();
	u64 now;

	if (!r || !rqst)
		return;
	if (r->stage < RUNNING && sent > 0)
		begin_late(r, rqst);
	if (r->stage < RUNNING && !r->t_busy)
		return;
	if (r->stage == RUNNING)
		executed(r);
	now = bpf_ktime_get_ns();
	if (r->stage == REPLYING)
		leave(r, now, sent);
	busy_end(r, now);
}

/* The reply was handed to the transport, or failed to be (status < 0). */
TP(svc_send)
int PROGRAM(send, struct svc_rqst *rqst, int status)
{
	request_end(rqst, status);
}

TP(svc_drop)
int PROGRAM(drop, struct svc_rqst *rqst)
{
	if (rqst && is_nfs(rqst))
		count(EV_DROPPED);
	request_end(rqst, 0);
}

/* Put aside until mountd answers; the kernel then drops it, and serves it again as a new request. */
TP(svc_defer)
int PROGRAM(defer, struct svc_rqst *rqst)
{
	if (rqst && is_nfs(rqst))
		count(EV_DEFERRED);
}

#ifndef NFSCOPE_RAW
/* The thread looks for work: it has no request. Loaded only where programs can be skipped, so that none is left over.
 */
SEC("fentry/svc_recv")
int PROGRAM(idle)
{
	struct request_record *r = request_get();

	if (r && (r->stage >= RUNNING || r->t_busy))
		end_late(r, bpf_ktime_get_ns());
}
#endif

char LICENSE[] SEC("license") = "GPL";
