/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel types that the probes read, with the fields that they read and no others. Every access is relocated
 * (CO-RE) against the running kernel's BTF, that of its modules included; layout and order here mean nothing.
 *
 * Where kernels differ, the difference stands here and nowhere else, with the commit or the release that made it and
 * when it may go.
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
	unsigned long long run_delay;
};

struct task_struct {
	int pid;
	char comm[16];
	unsigned int in_iowait : 1;
	struct sched_info sched_info;
};

/* net/sunrpc: one RPC service thread, its request and its pool. */
struct kvec {
	void *iov_base;
};

struct xdr_buf {
	struct kvec head[1];
	unsigned int len;
};

struct svc_pool {
	unsigned int sp_id;
	unsigned int sp_nrthreads;
	unsigned int sp_nrthrmax; /* 7.x: dynamic pools */
};

struct svc_xprt {
	unsigned long xpt_flags;
};

/* An address as user space has it, too: sockaddr_in, sockaddr_in6. */
struct __kernel_sockaddr_storage {
	unsigned short ss_family;
	char __data[126];
};

struct svc_rqst {
	struct __kernel_sockaddr_storage rq_addr;
	struct svc_pool *rq_pool;
	u32 rq_prog;
	u32 rq_vers;
	u32 rq_proc;
	s64 rq_stime; /* read from the socket, CLOCK_MONOTONIC */
	__be32 rq_auth_stat;
	__be32 *rq_accept_statp;
	struct xdr_buf rq_arg;
	struct xdr_buf rq_res;
	void *rq_argp;
	void *rq_resp;
};

struct sock {
	void *sk_user_data;
};

struct tcp_sock {
	u32 rcv_nxt;
	u32 copied_seq;
	u32 srtt_us; /* eight times the smoothed round-trip time */
};

/* fs/nfsd: arguments and results. */
struct nfsd4_write {
	u32 wr_stable_how;
	u32 wr_bytes_written;
};

struct nfsd4_op {
	u32 opnum;
	__be32 status;
	union {
		struct nfsd4_write write;
	} u;
};

struct nfsd4_compoundargs {
	u32 minorversion;
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

struct nfsd4_compound_state {
	struct svc_fh current_fh;
};

struct nfsd4_compoundres {
	u32 opcnt;
	struct nfsd4_compound_state cstate;
};

struct nfsd3_writeargs {
	int stable;
};

struct nfsd3_writeres {
	unsigned long count;
};

/* fs */
struct block_device {
	u32 bd_dev;
};

struct super_block {
	u32 s_dev;
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

/* Any structure that begins with a number of eight and of four bytes: what load64() and load32() pretend to read. */
struct timespec64 {
	s64 tv_sec;
};

struct refcount_struct {
	struct {
		int counter;
	} refs;
};

#pragma clang attribute pop

/*
 * One source, two objects.
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
#define READ1(ptr, a) ((ptr)->a)
#define READ2(ptr, a, b) ((ptr)->a->b)
#define READ_PICK(_1, _2, name, ...) name
#define READ(ptr, ...) READ_PICK(__VA_ARGS__, READ2, READ1)(ptr, __VA_ARGS__)

extern void *bpf_rdonly_cast(const void *obj, __u32 btf_id) __ksym __weak;
#endif

/*
 * Reads behind a pointer that the verifier does not know (void * members, addresses kept in a record): by the address
 * of a relocated field, `&ptr->field`. From 6.2 on a cast makes that one load that cannot fault; before it is a call of
 * about a hundred instructions.
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
	u64 v = 0;

	if (HAS_CAST)
		return *(const u64 *)CAST(address, struct timespec64);
	bpf_probe_read_kernel(&v, sizeof(v), address);
	return v;
}

static __always_inline u32 load32(const void *address)
{
	u32 v = 0;

	if (HAS_CAST)
		return *(const u32 *)CAST(address, struct refcount_struct);
	bpf_probe_read_kernel(&v, sizeof(v), address);
	return v;
}

/* A program with typed arguments, as BPF_PROG in bpf_tracing.h, whose body returns nothing. */
#define PROGRAM(name, args...)                                                    \
	name(unsigned long long *ctx);                                            \
	static __always_inline void body_##name(unsigned long long *ctx, ##args); \
	int name(unsigned long long *ctx)                                         \
	{                                                                         \
		body_##name(___bpf_ctx_cast(args));                               \
		return 0;                                                         \
	}                                                                         \
	static __always_inline void body_##name(unsigned long long *ctx, ##args)

#define ADDRESS(lvalue) __builtin_preserve_access_index(&(lvalue))

#endif
