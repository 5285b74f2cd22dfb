/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Operation that a thread has in hand, and its file handle.
 *
 * Both stand in the request's own memory, which only a program can read. Noting them would cost every request, and
 * only the reports on stuck threads need them. This program is therefore attached to nothing: user space runs it
 * (BPF_PROG_TEST_RUN).
 */
#ifndef NFSCOPE_HELD_H
#define NFSCOPE_HELD_H

volatile struct held_op held_op SEC(".data.nfsd_held_op") = { .row = OP_ROWS };

/* Row of the operation in the operation table. It is not read by load32, which may be a cast that this type of program
 * may not have. */
static __always_inline u32 held_row(struct request_record *r)
{
	if (!r->compound)
		return r->row;
#ifndef NFSCOPE_RAW
	if (r->ops && r->version >= V4_0 && r->version < V4_NONE) {
		struct nfsd4_op *o = (void *)(r->ops + (u64)r->nops * bpf_core_type_size(struct nfsd4_op));
		u32 num = 0;

		if (bpf_probe_read_kernel(&num, sizeof(num), ADDRESS(o->opnum)))
			return OP_ROWS;
		return ROW_V4 + (r->version - V4_0) * V4_OPS + (num < V4_ILLEGAL ? num : V4_ILLEGAL);
	}
#endif
	return OP_ROWS;
}

/* Reads the operation of a thread; the first argument is the thread's number. */
SEC("raw_tp")
int nfsd_held(struct bpf_raw_tracepoint_args *ctx)
{
	struct request_record *r = request_of(ctx->args[0]);
	struct svc_rqst *rqst;
	u32 size = 0, xid = 0;
	u64 handle;

	held_op.row = OP_ROWS;
	held_op.handle_size = 0;
	held_op.xid = 0;
	if (!r || r->stage < RUNNING)
		return 0;
	held_op.row = held_row(r);
	rqst = (void *)r->rqst;
	if (bpf_core_field_exists(rqst->rq_xid) && !bpf_probe_read_kernel(&xid, sizeof(xid), ADDRESS(rqst->rq_xid)))
		held_op.xid = xid;
	handle = handle_of(r);
	if (!handle || bpf_probe_read_kernel(&size, sizeof(size), (void *)handle) || size > HANDLE_BYTES)
		return 0;
	if (!bpf_probe_read_kernel((void *)held_op.handle, sizeof(held_op.handle), (void *)(handle + 4)))
		held_op.handle_size = size;
	return 0;
}

#endif
