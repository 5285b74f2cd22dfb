/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * zfs: the intent log of OpenZFS. It measures how long threads wait for the log, how long its blocks take to be written
 * and flushed, and to which devices they go. It also measures what takes the place of the log: datasets with
 * sync=disabled, waits for a whole transaction group, the write throttle.
 *
 * A wait is one zil_commit_impl(), which counts itself in the kstat zil_commit_count. zil_commit() around it returns
 * at once on datasets with sync=disabled (module/zfs/zil.c, OpenZFS 2.1 to 2.4).
 *
 * Cost: four programs a wait, three a log block, two for a transaction group and for a wait in the throttle; one short
 * program for every read and write of a vdev.
 */
#include "lib/kernel.h"
#include "lib/histogram.h"
#include "zfs.h"
#include "zfs/kernel.h"
#include "lib/tables.h"
#include "lib/time_hist.h"
#include "lib/waits.h"

TABLE(zfs_event, ZFS_EVENTS, enum zfs_event, u64);

/* Row of each pool, for all CPUs: a row has some 7 KB, and each event that it counts takes at least some ten
 * microseconds. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct zfs_pool_key);
	__type(value, struct zfs_pool_row);
} zfs_pool SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16);
	__type(key, struct zfs_pool_key);
	__type(value, struct zfs_pool_now);
} zfs_pool_now SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct zfs_dataset_key);
	__type(value, struct zfs_dataset_now);
} zfs_dataset SEC(".maps");

/* Bytes of log blocks by vdev. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct zfs_device_key);
	__type(value, u64);
} zfs_device SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, struct zfs_since_key);
	__type(value, struct zfs_since);
} zfs_since SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, u64);
	__type(value, struct zfs_lwb);
} zfs_lwb SEC(".maps");

static __always_inline void count(enum zfs_event e)
{
	u64 *n = row_of(&zfs_event, e);

	if (n)
		add(n, 1);
}

static __always_inline void name_of(u64 spa, struct zfs_pool_key *k)
{
	__builtin_memset(k, 0, sizeof(*k));
	bpf_probe_read_kernel_str(k->name, sizeof(k->name), (void *)spa);
}

static const struct zfs_pool_row no_pool;

static __always_inline struct zfs_pool_row *row_by(struct zfs_pool_key *k)
{
	struct zfs_pool_row *row = bpf_map_lookup_elem(&zfs_pool, k);

	if (row)
		return row;
	bpf_map_update_elem(&zfs_pool, k, &no_pool, BPF_NOEXIST);
	row = bpf_map_lookup_elem(&zfs_pool, k);
	if (!row)
		count(EV_ZFS_FULL);
	return row;
}

static __always_inline struct zfs_pool_row *pool_row(u64 spa)
{
	struct zfs_pool_key k;

	name_of(spa, &k);
	return row_by(&k);
}

/* This thread enters a function; none of the functions in enum zfs_inside calls itself. */
static __always_inline void enter(enum zfs_inside what, u64 spa)
{
	struct zfs_since_key k = { .tid = bpf_get_current_pid_tgid(), .inside = what };
	struct zfs_since now = { .ns = bpf_ktime_get_ns(), .spa = spa };

	if (!bpf_map_update_elem(&zfs_since, &k, &now, BPF_NOEXIST))
		return;
	/* The end of the last call was not seen; or there is no room. */
	count(bpf_map_update_elem(&zfs_since, &k, &now, BPF_EXIST) ? EV_ZFS_FULL : EV_ZFS_UNMATCHED);
}

/* This thread leaves a function. Returns when it entered, and for which pool; 0: not known. */
static __always_inline struct zfs_since leave(enum zfs_inside what)
{
	struct zfs_since_key k = { .tid = bpf_get_current_pid_tgid(), .inside = what };
	struct zfs_since *since = bpf_map_lookup_elem(&zfs_since, &k), was = {};

	if (since) {
		was = *since;
		bpf_map_delete_elem(&zfs_since, &k);
	} else {
		count(EV_ZFS_UNMATCHED);
	}
	return was;
}

/* Counts a commit of a dataset with this `sync`, and remembers the dataset's properties. */
static __always_inline void asked(u64 zilog, u64 spa, u32 sync)
{
	struct zfs_dataset_now now = { .sync = sync, .logbias = FIELD8(zilog, zilog, zl_logbias) }, *known;
	struct zfs_dataset_key k = {};
	struct zfs_pool_now pool = { .separate = has_log_devices(spa) }, *as_known;
	struct zfs_pool_row *row;

	name_of(spa, &k.pool);
	k.objset = objset_of(zilog);
	row = row_by(&k.pool);
	if (!row)
		return;
	barrier_var(sync);
	if (sync < ZFS_SYNCS)
		add(&row->commits[sync], 1);
	known = bpf_map_lookup_elem(&zfs_dataset, &k);
	if (!known || known->sync != now.sync || known->logbias != now.logbias) {
		if (bpf_map_update_elem(&zfs_dataset, &k, &now, BPF_ANY))
			count(EV_ZFS_FULL);
	}
	as_known = bpf_map_lookup_elem(&zfs_pool_now, &k.pool);
	if (!as_known || as_known->separate != pool.separate)
		bpf_map_update_elem(&zfs_pool_now, &k.pool, &pool, BPF_ANY);
}

BEGINNING(zil_commit_impl)
int zfs_wait_begin(void *ctx)
{
	u64 zilog = FIRST(ctx), spa = FIELD64(zilog, zilog, zl_spa);

	enter(IN_COMMIT, spa);
	asked(zilog, spa, FIELD8(zilog, zilog, zl_sync));
	log_enter();
	return 0;
}

END(zil_commit_impl)
int zfs_wait_end(void *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct zfs_since since = leave(IN_COMMIT);
	struct zfs_pool_row *row;

	log_leave();
	if (!since.ns)
		return 0;
	row = pool_row(since.spa);
	if (row)
		time_hist_add(&row->wait, elapsed(since.ns, now));
	return 0;
}

/* The commit is acknowledged without durability. */
BEGINNING(zil_commit)
int zfs_commit(void *ctx)
{
	u64 zilog = FIRST(ctx);

	if (FIELD8(zilog, zilog, zl_sync) == ZFS_DISABLED)
		asked(zilog, FIELD64(zilog, zilog, zl_spa), ZFS_DISABLED);
	return 0;
}

/* A commit that falls through to the sync of a transaction group. */
BEGINNING(txg_wait_synced)
int zfs_txg_wait(void *ctx)
{
	struct zfs_since_key k = { .tid = bpf_get_current_pid_tgid(), .inside = IN_COMMIT };
	struct zfs_since *since = bpf_map_lookup_elem(&zfs_since, &k);
	struct zfs_pool_row *row = since ? pool_row(since->spa) : 0;

	if (row)
		add(&row->txg_waits, 1);
	return 0;
}

/* Called with the block's own address when it is issued, and with other addresses when data that the block refers to
 * joins it. */
BEGINNING(zil_lwb_add_block)
int zfs_lwb_issue(void *ctx)
{
	u64 lwb = FIRST(ctx);
	struct zfs_lwb b = { .issued = bpf_ktime_get_ns() };

	if ((u64)SECOND(ctx) != lwb + OFFSET(lwb, lwb_blk))
		return 0;
	/* An entry whose end was not seen is overwritten, because ZFS uses the structures again. */
	if (bpf_map_update_elem(&zfs_lwb, &lwb, &b, BPF_ANY))
		count(EV_ZFS_FULL);
	return 0;
}

BEGINNING(zil_lwb_write_done)
int zfs_lwb_written(void *ctx)
{
	u64 zio = FIRST(ctx), now = bpf_ktime_get_ns();
	u64 lwb = FIELD64(zio, zio, io_private), target = target_of(lwb);
	struct zfs_pool_row *row = pool_row(FIELD64(zio, zio, io_spa));
	struct zfs_lwb *b = bpf_map_lookup_elem(&zfs_lwb, &lwb);

	barrier_var(target);
	if (!row || target >= ZFS_TARGETS)
		return 0;
	add(&row->bytes[target], FIELD64(zio, zio, io_size));
	if (!b) {
		count(EV_ZFS_UNMATCHED);
		return 0;
	}
	time_hist_add(&row->write[target], elapsed(b->issued, now));
	b->target = target;
	b->written = now;
	return 0;
}

BEGINNING(zil_lwb_flush_vdevs_done)
int zfs_lwb_flushed(void *ctx)
{
	u64 zio = FIRST(ctx), now = bpf_ktime_get_ns();
	u64 lwb = FIELD64(zio, zio, io_private), target;
	struct zfs_pool_row *row = pool_row(FIELD64(zio, zio, io_spa));
	struct zfs_lwb *b = bpf_map_lookup_elem(&zfs_lwb, &lwb);

	if (!b) {
		count(EV_ZFS_UNMATCHED);
		return 0;
	}
	target = b->target;
	barrier_var(target);
	if (row) {
		time_hist_add(&row->commit, elapsed(b->issued, now));
		if (b->written && target < ZFS_TARGETS)
			time_hist_add(&row->flush[target], elapsed(b->written, now));
	}
	bpf_map_delete_elem(&zfs_lwb, &lwb);
	return 0;
}

/* Every read and write of a leaf passes here, before its queue merges it with others. */
BEGINNING(vdev_queue_io)
int zfs_vdev_write(void *ctx)
{
	u64 zio = FIRST(ctx), vd, bytes, *known;
	struct zfs_device_key k = {};

	if (!is_log_block(zio) || FIELD32(zio, zio, io_type) != ZIO_WRITE)
		return 0;
	vd = FIELD64(zio, zio, io_vd);
	name_of(FIELD64(zio, zio, io_spa), &k.pool);
	k.separate = FIELD64(FIELD64(vd, vdev, vdev_top), vdev, vdev_islog) != 0;
	bpf_probe_read_kernel_str(k.path, sizeof(k.path), (void *)FIELD64(vd, vdev, vdev_path));
	bytes = FIELD64(zio, zio, io_size);
	known = bpf_map_lookup_elem(&zfs_device, &k);
	if (!known) {
		/* Another CPU may have added the entry first. */
		if (!bpf_map_update_elem(&zfs_device, &k, &bytes, BPF_NOEXIST))
			return 0;
		known = bpf_map_lookup_elem(&zfs_device, &k);
	}
	if (known)
		add(known, bytes);
	else
		count(EV_ZFS_FULL);
	return 0;
}

BEGINNING(spa_sync)
int zfs_sync_begin(void *ctx)
{
	enter(IN_TXG_SYNC, FIRST(ctx));
	return 0;
}

END(spa_sync)
int zfs_sync_end(void *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct zfs_since since = leave(IN_TXG_SYNC);
	struct zfs_pool_row *row = since.ns ? pool_row(since.spa) : 0;

	if (row)
		time_hist_add(&row->txg_sync, elapsed(since.ns, now));
	return 0;
}

BEGINNING(dmu_tx_wait)
int zfs_throttle(void *ctx)
{
	enter(IN_THROTTLE, pool_of_tx(FIRST(ctx)));
	/* Waits until the pool's disks have taken the data to be written. */
	rare_enter(THROTTLE);
	return 0;
}

END(dmu_tx_wait)
int zfs_unthrottle(void *ctx)
{
	u64 now = bpf_ktime_get_ns();
	struct zfs_since since = leave(IN_THROTTLE);
	struct zfs_pool_row *row = since.ns ? pool_row(since.spa) : 0;

	rare_leave(THROTTLE);
	if (row)
		time_hist_add(&row->throttle, elapsed(since.ns, now));
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
