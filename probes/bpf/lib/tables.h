/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tables indexed by small integers, and the counters of rare events.
 *
 * Per-CPU maps are for small rows: the kernel makes a copy for each possible CPU, not for each present one. Large rows
 * stand in tables of shards: one for each CPU on hosts with few CPUs, and shared by several CPUs on hosts with many.
 */
#ifndef NFSCOPE_TABLES_H
#define NFSCOPE_TABLES_H

#define TABLE(name, rows, index_type, row_type)          \
	struct {                                         \
		__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY); \
		__uint(max_entries, rows);               \
		__type(key, index_type);                 \
		__type(value, row_type);                 \
	} name SEC(".maps")

static __always_inline void *row_of(void *table, u32 i)
{
	return bpf_map_lookup_elem(table, &i);
}

/*
 * Address as a plain number. For verifiers an argument of a hook is a pointer, with which they allow little; a value
 * from memory is not. Each program has a slot, because one may interrupt another.
 */
static __always_inline u64 through_memory(void *slots, u64 pointer, u32 slot)
{
#ifdef NFSCOPE_RAW
	return pointer;
#else
	volatile u64 *n = row_of(slots, slot);

	if (!n)
		return 0;
	*n = pointer;
	return *n;
#endif
}

/* Adds to a counter to which other CPUs may add as well, or an interrupt on this one. */
static __always_inline void add(u64 *counter, u64 n)
{
	__sync_fetch_and_add(counter, n);
}

/*
 * Counts of the nfsd probe beside operations and their time. A measurement can leave each out to find its cost:
 * build.rs makes an object without each, by the same numbers. A switch for the verifier would cost each use some five
 * instructions, as it removes no branch whose end is reached in another way.
 */
enum counted_beside {
	BESIDE_SLOTS = 1, /* slots of sessions, by version and by client */
	BESIDE_WALKS = 2, /* requests of each client that only walk a path, and those that open */
	BESIDE_DURABLE = 4, /* WRITEs and COMMITs that clients take for durable */
};

/* Shape of the tables that CPUs share. The loader sets it, and the number of entries of each table after it. */
struct table_shape {
	u32 own_mask; /* of the tables whose rows take most of a request's additions: shards less one */
	u32 shared_mask; /* of the others */
	u32 pool_mask; /* of the tables by pool */
	u32 block_mask; /* of block devices */
	u32 pools;
	u32 client_rows;
	u32 netns; /* inode number of the network namespace whose server is measured; 0: all */
	u32 skip_one_in; /* one run in this number is skipped, at random, for tests; 0: none */
	u32 alone; /* no other CPU, and nothing that interrupts, adds to a shard of the first kind */
	u32 books; /* operations' waits are read from the scheduler's books: lib/waits.h */
	u32 slack_ns; /* by which clocks of CPUs may differ */
	u32 limits_unproven; /* the kernel's limit is for connections without a valid file handle: nfsd/transports.h */
};

volatile const struct table_shape table_shape SEC(".rodata." PROBE "_shape") = { .pools = 1, .client_rows = 1 };

#ifndef LEFT_OUT
#define LEFT_OUT 0
#endif

static __always_inline bool counts_beside(enum counted_beside what)
{
	return !(LEFT_OUT & what);
}

static __always_inline bool is_skipped(void)
{
	if (table_shape.skip_one_in <= 1)
		return table_shape.skip_one_in;
	return bpf_get_prandom_u32() % table_shape.skip_one_in == 0;
}

/* Table of shards. User space maps it and reads it in place. Values of such maps begin on a page. */
#define SHARDED(name, rows, index_type, row_type)  \
	struct {                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);  \
		__uint(map_flags, BPF_F_MMAPABLE); \
		__uint(max_entries, rows);         \
		__type(key, index_type);           \
		__type(value, row_type);           \
	} name SEC(".maps")

/* Row of this CPU's shard in a table with `rows` rows a shard. */
static __always_inline void *shard_row(void *table, u32 rows, u32 mask, u32 i)
{
	u32 at = i;

	if (mask)
		at += (bpf_get_smp_processor_id() & mask) * rows;
	return bpf_map_lookup_elem(table, &at);
}

/*
 * Adds to a row of this CPU's shard of the first kind (own_mask), in a program that runs in a thread and is not
 * preempted: one at a tracepoint. Kernels that do not run tracepoints preemptibly disable preemption there with
 * PREEMPT_RT, too. But a preemptible kernel preempts programs at functions (fentry, fexit).
 */
static __always_inline void add_own(u64 *counter, u64 n)
{
	if (table_shape.alone)
		*(volatile u64 *)counter += n;
	else
		add(counter, n);
}

/* A later clock reading less an earlier one; 0 where another CPU's reading was ahead. */
static __always_inline u64 elapsed(u64 from, u64 to)
{
	s64 ns = to - from;

	/* Comparing both clocks instead takes four instructions more. */
	return ns > 0 ? ns : 0;
}

#endif
