/* SPDX-License-Identifier: GPL-2.0-only */
/* Per-CPU tables indexed by small integers, and the counters of rare events. */
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

static __always_inline void add(u64 *counter, u64 n)
{
	__sync_fetch_and_add(counter, n);
}

/* A later clock reading less an earlier one; 0 where another CPU's reading was ahead. */
static __always_inline u64 elapsed(u64 from, u64 to)
{
	return to > from ? to - from : 0;
}

#endif
