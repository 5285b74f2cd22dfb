/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NFSCOPE_JBD2_H
#define NFSCOPE_JBD2_H

/* Per filesystem device (dev_t as in struct block_device) and CPU. */
struct journal_row {
	struct time_hist wait;
	struct time_hist commit;
};

enum journal_event {
	EV_JOURNAL_FULL, /* more filesystems than rows */
	EV_JOURNAL_UNMATCHED, /* an end without its start: begun before attach, or no memory for the record */
	JOURNAL_EVENTS,
};

#endif
