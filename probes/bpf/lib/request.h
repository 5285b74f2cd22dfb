/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The request that an RPC service thread has in hand.
 *
 * A thread serves one request at a time and does so itself from the socket's read to the reply's send, so the thread is
 * the key: one record a thread, in task storage (freed with the thread), or in a hash by thread id where tracing
 * programs cannot have task storage (before 5.11). Hooks add to the record; nothing is allocated for a request.
 */
#ifndef NFSCOPE_REQUEST_H
#define NFSCOPE_REQUEST_H

enum stage {
	IDLE,
	TAKEN, /* dequeued: reading, authenticating; or nothing was there to read */
	RUNNING, /* an NFS call that the kernel counted */
	REPLYING, /* executed, its reply under way */
};

struct request_record {
	u64 t_arrive; /* last byte on the socket; 0: not seen */
	u64 t_take; /* dequeued by the thread */
	u64 t_run; /* dispatched */
	u64 t_op; /* NFSv4: end of the component op before */
	u64 t_reply; /* executed */
	u64 ops; /* NFSv4: struct nfsd4_op[] of this COMPOUND; 0: not known */
	u64 rqst; /* struct svc_rqst */
	u64 t_busy; /* counted busy since; 0: not counted */
	u32 received;
	u32 io_bytes;
	u32 row; /* NFSv3, NFSACL and NULL: row of the operation table */
	u16 pool;
	u16 nops;
	u8 stage;
	u8 version;
	u8 compound;
	u8 io_done; /* a READ or WRITE moved io_bytes since the last op */
};

#ifdef NFSCOPE_RAW
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, u32);
	__type(value, struct request_record);
} request SEC(".maps");

static __always_inline struct request_record *request_get(void)
{
	u32 tid = bpf_get_current_pid_tgid();

	return bpf_map_lookup_elem(&request, &tid);
}

static __always_inline struct request_record *request_make(void)
{
	static const struct request_record empty;
	u32 tid = bpf_get_current_pid_tgid();
	struct request_record *r = bpf_map_lookup_elem(&request, &tid);

	if (r)
		return r;
	bpf_map_update_elem(&request, &tid, &empty, BPF_NOEXIST);
	return bpf_map_lookup_elem(&request, &tid);
}
#else
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct request_record);
} request SEC(".maps");

static __always_inline struct request_record *request_get(void)
{
	return bpf_task_storage_get(&request, bpf_get_current_task_btf(), 0, 0);
}

static __always_inline struct request_record *request_make(void)
{
	return bpf_task_storage_get(&request, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}
#endif

#endif
