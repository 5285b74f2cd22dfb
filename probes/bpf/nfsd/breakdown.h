/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Operations grouped by any combination of client, export, operation, user and file, as a subscriber asks for.
 *
 * Without a subscriber there is no table, and operations pay nothing: they are compared with watch_from_ns anyhow, for
 * slow operations. User space puts a table into the map nfsd_breakdown, and replaces it by another one every second.
 * When that call returns, no program adds to the first table any more (the kernel waits for those that run): its
 * counts are then exact. An operation without a free row counts in a row that every table has from the beginning.
 */
#ifndef NFSCOPE_BREAKDOWN_H
#define NFSCOPE_BREAKDOWN_H

struct breakdown_table {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	/* Sizes in place of types: from 5.15 to 6.1 a table without BTF cannot replace one that has it. */
	__uint(key_size, sizeof(struct breakdown_key));
	__uint(value_size, sizeof(struct breakdown_row));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct breakdown_table);
} nfsd_breakdown SEC(".maps");

volatile struct breakdown_want breakdown_want SEC(".data.nfsd_breakdown_want") = {};
struct breakdown_count breakdown_count SEC(".data.nfsd_breakdown_count") = {};

/* Variables only for their types, as slow_event_type. */
const volatile struct breakdown_key breakdown_key_type SEC(".rodata.nfsd_breakdown_key") = {};
const volatile struct breakdown_row breakdown_row_type SEC(".rodata.nfsd_breakdown_row") = {};

static const struct breakdown_row nothing_yet;

/* Sampling of the break-down's cost: one operation in 2^COST_SHIFT measures it. */
#define COST_SHIFT 6

/* User id that the call carries, before any mapping to another one. */
static __always_inline u32 user_of(struct request_record *r)
{
	struct svc_rqst *rqst = (void *)r->rqst;

	if (!bpf_core_field_exists(rqst->rq_cred.cr_uid.val))
		return BREAKDOWN_NO_USER;
	return load32(ADDRESS(rqst->rq_cred.cr_uid.val));
}

/* Bytes of the fsid that stands before the file's id, by the fsid's type: fs/nfsd/nfsfh.h, key_len(). */
static __always_inline u32 fsid_bytes(u32 type)
{
	return type == 1 ? 4 : type == 2 ? 12 : type == 6 ? 16 : type == 7 ? 24 : 8;
}

/* Hash of a file's id: hash() in agent/source/src/linux/host/file_id.rs does the same. */
static __always_inline u64 id_hash(u64 at, u32 size, u32 kind)
{
	u64 h = (u64)kind << 32 | size;

	for (u32 i = 0; i < HANDLE_BYTES / 4; i++) {
		u32 word = 0;

		if (i * 4 + 4 > size)
			break;
		bpf_probe_read_kernel(&word, sizeof(word), (void *)(at + i * 4));
		h = (h ^ word) * 0x9e3779b97f4a7c15ULL;
		h ^= h >> 32;
	}
	return h;
}

/* Copies the file's id from a handle: the bytes behind size, head and fsid. */
static __always_inline void file_of(struct breakdown_key *key, u64 handle)
{
	u64 head, size;
	u32 fsid;

	if (!handle)
		return;
	head = load64((void *)handle);
	size = (u32)head;
	if (!size)
		return;
	key->file_known = 1;
	key->file_kind = head >> 56;
	fsid = fsid_bytes(head >> 48 & 0xff);
	size -= 4 + fsid;
	barrier_var(size);
	if (!size || size > HANDLE_BYTES)
		return;
	key->file_size = size;
	/* Ids that do not fit are hashed: overlayfs and others begin all handles of a file system alike. */
	if (size > sizeof(key->file)) {
		key->file_hash = id_hash(handle + 8 + fsid, size, key->file_kind);
		size = sizeof(key->file);
	}
	barrier_var(size);
	if (size > sizeof(key->file))
		return;
	if (bpf_probe_read_kernel(key->file, size, (void *)(handle + 8 + fsid)))
		key->file_size = 0;
}

/* Adds a row for a key that the table does not have. */
static __noinline struct breakdown_row *breakdown_row_new(void *table, struct breakdown_key *key)
{
	u32 shard;
	struct breakdown_row *h;

	if (!table || !key)
		return 0;
	bpf_map_update_elem(table, key, &nothing_yet, BPF_NOEXIST);
	/* Another CPU may have added the row first. */
	h = bpf_map_lookup_elem(table, key);
	if (h)
		return h;
	/* The key is used again: the verifier adds up the stacks of all callers, to 512 bytes at most. */
	shard = key->shard;
	__builtin_memset(key, 0, sizeof(*key));
	key->row = BREAKDOWN_OTHER;
	key->shard = shard;
	return bpf_map_lookup_elem(table, key);
}

/* Fills in the key of an operation's row. */
static __always_inline void breakdown_key_of(struct breakdown_key *key, struct request_record *r, u32 row, u32 status,
					     u32 by)
{
	u64 handle;

	key->shard = bpf_get_smp_processor_id() & table_shape.shared_mask;
	if (by & BY_CLIENT) {
		key->client[0] = r->client[0];
		key->client[1] = r->client[1];
	}
	if (by & BY_OP)
		key->row = row;
	if (by & BY_USER)
		key->user = user_of(r);
	if (!(by & (BY_EXPORT | BY_FILE)))
		return;
	handle = status == ERR_STALE || status == ERR_BADHANDLE ? 0 : handle_of(r);
	/* SEQUENCE has no handle. Its end may be seen late (EV_SKIPPED), when a later operation has set one. */
	if (r->compound && row == ROW_V4 + (r->version - V4_0) * V4_OPS + OP_SEQUENCE)
		handle = 0;
	key->export = export_of(handle);
	if (by & BY_FILE)
		file_of(key, handle);
}

/* True for WRITE; other operations that move bytes are READ and READ_PLUS. */
static __always_inline bool is_write(u32 row)
{
	return row == ROW_V3 + NFSPROC3_WRITE || row == ROW_V4 + OP_WRITE || row == ROW_V4 + V4_OPS + OP_WRITE ||
	       row == ROW_V4 + 2 * V4_OPS + OP_WRITE;
}

POINTERS_VERIFIED_ONCE int breakdown_add(struct request_record *r, u32 row, u64 ns, u32 status)
{
	struct breakdown_key key = {};
	u32 by = breakdown_want.by, first = 0, word = row / 64;
	u64 from = ns & ((1 << COST_SHIFT) - 1) ? 0 : bpf_ktime_get_ns();
	struct breakdown_row *h;
	void *table;

	barrier_var(word);
	if (!r || word >= ROW_WORDS || !(breakdown_want.rows[word] >> (row % 64) & 1))
		return 0;
	if ((breakdown_want.client[0] || breakdown_want.client[1]) &&
	    (breakdown_want.client[0] != r->client[0] || breakdown_want.client[1] != r->client[1]))
		return 0;
	table = bpf_map_lookup_elem(&nfsd_breakdown, &first);
	if (!table)
		return 0;
	breakdown_key_of(&key, r, row, status, by);
	h = bpf_map_lookup_elem(table, &key);
	if (!h)
		h = breakdown_row_new(table, &key);
	if (h) {
		time_hist_add(&h->times, ns);
		if (r->io_bytes)
			add(is_write(row) ? &h->write_bytes : &h->read_bytes, r->io_bytes);
	} else {
		add(&breakdown_count.lost, 1);
	}
	if (from)
		add(&breakdown_count.cost_ns, elapsed(from, bpf_ktime_get_ns()) << COST_SHIFT);
	return 0;
}

#endif
