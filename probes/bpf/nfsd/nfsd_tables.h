/* SPDX-License-Identifier: GPL-2.0-only */
/* Tables that the nfsd probe keeps: see nfsd.h for the rows. */
#ifndef NFSCOPE_NFSD_TABLES_H
#define NFSCOPE_NFSD_TABLES_H

#define NFS_PROGRAM 100003
#define NFSACL_PROGRAM 100227
#define NFSPROC3_SETATTR 2
#define NFSPROC3_LOOKUP 3 /* then ACCESS, READLINK */
#define NFSPROC3_READLINK 5
#define NFSPROC3_READ 6
#define NFSPROC3_WRITE 7
#define NFSPROC3_CREATE 8 /* then MKDIR, SYMLINK, MKNOD */
#define NFSPROC3_MKNOD 11
#define NFSPROC3_RENAME 14
#define NFSPROC3_LINK 15
#define NFSPROC3_COMMIT 21
#define NFSPROC4_COMPOUND 1
#define OP_ACCESS 3
#define OP_COMMIT 5
#define OP_GETATTR 9
#define OP_GETFH 10
#define OP_LOOKUP 15
#define OP_LOOKUPP 16
#define OP_LOCK 12
#define OP_OPEN 18
#define OP_PUTFH 22
#define OP_PUTPUBFH 23
#define OP_PUTROOTFH 24
#define OP_READ 25
#define OP_READLINK 27
#define OP_RESTOREFH 31
#define OP_SAVEFH 32
#define OP_WRITE 38
#define OP_SETATTR 34
#define OP_SEQUENCE 53
#define OP_READ_PLUS 68
#define INLINE_OPS 8 /* struct nfsd4_compoundargs, iops */
#define MOST_OPS 200 /* NFSD_MAX_OPS_PER_COMPOUND: 50 up to 6.12, 200 in 7.2 */

/* Tables of shards: the loader multiplies their rows by the number of shards. */
SHARDED(nfsd_op, OP_ROWS, enum op_row, struct op_times);
SHARDED(nfsd_version, VERSIONS, enum version, struct version_row);
SHARDED(nfsd_pool, 1, u32, struct pool_row);
TABLE(nfsd_event, EVENTS, enum event, u64);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* the loader sets the number of pools */
	__type(key, u32);
	__type(value, struct pool_now);
} nfsd_pool_now SEC(".maps");

/* Errors of operations. All CPUs share the table, as one answer of LOOKUP in three is an error; shards in the keys keep
 * CPUs apart. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, struct error_key);
	__type(value, u64);
} nfsd_op_error SEC(".maps");

/* Entries take memory only while they are in use, where the kernel can do that. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, CLIENT_ANSWERS);
	__type(key, struct client_answer_key);
	__type(value, u64);
} nfsd_answers SEC(".maps");

static __always_inline struct op_times *op_row(u32 row)
{
	return row < OP_ROWS ? shard_row(&nfsd_op, OP_ROWS, table_shape.own_mask, row) : 0;
}

static __always_inline struct version_row *version_row(u32 version)
{
	return version < VERSIONS ? shard_row(&nfsd_version, VERSIONS, table_shape.own_mask, version) : 0;
}

static __always_inline struct pool_row *pool_row(u32 pool)
{
	return pool < table_shape.pools ? shard_row(&nfsd_pool, table_shape.pools, table_shape.pool_mask, pool) : 0;
}

static __always_inline void count(enum event e)
{
	u64 *n = row_of(&nfsd_event, e);

	if (n)
		add(n, 1);
}

#endif
