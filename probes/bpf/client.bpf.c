/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * client: where the RPCs of this host's own NFS mounts spend their time.
 *
 * Cost: one program at the end of an RPC with one look-up in a hash, and two at each sleep of an RPC task, which end
 * at once unless the task waits in a queue with priorities. Facts about the mounts are collected when user space reads
 * /proc/self/mountstats.
 *
 * Times are the kernel's own: the tracepoint carries the values that mountstats adds up.
 */
#include "lib/kernel.h"
#include "lib/histogram.h"
#include "client.h"
#include "lib/tables.h"
#include "lib/time_hist.h"

#define NFS_PROGRAM 100003
#define NFSACL_PROGRAM 100227
#define XPRT_TRANSPORT_TCP 6 /* include/linux/sunrpc/xprt.h */

/* Slots of through_memory. */
enum number { IN_RPC, IN_SLEEP, IN_WAKE, IN_WAKE_CLNT, IN_FREE, NUMBERS };

TABLE(client_number, NUMBERS, enum number, u64);

static __always_inline u64 as_number(const void *pointer, enum number slot)
{
	return through_memory(&client_number, (u64)pointer, slot);
}

/* Numbers of RPC clients. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CLIENT_MOUNTS);
	__type(key, u64);
	__type(value, u32);
} client_clnt SEC(".maps");

/* Numbers not in use. Filled by user space, like the free rows below. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, CLIENT_MOUNTS);
	__type(value, u32);
} client_free SEC(".maps");

SHARDED(client_mount, CLIENT_MOUNTS, u32, struct client_mount);

struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, CLIENT_ROWS);
	__type(value, u32);
} client_free_row SEC(".maps");

/* Rows of the procedures of each RPC client; 0: none yet. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, CLIENT_MOUNTS *CLIENT_PROCS);
	__type(key, u32);
	__type(value, u64);
} client_row SEC(".maps");

SHARDED(client_rpc, CLIENT_ROWS, u32, struct client_rpc);

/* Times since when tasks sleep until a session has a free slot. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, u64);
} client_sleeper SEC(".maps");

TABLE(client_event, CLIENT_EVENTS, enum client_event, u64);

static __always_inline void count(enum client_event e)
{
	u64 *n = row_of(&client_event, e);

	if (n)
		add(n, 1);
}

static __always_inline struct client_mount *mount_at(u32 n)
{
	return n && n < CLIENT_MOUNTS ? bpf_map_lookup_elem(&client_mount, &n) : 0;
}

/* Assigns a number to an RPC client and notes its version and address; 0 without a free number. */
static __noinline u32 mount_make(u64 clnt)
{
	struct rpc_clnt *c = (void *)clnt;
	struct client_mount *m;
	const char *address;
	u32 n = 0, *known;

	if (bpf_map_pop_elem(&client_free, &n)) {
		count(EV_CLIENT_MOUNTS_FULL);
		return 0;
	}
	m = mount_at(n);
	if (!m)
		return 0;
	m->version = BPF_CORE_READ(c, cl_vers);
	m->minor = m->dev = m->min_rtt_us = 0;
	m->gone = 0;
	address = BPF_CORE_READ(c, cl_xprt, address_strings[0]);
	if (bpf_probe_read_kernel_str(m->address, sizeof(m->address), address) < 0)
		m->address[0] = 0;
	if (bpf_map_update_elem(&client_clnt, &clnt, &n, BPF_NOEXIST))
		bpf_map_push_elem(&client_free, &n, 0);
	else
		m->clnt = clnt;
	/* Another CPU may have assigned the number first. */
	known = bpf_map_lookup_elem(&client_clnt, &clnt);
	return known ? *known : 0;
}

static __always_inline u32 mount_of(u64 clnt)
{
	u32 *known = bpf_map_lookup_elem(&client_clnt, &clnt);

	return known ? *known : mount_make(clnt);
}

/* Assigns a row to a procedure, named as mountstats names it; 0 without a free row. */
static __noinline u64 row_make(u64 *cell, u32 mount, u64 name)
{
	struct client_rpc *row;
	u32 n = 0;
	u64 first;

	if (!cell)
		return 0;
	if (bpf_map_pop_elem(&client_free_row, &n)) {
		count(EV_CLIENT_ROWS_FULL);
		return 0;
	}
	row = n && n < CLIENT_ROWS ? bpf_map_lookup_elem(&client_rpc, &n) : 0;
	if (!row)
		return 0;
	if (bpf_probe_read_kernel_str(row->name, sizeof(row->name), (void *)name) < 0)
		row->name[0] = 0;
	first = __sync_val_compare_and_swap(cell, 0, n);
	if (first) {
		bpf_map_push_elem(&client_free_row, &n, 0);
		return first;
	}
	row->mount = mount;
	return n;
}

static __always_inline struct client_rpc *rpc_of(u32 mount, const struct rpc_procinfo *proc)
{
	u32 number = READ(proc, p_statidx), at, n;
	u64 *cell, row;

	if (number >= CLIENT_PROCS) {
		count(EV_CLIENT_ROWS_FULL);
		return 0;
	}
	at = mount * CLIENT_PROCS + number;
	cell = bpf_map_lookup_elem(&client_row, &at);
	if (!cell)
		return 0;
	row = *cell ?: row_make(cell, mount, (u64)READ(proc, p_name));
	n = row;
	return n && n < CLIENT_ROWS ? bpf_map_lookup_elem(&client_rpc, &n) : 0;
}

/* End of an RPC, where the kernel adds it to mountstats. All times are nanoseconds. */
TP(rpc_stats_latency)
int PROGRAM(client_rpc_end, struct rpc_task *task, u64 backlog, u64 round_trip, u64 execute)
{
	const struct rpc_procinfo *proc;
	struct client_mount *m;
	struct client_rpc *row;
	struct rpc_clnt *clnt;
	struct rpc_rqst *rqst;
	u32 program, mount;

	if (!task)
		return;
	clnt = READ(task, tk_client);
	if (!clnt)
		return;
	program = READ(clnt, cl_prog);
	if (program != NFS_PROGRAM && program != NFSACL_PROGRAM)
		return;
	mount = mount_of(as_number(clnt, IN_RPC));
	m = mount_at(mount);
	proc = task->tk_msg.rpc_proc;
	if (!m || !proc)
		return;
	time_hist_add(&m->backlog, backlog);
	time_hist_add(&m->round_trip, round_trip);
	row = rpc_of(mount, proc);
	if (!row)
		return;
	time_hist_add(&row->execute, execute);
	add(&row->backlog_ns, backlog);
	add(&row->round_trip_ns, round_trip);
	if (READ(task, tk_status) < 0)
		add(&row->errors, 1);
	if (READ(task, tk_timeouts))
		add(&row->timeouts, READ(task, tk_timeouts));
	rqst = READ(task, tk_rqstp);
	if (!rqst)
		return;
	if (READ(rqst, rq_ntrans) > 1)
		add(&row->retransmissions, READ(rqst, rq_ntrans) - 1);
	add(&row->sent_bytes, READ(rqst, rq_xmit_bytes_sent));
	add(&row->received_bytes, READ(rqst, rq_reply_bytes_recvd));
}

/* True for a queue in which tasks wait for a slot of a session ("ForeChannel Slot table"), or for its counterpart in
 * NFSv4.0. */
static __always_inline bool is_of_slots(const struct rpc_wait_queue *q)
{
	char name[8] = {};

	/* Most sleeps are for replies, in a queue without priorities. */
	if (!q || !READ(q, maxpriority))
		return false;
	if (bpf_probe_read_kernel_str(name, sizeof(name), (void *)READ(q, name)) < 0)
		return false;
	return (name[0] == 'F' && name[1] == 'o' && name[2] == 'r' && name[3] == 'e') ||
	       (name[0] == 'N' && name[1] == 'F' && name[2] == 'S' && name[3] == 'v');
}

TP(rpc_task_sleep)
int PROGRAM(client_sleep, struct rpc_task *task, struct rpc_wait_queue *q)
{
	u64 key, now;

	if (!task || !is_of_slots(q))
		return;
	key = as_number(task, IN_SLEEP);
	now = bpf_ktime_get_ns();
	bpf_map_update_elem(&client_sleeper, &key, &now, BPF_ANY);
}

TP(rpc_task_wakeup)
int PROGRAM(client_wake, struct rpc_task *task, struct rpc_wait_queue *q)
{
	struct client_mount *m;
	u64 key, *since;

	if (!task || !is_of_slots(q))
		return;
	key = as_number(task, IN_WAKE);
	since = bpf_map_lookup_elem(&client_sleeper, &key);
	if (!since)
		return;
	m = mount_at(mount_of(as_number(READ(task, tk_client), IN_WAKE_CLNT)));
	if (m)
		time_hist_add(&m->slot_wait, elapsed(*since, bpf_ktime_get_ns()));
	bpf_map_delete_elem(&client_sleeper, &key);
}

/* The kernel frees an RPC client, and may give its address to another one. User space keeps the counts, and gives the
 * number back. */
TP(rpc_clnt_free)
int PROGRAM(client_gone, struct rpc_clnt *clnt)
{
	u64 key = as_number(clnt, IN_FREE);
	u32 *n = bpf_map_lookup_elem(&client_clnt, &key);
	struct client_mount *m = n ? mount_at(*n) : 0;

	if (!m)
		return;
	bpf_map_delete_elem(&client_clnt, &key);
	m->gone = 1;
}

/* Lowest round-trip time of the client's TCP connection in the last minutes (net.ipv4.tcp_min_rtt_wlen). */
static __always_inline u32 min_rtt(struct rpc_clnt *clnt)
{
	struct rpc_xprt *xprt = BPF_CORE_READ(clnt, cl_xprt);
	struct tcp_sock *sk;
	u32 us;

	if (!xprt || BPF_CORE_READ(xprt, prot) != XPRT_TRANSPORT_TCP)
		return 0;
	sk = (void *)BPF_CORE_READ((struct sock_xprt *)xprt, inet);
	us = sk ? BPF_CORE_READ(sk, rtt_min.s[0].v) : 0;
	/* The kernel has not measured the time yet. */
	return us == ~0U ? 0 : us;
}

static __always_inline void mount_note(struct rpc_clnt *clnt, u32 minor, u32 dev)
{
	struct client_mount *m = clnt ? mount_at(mount_of((u64)clnt)) : 0;

	if (!m)
		return;
	m->minor = minor + 1;
	m->dev = dev;
	m->min_rtt_us = min_rtt(clnt);
}

/* User space reads mountstats: notes the device and the version of each mount. */
SEC("fentry/nfs_show_stats")
int PROGRAM(client_mounted, struct seq_file *to, struct dentry *root)
{
	struct super_block *sb = BPF_CORE_READ(root, d_sb);
	struct nfs_server *server = BPF_CORE_READ(sb, s_fs_info);
	struct nfs_client *shared = BPF_CORE_READ(server, nfs_client);
	u32 minor = BPF_CORE_READ(shared, cl_minorversion), dev = BPF_CORE_READ(sb, s_dev);

	mount_note(BPF_CORE_READ(server, client), minor, dev);
	mount_note(BPF_CORE_READ(server, client_acl), minor, dev);
	/* Mounts share this RPC client: it has no device of its own. */
	mount_note(BPF_CORE_READ(shared, cl_rpcclient), minor, 0);
}

char LICENSE[] SEC("license") = "GPL";
