/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Upcalls: an nfsd thread sleeps until a daemon answers.
 *
 * The kernel asks rpc.mountd for a client's domain, a user's groups and exports, rpc.idmapd for names, rpc.svcgssd for
 * contexts (net/sunrpc/cache.c), and nfsdcld which clients it knows. A thread that needs an answer which another
 * thread has already asked for waits for the same answer. The tracepoint cache_entry_upcall names the question of the
 * first thread only; the others' is taken to be the last that was named.
 *
 * Before the call is known, such a wait is counted apart from receiving the request. In an operation it is the wait
 * UPCALL.
 */
#ifndef NFSCOPE_UPCALL_H
#define NFSCOPE_UPCALL_H

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UPCALLS);
	__type(key, u32);
	__type(value, struct upcall_row);
} nfsd_upcalls SEC(".maps");

/* Question of a thread to a daemon. */
struct asking {
	u64 since; /* start of its sleep; 0: it does not sleep */
	u64 named; /* when it asked the question in `upcall` */
	u32 upcall; /* enum upcall */
	u32 switches; /* the kernel's count of times that it was given a CPU */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct asking);
} nfsd_asking SEC(".maps");

/* Question that was named last: enum upcall. */
u32 upcall_last SEC(".data.nfsd_upcall_last") = UPCALL_OTHER;

#define NAME_BYTES 16

/* Kind of upcall, by the name of its cache. */
static __always_inline u32 upcall_of(struct cache_detail *cache)
{
	char name[NAME_BYTES] = {};

	if (bpf_probe_read_kernel_str(name, sizeof(name), READ(cache, name)) < 0)
		return UPCALL_OTHER;
	if (name[0] == 'a' && name[5] == 'r') /* auth.rpcsec.* */
		return UPCALL_GSS;
	if (name[0] == 'a') /* auth.unix.* */
		return name[10] == 'i' ? UPCALL_CLIENT : name[10] == 'g' ? UPCALL_GROUPS : UPCALL_OTHER;
	if (name[3] == '4') /* nfs4.* */
		return UPCALL_IDMAP;
	/* nfsd.* */
	return name[5] == 'e' ? UPCALL_EXPORT : name[5] == 'f' ? UPCALL_HANDLE : UPCALL_OTHER;
}

static __always_inline struct asking *asking(bool make)
{
	return bpf_task_storage_get(&nfsd_asking, bpf_get_current_task_btf(), 0,
				    make ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
}

/* Notes a question of this thread, which may sleep after that. */
static __always_inline void upcall_named(struct cache_detail *cache)
{
	struct asking *a = asking(true);
	struct upcall_row *row;
	u32 i = upcall_of(cache);

	upcall_last = i;
	if (a) {
		a->upcall = i;
		a->named = bpf_ktime_get_ns();
	}
	row = row_of(&nfsd_upcalls, i);
	if (row)
		add(&row->asked, 1);
}

/* A time before this request is left over: an end was skipped, or a question refreshed an answer without a thread that
 * waits for it. */
static __always_inline bool of_request(struct request_record *r, u64 since)
{
	return since && since >= r->t_dequeue;
}

static __always_inline void upcall_sleep(struct request_record *r, u32 upcall)
{
	struct asking *a = asking(true);

	if (!a || of_request(r, a->since))
		return;
	a->since = bpf_ktime_get_ns();
	a->switches = switches(current_task());
	if (upcall) {
		a->upcall = upcall;
		a->named = a->since;
	}
	rare_enter(UPCALL);
}

/* Ends the wait of a thread, which counts only if it slept. An end of another function than the one that began is
 * ignored. */
static __always_inline void upcall_awake(struct request_record *r, u32 upcall)
{
	struct asking *a = asking(false);
	bool is_named;
	struct upcall_row *row;
	u64 ns;

	if (!a || !of_request(r, a->since))
		return;
	is_named = of_request(r, a->named);
	if ((is_named && a->upcall == UPCALL_TRACKING) != (upcall == UPCALL_TRACKING))
		return;
	rare_leave(UPCALL);
	ns = elapsed(a->since, bpf_ktime_get_ns());
	a->since = 0;
	a->named = 0;
	if (a->switches == switches(current_task()))
		return;
	if (r->stage == DEQUEUED)
		r->received_upcall += ns >> RARE_SHIFT;
	row = row_of(&nfsd_upcalls, is_named ? a->upcall : upcall_last);
	if (row)
		time_hist_add(&row->wait, ns);
}

#endif
