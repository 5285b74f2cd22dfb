/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel types that the probes read, with the fields that they read and no others. Every access is relocated
 * (CO-RE) against the running kernel's BTF, that of its modules included; layout and order here mean nothing.
 *
 * Differences between kernels stand here and nowhere else, each with the commit or the release that made it, and when
 * support for it may end.
 */
#ifndef NFSCOPE_KERNEL_H
#define NFSCOPE_KERNEL_H

#include <linux/types.h>
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/ptrace.h>

#include <bpf/bpf_helpers.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __s32 s32;
typedef __u64 u64;
typedef __s64 s64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sched_info {
	unsigned long pcount; /* times that it was given a CPU */
	unsigned long long run_delay;
};

struct rq {
	u64 clock;
	u64 clock_task; /* without interrupts and stolen time, where the kernel accounts for them */
	u64 prev_irq_time; /* CONFIG_IRQ_TIME_ACCOUNTING */
	u64 prev_steal_time_rq; /* CONFIG_PARAVIRT_TIME_ACCOUNTING */
};

struct cfs_rq {
	struct rq *rq;
};

struct sched_entity {
	struct cfs_rq
		*cfs_rq; /* of the CPU that the task is on; CONFIG_FAIR_GROUP_SCHED, which every distribution has */
	u64 exec_start; /* its run queue's clock_task when sum_exec_runtime was brought up to date */
	u64 sum_exec_runtime;
};

struct task_io_accounting {
	u64 read_bytes;
	u64 write_bytes; /* CONFIG_TASK_IO_ACCOUNTING, both */
};

struct task_struct {
	unsigned int flags;
	int pid;
	u64 start_time;
	char comm[16];
	struct task_io_accounting ioac;
	unsigned int in_iowait : 1;
	struct sched_entity se;
	struct sched_info sched_info;
	void *worker_private; /* of a kernel thread: its struct kthread (from 5.17 on) */
};

#ifdef NFSCOPE_BENCH /* the probe is driven without an NFS server */
#pragma clang attribute pop
#include "../../bench/types.h"
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#else
/* net/sunrpc: one RPC service thread, its request and its pool. */
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
	unsigned int sp_nrthrmax; /* 7.x: dynamic pools */
};

struct ns_common {
	unsigned int inum;
};

struct net {
	struct ns_common ns;
};

/* Cache that a daemon fills: net/sunrpc/cache.c. */
struct cache_detail {
	struct net *net;
	char *name;
};

struct svc_xprt_class {
	int xcl_ident;
};

struct list_head {
	struct list_head *next;
};

struct svc_serv {
	char *sv_name;
	unsigned int sv_nrthreads;
	unsigned int sv_maxconn; /* most connections; 0: the kernel's own limit. Until 6.13 */
	struct list_head sv_permsocks; /* sockets on which it listens */
	struct list_head sv_tempsocks; /* connections that it has accepted */
	int sv_tmpcnt; /* connections for which the limit is */
};

/* An address as user space has it, too: sockaddr_in, sockaddr_in6. */
struct __kernel_sockaddr_storage {
	unsigned short ss_family;
	char __data[126];
};

struct svc_xprt {
	struct svc_xprt_class *xpt_class;
	struct svc_serv *xpt_server;
	struct net *xpt_net;
	struct list_head xpt_list; /* of its server's lists */
	unsigned long xpt_flags;
	struct __kernel_sockaddr_storage xpt_remote; /* its client's address */
};

/* Argument with which a kernel thread was started (kernel/kthread.c). For a thread of an RPC service it is its struct
 * svc_rqst. */
struct kthread {
	void *data;
};

struct svc_sock {
	struct sock *sk_sk;
};

struct svc_cred {
	struct {
		u32 val;
	} cr_uid;
};

struct svc_rqst {
	struct svc_cred rq_cred;
	struct __kernel_sockaddr_storage rq_addr;
	struct svc_serv *rq_server;
	struct svc_pool *rq_pool;
	struct svc_xprt *rq_xprt;
	__be32 rq_xid;
	u32 rq_prot; /* IPPROTO_TCP, IPPROTO_UDP; RDMA: IPPROTO_MAX */
	u32 rq_prog;
	u32 rq_vers;
	u32 rq_proc;
	s64 rq_stime; /* read from the socket, CLOCK_MONOTONIC */
	__be32 rq_auth_stat;
	__be32 *rq_accept_statp;
	struct xdr_buf rq_arg;
	struct xdr_buf rq_res;
	int rq_auth_slack;
	void *rq_argp;
	void *rq_resp;
};

struct socket {
	unsigned long flags;
};

struct sock_common {
	volatile unsigned char skc_state; /* include/net/tcp_states.h */
};

struct sock {
	struct sock_common __sk_common;
	void *sk_user_data;
	struct socket *sk_socket;
	struct {
		int counter;
	} sk_drops; /* of a socket that listens: packets of new connections */
};

struct inet_connection_sock {
	void *icsk_ulp_ops; /* TLS in the kernel */
	u8 icsk_retransmits; /* timeouts of the oldest data since the client acknowledged any */
};

struct minmax {
	struct {
		u32 v;
	} s[3];
};

struct tcp_sock {
	u32 rcv_nxt;
	u32 copied_seq;
	u32 snd_una; /* the first byte that is not acknowledged */
	u32 write_seq; /* behind the last byte that is to be sent */
	u32 packets_out; /* sent, and neither acknowledged nor timed out for good */
	u32 snd_wnd; /* bytes that the client takes */
	u64 delivered_mstamp; /* data arrived last, or was sent while none was on its way: CLOCK_MONOTONIC, us */
	u32 srtt_us; /* eight times the smoothed round-trip time */
	u64 tcp_mstamp; /* when the last segment was received or sent: microseconds of CLOCK_MONOTONIC */
	struct minmax rtt_min; /* the lowest round-trip time of the last minutes, in microseconds */
};

/* net/sunrpc: one RPC of this host as a client. */
struct rpc_procinfo {
	u32 p_statidx;
	const char *p_name;
};

struct rpc_message {
	const struct rpc_procinfo *rpc_proc;
};

struct rpc_xprt {
	int prot;
	const char *address_strings[6]; /* the first is the address as text */
};

struct sock_xprt {
	struct sock *inet;
};

struct rpc_clnt {
	u32 cl_prog;
	u32 cl_vers;
	struct rpc_xprt *cl_xprt;
};

struct rpc_rqst {
	int rq_ntrans;
	u32 rq_xmit_bytes_sent;
	unsigned long rq_reply_bytes_recvd;
};

struct rpc_task {
	int tk_status;
	struct rpc_clnt *tk_client;
	struct rpc_rqst *tk_rqstp;
	struct rpc_message tk_msg;
	unsigned short tk_timeouts;
};

struct rpc_wait_queue {
	unsigned char maxpriority;
	const char *name; /* CONFIG_SUNRPC_DEBUG or CONFIG_TRACEPOINTS */
};

struct iattr {
	unsigned int ia_valid;
	s64 ia_size;
};

/* fs/nfsd: arguments and results. */
struct nfsd4_read {
	u64 rd_offset;
	u32 rd_length;
};

struct nfsd4_commit {
	u64 co_offset;
	u32 co_count;
};

struct nfsd4_setattr {
	struct iattr sa_iattr;
};

struct nfsd4_open {
	u32 op_create;
	struct iattr op_iattr;
};

struct nfsd4_write {
	u64 wr_offset;
	u32 wr_stable_how;
	u32 wr_buflen;
	u32 wr_bytes_written;
};

struct nfsd4_sequence {
	u32 slotid;
	u32 cachethis;
	/*
	 * Before 6.14 the highest slot that the client uses, which the number of slots granted takes the place of
	 * while it executes. From then on how many it uses, which the larger number takes the place of. It stays from
	 * 6.18 on, which have maxslots_response for the answer (1cff14b7fc7f, "nfsd: ensure SEQUENCE replay sends a
	 * valid reply").
	 */
	u32 maxslots;
	u32 maxslots_response;
	u32 target_maxslots; /* granted, from 6.14 on */
};

struct nfsd4_op {
	u32 opnum;
	__be32 status;
	union {
		struct nfsd4_read read;
		struct nfsd4_write write;
		struct nfsd4_commit commit;
		struct nfsd4_setattr setattr;
		struct nfsd4_open open;
		struct nfsd4_sequence sequence;
	} u;
};

struct nfsd4_compoundargs {
	u32 minorversion;
	u32 client_opcnt; /* as the client says; opcnt is not more */
	u32 opcnt;
	struct nfsd4_op *ops;
	struct nfsd4_op iops[8];
};

struct knfsd_fh {
	unsigned int fh_size;
};

/* The bytes of the handle follow its size. */
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

struct nfsd3_readargs {
	u64 offset;
	u32 count;
};

struct nfsd3_writeargs {
	u64 offset;
	u32 count;
	int stable;
};

struct nfsd3_commitargs {
	u64 offset;
	u32 count;
};

struct nfsd3_sattrargs {
	struct iattr attrs;
};

struct nfsd3_createargs {
	struct iattr attrs;
};

struct nfsd3_renameargs {
	struct svc_fh tfh;
};

struct nfsd3_linkargs {
	struct svc_fh tfh;
};

struct nfsd3_diropres {
	struct svc_fh fh;
};

struct nfsd3_writeres {
	unsigned long count;
};

/* fs/nfsd: what clients hold. */
struct nfs4_client {
	struct __kernel_sockaddr_storage cl_addr;
	struct net *net;
	u64 cl_time; /* of its last renewal; 0 once it is expired */
};

/* Common part of NFSv4 state: a delegation and a layout begin with it. */
struct nfs4_stid {
	struct {
		u32 si_generation;
	} sc_stateid;
	struct nfs4_client *sc_client;
};

struct nfs4_layout_stateid {
	struct nfs4_stid ls_stid;
	struct list_head ls_layouts;
};

struct work_struct {
	void *func;
};

struct delayed_work {
	struct work_struct work;
};

/* The NFS server of a network namespace. */
struct nfsd_net {
	struct cache_detail *svc_export_cache;
	struct delayed_work laundromat_work;
};
#endif

/*
 * In Linux 6.8 and RHEL 9.6 an atomic_t, until commit 60749cbe3d8a ("sunrpc: change sp_nrthreads from atomic_t to
 * unsigned int", 6.12; Ubuntu's 6.8.0-53). May go with support for RHEL 9.6.
 */
struct svc_pool___atomic {
	struct {
		int counter;
	} sp_nrthreads;
};

/* fs */
struct block_device {
	u32 bd_dev;
};

struct super_block {
	u32 s_dev;
	void *s_fs_info;
};

struct dentry {
	struct super_block *d_sb;
};

struct inode {
	struct super_block *i_sb;
};

/* fs/nfs: a mount's server, and what the mounts of one server share. */
struct nfs_client {
	u32 cl_minorversion;
	struct rpc_clnt *cl_rpcclient;
};

struct nfs_server {
	struct nfs_client *nfs_client;
	struct rpc_clnt *client;
	struct rpc_clnt *client_acl;
};

/* fs/ext4 */
struct ext4_sb_info {
	unsigned int s_mount_opt2;
};

/* fs/jbd2 */
struct journal_s {
	struct block_device *j_dev; /* where the journal lies */
	struct block_device *j_fs_dev;
	int j_blocksize;
	unsigned long j_head; /* the next block to be written */
	unsigned long j_first;
	unsigned long j_last; /* the first behind the journal's end */
};

struct transaction_s {
	unsigned long t_log_start;
};

/* fs/xfs */
struct xfs_buftarg {
	u32 bt_dev;
	struct xfs_mount *bt_mount;
};

struct semaphore {
	unsigned int count;
};

/* A block of metadata in memory. */
struct xfs_buf {
	u32 b_flags;
	struct semaphore b_sema; /* its lock */
	struct xfs_mount *b_mount;
	struct xfs_buftarg *b_target;
};

struct xfs_mount {
	struct super_block *m_super;
	struct xfs_buftarg *m_ddev_targp;
};

struct xlog {
	struct xfs_mount *l_mp;
	struct xfs_buftarg *l_targ;
};

struct xlog_in_core {
	u32 ic_size;
};

/* fs/btrfs */
struct btrfs_device {
	struct block_device *bdev;
};

struct btrfs_fs_devices {
	struct btrfs_device *latest_dev;
};

/*
 * Before 5.16 ("btrfs: convert latest_bdev type to btrfs_device and rename"). May go with support for 5.15.
 */
struct btrfs_fs_devices___latest_bdev {
	struct block_device *latest_bdev;
};

struct btrfs_fs_info {
	struct btrfs_fs_devices *fs_devices;
	struct task_struct *transaction_kthread;
};

struct btrfs_trans_handle {
	struct btrfs_fs_info *fs_info;
};

struct btrfs_root {
	struct btrfs_fs_info *fs_info;
};

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

/* block */
struct gendisk {
	int major;
	int first_minor;
};

struct request_queue {
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	unsigned int cmd_flags;
	unsigned int __data_len;
};

/*
 * Before 5.16 (commit f3fa33acca9f, "block: remove the ->rq_disk field in struct request") the disk hung on the
 * request. May go with support for 5.10.
 */
struct request___rq_disk {
	struct gendisk *rq_disk;
};

enum req_flag_bits {
	__REQ_FUA = 0, /* its value moves between kernels: always by bpf_core_enum_value() */
};

/* Any structure that begins with a number of eight and of four bytes: load64() and load32() pretend to read it. */
struct timespec64 {
	s64 tv_sec;
};

struct refcount_struct {
	struct {
		int counter;
	} refs;
};

/* Some 130 numbers of eight bytes and nothing else, in every kernel that has TCP: NUMBERS_AT() pretends to read it. */
struct linux_mib {
	unsigned long mibs[1];
};

#pragma clang attribute pop

/*
 * The source makes two objects.
 *
 * Default: BTF-typed tracepoints (tp_btf) and fentry/fexit. Arguments are kernel pointers that the verifier knows, so
 * that a field is one load and not a call. Needs BTF of the module that has the hook (5.11,
 * CONFIG_DEBUG_INFO_BTF_MODULES).
 *
 * NFSCOPE_RAW: raw tracepoints by name and kprobes, fields by bpf_probe_read_kernel(). For kernels without module BTF.
 */
#ifdef NFSCOPE_RAW
#define TP(name) SEC("raw_tp/" #name)
#define READ(ptr, ...) BPF_CORE_READ(ptr, __VA_ARGS__)
#else
#define TP(name) SEC("tp_btf/" #name)
#ifdef NFSCOPE_BENCH /* no kernel types are known there */
#define READ1(ptr, a)                                                   \
	((typeof((ptr)->a))(sizeof((ptr)->a) == 8   ? load64(&(ptr)->a) \
			    : sizeof((ptr)->a) == 4 ? load32(&(ptr)->a) \
						    : load32(&(ptr)->a) & 0xffff))
#define READ2(ptr, a, b) READ1(READ1(ptr, a), b)
#else
#define READ1(ptr, a) ((ptr)->a)
#define READ2(ptr, a, b) ((ptr)->a->b)
#endif
#define READ_PICK(_1, _2, name, ...) name
#define READ(ptr, ...) READ_PICK(__VA_ARGS__, READ2, READ1)(ptr, __VA_ARGS__)

extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;
#endif

/*
 * Reads through a pointer that the verifier does not know (void * members, addresses kept in a record), by the address
 * of a relocated field, `&ptr->field`. From 6.2 on a cast turns that into one load that cannot fault. Before 6.2 it is
 * a call of about a hundred instructions.
 */
#ifdef NFSCOPE_RAW
#define HAS_CAST 0
#define CAST(address, type) 0
#else
#define HAS_CAST bpf_ksym_exists(bpf_rdonly_cast)
#define CAST(address, type) bpf_rdonly_cast(address, bpf_core_type_id_kernel(type))
#endif

static __always_inline u64 load64(const void *address)
{
	u64 v;

	if (HAS_CAST)
		return *(const u64 *)CAST(address, struct timespec64);
	/* Gives zeroes if the memory cannot be read. */
	bpf_probe_read_kernel(&v, sizeof(v), address);
	return v;
}

static __always_inline u32 load32(const void *address)
{
	u32 v;

	if (HAS_CAST)
		return *(const u32 *)CAST(address, struct refcount_struct);
	bpf_probe_read_kernel(&v, sizeof(v), address);
	return v;
}

/*
 * Where casts exist, one cast serves all fields of a structure up to its thousandth byte: `numbers = NUMBERS_AT(ptr)`,
 * then LOAD32() or LOAD64() with both for each field. The verifier sees numbers, whatever their type is here.
 */
#define NUMBERS_AT(ptr) (HAS_CAST ? (typeof(ptr))CAST(ptr, struct linux_mib) : (ptr))
#define LOAD32(numbers, ptr, field) (HAS_CAST ? (numbers)->field : load32(ADDRESS((ptr)->field)))
#define LOAD64(numbers, ptr, field) (HAS_CAST ? *(u64 *)ADDRESS((numbers)->field) : load64(ADDRESS((ptr)->field)))

/* True if a test makes this run of a program one that the kernel skips (EV_SKIPPED): lib/tables.h. */
static __always_inline bool is_skipped(void);

/* A program with typed arguments, as BPF_PROG in bpf_tracing.h, whose body returns nothing. */
#define PROGRAM(name, args...)                                                    \
	name(unsigned long long *ctx);                                            \
	static __always_inline void body_##name(unsigned long long *ctx, ##args); \
	int name(unsigned long long *ctx)                                         \
	{                                                                         \
		if (!is_skipped())                                                \
			body_##name(___bpf_ctx_cast(args));                       \
		return 0;                                                         \
	}                                                                         \
	static __always_inline void body_##name(unsigned long long *ctx, ##args)

/*
 * A function that is not static: the verifier checks it once for a program, for all arguments, and not on every path
 * that calls it. POINTERS_VERIFIED_ONCE is for functions that take pointers, which Linux 5.10 does not accept there.
 */
#define VERIFIED_ONCE __noinline
#ifdef NFSCOPE_RAW
#define POINTERS_VERIFIED_ONCE static __noinline
#else
#define POINTERS_VERIFIED_ONCE VERIFIED_ONCE
#endif

static __always_inline struct task_struct *current_task(void)
{
#ifdef NFSCOPE_RAW
	return (void *)bpf_get_current_task();
#else
	return bpf_get_current_task_btf();
#endif
}

#ifdef NFSCOPE_BENCH
#define ADDRESS(lvalue) (&(lvalue))
#undef bpf_core_type_size
#define bpf_core_type_size(type) sizeof(type)
#else
#define ADDRESS(lvalue) __builtin_preserve_access_index(&(lvalue))
#endif

#endif
