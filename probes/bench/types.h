/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stand-ins for the kernel's NFS types, with the fields that the probes read: drive.bpf.c makes requests of them on
 * hosts without an NFS server. Distances are such that fields which lie in different cache lines in Linux 6.12 do so
 * here.
 */
#ifndef NFSCOPE_BENCH_TYPES_H
#define NFSCOPE_BENCH_TYPES_H

struct kvec {
	void *iov_base;
};

struct xdr_buf {
	struct kvec head[1];
	unsigned int buflen;
	unsigned int len;
};

struct svc_pool {
	unsigned int sp_id;
	unsigned int sp_nrthreads;
	unsigned int sp_nrthrmax;
	u32 apart[13];
};

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

struct svc_xprt {
	struct net *xpt_net;
};

struct __kernel_sockaddr_storage {
	unsigned short ss_family;
	char __data[126];
};

struct svc_cred {
	struct {
		u32 val;
	} cr_uid;
};

struct svc_rqst {
	u64 list[8];
	struct __kernel_sockaddr_storage rq_addr;
	u64 apart_1[8];
	struct svc_pool *rq_pool;
	struct svc_xprt *rq_xprt;
	__be32 rq_xid;
	u32 rq_prot;
	u32 rq_prog;
	u32 rq_vers;
	u32 rq_proc;
	s64 rq_stime;
	__be32 rq_auth_stat;
	__be32 *rq_accept_statp;
	struct xdr_buf rq_arg;
	u64 apart_2[16];
	struct xdr_buf rq_res;
	int rq_auth_slack;
	u64 apart_3[64];
	struct svc_cred rq_cred;
	void *rq_argp;
	void *rq_resp;
};

struct sock {
	void *sk_user_data;
};

struct tcp_sock {
	struct sock sk;
	u32 rcv_nxt;
	u32 copied_seq;
	u32 srtt_us;
	struct {
		struct {
			u32 v;
		} s[3];
	} rtt_min;
};

struct nfsd4_write {
	u32 wr_stable_how;
	u32 wr_bytes_written;
};

struct nfsd4_sequence {
	u32 slotid;
	u32 cachethis;
	u32 maxslots;
	u32 maxslots_response;
	u32 target_maxslots;
};

struct nfsd4_op {
	u32 opnum;
	__be32 status;
	union {
		struct nfsd4_write write;
		struct nfsd4_sequence sequence;
		u64 size[24];
	} u;
};

struct nfsd4_compoundargs {
	u32 minorversion;
	u32 client_opcnt;
	u32 opcnt;
	struct nfsd4_op *ops;
	struct nfsd4_op iops[8];
};

struct knfsd_fh {
	unsigned int fh_size;
	u8 raw[128];
};

struct svc_fh {
	struct knfsd_fh fh_handle;
};

struct nfsd4_channel_attrs {
	u32 maxresp_sz;
	u32 maxresp_cached;
};

struct nfsd4_session {
	struct nfsd4_channel_attrs se_fchannel;
};

struct nfsd4_compound_state {
	struct svc_fh current_fh;
	struct nfsd4_session *session;
};

struct nfsd4_compoundres {
	u32 opcnt;
	struct nfsd4_compound_state cstate;
};

struct nfsd3_writeargs {
	struct svc_fh fh;
	int stable;
};

struct nfsd3_writeres {
	__be32 status;
	unsigned long count;
};

#endif
