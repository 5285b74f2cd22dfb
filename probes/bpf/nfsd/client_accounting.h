/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Operations, their time and the bytes that they moved, by client and export.
 *
 * A connection remembers the rows of the exports that it used last. Counting a request then costs the same for any
 * number of clients and exports. User space knows the totals: an operation without a row is not lost, but has no name.
 *
 * An export's number is a hash of the part of the file handle that names it: fsid type and fsid (fs/nfsd/nfsfh.h, the
 * same since Linux 2.5). User space computes it from the kernel's list of fsids.
 */
#ifndef NFSCOPE_CLIENT_ACCOUNTING_H
#define NFSCOPE_CLIENT_ACCOUNTING_H

#define CLIENT_ROW_BITS 14 /* bits of the largest table that user space may ask for */

SHARDED(nfsd_client_row, 1, u32, struct client_row); /* row 0 is for all that found no row */

static __always_inline struct client_row *client_row(u32 row)
{
	return shard_row(&nfsd_client_row, table_shape.client_rows, table_shape.shared_mask, row);
}

/* Rows in a variable: finding a row in it takes five instructions, and a look-up of an array thirteen. */
struct session_row session_rows[SESSION_ROWS] SEC(".bss.nfsd_rows");

/* Row 0 is left out: it would be for all that found no row, no reader needs it, and every CPU would write to it. */
static __always_inline struct session_row *session_row(u64 row)
{
	row--;
	/* Verifiers up to 6.1 bound only the value that is compared, and no copy of it. */
	barrier_var(row);
	if (row >= SESSION_ROWS - 1)
		return 0;
	barrier_var(row);
	return &session_rows[row + 1];
}

/*
 * Number of each row, by client and export. Where the kernel can, entries take memory only while they are in use: all
 * of them are 1.5 MB.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct client_key);
	__type(value, u32);
} nfsd_client SEC(".maps");

/* Rows not in use. Filled by user space, which takes all rows back when few are left, and begins a new epoch. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, 1);
	__type(value, u32);
} nfsd_free_rows SEC(".maps");

volatile const u32 client_epoch SEC(".data.nfsd_client_epoch") = 1;

#ifndef NFSCOPE_RAW
/* Address that the kernel keeps somewhere, in the form of a client's address. */
static __always_inline void address_at(struct __kernel_sockaddr_storage *at, u64 client[2])
{
	u32 family = load32(at) & 0xffff;

	client[0] = 0;
	client[1] = 0;
	if (family == AF_INET) {
		client[1] = (u64)load32(ADDRESS(at->__data[2])) << 32 | 0xffff0000;
	} else if (family == AF_INET6) {
		client[0] = load64(ADDRESS(at->__data[6]));
		client[1] = load64(ADDRESS(at->__data[14]));
	}
}
#endif

/* Address of the struct knfsd_fh that the request named last: an NFSv3 procedure's first argument; 0 without one. */
static __always_inline u64 handle_of(struct request_record *r)
{
#ifdef NFSCOPE_RAW
	/* The raw object knows no types of nfsd, but every NFSv3 argument begins with its handle. */
	return r->version == V3 && r->row != ROW_V3 && r->row != ROW_ACL ? r->argp : 0;
#else
	if (r->version == V3) {
		struct svc_fh *fh = (void *)r->argp;

		return r->row != ROW_V3 && r->row != ROW_ACL ? (u64)ADDRESS(fh->fh_handle) : 0;
	}
	if (r->compound) {
		struct nfsd4_compoundres *res = (void *)r->resp;

		return (u64)ADDRESS(res->cstate.current_fh.fh_handle);
	}
	return 0;
#endif
}

/* Statuses for handles that name nothing on this server (RFC 1813, 8881): such handles can have any content that a
 * client chooses. */
#define ERR_STALE 70
#define ERR_BADHANDLE 10001

/* Export number of requests without a file handle. It is not below the row's bits, or an empty entry would match it. */
#define NO_EXPORT (1ULL << CLIENT_ROW_BITS)

/* Export number of a handle: a hash of its fsid type and fsid. */
static __always_inline u64 export_of(u64 handle)
{
	u64 *at = (void *)handle, *numbers = NUMBERS_AT(at), head, a, b, c;
	u32 type;

	if (!handle)
		return NO_EXPORT;
	/* Head of the handle: size; then version, authentication type, fsid type, file id type. */
	head = HAS_CAST ? numbers[0] : load64(at);
	if (!(u32)head)
		return NO_EXPORT;
	type = head >> 48 & 0xff;
	a = HAS_CAST ? numbers[1] : load64(at + 1);
	b = c = 0;
	if (type == 6 || type == 7 || type == 2)
		b = HAS_CAST ? numbers[2] : load64(at + 2);
	if (type == 7)
		c = HAS_CAST ? numbers[3] : load64(at + 3);
	if (type == 1)
		a = (u32)a;
	if (type == 2)
		b = (u32)b;
	a = (a ^ (type + 1)) * 0x9e3779b97f4a7c15ULL;
	a = (a ^ a >> 32 ^ b) * 0x9e3779b97f4a7c15ULL;
	a = (a ^ a >> 32 ^ c) * 0x9e3779b97f4a7c15ULL;
	return a >> CLIENT_ROW_BITS > 1 ? a : 2ULL << CLIENT_ROW_BITS;
}

/*
 * Entries of a connection: the export's number with the row in place of its low bits. Both are in one word, because
 * threads that serve one connection write and read it at the same time. Zero means no entry.
 */
#define ROW_MASK ((1ULL << CLIENT_ROW_BITS) - 1)

static __always_inline bool client_known(struct connection *c, struct request_record *r, u32 epoch)
{
	return c->epoch == epoch && c->client[1] == r->client[1] && c->client[0] == r->client[0];
}

/* Finds the row of a client and export that the connection does not remember (any more). */
POINTERS_VERIFIED_ONCE u32 client_find(struct request_record *r, struct connection *c, u64 export)
{
	struct client_key key = { .export = export };
	u32 row = 0, *known, epoch = client_epoch, place;

	if (!r)
		return 0;
	key.client[0] = r->client[0];
	key.client[1] = r->client[1];
	known = bpf_map_lookup_elem(&nfsd_client, &key);
	if (known) {
		row = *known;
	} else if (!bpf_map_pop_elem(&nfsd_free_rows, &row)) {
		if (bpf_map_update_elem(&nfsd_client, &key, &row, BPF_NOEXIST))
			bpf_map_push_elem(&nfsd_free_rows, &row, 0);
		/* Another thread may have added the row first. */
		known = bpf_map_lookup_elem(&nfsd_client, &key);
		row = known ? *known : 0;
	}
	if (!row)
		count(EV_CLIENT_FULL);
	if (c) {
		if (!client_known(c, r, epoch)) {
			for (int i = 0; i < KNOWN_EXPORTS; i++)
				c->known[i] = 0;
			c->client[0] = r->client[0];
			c->client[1] = r->client[1];
			c->epoch = epoch;
		}
		place = export >> CLIENT_ROW_BITS & (KNOWN_EXPORTS - 1);
		for (int i = 0; i < KNOWN_EXPORTS; i++)
			if (!c->known[i])
				place = i;
		barrier_var(place);
		if (place < KNOWN_EXPORTS)
			c->known[place] = (export & ~ROW_MASK) | (row & ROW_MASK);
	}
	return row;
}

/* Counts a request with more slots in use than are counted one by one. */
POINTERS_VERIFIED_ONCE int slots_many(struct version_row *v, u64 used)
{
	u64 b;

	if (!v)
		return 0;
	b = size_bucket(used, COUNT_BUCKETS) - SLOTS_BUCKETS_TOLD;
	barrier_var(b);
	if (b < COUNT_BUCKETS - SLOTS_BUCKETS_TOLD)
		add_own(&v->slots_more[b], 1);
	add_own(&v->slots_more_sum, used);
	return 0;
}

/* Counts a request that was sent with every slot in use. */
POINTERS_VERIFIED_ONCE int slots_exhausted(struct version_row *v, struct session_row *s, u32 granted)
{
	if (!v)
		return 0;
	add_own(&v->slots_full, 1);
	if (s) {
		s->slots = granted;
		add(&s->slots_full, 1);
	}
	return 0;
}

/* Counts a request of a session whose slots are known. */
static __always_inline void slots_add(struct request_record *r, struct version_row *v, struct session_row *s)
{
	u64 used = r->slots_used, granted = r->slots_granted;

	barrier_var(used);
	if (used < SLOTS_TOLD)
		add_own(&v->slots[used], 1);
	else
		slots_many(v, used);
	if (used >= granted) {
		slots_exhausted(v, s, granted);
		return;
	}
	if (s) {
		s->slots = granted;
		add(&s->slots_free, 1);
	}
}

/* Counts a request that only walks a path, or opens. */
static __always_inline void walks_add(struct request_record *r, struct session_row *s, u64 ns)
{
	u32 is = r->compound, procedure = r->row - NFSPROC3_LOOKUP;

	if (!counts_beside(BESIDE_WALKS) || !s)
		return;
	if (!is) {
		/* LOOKUP, ACCESS and READLINK of NFSv3 have neighbouring rows: a single comparison. */
		if (procedure <= NFSPROC3_READLINK - NFSPROC3_LOOKUP)
			add(&s->v3_walks, 1);
	} else if (is == (COMPOUND | WALKS)) {
		add(&s->v4_walks, 1);
		add(&s->open_ns, ns);
	} else if (is & OPENS) {
		add(&s->opens, 1);
		add(&s->open_ns, ns);
	}
}

/* Counts WRITEs and COMMITs whose answer the client takes for durable. */
static __always_inline void durable_add(struct request_record *r, struct session_row *s)
{
	if (!s)
		return;
	add(&s->stable, r->stable);
	if (r->unwaited_writes)
		add(&s->unwaited_writes, r->unwaited_writes);
	if (r->unwaited_commits)
		add(&s->unwaited_commits, r->unwaited_commits);
}

/* Counts a request that is over. */
static __always_inline void client_add(struct request_record *r, struct version_row *v, u64 now)
{
	struct connection *c = r->connection ? connection_at(r->connection - 1) : 0;
	u64 export = r->status == ERR_STALE || r->status == ERR_BADHANDLE ? NO_EXPORT : export_of(handle_of(r));
	u64 ops = r->compound ? r->nops : 1, ns = elapsed(r->t_first, r->t_reply);
	struct session_row *s;
	struct client_row *t;
	u32 row = 0, min_rtt_us;
	bool found = false;

	/* The connection's place may have been given to another connection, even if this one was not silent. */
	if (c && (u32)c->xprt != r->xprt)
		c = 0;
	if (c && client_known(c, r, client_epoch))
		for (int i = 0; i < KNOWN_EXPORTS; i++) {
			u64 known = c->known[i];

			if ((known ^ export) <= ROW_MASK) {
				row = known & ROW_MASK;
				found = true;
				break;
			}
		}
	if (!found)
		row = client_find(r, c, export);
	t = client_row(row);
	if (t) {
		add(&t->requests_ops, ops << REQUEST_BITS | 1);
		add(&t->ns, ns);
		add(&t->reply_ns, elapsed(r->t_reply, now));
		if (r->moved) {
			if (r->read_bytes)
				add(&t->read_bytes, r->read_bytes);
			if (r->write_bytes)
				add(&t->write_bytes, r->write_bytes);
		}
		t->seen = now >> CLIENT_SEEN_SHIFT;
		t->srtt_us = c ? c->srtt_us : 0;
	}
	/* The time is only written if it changed: a write takes the cache line from all CPUs that have it. */
	s = session_row(row);
	min_rtt_us = c ? c->min_rtt_us : 0;
	if (s && s->min_rtt_us != min_rtt_us)
		s->min_rtt_us = min_rtt_us;
	if (counts_beside(BESIDE_SLOTS) && r->slots_granted)
		slots_add(r, v, s);
	walks_add(r, s, ns);
	if (counts_beside(BESIDE_DURABLE) && r->stable)
		durable_add(r, s);
	add_own(&v->accounted_ops, ops);
	add_own(&v->accounted_ns, ns);
}

#endif
