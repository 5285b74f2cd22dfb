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

POINTERS_VERIFIED_ONCE int slow_report(struct request_record *r, u32 row, u64 ns, u32 status)
{
	u64 now = bpf_ktime_get_ns(), handle, left = ns;
	struct svc_rqst *rqst;
	struct slow_event *e;
	u32 first = 0, size, word = row / 64;
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
	handle = handle_of(r);
	size = handle ? load32((void *)handle) : 0;
	if (size > HANDLE_BYTES || bpf_probe_read_kernel(e->handle, sizeof(e->handle), (void *)(handle + 4)))
		size = 0;
	e->handle_size = size;
	rqst = (void *)r->rqst;
	e->xid = bpf_core_field_exists(rqst->rq_xid) ? load32(ADDRESS(rqst->rq_xid)) : 0;
	/* No wake-up: user space polls twenty times a second. */
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif
