/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef NFSCOPE_WAIT_KIND_H
#define NFSCOPE_WAIT_KIND_H

/* Reasons for which an nfsd thread is not on a CPU. */
enum wait {
	RUNQUEUE, /* runnable: waits for a CPU */
	LOG, /* asleep inside a file system's log wait */
	DISK, /* asleep for block I/O, outside the log */
	LOCK, /* any other sleep */
	WAITS,
	/* Rare reasons. They are kept apart, so that operations without them pay nothing: lib/waits.h. */
	THROTTLE = WAITS, /* asleep because too much written data waits to be stored */
	UPCALL, /* asleep until a daemon answers: rpc.mountd, rpc.idmapd, rpc.svcgssd, nfsdcld */
	RECALL, /* asleep until a client returns a delegation */
	RECLAIM, /* asleep in direct reclaim: the kernel must free memory first */
	ALL_WAITS,
	RARE_WAITS = ALL_WAITS - WAITS,
};

#endif
