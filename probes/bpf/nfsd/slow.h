/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Slow operations, one by one.
 *
 * Without a subscriber that is one comparison an operation (nfsd/watched.h), and there is no ring. User space puts one
 * into the map nfsd_slow_ring for the first subscriber, and takes it out after the last.
 */
#ifndef NFSCOPE_SLOW_H
#define NFSCOPE_SLOW_H

struct ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct ring);
} nfsd_slow_ring SEC(".maps");

/* Tables of one row each, in sections of their own so that user space finds them by name. */
volatile struct slow_want slow_want SEC(".data.nfsd_slow_want") = { .over_ns = ~0ULL };
struct slow_count slow_count SEC(".data.nfsd_slow_count") = {};

/* Variable only for its type: the object's BTF, from which user space has it, only contains types that a map holds. */
const volatile struct slow_event slow_event_type SEC(".rodata.nfsd_slow_event") = {};

#define SECOND_NS 1000000000ULL

/* True if one more event may be reported in this second. Threads that begin a second together may let some more pass,
 * never fewer. */
static __always_inline bool slow_allowed(u64 now)
{
	if (now - slow_count.second >= SECOND_NS) {
		slow_count.second = now;
		slow_count.in_second = 0;
	}
#ifdef NFSCOPE_RAW /* no atomics that return a value: the limit is then less exact */
	add(&slow_count.in_second, 1);
	return slow_count.in_second <= slow_want.per_second;
#else
	return __sync_fetch_and_add(&slow_count.in_second, 1) < slow_want.per_second;
#endif
}

/* The raw object knows no types of nfsd, and the bench has no subscriber. */
#if !defined(NFSCOPE_RAW) && !defined(NFSCOPE_BENCH)
#define KNOWS_ARGUMENTS
#endif

/* Copies a file handle, at most HANDLE_BYTES of it. Returns its size; 0 if it cannot be read. */
static __always_inline u32 slow_handle(u64 handle, u8 *to)
{
	u32 size = handle ? load32((void *)handle) : 0;

	return size > HANDLE_BYTES || bpf_probe_read_kernel(to, HANDLE_BYTES, (void *)(handle + 4)) ? 0 : size;
}

/* Address of a second file handle: see slow_event.other. 0 without one. */
static __always_inline u64 slow_other(struct request_record *r, u32 status)
{
#ifdef KNOWS_ARGUMENTS
	/* Pointers of their own: ADDRESS() would relocate the record's field, too. */
	struct nfsd3_renameargs *rename = (void *)r->argp;
	struct nfsd3_linkargs *link = (void *)r->argp;
	struct nfsd3_diropres *found = (void *)r->resp;

	if (r->version != V3 || r->row >= ROW_ACL)
		return 0;
	if (r->row == NFSPROC3_RENAME)
		return (u64)ADDRESS(rename->tfh.fh_handle);
	if (r->row == NFSPROC3_LINK)
		return (u64)ADDRESS(link->tfh.fh_handle);
	if (!status && (r->row == NFSPROC3_LOOKUP || (r->row >= NFSPROC3_CREATE && r->row <= NFSPROC3_MKNOD)))
		return (u64)ADDRESS(found->fh.fh_handle);
#endif
	return 0;
}

#define ATTR_SIZE (1 << 3)

/* Reads the range that the operation asks for, or the size that it sets. */
static __always_inline void slow_arguments(struct request_record *r, struct slow_event *e)
{
#ifdef KNOWS_ARGUMENTS
	u64 offset = 0, length = 0, attributes = 0;
#endif

	e->asks = ASKS_NOTHING;
	e->offset = 0;
	e->length = 0;
#ifdef KNOWS_ARGUMENTS
	if (r->version == V3) {
		struct nfsd3_readargs *read = (void *)r->argp;
		struct nfsd3_writeargs *write = (void *)r->argp;
		struct nfsd3_commitargs *commit = (void *)r->argp;
		struct nfsd3_sattrargs *set = (void *)r->argp;
		struct nfsd3_createargs *create = (void *)r->argp;

		if (r->row == NFSPROC3_READ) {
			offset = (u64)ADDRESS(read->offset);
			length = (u64)ADDRESS(read->count);
		} else if (r->row == NFSPROC3_WRITE) {
			offset = (u64)ADDRESS(write->offset);
			length = (u64)ADDRESS(write->count);
		} else if (r->row == NFSPROC3_COMMIT) {
			offset = (u64)ADDRESS(commit->offset);
			length = (u64)ADDRESS(commit->count);
		} else if (r->row == NFSPROC3_SETATTR) {
			attributes = (u64)ADDRESS(set->attrs);
		} else if (r->row == NFSPROC3_CREATE) {
			attributes = (u64)ADDRESS(create->attrs);
		}
	} else if (r->compound && r->ops) {
		struct nfsd4_op *o = (void *)(r->ops + (u64)r->nops * bpf_core_type_size(struct nfsd4_op));
		u32 num = load32(ADDRESS(o->opnum));

		if (num == OP_READ || num == OP_READ_PLUS) {
			offset = (u64)ADDRESS(o->u.read.rd_offset);
			length = (u64)ADDRESS(o->u.read.rd_length);
		} else if (num == OP_WRITE) {
			offset = (u64)ADDRESS(o->u.write.wr_offset);
			length = (u64)ADDRESS(o->u.write.wr_buflen);
		} else if (num == OP_COMMIT) {
			offset = (u64)ADDRESS(o->u.commit.co_offset);
			length = (u64)ADDRESS(o->u.commit.co_count);
		} else if (num == OP_SETATTR) {
			attributes = (u64)ADDRESS(o->u.setattr.sa_iattr);
		} else if (num == OP_OPEN && load32(ADDRESS(o->u.open.op_create)) == 1 /* OPEN4_CREATE */) {
			attributes = (u64)ADDRESS(o->u.open.op_iattr);
		}
	}
	if (attributes) {
		struct iattr *a = (void *)attributes;

		if (load32(ADDRESS(a->ia_valid)) & ATTR_SIZE) {
			e->offset = load64(ADDRESS(a->ia_size));
			e->asks = ASKS_SIZE;
		}
	} else if (offset) {
		e->offset = load64((void *)offset);
		e->length = load32((void *)length);
		e->asks = ASKS_RANGE;
	}
#endif
}

POINTERS_VERIFIED_ONCE int slow_report(struct request_record *r, u32 row, u64 ns, u32 status)
{
	u64 now = bpf_ktime_get_ns(), left = ns;
	struct svc_rqst *rqst;
	struct slow_event *e;
	u32 first = 0, word = row / 64;
	void *ring;

	barrier_var(word);
	if (!r || word >= ROW_WORDS || !(slow_want.rows[word] >> (row % 64) & 1))
		return 0;
	if ((slow_want.client[0] || slow_want.client[1]) &&
	    (slow_want.client[0] != r->client[0] || slow_want.client[1] != r->client[1]))
		return 0;
	ring = bpf_map_lookup_elem(&nfsd_slow_ring, &first);
	if (!ring)
		return 0;
	if (!slow_allowed(now)) {
		add(&slow_count.left_out, 1);
		return 0;
	}
	e = bpf_ringbuf_reserve(ring, sizeof(*e), 0);
	if (!e) {
		add(&slow_count.left_out, 1);
		return 0;
	}
	e->end_ns = now;
	e->ns = ns;
	for (u32 i = 0; i < WAITS; i++) {
		u64 w = r->waited ? r->wait_ns[i] : 0;

		if (w > left)
			w = left;
		left -= w;
		e->wait_ns[i] = w;
	}
	for (u32 i = 0; i < RARE_WAITS; i++) {
		u64 w = r->waited ? (u64)r->rare_wait[i] << RARE_SHIFT : 0;

		if (w > left)
			w = left;
		left -= w;
		e->wait_ns[WAITS + i] = w;
	}
	e->client[0] = r->client[0];
	e->client[1] = r->client[1];
	e->row = row;
	e->status = status;
	e->bytes = r->io_bytes;
	e->stability = r->stability;
	e->handle_size = slow_handle(handle_of(r), e->handle);
	e->other_size = slow_handle(slow_other(r, status), e->other);
	e->unused = 0;
	slow_arguments(r, e);
	rqst = (void *)r->rqst;
	e->xid = bpf_core_field_exists(rqst->rq_xid) ? load32(ADDRESS(rqst->rq_xid)) : 0;
	/* No wake-up: user space polls twenty times a second. */
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
