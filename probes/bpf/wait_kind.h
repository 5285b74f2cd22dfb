/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NFSCOPE_WAIT_KIND_H
#define NFSCOPE_WAIT_KIND_H

/* What an nfsd thread does while it is not on a CPU. */
enum wait {
	RUNQUEUE, /* runnable: waits for a CPU */
	LOG, /* asleep inside a file system's log wait */
	DISK, /* asleep for block I/O, outside the log */
	LOCK, /* any other sleep */
	WAITS,
};

#endif
