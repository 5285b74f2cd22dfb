/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections whose client may take no replies. They are found when user space reads, by some reads of kernel memory a
 * connection, and none a request.
 */
#ifndef NFSCOPE_UNACKNOWLEDGED_H
#define NFSCOPE_UNACKNOWLEDGED_H

#define TCP_CLOSE 7 /* include/net/tcp_states.h */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, UNACKED_ROWS);
	__type(key, u32);
	__type(value, struct unacked);
} nfsd_unacked SEC(".maps");

/* Least time without an acknowledged byte: most round trips are shorter. User space decides with longer times. */
#define UNACKED_FOR_US 500000

static __always_inline bool unacked_known(void)
{
	return bpf_core_field_exists(((struct tcp_sock *)0)->delivered_mstamp) &&
	       bpf_core_field_exists(((struct inet_connection_sock *)0)->icsk_retransmits);
}

/*
 * Notes a connection whose client may take no replies. TCP restarts delivered_mstamp when it sends while nothing is on
 * its way, so that silence before that does not count. Data that arrives behind a lost packet does count as delivered,
 * but timeouts reveal the loss all the same.
 */
static __always_inline void unacked_note(struct svc_xprt *xprt)
{
	struct sock *sk = BPF_CORE_READ((struct svc_sock *)xprt, sk_sk);
	struct inet_connection_sock *icsk = (void *)sk;
	struct tcp_sock *tcp = (void *)sk;
	struct unacked *row;
	u32 first, bytes, retransmits, i;
	u64 delivered = 0;

	if (!unacked_known())
		return;
	first = BPF_CORE_READ(tcp, snd_una);
	bytes = BPF_CORE_READ(tcp, write_seq) - first;
	if (!bytes || BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_CLOSE)
		return;
	retransmits = BPF_CORE_READ(icsk, icsk_retransmits);
	if (BPF_CORE_READ(tcp, packets_out)) {
		delivered = BPF_CORE_READ(tcp, delivered_mstamp);
		if (!retransmits && bpf_ktime_get_ns() / 1000 - delivered < UNACKED_FOR_US)
			return;
	}
	i = transports_now.unacked++;
	row = bpf_map_lookup_elem(&nfsd_unacked, &i);
	if (!row)
		return;
	row->xprt = (u64)xprt;
	address_at((void *)ADDRESS(xprt->xpt_remote), row->client);
	row->delivered_us = delivered;
	row->first = first;
	row->bytes = bytes;
	row->retransmits = retransmits;
	/* No packet is on its way if the client's window is too small for the next one. */
	row->window = delivered ? BPF_CORE_READ(tcp, snd_wnd) : 0;
}

#endif
