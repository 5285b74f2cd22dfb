/* SPDX-License-Identifier: GPL-2.0-only */
/* Types that zfs.bpf.c keeps. The Rust side gets these types from the object's BTF. */
#ifndef NFSCOPE_ZFS_H
#define NFSCOPE_ZFS_H

#define POOL_NAME_BYTES 64 /* longer names are cut */
#define DEVICE_PATH_BYTES 128

/* Property `sync` of a dataset: ZFS_SYNC_* of include/sys/fs/zfs.h. */
enum zfs_sync { ZFS_STANDARD, ZFS_ALWAYS, ZFS_DISABLED, ZFS_SYNCS };

/* Device class to which a log block went. */
enum zfs_target { ZFS_MAIN, ZFS_SEPARATE, ZFS_TARGETS };

struct zfs_pool_key {
	u8 name[POOL_NAME_BYTES];
};

/* Row for each pool. */
struct zfs_pool_row {
	struct time_hist wait; /* zil_commit_impl() */
	struct time_hist commit; /* a log block from its issue until it is written and flushed */
	struct time_hist write[ZFS_TARGETS]; /* the same until it is written */
	struct time_hist flush[ZFS_TARGETS]; /* from there on */
	struct time_hist txg_sync; /* spa_sync() */
	struct time_hist throttle; /* dmu_tx_wait() */
	u64 bytes[ZFS_TARGETS]; /* of log blocks */
	u64 commits[ZFS_SYNCS];
	u64 txg_waits; /* in zil_commit_impl() */
};

/* State of each pool, as seen last. */
struct zfs_pool_now {
	u64 separate; /* it has log devices */
};

struct zfs_dataset_key {
	struct zfs_pool_key pool;
	u64 objset;
};

/* State of each dataset, as its last zil_commit() saw it. */
struct zfs_dataset_now {
	u32 sync;
	u32 logbias; /* 0: latency, 1: throughput */
};

struct zfs_device_key {
	struct zfs_pool_key pool;
	u8 path[DEVICE_PATH_BYTES];
	u32 separate;
	u32 unused;
};

/* Functions that a thread can be inside of. */
enum zfs_inside { IN_COMMIT, IN_TXG_SYNC, IN_THROTTLE };

struct zfs_since_key {
	u32 tid;
	u32 inside;
};

struct zfs_since {
	u64 ns;
	u64 spa;
};

/* A log block (struct lwb) being written. */
struct zfs_lwb {
	u64 issued;
	u64 written; /* 0: not yet */
	u64 target;
};

/*
 * Offsets of fields in OpenZFS, in bytes, for modules without BTF. Set by user space (LAYOUTS in its source). Fields at
 * the beginning of their structure in every version are not listed.
 */
struct zfs_layout {
	u32 zl_spa, zl_os, zl_logbias, zl_sync;
	u32 ds_object;
	u32 spa_log_class;
	u32 mc_groups;
	u32 lwb_blk;
	u32 lwb_slog, lwb_slog_bit; /* 2.4: a bit of lwb_flags */
	u32 io_type, io_spa, io_private, io_size, io_vd;
	u32 vdev_top, vdev_islog, vdev_path;
	u32 tx_pool;
};

enum zfs_event {
	EV_ZFS_FULL, /* more pools, datasets, devices, threads or log blocks than rows */
	EV_ZFS_UNMATCHED, /* an end without its start, or a start without its end */
	ZFS_EVENTS,
};

#endif
