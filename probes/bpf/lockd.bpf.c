/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lockd: requests of NLM, the locks of NFSv3: how many, how long, and what was answered, by client.
 *
 * Cost: one program for each request of lockd, which serves them one after the other; nothing for those of nfsd.
 *
 * The status is read from the reply itself, which has the same form on every kernel (RFC 5531, section 9). The kernel's
 * own structures of results have changed. A reply that krb5i or krb5p covers has none here.
 */
#include "lib/kernel.h"
#include "lib/histogram.h"
#include "lockd.h"
#include "lib/tables.h"
#include "lib/time_hist.h"
#include "lib/client_address.h"

#define NLM_PROGRAM 100021
#define NLM_LOCK 2
#define NLM_CANCEL 3
#define NLM_GRANTED_RES 15 /* the client has the lock that it waited for */
#define NLM_NM_LOCK 22 /* LOCK of clients without a monitor */
#define NLM_GRANTED 0 /* a status */
#define MOST_VERIFIER 400 /* bytes: RFC 5531, section 8.2 */
#define MOST_COOKIE 1024 /* bytes: LM_MAXSTRLEN; Linux takes 32 */

/* All CPUs share a row: lockd is one thread. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, NLM_PROCS);
	__type(key, u32);
	__type(value, struct lockd_procedure);
} lockd_procedure SEC(".maps");

/* Answers to LOCK, locks that were granted later, and clients that gave up. A new entry displaces the least used
 * one. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 512);
	__type(key, struct lockd_client_key);
	__type(value, u64);
} lockd_client SEC(".maps");

static __always_inline u32 word_at(u64 address)
{
	u32 word = 0;

	if (bpf_probe_read_kernel(&word, sizeof(word), (void *)address))
		return ~0U;
	return bpf_ntohl(word);
}

/* Address behind an opaque of this length, whose length stands before it. */
static __always_inline u64 behind_opaque(u64 at, u32 length)
{
	return at + 4 + ((length + 3) & ~3U);
}

/* Answer of a reply: NLM's status, NLM_NO_STATUS or NLM_NO_REPLY. */
static __always_inline u32 answer_of(struct svc_rqst *rqst)
{
	u64 at = (u64)rqst->rq_res.head[0].iov_base;
	u32 xid = bpf_ntohl(rqst->rq_xid), length, status;

	/* A reply (1) that was accepted (0). */
	if (word_at(at) != xid || word_at(at + 4) != 1 || word_at(at + 8) != 0)
		return NLM_NO_REPLY;
	/* Flavor of the verifier, its length, and the verifier. */
	at += 16;
	length = word_at(at);
	if (length > MOST_VERIFIER)
		return NLM_NO_REPLY;
	at = behind_opaque(at, length);
	if (word_at(at) != 0)
		return NLM_NO_REPLY;
	at += 4;
	length = word_at(at);
	if (length > MOST_COOKIE)
		return NLM_NO_STATUS;
	status = word_at(behind_opaque(at, length));
	return status < NLM_NO_STATUS ? status : NLM_NO_STATUS;
}

/*
 * True if replies of the procedure have a status: NULL, the messages that are answered by a call of their own, and
 * FREE_ALL have none.
 */
static __always_inline bool has_status(u32 procedure)
{
	return (procedure >= 1 && procedure <= 5) || (procedure >= 20 && procedure <= 22);
}

SEC("fexit/nlmsvc_dispatch")
int PROGRAM(lockd_answered, struct svc_rqst *rqst)
{
	struct lockd_procedure *row;
	u32 procedure, answer;

	if (!rqst || rqst->rq_prog != NLM_PROGRAM)
		return;
	/* A read by BPF_CORE_READ, because BTF of lockd may know transports by their name alone. */
	if (table_shape.netns && BPF_CORE_READ(rqst, rq_xprt, xpt_net, ns.inum) != table_shape.netns)
		return;
	procedure = rqst->rq_proc;
	row = row_of(&lockd_procedure, procedure);
	if (!row)
		return;
	answer = answer_of(rqst);
	if (answer != NLM_NO_REPLY && !has_status(procedure))
		answer = NLM_NO_STATUS;
	barrier_var(answer);
	if (answer >= NLM_ANSWERS)
		return;
	add(&row->answers[answer], 1);
	time_hist_add(&row->duration, bpf_ktime_get_ns() - (u64)rqst->rq_stime);
	if (procedure == NLM_GRANTED_RES)
		answer = NLM_GRANTED;
	if (procedure == NLM_CANCEL)
		answer = NLM_CANCELLED;
	if (procedure == NLM_LOCK || procedure == NLM_NM_LOCK || procedure == NLM_GRANTED_RES ||
	    procedure == NLM_CANCEL) {
		struct lockd_client_key key = { .answer = answer };
		u64 zero = 0, *n;

		client_of(rqst, key.client);
		n = bpf_map_lookup_elem(&lockd_client, &key);
		if (!n) {
			bpf_map_update_elem(&lockd_client, &key, &zero, BPF_NOEXIST);
			n = bpf_map_lookup_elem(&lockd_client, &key);
		}
		if (n)
			add(n, 1);
	}
}

char LICENSE[] SEC("license") = "GPL";
