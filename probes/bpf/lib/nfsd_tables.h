/* SPDX-License-Identifier: GPL-2.0-only */
/* What the nfsd probe keeps: see nfsd.h for the rows. */
#ifndef NFSCOPE_NFSD_TABLES_H
#define NFSCOPE_NFSD_TABLES_H

#define NFS_PROGRAM 100003
#define NFSACL_PROGRAM 100227
#define NFSPROC4_COMPOUND 1
#define OP_WRITE 38
#define NFSPROC3_READ 6
#define NFSPROC3_WRITE 7
#define OP_READ 25
#define OP_READ_PLUS 68
#define OP_PUTFH 22 /* then PUTPUBFH, PUTROOTFH */
#define OP_PUTROOTFH 24
#define OP_SEQUENCE 53
#define INLINE_OPS 8 /* struct nfsd4_compoundargs, iops */
#define MOST_OPS 200 /* NFSD_MAX_OPS_PER_COMPOUND: 50 up to 6.12, 200 in 7.2 */

TABLE(nfsd_op, OP_ROWS, enum op_row, struct op_times);
TABLE(nfsd_version, VERSIONS, enum version, struct version_row);
TABLE(nfsd_pool, 8, u32, struct pool_row); /* the loader sets the number of rows */
TABLE(nfsd_event, EVENTS, enum event, u64);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 8);
	__type(key, u32);
	__type(value, struct pool_now);
} nfsd_pool_now SEC(".maps");

/*
 * Hashes are declared as allocated on demand. The loader clears that flag, and makes them small, where the kernel has
 * no allocator for tracing programs (struct bpf_mem_alloc, 6.1).
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 2048);
	__type(key, struct error_key);
	__type(value, u64);
} nfsd_op_error SEC(".maps");

static __always_inline void count(enum event e)
{
	u64 *n = row_of(&nfsd_event, e);

	if (n)
		add(n, 1);
}

#endif
