/* SPDX-License-Identifier: GPL-2.0-only */
/* Subscriptions to single operations. Without a subscriber they cost each operation one comparison. */
#ifndef NFSCOPE_WATCHED_H
#define NFSCOPE_WATCHED_H

/* Duration from which operations are reported or grouped: that of the slow ones, or 0 for all. Set by user space. */
volatile u64 watch_from_ns SEC(".data.nfsd_watch") = ~0ULL;

/* Reports an operation of this thread. It looks up the record itself: a pointer to it could not be passed on Linux
 * 5.10. */
VERIFIED_ONCE int op_watched(u32 row, u64 ns, u32 status)
{
	struct request_record *r = request_get();

	if (!r)
		return 0;
	if (breakdown_want.by)
		breakdown_add(r, row, ns, status);
	if (ns > slow_want.over_ns)
		slow_report(r, row, ns, status);
	return 0;
}

#endif
