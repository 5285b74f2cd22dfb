/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections with requests that arrived and that no thread has taken. Where every thread hangs, nothing runs any more
 * that could count them. So this program is attached to nothing: user space runs it (BPF_PROG_TEST_RUN), from a place
 * in the table of connections on.
 *
 * Bytes that a thread has read of a request, whole or not, have left the socket: copied_seq says how far. A request
 * whose rest has not come yet is therefore not pending, and a FIN, which counts as one byte, is no request. Three
 * kinds of sockets are left out: those with TLS, where part of a record stays in the socket; those whose client takes
 * no replies (svc_tcp_has_wspace in net/sunrpc/svcsock.c), which threads are right to leave alone; and those that the
 * server has given up (svc_sock_detach).
 */
#ifndef NFSCOPE_PENDING_H
#define NFSCOPE_PENDING_H

#ifndef NFSCOPE_RAW
#define PENDING_NS 1000000000ULL /* younger requests are on their way to a thread */
#define PENDING_AT_A_TIME 64 /* connections */
#define SOCK_NOSPACE 2 /* include/linux/net.h */
#define RECORD_MARKER 4 /* bytes: RFC 5531, section 11 */

volatile struct pending pending SEC(".data.nfsd_pending_now");

static __always_inline bool is_readable(struct connection *c)
{
	struct sock *sk = (void *)c->sk;

	return BPF_CORE_READ(sk, sk_user_data) == (void *)c->xprt &&
	       !BPF_CORE_READ((struct inet_connection_sock *)sk, icsk_ulp_ops) &&
	       !(BPF_CORE_READ(sk, sk_socket, flags) & (1UL << SOCK_NOSPACE));
}

/* Arrival of the oldest bytes that no thread has read; 0 without such bytes. */
static __always_inline u64 pending_since(struct connection *c)
{
	struct tcp_sock *tcp = (void *)c->sk;
	struct arrivals *a = &c->arrivals;
	u32 i = a->tail, copied_seq = BPF_CORE_READ(tcp, copied_seq);

	if ((s32)(BPF_CORE_READ(tcp, rcv_nxt) - copied_seq) < RECORD_MARKER)
		return 0;
	/* The first entry has been read as a rule: its end is that of the last request. */
	for (int n = 0; n < 2 && i != a->head; n++, i++) {
		if ((s32)(a->end_seq[i % RING] - copied_seq) > 0)
			return a->ready_ns[i % RING];
	}
	return 0;
}

/* Counts the connection at this place if it has a pending request. */
VERIFIED_ONCE int pending_at(u32 place, u64 now)
{
	struct connection *c = connection_at(place);
	struct arrivals *a;
	u64 since;

	if (!c || !c->xprt)
		return 0;
	a = &c->arrivals;
	/* Even the oldest entry is too young to be pending. */
	if (a->head == a->tail || now - a->ready_ns[a->tail % RING] < PENDING_NS)
		return 0;
	since = pending_since(c);
	if (!since || now < since + PENDING_NS || !is_readable(c) || !is_server_here((void *)c->xprt))
		return 0;
	pending.connections++;
	if (!pending.since_ns || since < pending.since_ns)
		pending.since_ns = since;
	return 0;
}

/* Counts pending connections; the first argument is the first place. */
SEC("raw_tp")
int nfsd_pending(struct bpf_raw_tracepoint_args *ctx)
{
	u64 now = bpf_ktime_get_ns();
	u32 first = ctx->args[0];

	for (u32 n = 0; n < PENDING_AT_A_TIME; n++)
		pending_at(first + n, now);
	return 0;
}
#endif

#endif
