/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections of the server by transport, and the reasons for which connections are closed. Cost: two or three short
 * programs a connection, none a request.
 *
 * The kernel refuses no connection. If too many are open when it accepts another one, it closes the oldest
 * (svc_check_conn_limits in net/sunrpc/svc_xprt.c), and no tracepoint says so. But each other way to close a connection
 * leaves a trace. A client that has closed it has changed TCP's state. A service that gives it up passes tp
 * svc_xprt_close. A connection that was silent for a long time has been taken from the server's list. A server that
 * stops closes it outside of its threads. Kernels such as 6.1 give up a connection with a too long record without that
 * tracepoint: then it is not the oldest one, or fewer connections are open than the limit.
 */
#ifndef NFSCOPE_TRANSPORTS_H
#define NFSCOPE_TRANSPORTS_H

#ifndef NFSCOPE_RAW
#define XPT_TEMP (1UL << 4) /* include/linux/sunrpc/svc_xprt.h: accepted. The same bit on every kernel */
#define TCP_ESTABLISHED 1 /* include/net/tcp_states.h */
#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */
#define TRANSPORTS_AT_MOST 65536 /* connections that one reading counts */

volatile struct transport_counts transport_counts SEC(".data.nfsd_xprt_count");
volatile struct transports_now transports_now SEC(".data.nfsd_xprt_now");

#include "unacknowledged.h"

/*
 * Connections that the service gives up, until they are closed, each at the place that its address names. If two
 * connections with one place are given up at the same time, the earlier one is forgotten.
 */
struct closing {
	u64 xprt;
	u64 at;
};

#define CLOSING_BITS 8

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1 << CLOSING_BITS);
	__type(key, u32);
	__type(value, struct closing);
} nfsd_given_up SEC(".maps");

static __always_inline struct closing *closing_at(u64 xprt)
{
	u32 i = address_place(xprt, CLOSING_BITS);

	return bpf_map_lookup_elem(&nfsd_given_up, &i);
}

static __always_inline bool was_given_up(u64 xprt)
{
	struct closing *closing = closing_at(xprt);

	if (!closing || closing->xprt != xprt)
		return false;
	closing->xprt = 0;
	return true;
}

/* True for the NFS server that is measured: lockd and the callbacks of NFS clients have connections, too. */
static __always_inline bool is_nfs_server(struct svc_serv *serv)
{
	char name[8] = {};

	if (bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(serv, sv_name)) != sizeof("nfsd"))
		return false;
	return name[0] == 'n' && name[1] == 'f' && name[2] == 's' && name[3] == 'd';
}

static __always_inline bool is_netns_here(struct svc_xprt *xprt)
{
	return !table_shape.netns || BPF_CORE_READ(xprt, xpt_net, ns.inum) == table_shape.netns;
}

static __always_inline bool is_server_here(struct svc_xprt *xprt)
{
	return is_nfs_server(BPF_CORE_READ(xprt, xpt_server)) && is_netns_here(xprt);
}

static __always_inline enum transport transport_of(struct svc_xprt_class *class)
{
	switch (BPF_CORE_READ(class, xcl_ident)) {
	case 6: /* IPPROTO_TCP: net/sunrpc/svcsock.c */
		return TRANSPORT_TCP;
	case 17: /* IPPROTO_UDP */
		return TRANSPORT_UDP;
	case 256: /* XPRT_TRANSPORT_RDMA: include/linux/sunrpc/xprt.h */
		return TRANSPORT_RDMA;
	default:
		return TRANSPORT_OTHER;
	}
}

/*
 * Notes that a thread has accepted a connection. A closing that was noted before the thread was told of this connection
 * belongs to an earlier one at the same address, whose end was skipped.
 */
static __always_inline enum transport connection_accepted(struct svc_xprt *xprt, u64 told)
{
	enum transport t = transport_of(BPF_CORE_READ(xprt, xpt_class));
	struct closing *closing = closing_at((u64)xprt);

	if (closing && closing->xprt == (u64)xprt && closing->at < told)
		closing->xprt = 0;
	if (is_server_here(xprt))
		add((u64 *)&transport_counts.accepted[t], 1);
	return t;
}

/* The service gives up a connection, or the client has closed it. */
TP(svc_xprt_close)
int PROGRAM(nfsd_closing, struct svc_xprt *xprt)
{
	u64 key = as_number((u64)xprt, IN_CLOSE);
	struct closing *closing;

	if (!key || !is_server_here((void *)key))
		return;
	closing = closing_at(key);
	if (!closing)
		return;
	closing->at = bpf_ktime_get_ns();
	closing->xprt = key;
}

/*
 * True if the kernel closes a connection because too many are open, as svc_check_conn_limits() does: it closes the
 * oldest one, which stays in the list and still counts. One more than the limit were open before. But the kernel reads
 * their number before it takes the lock under which it chooses. If another connection is closed in between, the limit
 * itself is left.
 */
static __always_inline bool is_one_too_many(struct svc_xprt *xprt, struct svc_serv *serv)
{
	u32 limit = table_shape.limits_unproven ? 64 : (BPF_CORE_READ(serv, sv_nrthreads) + 3) * 20;

	if (bpf_core_field_exists(serv->sv_maxconn))
		limit = BPF_CORE_READ(serv, sv_maxconn) ?: limit;
	if ((u32)BPF_CORE_READ(serv, sv_tmpcnt) < limit)
		return false;
	/* New connections are at the head of the list. If some are exempt, the oldest of the others can be anywhere. */
	return table_shape.limits_unproven || BPF_CORE_READ(xprt, xpt_list.next) == ADDRESS(serv->sv_tempsocks);
}

static __always_inline enum closed_by closed_by(struct svc_xprt *xprt, enum transport t, bool given_up)
{
	struct svc_sock *svsk = (void *)xprt;
	struct list_head *next = BPF_CORE_READ(xprt, xpt_list.next);

	if (t == TRANSPORT_TCP && BPF_CORE_READ(svsk, sk_sk, __sk_common.skc_state) != TCP_ESTABLISHED)
		return CLOSED_CLIENT;
	if (!maybe_nfsd(current_task()) || !BPF_CORE_READ(xprt, xpt_server, sv_nrthreads))
		return CLOSED_SHUTDOWN;
	/* An idle connection was taken from the list by svc_age_temp_xprts(); svc_check_conn_limits() leaves it
	 * there. */
	if (!given_up && next == ADDRESS(xprt->xpt_list))
		return CLOSED_IDLE;
	if (!given_up && is_one_too_many(xprt, BPF_CORE_READ(xprt, xpt_server)))
		return CLOSED_LIMIT;
	/* RDMA has no other sign that the client has gone; svc_xprt_deferred_close() of 6.1 has no tracepoint. */
	return t == TRANSPORT_TCP ? CLOSED_ERROR : CLOSED_CLIENT;
}

/* Counts a connection that is closed. */
TP(svc_xprt_detach)
int PROGRAM(nfsd_detach, struct svc_xprt *it)
{
	u64 key = as_number((u64)it, IN_DETACH);
	struct svc_xprt *xprt = (void *)key;
	enum closed_by why;
	enum transport t;
	bool given_up;

	if (!key)
		return;
	given_up = was_given_up(key);
	if (!(BPF_CORE_READ(xprt, xpt_flags) & XPT_TEMP) || !is_server_here(xprt))
		return;
	t = transport_of(BPF_CORE_READ(xprt, xpt_class));
	why = closed_by(xprt, t, given_up);
	add((u64 *)&transport_counts.closed[t][why], 1);
}

/* A walk through one of a server's two lists, without their lock. */
struct walk {
	u64 server;
	u64 head;
	u64 at;
	u64 class;
	enum transport transport; /* of this class */
	u32 listening;
	u32 done;
};

static long walk_step(u64 i, struct walk *w)
{
	struct svc_xprt *xprt = (void *)(w->at - bpf_core_field_offset(struct svc_xprt, xpt_list));
	u64 next = (u64)BPF_CORE_READ(xprt, xpt_list.next), class;
	u32 t;

	if (w->at == w->head) {
		w->done = 1;
		return 1;
	}
	/* The transport was taken from the list, or freed. */
	if (!next || next == w->at || (u64)BPF_CORE_READ(xprt, xpt_server) != w->server)
		return 1;
	class = (u64)BPF_CORE_READ(xprt, xpt_class);
	if (class != w->class) {
		w->class = class;
		w->transport = transport_of((void *)class);
	}
	t = w->transport;
	if (t < TRANSPORTS) {
		if (w->listening)
			transports_now.listening[t]++;
		else
			transports_now.open[t]++;
	}
	if (w->listening && t == TRANSPORT_TCP)
		transports_now.drops += (u32)BPF_CORE_READ((struct svc_sock *)xprt, sk_sk, sk_drops.counter);
	else if (t == TRANSPORT_TCP)
		unacked_note(xprt);
	w->at = next;
	return 0;
}

static __always_inline void walk(struct svc_serv *serv, struct list_head *head, u32 listening)
{
	struct walk w = {
		.server = (u64)serv,
		.head = (u64)head,
		.at = (u64)BPF_CORE_READ(head, next),
		.listening = listening,
	};

	bpf_loop(TRANSPORTS_AT_MOST, walk_step, &w, 0);
	if (!w.done)
		transports_now.torn = 1;
}

/*
 * Finds the server and its open sockets. The program runs for each thread of the host when user space reads, and at no
 * event; the first thread of the server leads to it.
 */
SEC("iter/task")
int nfsd_transports(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct kthread *thread;
	struct svc_rqst *rqst;
	struct svc_serv *serv;
	struct svc_xprt *first;

	if (transports_now.server || !task || !(task->flags & PF_KTHREAD) || !maybe_nfsd(task) ||
	    !bpf_core_field_exists(task->worker_private) ||
	    !bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_loop))
		return 0;
	thread = BPF_CORE_READ(task, worker_private);
	rqst = BPF_CORE_READ(thread, data);
	serv = BPF_CORE_READ(rqst, rq_server);
	if (!serv || !is_nfs_server(serv))
		return 0;
	/* The namespace is read from a listening socket: a server itself has none. */
	first = (void *)BPF_CORE_READ(serv, sv_permsocks.next) - bpf_core_field_offset(struct svc_xprt, xpt_list);
	if (BPF_CORE_READ(first, xpt_server) != serv || !is_netns_here(first))
		return 0;
	transports_now.server = (u64)serv;
	transports_now.unacked_known = unacked_known();
	transports_now.limited = BPF_CORE_READ(serv, sv_tmpcnt);
	transports_now.threads = BPF_CORE_READ(serv, sv_nrthreads);
	if (bpf_core_field_exists(serv->sv_maxconn))
		transports_now.most = BPF_CORE_READ(serv, sv_maxconn);
	walk(serv, ADDRESS(serv->sv_permsocks), 1);
	walk(serv, ADDRESS(serv->sv_tempsocks), 0);
	return 0;
}
#endif

#endif
