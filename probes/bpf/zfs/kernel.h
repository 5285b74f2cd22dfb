/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The types of OpenZFS that the probe reads, with the fields that it reads and no others.
 *
 * If module zfs has BTF, accesses are relocated against it. If it has none (Debian's zfs-dkms up to Linux 6.1),
 * offsets come from `layout`, which user space fills from its table of versions: the object then needs no type of the
 * kernel.
 *
 * Offsets that are the same on 2.1 to 2.4 are taken for granted: lwb_zilog, spa_name, os_dsl_dataset, dp_spa and
 * io_bookmark stand at their structures' beginning, zb_level behind two numbers.
 */
#ifndef NFSCOPE_ZFS_KERNEL_H
#define NFSCOPE_ZFS_KERNEL_H

/* Layout for the build without BTF; it is in both builds so that user space finds its type. */
const volatile struct zfs_layout layout SEC(".rodata.zfs_layout") = {};

#ifdef NFSCOPE_RAW
#define OFFSET(type, field) layout.field
#define BEGINNING(function) SEC("kprobe/" #function)
#define END(function) SEC("kretprobe/" #function)
#define FIRST(ctx) PT_REGS_PARM1((struct pt_regs *)(ctx))
#define SECOND(ctx) PT_REGS_PARM2((struct pt_regs *)(ctx))
#else
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* Enumerations in ZFS: relocations tell them from integers. */
typedef enum { B_FALSE, B_TRUE } boolean_t;
typedef enum { LWB_FLAG_SLOG = 2 } lwb_flag_t;

enum zio_type { ZIO_TYPE_NULL };

struct metaslab_class {
	u64 mc_groups;
};

struct spa {
	struct metaslab_class *spa_log_class;
};

struct dsl_dataset {
	u64 ds_object;
};

struct zilog {
	void *zl_spa;
	void *zl_os;
	u8 zl_logbias;
	u8 zl_sync;
};

struct blkptr {
	u64 blk_prop;
};

struct lwb {
	struct blkptr lwb_blk;
};

/* Up to 2.3. */
struct lwb___slog {
	boolean_t lwb_slog;
};

/* From 2.4 on. */
struct lwb___flags {
	lwb_flag_t lwb_flags;
};

struct vdev {
	struct vdev *vdev_top;
	char *vdev_path;
	u64 vdev_islog;
};

struct zio {
	enum zio_type io_type;
	void *io_spa;
	void *io_private;
	u64 io_size;
	struct vdev *io_vd;
};

struct dmu_tx {
	void *tx_pool;
};

#pragma clang attribute pop

#define OFFSET(type, field) bpf_core_field_offset(struct type, field)
#define BEGINNING(function) SEC("fentry/" #function)
#define END(function) SEC("fexit/" #function)
#define FIRST(ctx) (((u64 *)(ctx))[0])
#define SECOND(ctx) (((u64 *)(ctx))[1])
#endif

/* Reads fields by the addresses of their structures, which are kept in maps: both builds read them as memory. */
static __always_inline u64 field64(u64 object, u32 offset)
{
	u64 v = 0;

	bpf_probe_read_kernel(&v, sizeof(v), (void *)(object + offset));
	return v;
}

static __always_inline u32 field32(u64 object, u32 offset)
{
	u32 v = 0;

	bpf_probe_read_kernel(&v, sizeof(v), (void *)(object + offset));
	return v;
}

static __always_inline u8 field8(u64 object, u32 offset)
{
	u8 v = 0;

	bpf_probe_read_kernel(&v, sizeof(v), (void *)(object + offset));
	return v;
}

#define FIELD64(object, type, field) field64(object, OFFSET(type, field))
#define FIELD32(object, type, field) field32(object, OFFSET(type, field))
#define FIELD8(object, type, field) field8(object, OFFSET(type, field))

/* Device class to which a log block went. */
static __always_inline enum zfs_target target_of(u64 lwb)
{
#ifdef NFSCOPE_RAW
	return field32(lwb, layout.lwb_slog) >> (layout.lwb_slog_bit & 31) & 1 ? ZFS_SEPARATE : ZFS_MAIN;
#else
	u32 set;

	if (bpf_core_field_exists(struct lwb___slog, lwb_slog))
		set = FIELD32(lwb, lwb___slog, lwb_slog);
	else
		set = FIELD32(lwb, lwb___flags, lwb_flags) & LWB_FLAG_SLOG;
	return set ? ZFS_SEPARATE : ZFS_MAIN;
#endif
}

/* spa_has_slogs() */
static __always_inline bool has_log_devices(u64 spa)
{
	u64 class = FIELD64(spa, spa, spa_log_class);

	return class && FIELD64(class, metaslab_class, mc_groups);
}

static __always_inline u64 objset_of(u64 zilog)
{
	u64 dataset = field64(FIELD64(zilog, zilog, zl_os), 0);

	return FIELD64(dataset, dsl_dataset, ds_object);
}

static __always_inline u64 pool_of_tx(u64 tx)
{
	return field64(FIELD64(tx, dmu_tx, tx_pool), 0);
}

#define ZIO_WRITE 2 /* ZIO_TYPE_WRITE */

/* True for a block of an intent log: ZB_ZIL_LEVEL. */
static __always_inline bool is_log_block(u64 zio)
{
	return (s64)field64(zio, 16) == -2;
}

#endif
