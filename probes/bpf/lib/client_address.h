/* SPDX-License-Identifier: GPL-2.0-only */
/* Addresses of clients in the form of IPv6; those of IPv4 are mapped. */
#ifndef NFSCOPE_CLIENT_ADDRESS_H
#define NFSCOPE_CLIENT_ADDRESS_H

#define AF_INET 2
#define AF_INET6 10

/* The address of a request's client. */
static __always_inline void client_of(struct svc_rqst *rqst, u64 client[2])
{
	u32 family = READ(rqst, rq_addr.ss_family);

	client[0] = 0;
	client[1] = 0;
#ifdef NFSCOPE_RAW
	if (family == AF_INET) {
		u32 v4;

		bpf_core_read(&v4, sizeof(v4), &rqst->rq_addr.__data[2]);
		client[1] = (u64)v4 << 32 | 0xffff0000;
	} else if (family == AF_INET6) {
		bpf_core_read(client, 16, &rqst->rq_addr.__data[6]);
	}
#else
	if (family == AF_INET) {
		client[1] = (u64) * (u32 *)&rqst->rq_addr.__data[2] << 32 | 0xffff0000;
	} else if (family == AF_INET6) {
		client[0] = *(u64 *)&rqst->rq_addr.__data[6];
		client[1] = *(u64 *)&rqst->rq_addr.__data[14];
	}
#endif
}

#endif
