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

#define NFS_PROGRAM 100003
#define NFSACL_PROGRAM 100227
#define NFSPROC4_COMPOUND 1
#define OP_WRITE 38
#define OP_ILLEGAL 10044
#define NFSPROC3_READ 6
#define NFSPROC3_WRITE 7
#define OP_READ 25
#define OP_READ_PLUS 68
#define OP_SEQUENCE 53
#define MOST_OPS 200 /* NFSD_MAX_OPS_PER_COMPOUND: 50 up to 6.12, 200 in 7.2 */

TABLE(op, OP_ROWS, enum op_row, struct time_hist);
TABLE(version, VERSIONS, enum version, struct version_row);
TABLE(pool, 8, u32, struct pool_row); /* the loader sets the number of rows */
TABLE(event, EVENTS, enum event, u64);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8);
	__type(key, u32);
	__type(value, struct pool_now);
} pool_now SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 2048);
	__type(key, struct error_key);
	__type(value, u64);
} op_error SEC(".maps");

static __always_inline void count(enum event e)
{
	u64 *n = row_of(&event, e);

	if (n)
		add(n, 1);
}

/* Threads: how many of a pool have a request in hand. */

static __always_inline void busy_begin(struct request_record *r, u64 now, u32 threads, u32 limit)
{
#ifndef NFSCOPE_RAW /* needs atomics that return a value: BPF v3, 5.12 */
	struct pool_now *p = row_of(&pool_now, r->pool);

	if (!p || r->t_busy)
		return;
	r->t_busy = now;
	/* Written only on a change: the line is shared by all CPUs. */
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
	p = row_of(&pool_now, r->pool);
	row = row_of(&pool, r->pool);
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

/* Operations. */

static __always_inline void op_done(u32 row, u64 ns, u32 status)
{
	struct time_hist *h = row_of(&op, row);
	struct error_key key = { .row = row, .status = status };
	u64 *n, one = 1;

	if (h)
		time_hist_add(h, ns);
	if (!status)
		return;
	n = bpf_map_lookup_elem(&op_error, &key);
	if (n)
		add(n, 1);
	else if (bpf_map_update_elem(&op_error, &key, &one, BPF_NOEXIST))
		count(EV_ERROR_FULL);
}

static __always_inline void io_add(struct request_record *r, u32 bytes)
{
	if (!bytes)
		return;
	/* READ_PLUS may read more than once. */
	r->io_bytes = r->io_done ? r->io_bytes + bytes : bytes;
	r->io_done = 1;
}

/* One READ or WRITE that moved bytes. */
static __always_inline void io_done(struct request_record *r, struct version_row *v, bool write)
{
	u64 b = size_bucket(r->io_bytes, SIZE_BUCKETS);

	if (b >= SIZE_BUCKETS)
		return;
	if (write) {
		add(&v->write_size[b], 1);
		add(&v->write_bytes, r->io_bytes);
	} else {
		add(&v->read_size[b], 1);
		add(&v->read_bytes, r->io_bytes);
	}
}

static __always_inline void write_asked(struct request_record *r, struct version_row *v, u32 how)
{
	if (how >= STABILITIES)
		return;
	add(&v->stable_writes[how], 1);
	if (r->io_done)
		add(&v->stable_bytes[how], r->io_bytes);
}

#ifndef NFSCOPE_RAW
/* Component op `i` of a COMPOUND took `ns` and ended with `status` (big-endian). */
static __always_inline void op_ended(struct request_record *r, u32 i, u64 ns, u32 status)
{
	struct nfsd4_op *o = (void *)(r->ops + (u64)i * bpf_core_type_size(struct nfsd4_op));
	u32 num = load32(ADDRESS(o->opnum));
	u32 row = ROW_V4 + (r->version - V4_0) * V4_OPS;
	struct version_row *v;

	op_done(row + (num < V4_ILLEGAL ? num : V4_ILLEGAL), ns, bpf_ntohl(status));
	if (num != OP_WRITE && num != OP_READ && num != OP_READ_PLUS)
		return;
	v = row_of(&version, r->version);
	if (!v)
		return;
	if (num == OP_WRITE) {
		if (!status)
			io_add(r, load32(ADDRESS(o->u.write.wr_bytes_written)));
		write_asked(r, v, load32(ADDRESS(o->u.write.wr_stable_how)));
	}
	if (r->io_done)
		io_done(r, v, num == OP_WRITE);
	r->io_done = 0;
}

struct unseen {
	struct request_record *r;
	u32 done;
	u64 share_ns;
};

static long op_unseen(u64 i, struct unseen *u)
{
	struct request_record *r = u->r;
	struct nfsd4_op *o;

	if (!r || r->nops >= u->done)
		return 1;
	o = (void *)(r->ops + (u64)r->nops * bpf_core_type_size(struct nfsd4_op));
	op_ended(r, r->nops, u->share_ns, load32(ADDRESS(o->status)));
	r->nops++;
	count(EV_SKIPPED);
	return 0;
}

/*
 * Ops up to `done` have executed and some of their ends were not seen: see EV_SKIPPED. They are counted now, and share
 * the time since the last end that was. A loop by helper (5.17), so that its body is verified once.
 */
static __always_inline void ops_unseen(struct request_record *r, u32 done, u64 share_ns)
{
	struct unseen u = { .r = r, .done = done, .share_ns = share_ns };

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop))
		bpf_loop(MOST_OPS, op_unseen, &u, 0);
}

/* The last ops' ends, where they were not seen. */
static __always_inline void ops_complete(struct request_record *r)
{
	struct nfsd4_compoundres *res = (void *)r->resp;
	struct nfsd4_op *o = (void *)r->ops;
	u32 done = load32(ADDRESS(res->opcnt));
	u64 now;

	if (done <= r->nops || done > MOST_OPS || !r->ops)
		return;
	/* A slot's replay executes nothing, though it has ops: it never comes to a file handle. */
	if (!r->nops && load32(ADDRESS(o->opnum)) == OP_SEQUENCE &&
	    !load32(ADDRESS(res->cstate.current_fh.fh_handle.fh_size)))
		return;
	now = bpf_ktime_get_ns();
	ops_unseen(r, done, elapsed(r->t_op, now) / (done - r->nops));
	r->t_op = now;
}
#endif

/* A COMPOUND as such has executed. */
static __always_inline void compound_executed(struct request_record *r)
{
	struct version_row *v = row_of(&version, r->version);
	u64 b = size_bucket(r->nops, COUNT_BUCKETS);

	if (!v)
		return;
	time_hist_add(&v->compound, elapsed(r->t_run, r->t_reply));
	if (b < COUNT_BUCKETS)
		add(&v->compound_ops[b], 1);
	add(&v->compound_ops_sum, r->nops);
}

/* An NFSv3 or NFSACL procedure has executed, or an NFSv4 NULL. */
static __always_inline void procedure_executed(struct request_record *r)
{
	struct version_row *v;
	u32 status = 0;

	/*
	 * Every result begins with its status (fs/nfsd/xdr3.h), which the kernel zeroes before it decodes; NULL's has
	 * no place for one.
	 */
	if (r->version == V3 && r->row != ROW_V3 && r->row != ROW_ACL)
		status = bpf_ntohl(load32((void *)r->resp));
	op_done(r->row, elapsed(r->t_run, r->t_reply), status);
	if (r->row != NFSPROC3_READ && r->row != NFSPROC3_WRITE)
		return;
	v = row_of(&version, V3);
	if (!v)
		return;
#ifndef NFSCOPE_RAW
	if (r->row == NFSPROC3_WRITE) {
		struct nfsd3_writeargs *args = (void *)r->argp;
		struct nfsd3_writeres *res = (void *)r->resp;

		/* Zero where the duplicate request cache answered. */
		if (!status)
			io_add(r, load64(ADDRESS(res->count)));
		write_asked(r, v, load32(ADDRESS(args->stable)));
	}
#endif
	if (r->io_done)
		io_done(r, v, r->row == NFSPROC3_WRITE);
}

/*
 * Executed: the reply is encoded, or there will be none. A COMPOUND's execution ends with its last op; encoding its
 * head belongs to the reply.
 */
static __always_inline void executed(struct request_record *r)
{
	r->stage = REPLYING;
	if (r->compound) {
#ifndef NFSCOPE_RAW
		ops_complete(r);
#endif
		r->t_reply = r->t_op;
		compound_executed(r);
	} else {
		r->t_reply = bpf_ktime_get_ns();
		procedure_executed(r);
	}
}

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
static __always_inline void end_late(struct request_record *r, u64 now)
{
	if (r->stage == RUNNING)
		executed(r);
	if (r->stage == REPLYING) {
		leave(r, r->t_reply, 0);
		count(EV_SKIPPED);
	}
	busy_end(r, now);
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
