/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Drives the nfsd probe without an NFS server: this program plays the kernel. It makes requests of stand-ins (types.h)
 * and runs the probe's own programs on them, in the order in which the kernel does, in the thread that starts it.
 * `cargo run --release -p nfscope-probes --example native` measures their native cost, locked instructions and shared
 * cache lines included.
 *
 * The kernel's entry into each program is not part of it. Requests do not wait: waits are only begun and ended.
 */
#define NFSCOPE_BENCH
#include "../bpf/nfsd.bpf.c"

enum what { NOTHING, WRITE_V3, WRITE_V42 };

#define IDLE_BIT 0x100 /* the same steps without effect */

#define MOST_REQUESTS 200 /* in one run: the verifier looks at each */

struct drive {
	u32 what; /* enum what, with or without IDLE_BIT */
	u32 thread; /* 0 to THREADS - 1: its stand-ins are used */
	u32 requests; /* MOST_REQUESTS at most */
	u32 unused;
};

#define THREADS 64
#define REQUEST_BYTES 4232
#define TWO_LINES 128

struct stand_in {
	struct svc_rqst rqst;
	struct svc_xprt xprt;
	struct tcp_sock tcp;
	struct nfsd3_writeargs args3;
	struct nfsd3_writeres res3;
	struct nfsd4_compoundargs args4;
	struct nfsd4_compoundres res4;
} __attribute__((aligned(TWO_LINES)));

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, THREADS);
	__type(key, u32);
	__type(value, struct stand_in);
} nfsd_stand_in SEC(".maps");

/* Pool of all threads, as in the default pool mode. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct svc_pool);
} nfsd_pool_in SEC(".maps");

static __always_inline void prepare(struct stand_in *s, struct svc_pool *pool, u32 thread)
{
	struct svc_rqst *rqst = &s->rqst;

	pool->sp_nrthreads = THREADS;
	rqst->rq_pool = pool;
	rqst->rq_xprt = &s->xprt;
	rqst->rq_prot = 6;
	rqst->rq_prog = NFS_PROGRAM;
	rqst->rq_arg.len = REQUEST_BYTES;
	rqst->rq_addr.ss_family = AF_INET;
	rqst->rq_addr.__data[2] = 10;
	rqst->rq_addr.__data[5] = thread + 1;
	s->args3.fh.fh_handle.fh_size = 28;
	s->args3.fh.fh_handle.raw[0] = 1;
	s->args3.fh.fh_handle.raw[2] = 1; /* an fsid number */
	s->args3.fh.fh_handle.raw[4] = 7;
	s->args3.stable = 2;
	s->res3.count = 4096;
	s->args4.minorversion = 2;
	s->args4.client_opcnt = 4;
	s->args4.opcnt = 4;
	s->args4.ops = s->args4.iops;
	s->args4.iops[0].opnum = OP_SEQUENCE;
	s->args4.iops[0].u.sequence.maxslots = 3;
	s->args4.iops[0].u.sequence.target_maxslots = 30;
	s->args4.iops[1].opnum = OP_PUTFH;
	s->args4.iops[2].opnum = OP_WRITE;
	s->args4.iops[2].u.write.wr_stable_how = 2;
	s->args4.iops[2].u.write.wr_bytes_written = 4096;
	s->args4.iops[3].opnum = 9;
	s->res4.opcnt = 4;
	s->res4.cstate.current_fh = s->args3.fh;
}

/*
 * Defines a step of a request as a function of its own, which the verifier checks by itself: all steps in one function
 * are more than it accepts. With NOTHING a step only looks up the stand-in, so that the cost of the driver itself can
 * be measured.
 */
#define STEP(name, ...)                                                            \
	__noinline int step_##name(u32 thread, u32 what, u32 i)                    \
	{                                                                          \
		struct stand_in *s = bpf_map_lookup_elem(&nfsd_stand_in, &thread); \
                                                                                   \
		/* The compiler would leave an argument out that is not used. */   \
		asm volatile("" : "+r"(i));                                        \
		if (s && what != NOTHING) {                                        \
			__VA_ARGS__                                                \
		}                                                                  \
		return 0;                                                          \
	}

STEP(arrive, {
	u64 xprt = as_number((u64)&s->xprt, IN_ARRIVE);

	s->tcp.rcv_nxt += REQUEST_BYTES;
	arrived((u64)&s->tcp, xprt, s->tcp.rcv_nxt, 800, 100);
	s->tcp.copied_seq = s->tcp.rcv_nxt;
	s->rqst.rq_vers = what == WRITE_V3 ? 3 : 4;
	s->rqst.rq_proc = what == WRITE_V3 ? NFSPROC3_WRITE : NFSPROC4_COMPOUND;
	s->rqst.rq_argp = what == WRITE_V3 ? (void *)&s->args3 : &s->args4;
	s->rqst.rq_resp = what == WRITE_V3 ? (void *)&s->res3 : &s->res4;
})
STEP(dequeue, body_nfsd_dequeue(0, &s->rqst);)
STEP(receive, body_nfsd_receive(0, &s->xprt);)
STEP(run, body_nfsd_run(0, &s->rqst);)
STEP(ops_begin, body_nfsd_ops_begin(0, &s->rqst);)
STEP(op_end, body_nfsd_op_end(0, 4, i, 0, 0);)
STEP(reply, body_nfsd_reply(0, &s->rqst);)
STEP(send, body_nfsd_send(0, &s->rqst, 160);)

static __always_inline void once(u32 thread, u32 what, u32 does)
{
	step_arrive(thread, does, 0);
	step_dequeue(thread, does, 0);
	step_receive(thread, does, 0);
	step_run(thread, does, 0);
	if (what == WRITE_V42) {
		step_ops_begin(thread, does, 0);
		step_op_end(thread, does, 1);
		step_op_end(thread, does, 2);
		step_op_end(thread, does, 3);
		step_op_end(thread, does, 4);
	}
	step_reply(thread, does, 0);
	step_send(thread, does, 0);
	/* Dequeues a transport that has nothing to read. */
	step_dequeue(thread, does, 0);
}

SEC("syscall")
int nfsd_drive(struct drive *ctx)
{
	u32 zero = 0, thread = ctx->thread, what = ctx->what & ~IDLE_BIT, requests = ctx->requests;
	u32 does = ctx->what & IDLE_BIT ? NOTHING : what;
	struct stand_in *s = bpf_map_lookup_elem(&nfsd_stand_in, &thread);
	struct svc_pool *pool = bpf_map_lookup_elem(&nfsd_pool_in, &zero);

	if (!s || !pool)
		return 1;
	prepare(s, pool, thread);
	/* A loop in place of bpf_loop(), which would call a function for each request: a frame more than the kernel
	 * allows. */
	for (u32 n = 0; n < MOST_REQUESTS && n < requests; n++)
		once(thread, what, does);
	return 0;
}

/* Programs that do nothing, to measure the kernel's entry into a program, at a tracepoint that a thread passes as often
 * as it likes. */
#define EMPTY(n)                    \
	TP(sys_enter)               \
	int PROGRAM(nfsd_empty_##n) \
	{                           \
	}

EMPTY(1) EMPTY(2) EMPTY(3) EMPTY(4) EMPTY(5) EMPTY(6) EMPTY(7) EMPTY(8)
