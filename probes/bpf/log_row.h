/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NFSCOPE_LOG_ROW_H
#define NFSCOPE_LOG_ROW_H

enum log_target {
	LOG_MAIN, /* on the file system's own device */
	LOG_SEPARATE, /* on a device of its own */
	LOG_TARGETS,
};

/* Row for each file system, by the device that it is mounted from (dev_t as in struct block_device). */
struct log_row {
	struct time_hist wait; /* of threads, for the log */
	struct time_hist commit; /* writes of the log itself */
	u64 bytes[LOG_TARGETS];
};

enum log_event {
	EV_LOG_FULL, /* more file systems than rows */
	EV_LOG_UNMATCHED, /* an end without its beginning, or the other way round: the kernel skipped the other one, or
			     it came before attach */
	LOG_EVENTS,
};

#endif
