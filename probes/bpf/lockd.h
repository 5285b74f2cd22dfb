/* SPDX-License-Identifier: GPL-2.0-only */
/* Types that lockd.bpf.c keeps. The Rust side gets these types from the object's BTF. */
#ifndef NFSCOPE_LOCKD_H
#define NFSCOPE_LOCKD_H

/* Procedures of NLM (RFC 1813, appendix II; X/Open XNFS, chapter 10): 0 to 23. */
#define NLM_PROCS 24
/* Answers: the statuses 0 to 9, and these two. */
#define NLM_NO_STATUS 10 /* the reply has none, or it cannot be read */
#define NLM_NO_REPLY 11 /* dropped, or refused before it was executed */
#define NLM_ANSWERS 12

/* Requests of a procedure. */
struct lockd_procedure {
	u64 answers[NLM_ANSWERS];
	struct time_hist duration; /* from reading a request until it was answered */
};

/* Answer number for a client that gives up a lock for which it waits. */
#define NLM_CANCELLED 12

/* Answers of one status to LOCK of one client. Locks that were granted later count as granted. */
struct lockd_client_key {
	u64 client[2]; /* as IPv6 has it */
	u64 answer;
};

#endif
