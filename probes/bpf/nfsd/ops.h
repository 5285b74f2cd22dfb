/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Operations: counts an NFSv3 procedure, an NFSv4 component op or a COMPOUND at its end, and makes up for ends that the
 * kernel skipped.
 */
#ifndef NFSCOPE_OPS_H
#define NFSCOPE_OPS_H

/* Adds the rare waits of an operation with `left` ns that are not yet accounted for. Returns the nanoseconds that do
 * not fit. */
POINTERS_VERIFIED_ONCE u64 rare_fold(struct request_record *r, struct op_times *t, u64 left)
{
	u64 rest = 0;

	if (!r || !t)
		return 0;
	for (u32 i = 0; i < RARE_WAITS; i++) {
		u64 w = (u64)r->rare_wait[i] << RARE_SHIFT, fits = w;

		if (fits > left)
			fits = left;
		left -= fits;
		rest += w - fits;
		r->rare_wait[i] = (w - fits) >> RARE_SHIFT;
		if (fits)
			add_own(&t->wait_ns[WAITS + i], fits);
	}
	return rest;
}

/*
 * Adds the waits of an operation that took `ns`, the rare ones last. A wait that does not fit stays for the next
 * operation: the ends of several may have been skipped, and they share their time. With the scheduler's books such a
 * rest is dropped instead. The books have another clock than the duration, and each CPU has its own, so that a rest can
 * come from the clocks.
 */
POINTERS_VERIFIED_ONCE int waits_fold(struct request_record *r, struct op_times *t, u64 ns)
{
	u64 left = ns, rest = 0;

	if (!r || !t)
		return 0;
	for (u32 i = 0; i < WAITS; i++) {
		u64 w = r->wait_ns[i];

		if (w > left)
			w = left;
		left -= w;
		r->wait_ns[i] -= w;
		rest += r->wait_ns[i];
		if (w)
			add_own(&t->wait_ns[i], w);
	}
	if (rare_waited(r))
		rest += rare_fold(r, t, left);
	if (table_shape.books && !r->sharing) {
		if (rest > (ns >> 6) + table_shape.slack_ns)
			count(EV_WAIT_OUTSIDE);
		waits_forget(r);
		return 0;
	}
	/* Waits of a preemption within this function stay for the next operation. */
	r->waited = rest || (!table_shape.books && r->wait_last);
	return 0;
}

/* Counts an operation that ended with an error. */
VERIFIED_ONCE int op_failed(u32 row, u32 status)
{
	struct error_key key = { .row = row, .status = status };
	u64 *n, one = 1;

	key.shard = bpf_get_smp_processor_id() & table_shape.shared_mask;
	n = bpf_map_lookup_elem(&nfsd_op_error, &key);
	if (n) {
		add(n, 1);
	} else if (bpf_map_update_elem(&nfsd_op_error, &key, &one, BPF_NOEXIST)) {
		/* Another CPU may have added the entry first. */
		n = bpf_map_lookup_elem(&nfsd_op_error, &key);
		if (n)
			add(n, 1);
		else
			count(EV_ERROR_FULL);
	}
	return 0;
}

/* Counts, by client, answers after which the client asks again or recovers, and locks that were granted. */
POINTERS_VERIFIED_ONCE int client_answered(struct request_record *r, u32 row, u32 status)
{
	struct client_answer_key key = { .row = row, .status = status };
	u64 *n, one = 1;

	if (!r)
		return 0;
	key.client[0] = r->client[0];
	key.client[1] = r->client[1];
	n = bpf_map_lookup_elem(&nfsd_answers, &key);
	if (!n && bpf_map_update_elem(&nfsd_answers, &key, &one, BPF_NOEXIST))
		/* Another CPU may have added the entry first; or the table is full. */
		n = bpf_map_lookup_elem(&nfsd_answers, &key);
	if (n)
		add(n, 1);
	return 0;
}

/* Counts an operation that has ended. Its waits have ended, too: waits_end(). The raw object has no waits. */
static __always_inline void op_done(struct request_record *r, u32 row, u64 ns, u32 status)
{
	struct op_times *t = op_row(row);

	if (ns >= watch_from_ns)
		op_watched(row, ns, status);
	r->status = status;
#ifndef NFSCOPE_RAW
	/* Waits are added before the duration, so that a reading in between does not take a wait for CPU time. */
	if (t && r->waited)
		waits_fold(r, t, ns);
#endif
	if (t)
		time_hist_add_own(&t->duration, ns);
	if (status)
		op_failed(row, status);
	if (comes_again(status))
		client_answered(r, row, status);
}

static __always_inline void io_add(struct request_record *r, u32 bytes)
{
	/* Adds up, as READ_PLUS may read more than once. */
	r->io_bytes += bytes;
}

/* Counts a READ or WRITE that moved bytes. */
static __always_inline void io_done(struct request_record *r, struct version_row *v, bool write)
{
	u64 b = size_bucket(r->io_bytes, SIZE_BUCKETS);

	if (b >= SIZE_BUCKETS)
		return;
	if (write) {
		add_own(&v->write_size[b], 1);
		add_own(&v->write_bytes, r->io_bytes);
		r->write_bytes += r->io_bytes;
	} else {
		add_own(&v->read_size[b], 1);
		add_own(&v->read_bytes, r->io_bytes);
		r->read_bytes += r->io_bytes;
	}
}

static __always_inline void write_asked(struct request_record *r, struct version_row *v, u32 how)
{
	r->stability = how;
	if (how >= STABILITIES)
		return;
	add_own(&v->stable_writes[how], 1);
	if (r->io_bytes)
		add_own(&v->stable_bytes[how], r->io_bytes);
}

/*
 * Counts a WRITE or COMMIT whose answer the client takes for durable, and notes if its thread waited for no log and no
 * disk. Called when its waits have ended, and before they are added up.
 */
static __always_inline void is_durable(struct request_record *r, bool commit)
{
	if (!counts_beside(BESIDE_DURABLE))
		return;
	r->stable++;
	if (r->wait_ns[LOG] | r->wait_ns[DISK])
		return;
	if (commit)
		r->unwaited_commits++;
	else
		r->unwaited_writes++;
}

#define BEHIND(args, one, other)                 \
	(bpf_core_field_exists((args)->other) && \
	 bpf_core_field_offset((args)->other) == bpf_core_field_offset((args)->one) + sizeof((args)->one))

#ifndef NFSCOPE_RAW
/* True if maxslots still has the client's value when SEQUENCE has executed: see struct nfsd4_sequence. */
static __always_inline bool slots_are_kept(void)
{
	return bpf_core_field_exists(((struct nfsd4_sequence *)0)->maxslots_response);
}

/* Slots in use, with the request's own, from the client's value in maxslots. */
static __always_inline u32 slots_of(u32 maxslots)
{
	return bpf_core_field_exists(((struct nfsd4_sequence *)0)->target_maxslots) ? maxslots : maxslots + 1;
}

static __always_inline u32 first_maxslots(u64 ops)
{
	return load32(ADDRESS(((struct nfsd4_op *)ops)->u.sequence.maxslots));
}

static __always_inline void compound_is(struct request_record *r, u32 minor, u64 ops)
{
	if (minor <= 2)
		r->version = V4_0 + minor;
	r->ops = ops;
}

#define HEAD_COPY 88
#ifdef NFSCOPE_BENCH
#define HEAD_OFFSET(args, field) ((u64) & (args)->field - (u64) & (args)->minorversion)
#else
#define HEAD_OFFSET(args, field) (bpf_core_field_offset((args)->field) - bpf_core_field_offset((args)->minorversion))
#endif

/* Does compound_args() at the begin of a COMPOUND on kernels where each read is a call of some hundred instructions:
 * one read copies all. */
POINTERS_VERIFIED_ONCE int compound_copied(struct request_record *r)
{
	struct nfsd4_compoundargs *args = r ? (void *)r->argp : 0;
	/* Eight bytes, although four would do: old verifiers forget the bounds of four-byte values on the stack
	 * (docs/kernels.md). */
	u64 ops_at = HEAD_OFFSET(args, ops), slots_at = HEAD_OFFSET(args, iops[0].u.sequence.maxslots), ops;
	u8 copy[HEAD_COPY] __attribute__((aligned(8)));

	if (!r)
		return 0;
	if (slots_at > HEAD_COPY - sizeof(u32) || ops_at > HEAD_COPY - sizeof(u64)) {
		compound_is(r, load32(ADDRESS(args->minorversion)), load64(ADDRESS(args->ops)));
		r->slots_used = slots_of(first_maxslots(r->ops));
		return 0;
	}
	bpf_probe_read_kernel(copy, slots_at + sizeof(u32), ADDRESS(args->minorversion));
	/* Two reads of four bytes: the stack allows no word that is not aligned. */
	ops = *(u32 *)(copy + ops_at) | (u64) * (u32 *)(copy + ops_at + sizeof(u32)) << 32;
	compound_is(r, *(u32 *)copy, ops);
	r->slots_used = slots_of(ops == (u64)ADDRESS(args->iops) ? *(u32 *)(copy + slots_at) : first_maxslots(ops));
	return 0;
}

/*
 * Reads a COMPOUND's arguments: its minor version and its ops. Few ops stand in the arguments themselves, which a
 * number beside the minor version says: one read for both.
 *
 * If the COMPOUND `begins`, it also reads the slots in use, on kernels that overwrite the client's value. They are read
 * whatever the first op is: they only count once a SEQUENCE has succeeded (slots_granted), and SEQUENCE succeeds in no
 * other place.
 */
static __always_inline void compound_args(struct request_record *r, bool begins)
{
	struct nfsd4_compoundargs *args = (void *)r->argp, *numbers;
	bool asks = begins && !slots_are_kept() && counts_beside(BESIDE_SLOTS);
	u64 both;
	u32 minor, most = ~0U;

	if (!HAS_CAST && asks) {
		compound_copied(r);
		return;
	}
	numbers = NUMBERS_AT(args);
	if (BEHIND(args, minorversion, client_opcnt)) {
		both = LOAD64(numbers, args, minorversion);
		minor = both;
		most = both >> 32;
	} else {
		minor = LOAD32(numbers, args, minorversion);
	}
	if (most <= INLINE_OPS) {
		compound_is(r, minor, (u64)ADDRESS(args->iops));
		if (asks)
			r->slots_used = slots_of(numbers->iops[0].u.sequence.maxslots);
	} else {
		compound_is(r, minor, LOAD64(numbers, args, ops));
		if (asks)
			r->slots_used = slots_of(first_maxslots(r->ops));
	}
}
#endif

/*
 * Reads a COMPOUND's arguments after its execution. More than INLINE_OPS ops stand apart and are freed by then
 * (nfsd4_release_compoundargs()). `ops` then points to those within the arguments again, which belong to other
 * requests.
 */
static __always_inline void compound_args_late(struct request_record *r)
{
#ifndef NFSCOPE_RAW
	struct nfsd4_compoundargs *args = (void *)r->argp;

	compound_args(r, false);
	if (r->ops == (u64)ADDRESS(args->iops) && load32(ADDRESS(args->opcnt)) > INLINE_OPS)
		r->ops = 0;
#endif
}

#ifndef NFSCOPE_RAW
static __always_inline void compound_does(struct request_record *r, enum compound what)
{
	if (counts_beside(BESIDE_WALKS))
		r->compound |= what;
}

/*
 * Notes what an op does in its COMPOUND (RFC 8881, 18), for ops that op_ended() does not handle itself: LOOKUP and its
 * kin walk; PUTPUBFH, PUTROOTFH, RESTOREFH and SAVEFH only frame the COMPOUND.
 */
static __always_inline void compound_has(struct request_record *r, u32 num)
{
	if (num == OP_LOOKUP || num == OP_ACCESS || num == OP_LOOKUPP || num == OP_READLINK)
		compound_does(r, WALKS);
	else if (num == OP_OPEN)
		compound_does(r, OPENS);
	else if (num != OP_PUTPUBFH && num != OP_PUTROOTFH && num != OP_RESTOREFH && num != OP_SAVEFH)
		compound_does(r, DOES);
}

/*
 * Notes the slots of a SEQUENCE that succeeded: those granted, and those in use if the kernel keeps the client's value.
 * It is inlined: a call would take more than its work.
 */
static __always_inline void slots_granted(struct request_record *r, struct nfsd4_op *o, struct nfsd4_op *numbers)
{
	if (!counts_beside(BESIDE_SLOTS))
		return;
	if (bpf_core_field_exists(o->u.sequence.target_maxslots))
		r->slots_granted = LOAD32(numbers, o, u.sequence.target_maxslots);
	else
		r->slots_granted = LOAD32(numbers, o, u.sequence.maxslots);
	if (slots_are_kept())
		r->slots_used = slots_of(LOAD32(numbers, o, u.sequence.maxslots));
}

static __always_inline void op_io(struct request_record *r, struct nfsd4_op *o, u32 num, u32 status)
{
	struct version_row *v = version_row(r->version);

	if (!v)
		return;
	if (num == OP_COMMIT) {
		if (!status)
			is_durable(r, true);
		return;
	}
	if (num == OP_WRITE) {
		if (!status)
			io_add(r, load32(ADDRESS(o->u.write.wr_bytes_written)));
		write_asked(r, v, load32(ADDRESS(o->u.write.wr_stable_how)));
		if (!status && r->stability)
			is_durable(r, false);
	}
	if (r->io_bytes)
		io_done(r, v, num == OP_WRITE);
}

/* Counts component op `i` of a COMPOUND, which took `ns` and ended with `status` (big-endian). */
static __always_inline void op_ended(struct request_record *r, u32 i, u64 ns, u32 status)
{
	struct nfsd4_op *o = (void *)(r->ops + (u64)i * bpf_core_type_size(struct nfsd4_op));
	struct nfsd4_op *numbers = NUMBERS_AT(o);
	u32 num = LOAD32(numbers, o, opnum);
	u32 row = ROW_V4 + (r->version - V4_0) * V4_OPS;

	waits_end(r);
	/* The most frequent ops are compared first. */
	if (num == OP_GETATTR || num == OP_PUTFH) {
		/* Both only frame their COMPOUND. */
	} else if (num == OP_SEQUENCE) {
		if (!status)
			slots_granted(r, o, numbers);
	} else if (num == OP_GETFH) {
		/* GETFH only frames its COMPOUND. */
	} else if (num == OP_WRITE || num == OP_READ || num == OP_READ_PLUS || num == OP_COMMIT) {
		op_io(r, o, num, status);
		compound_does(r, DOES);
	} else {
		compound_has(r, num);
	}
	op_done(r, row + (num < V4_ILLEGAL ? num : V4_ILLEGAL), ns, bpf_ntohl(status));
	/* Granted locks distinguish a client that polls from one that sometimes comes too late. */
	if (num == OP_LOCK && !status)
		client_answered(r, row + OP_LOCK, 0);
	r->io_bytes = 0;
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
 * Counts ops up to `done`, which have executed although some of their ends were not seen: see EV_SKIPPED. They share
 * the time since the last end that was seen. The helper bpf_loop (5.17) has the body verified once.
 */
static __always_inline void ops_unseen(struct request_record *r, u32 done, u64 share_ns)
{
	struct unseen u = { .r = r, .done = done, .share_ns = share_ns };

	r->sharing = 1;
	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop))
		bpf_loop(MOST_OPS, op_unseen, &u, 0);
	r->sharing = 0;
}

/*
 * True if SEQUENCE has taken its slot in this COMPOUND. It has then also reserved room for the reply, as much as its
 * session allows (fs/nfsd/nfs4state.c, nfsd4_sequence), and that is the reply's limit. When the slot's reply is sent
 * again, the limit is another.
 */
static __always_inline bool slot_was_taken(struct request_record *r, struct nfsd4_session *session,
					   struct nfsd4_op *first)
{
	struct svc_rqst *rqst = (void *)r->rqst;
	u32 most = load32(ADDRESS(first->u.sequence.cachethis)) ? load32(ADDRESS(session->se_fchannel.maxresp_cached))
								: load32(ADDRESS(session->se_fchannel.maxresp_sz));

	if (bpf_core_field_exists(rqst->rq_auth_slack))
		most -= load32(ADDRESS(rqst->rq_auth_slack));
	return load32(ADDRESS(rqst->rq_res.buflen)) == most;
}

/*
 * True if this COMPOUND is the replay of a slot's reply: it has ops, and the kernel executed none and counts none
 * (fs/nfsd/nfs4proc.c, nfsd4_proc_compound). In a first call an op behind SEQUENCE would have set a file handle. For
 * ops that need none (SEQUENCE alone, RECLAIM_COMPLETE, DESTROY_CLIENTID) the reply's limit decides. A SEQUENCE that
 * fails knows no session.
 *
 * A session may allow as much as any reply has room for. Its replays without a file handle are taken for first calls.
 */
static __always_inline bool was_replayed(struct request_record *r, struct nfsd4_compoundres *res, struct nfsd4_op *o,
					 u32 done)
{
	struct nfsd4_session *session;
	u32 second = 0;

	if (load32(ADDRESS(o->opnum)) != OP_SEQUENCE)
		return false;
	session = (void *)load64(ADDRESS(res->cstate.session));
	if (!session)
		return false;
	if (done > 1)
		second = load32((void *)ADDRESS(o->opnum) + bpf_core_type_size(struct nfsd4_op));
	if (second >= OP_PUTFH && second <= OP_PUTROOTFH)
		return !load32(ADDRESS(res->cstate.current_fh.fh_handle.fh_size));
	return !slot_was_taken(r, session, o);
}

/* Counts the last ops whose ends were not seen. */
static __always_inline void ops_complete(struct request_record *r)
{
	struct nfsd4_compoundargs *args = (void *)r->argp;
	struct nfsd4_compoundres *res = (void *)r->resp;
	u32 done = load32(ADDRESS(res->opcnt));
	struct nfsd4_op *o;
	u64 now;

	if (done <= r->nops || done > MOST_OPS)
		return;
	/* The program at the COMPOUND's beginning was skipped, too. */
	if (!r->ops)
		compound_args_late(r);
	/* More than INLINE_OPS ops are freed by now: the last ones that were not seen cannot be named. */
	if (!r->ops || load64(ADDRESS(args->ops)) != r->ops) {
		if (r->nops)
			count(EV_SKIPPED);
		return;
	}
	o = (void *)r->ops;
	if (!r->nops && was_replayed(r, res, o, done)) {
		struct version_row *v = version_row(r->version);

		if (v)
			add_own(&v->replays, 1);
		return;
	}
	now = bpf_ktime_get_ns();
	ops_unseen(r, done, elapsed(r->t_op, now) / (done - r->nops));
	r->t_op = now;
}
#endif

/* Counts a COMPOUND as a whole that has executed. */
static __always_inline void compound_executed(struct request_record *r)
{
	struct version_row *v = version_row(r->version);
	u64 b = size_bucket(r->nops, COUNT_BUCKETS);

	if (!v)
		return;
	time_hist_add_own(&v->compound, elapsed(r->t_run, r->t_reply));
	if (b < COUNT_BUCKETS)
		add_own(&v->compound_ops[b], 1);
	add_own(&v->compound_ops_sum, r->nops);
}

static __always_inline void procedure_io(struct request_record *r, u32 status)
{
	struct version_row *v = version_row(V3);

	if (!v)
		return;
#ifndef NFSCOPE_RAW
	if (r->row == NFSPROC3_WRITE) {
		struct nfsd3_writeargs *args = (void *)r->argp;
		struct nfsd3_writeres *res = (void *)r->resp;

		/* Nothing was written if the duplicate request cache answered: the count is zero. */
		if (!status)
			io_add(r, load64(ADDRESS(res->count)));
		write_asked(r, v, load32(ADDRESS(args->stable)));
		if (r->io_bytes && r->stability)
			is_durable(r, false);
	} else if (r->row == NFSPROC3_COMMIT) {
		if (!status)
			is_durable(r, true);
		return;
	}
#endif
	if (r->io_bytes)
		io_done(r, v, r->row == NFSPROC3_WRITE);
}

/* Counts an NFSv3 or NFSACL procedure that has executed, or an NFSv4 NULL. */
static __always_inline void procedure_executed(struct request_record *r)
{
	u32 status = 0;

	/*
	 * Every result begins with its status (fs/nfsd/xdr3.h), which the kernel zeroes before it decodes. The result
	 * of NULL has no place for a status.
	 */
	if (r->version == V3 && r->row != ROW_V3 && r->row != ROW_ACL)
		status = bpf_ntohl(load32((void *)r->resp));
#ifndef NFSCOPE_RAW
	waits_end(r);
#endif
	if (r->row == NFSPROC3_READ || r->row == NFSPROC3_WRITE || r->row == NFSPROC3_COMMIT)
		procedure_io(r, status);
	op_done(r, r->row, elapsed(r->t_run, r->t_reply), status);
}

/*
 * Ends the execution of a request: its reply is encoded, or there will be none. A COMPOUND's execution ends with its
 * last op; encoding its head belongs to the reply.
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
	if (r->waited) {
		waits_forget(r);
		/* A wait of a COMPOUND since its last op is normal; a wait of a procedure is outside its duration. */
		if (!r->compound)
			count(EV_WAIT_OUTSIDE);
	}
}

/* Calls executed() where nfsd_reply has not: its program was skipped, or there is no reply. */
POINTERS_VERIFIED_ONCE int executed_late(struct request_record *r)
{
	if (r)
		executed(r);
	return 0;
}

#endif
