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

/*
 * Data is ready on a socket of a service. In softirq, or in the thread that held the socket's lock. UDP and RDMA do not
 * pass here or keep no sequence: their requests have no queue time.
 */
#ifdef NFSCOPE_RAW
SEC("kprobe/svc_data_ready")
int arrive(struct pt_regs *ctx)
{
	struct sock *sk = (void *)PT_REGS_PARM1(ctx);
	u64 xprt = (u64)BPF_CORE_READ(sk, sk_user_data);
	u32 end_seq = BPF_CORE_READ((struct tcp_sock *)sk, rcv_nxt);
#else
SEC("fentry/svc_data_ready")
int BPF_PROG(arrive, struct sock *sk)
{
	struct tcp_sock *tcp = bpf_skc_to_tcp_sock(sk);
	u64 xprt = (u64)sk->sk_user_data;
	u32 end_seq;

	if (!tcp)
		return 0;
	end_seq = tcp->rcv_nxt;
#endif
	struct arrivals *a;

	/* struct svc_sock, which sk_user_data is, begins with its svc_xprt. */
	if (!xprt)
		return 0;
	a = arrivals_of(xprt, (u64)sk);
	if (a && !arrival_note(a, end_seq, bpf_ktime_get_ns()))
		count(EV_ARRIVAL_MERGED);
	return 0;
}

/* A connection's memory may serve another one. */
TP(svc_xprt_free)
int BPF_PROG(xprt_free, struct svc_xprt *xprt)
{
	u64 key = (u64)xprt;

	bpf_map_delete_elem(&arrival, &key);
	return 0;
}

/* A thread takes a transport. A third of the time nothing is there to read, and the thread goes back to sleep. */
TP(svc_xprt_dequeue)
int BPF_PROG(take, struct svc_rqst *rqst)
{
	u64 now = bpf_ktime_get_ns();
	struct request_record *r = request_make(now);

	if (!r) {
		count(EV_RECORD_FAILED);
		return 0;
	}
	r->t_take = now;
	if (r->t_busy)
		busy_end(r, now);
	r->t_arrive = 0;
	r->rqst = (u64)rqst;
	r->stage = TAKEN;
	return 0;
}

/* Bytes of a record were read, all of it the last time; the transport is still this thread's alone. */
TP(svcsock_tcp_recv)
int BPF_PROG(receive, struct svc_xprt *xprt)
{
	struct request_record *r = request_get();
	u64 key = (u64)xprt;
	struct tcp_sock *tcp;
	struct arrivals *a;

	if (!r || r->stage != TAKEN)
		return 0;
	a = bpf_map_lookup_elem(&arrival, &key);
	if (!a)
		return 0;
	tcp = (void *)a->sk;
	r->t_arrive = arrival_match(a, load32(ADDRESS(tcp->copied_seq)));
	return 0;
}

/* Asking mountd (export, client, user): the thread may sleep for seconds before the call is known. It is taken. */
TP(cache_entry_upcall)
int BPF_PROG(upcall)
{
	struct request_record *r = request_get();
	struct svc_rqst *rqst;
	struct svc_pool *p;

	if (!r || r->stage != TAKEN)
		return 0;
	rqst = (void *)r->rqst;
	p = BPF_CORE_READ(rqst, rq_pool);
	r->pool = BPF_CORE_READ(p, sp_id);
	busy_begin(r, bpf_ktime_get_ns(), BPF_CORE_READ(p, sp_nrthreads),
		   bpf_core_field_exists(p->sp_nrthrmax) ? BPF_CORE_READ(p, sp_nrthrmax) : 0);
	return 0;
}

/* The call is read, authenticated, known and counted by the kernel; dispatch comes next. */
TP(svc_process)
int BPF_PROG(run, struct svc_rqst *rqst)
{
	struct request_record *r;
	struct svc_pool *p;
	u32 program, vers, proc;
	u64 now;

	if (!rqst)
		return 0;
	program = READ(rqst, rq_prog);
	if (program != NFS_PROGRAM && program != NFSACL_PROGRAM)
		return 0;
	now = bpf_ktime_get_ns();
	r = request_make(now);
	if (!r) {
		count(EV_RECORD_FAILED);
		return 0;
	}
	vers = READ(rqst, rq_vers);
	proc = READ(rqst, rq_proc);
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
		return 0;
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
	return 0;
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
int BPF_PROG(compound, struct svc_rqst *rqst)
{
	struct request_record *r = request_get();

	if (!r || r->stage != RUNNING)
		return 0;
	compound_args(r);
	r->t_op = bpf_ktime_get_ns();
	return 0;
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
int BPF_PROG(op_status, u32 asked, u32 done, u32 status, const char *name)
{
	struct request_record *r = request_get();
	struct version_row *v;
	u32 num, row;
	u64 now;

	if (!r || r->stage != RUNNING)
		return 0;
	now = bpf_ktime_get_ns();
	r->nops++;
#ifdef NFSCOPE_RAW
	struct op_name key = {};
	u32 *known;

	bpf_probe_read_kernel_str(&key, sizeof(key), name);
	known = bpf_map_lookup_elem(&op_number, &key);
	num = known ? *known : OP_ILLEGAL;
	row = ROW_V4;
#else
	struct nfsd4_op *o;

	/* An op out of order is answered without tp nfsd_compound. */
	if (!r->ops)
		compound_args(r);
	o = (void *)(r->ops + (u64)(done - 1) * bpf_core_type_size(struct nfsd4_op));
	num = load32(ADDRESS(o->opnum));
	row = ROW_V4 + (r->version - V4_0) * V4_OPS;
#endif
	op_done(row + (num < V4_ILLEGAL ? num : V4_ILLEGAL), elapsed(r->t_op, now), bpf_ntohl(status));
	r->t_op = now;
	if (num != OP_WRITE && !r->io_done)
		return 0;
	v = row_of(&version, r->version);
	if (!v)
		return 0;
#ifndef NFSCOPE_RAW
	if (num == OP_WRITE) {
		if (!status)
			io_add(r, load32(ADDRESS(o->u.write.wr_bytes_written)));
		write_asked(r, v, load32(ADDRESS(o->u.write.wr_stable_how)));
	}
#endif
	if (r->io_done)
		io_done(r, v, num == OP_WRITE);
	r->io_done = 0;
	return 0;
}

static __always_inline int io(u32 len)
{
	struct request_record *r = request_get();

	if (r && r->stage == RUNNING)
		io_add(r, len);
	return 0;
}

TP(nfsd_read_io_done)
int BPF_PROG(read_done, void *rqst, void *fh, u64 offset, u32 len)
{
	return io(len);
}

#ifdef NFSCOPE_RAW /* with BTF the WRITE's own result tells, for less */
TP(nfsd_write_io_done)
int BPF_PROG(write_done, void *rqst, void *fh, u64 offset, u32 len)
{
	return io(len);
}
#endif

/* The reply is encoded; sending it comes next. */
TP(svc_xdr_sendto)
int BPF_PROG(reply)
{
	struct request_record *r = request_get();

	if (r && r->stage == RUNNING)
		executed(r);
	return 0;
}

static __always_inline int request_end(int sent)
{
	struct request_record *r = request_get();
	u64 now;

	if (!r || (r->stage < RUNNING && !r->t_busy))
		return 0;
	if (r->stage == RUNNING)
		executed(r);
	now = bpf_ktime_get_ns();
	if (r->stage == REPLYING)
		leave(r, now, sent);
	busy_end(r, now);
	return 0;
}

/* The reply was handed to the transport, or failed to be (status < 0). */
TP(svc_send)
int BPF_PROG(send, struct svc_rqst *rqst, int status)
{
	return request_end(status);
}

static __always_inline bool is_nfs(struct svc_rqst *rqst)
{
	u32 program = READ(rqst, rq_prog);

	return program == NFS_PROGRAM || program == NFSACL_PROGRAM;
}

TP(svc_drop)
int BPF_PROG(drop, struct svc_rqst *rqst)
{
	if (rqst && is_nfs(rqst))
		count(EV_DROPPED);
	return request_end(0);
}

/* Put aside until mountd answers; the kernel then drops it, and serves it again as a new request. */
TP(svc_defer)
int BPF_PROG(defer, struct svc_rqst *rqst)
{
	if (rqst && is_nfs(rqst))
		count(EV_DEFERRED);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
