/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Begin and end of a request. A begin or an end that the kernel skipped (EV_SKIPPED) is made up for by later programs.
 */
#ifndef NFSCOPE_STAGES_H
#define NFSCOPE_STAGES_H

/* True for TCP: only TCP has a clock of a request's arrival. */
static __always_inline bool over_tcp(struct request_record *r)
{
	struct svc_rqst *rqst = (void *)r->rqst;

	return !bpf_core_field_exists(rqst->rq_prot) || load32(ADDRESS(rqst->rq_prot)) == 6;
}

/* Ends a request: it was replied, or dropped. */
static __always_inline void leave(struct request_record *r, u64 now, int sent)
{
	struct version_row *v = version_row(r->version);
	struct pool_row *p = pool_row(r->pool);
	u64 from = r->t_arrive && r->t_arrive < r->t_dequeue ? r->t_arrive : r->t_dequeue, asked;

	r->stage = IDLE;
	if (!v)
		return;
	if (!r->t_arrive)
		count(over_tcp(r) ? EV_ARRIVAL_UNKNOWN : EV_NO_CLOCK);
	else if (p)
		time_hist_add(&p->queue, r->t_dequeue - from);
	else
		count(EV_POOL_OUTSIDE);
	time_hist_add_own(&v->residence, elapsed(from, now));
	add_own(&v->phase_ns[QUEUE], r->t_dequeue - from);
	asked = (u64)r->received_upcall << RARE_SHIFT;
	if (asked) {
		add_own(&v->phase_ns[ASKING], asked);
		r->received_upcall = 0;
	}
	add_own(&v->phase_ns[RECEIVE], elapsed(r->t_dequeue + asked, r->t_run));
	add_own(&v->phase_ns[EXECUTE], elapsed(r->t_run, r->t_reply));
	add_own(&v->phase_ns[REPLY], elapsed(r->t_reply, now));
	add_own(&v->received_bytes, r->received);
	if (sent > 0)
		add_own(&v->sent_bytes, sent);
	client_add(r, v, now);
}

/* Ends a request whose end was skipped (EV_SKIPPED): it ended before now, and at the earliest when it had executed. */
POINTERS_VERIFIED_ONCE int end_late(struct request_record *r, u64 now)
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

/*
 * True if the request came to the server that is measured. Each network namespace can have a server of its own, whose
 * threads, exports and clients have the same numbers, paths and addresses.
 */
static __always_inline bool is_here(struct svc_rqst *rqst, struct request_record *r)
{
	struct svc_xprt *xprt;
	struct net *net;
	u32 netns;

	if (!table_shape.netns)
		return true;
	/* The result is kept for the thread: it serves one server as long as it lives, and a request that has ended has
	 * no transport any more. */
	if (r && r->server)
		return r->server == SERVER_HERE;
	/* A load by address in place of READ: for a verifier, a pointer to a type that its module only names is a
	 * number. */
	xprt = READ(rqst, rq_xprt);
	/* Without BTF of sunrpc the namespaces cannot be distinguished: all are measured together. */
	if (!bpf_core_field_exists(xprt->xpt_net))
		return true;
	barrier_var(xprt);
	net = (void *)load64(ADDRESS(xprt->xpt_net));
	netns = load32(ADDRESS(net->ns.inum));
	if (r)
		r->server = netns == table_shape.netns ? SERVER_HERE : SERVER_ELSEWHERE;
	return netns == table_shape.netns;
}

/* A call that the kernel counted begins to execute. */
static __always_inline void begin(struct request_record *r, struct svc_rqst *rqst, u64 now)
{
	u32 program = READ(rqst, rq_prog), vers = READ(rqst, rq_vers), proc = READ(rqst, rq_proc);
	struct svc_pool *p;

	if (!is_here(rqst, r)) {
		count(vers == 3 && program == NFS_PROGRAM ? EV_ELSEWHERE_V3 : EV_ELSEWHERE);
		return;
	}
	/* Programs were skipped: the end of the request before, and the dequeue of this one. */
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
		r->compound = proc == NFSPROC4_COMPOUND ? COMPOUND : 0;
	} else {
		return;
	}
	r->t_run = now;
	/* The dequeue was skipped; or the last dequeue belongs to another request: see nfsd_idle. */
	if (r->stage != DEQUEUED || r->t_dequeue > now) {
		r->t_dequeue = now;
		r->t_arrive = 0;
		r->connection = 0;
		r->received_upcall = 0;
	}
	waits_begin(r);
	client_of(rqst, r->client);
	r->stage = RUNNING;
	r->rqst = (u64)rqst;
	r->argp = (u64)READ(rqst, rq_argp);
	r->resp = (u64)READ(rqst, rq_resp);
	r->t_first = now;
	r->t_op = now;
	r->ops = 0;
	r->counts = 0;
	r->slots_used = 1;
	r->slots_granted = 0;
	r->io_bytes = 0;
	r->moved = 0;
	r->received = READ(rqst, rq_arg.len);
	p = READ(rqst, rq_pool);
	r->pool = READ(p, sp_id);
	busy_begin(r, now, POOL_THREADS(READ, p), bpf_core_field_exists(p->sp_nrthrmax) ? READ(p, sp_nrthrmax) : 0);
}

/* Begins a request whose begin was skipped at the tracepoint before. */
static __noinline int begin_skipped(struct request_record *r, struct svc_rqst *rqst, u64 now)
{
	if (r && rqst)
		begin(r, rqst, now);
	return 0;
}

static __always_inline bool is_nfs(struct svc_rqst *rqst)
{
	u32 program = READ(rqst, rq_prog);

	return program == NFS_PROGRAM || program == NFSACL_PROGRAM;
}

/*
 * True if the kernel counted this call and executed it, by the reply that the call is about to get (net/sunrpc/svc.c,
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
	/* A call of another RPC version has no accept status: the pointer still points to that of an earlier request,
	 * in another page. */
	if ((u64)rqst->rq_accept_statp - (u64)rqst->rq_res.head[0].iov_base >= 4096)
		return false;
	accepted = bpf_ntohl(load32(rqst->rq_accept_statp));
	return accepted == 0 || accepted > 3;
#endif
}

/* Begins a request late whose begin was skipped: see EV_SKIPPED. */
static __always_inline void begin_late(struct request_record *r, struct svc_rqst *rqst)
{
#ifndef NFSCOPE_RAW
	if (!is_nfs(rqst) || !is_here(rqst, r) || !was_run(rqst))
		return;
	begin_skipped(r, rqst, rqst->rq_stime);
	/* The request has a version that is not timed here. */
	if (r->stage != RUNNING)
		return;
	if (r->compound)
		compound_args_late(r);
	count(EV_SKIPPED);
#endif
}

/* Counts a refused call of this thread, by the client that client_of() reads. */
static __noinline int refused_for(struct request_record *r, struct svc_rqst *rqst, u32 why)
{
	if (!r || !rqst || !is_here(rqst, r))
		return 0;
	client_of(rqst, r->client);
	client_answered(r, OP_ROWS, why);
	return 0;
}

/* Head of a reply without a verifier: only replies of Kerberos have one. */
struct reply_head {
	__be32 xid;
	__be32 direction;
	__be32 denied;
	__be32 rejected; /* or the verifier's flavour */
	__be32 verifier; /* bytes */
	__be32 accepted;
};

#define REPLY_DENIED 1
#define AUTH_ERROR 1
#define PROG_UNAVAIL 1
#define PROC_UNAVAIL 3
#define GARBAGE_ARGS 4

/*
 * Reason for which a reply says that the call became no operation; 0: it does not say so. It is read from the reply
 * itself, because kernels keep its statuses in different places.
 */
static __always_inline u32 reply_refuses(struct svc_rqst *rqst)
{
	void *from = (void *)READ(rqst, rq_res.head[0].iov_base);
	struct reply_head head = {};
	u32 accepted;

	bpf_probe_read_kernel(&head, sizeof(head), from);
	if (bpf_ntohl(head.denied) == REPLY_DENIED)
		return bpf_ntohl(head.rejected) == AUTH_ERROR ? REFUSED_AUTH : REFUSED_FORMAT;
	if (head.denied || head.verifier)
		return 0;
	accepted = bpf_ntohl(head.accepted);
	if (accepted >= PROG_UNAVAIL && accepted <= PROC_UNAVAIL)
		return REFUSED_FORMAT;
	return accepted == GARBAGE_ARGS ? REFUSED_ARGUMENTS : 0;
}

/* Bytes of a call without credentials and arguments: RFC 5531, section 9. */
#define SHORTEST_CALL 40
/* Results begin with a status: a shorter reply has no result, except for NULL. */
#define SHORTEST_RESULT (sizeof(struct reply_head) + sizeof(__be32))

/* Counts a call that was answered without execution or without any result. */
static __noinline int reply_without_result(struct request_record *r, struct svc_rqst *rqst)
{
	u32 why;

	if (!r || !rqst)
		return 0;
	why = reply_refuses(rqst);
	if (why)
		refused_for(r, rqst, why);
	return 0;
}

/*
 * Record of this thread at the end of a request, made if it has none. Then every program at the request's beginning was
 * skipped, and the request is the first that the thread has served since the programs were attached. A request that was
 * read before the attachment may have been counted by the kernel before it, and gets no record.
 */
static __always_inline struct request_record *request_at_end(struct svc_rqst *rqst)
{
	struct request_record *r = request_get();
#ifndef NFSCOPE_RAW
	u32 slot = ATTACHED;
	u64 *attached;

	if (r || !rqst || !is_nfs(rqst))
		return r;
	attached = bpf_map_lookup_elem(&nfsd_number, &slot);
	/* No program saw the request. A start before its reading makes nfsd_idle take it for a new one. */
	if (attached && *attached && (u64)rqst->rq_stime > *attached)
		r = request_make(rqst->rq_stime - 1);
#endif
	return r;
}

static __always_inline void request_end(struct svc_rqst *rqst, int sent)
{
	struct request_record *r = request_at_end(rqst);
	u64 now;

	if (!r || !rqst)
		return;
	if (r->stage < RUNNING && sent > 0)
		begin_late(r, rqst);
	if (r->stage < RUNNING && !r->t_busy)
		return;
	if (r->stage == RUNNING)
		executed_late(r);
	now = bpf_ktime_get_ns();
	if (r->stage == REPLYING)
		leave(r, now, sent);
	busy_end(r, now);
}

#endif
