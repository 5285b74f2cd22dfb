//! Offsets of fields in a module zfs without BTF: layouts by version.

use nfscope_probes::types as t;

/// Version of the loaded module (`2.1.11-1`).
pub const VERSION: &str = "/sys/module/zfs/version";

/// Advice against a module zfs without BTF.
pub const ZFS_FIX: &str = "build the module where /usr/src/linux-headers-* has the kernel's vmlinux, as Debian's do from Linux 6.12 on: it then has BTF; or tell us the version";

/// Layouts by the first and the last release that have them. They come from the types of modules that were built for Debian's kernels,
/// which have neither lock debugging nor PREEMPT_RT: 2.1.11 and 2.3.2. The other releases have the same declarations before these fields
/// (include/sys/{zil_impl,zio,vdev_impl,spa_impl,metaslab_impl,dsl_dataset,dmu_tx}.h).
const LAYOUTS: [([u32; 3], [u32; 3], t::zfs_layout); 2] = [
    (
        [2, 1, 10],
        [2, 1, 16],
        t::zfs_layout {
            ds_object: 320,
            spa_log_class: 848,
            io_type: 112,
            io_spa: 144,
            io_private: 408,
            io_size: 576,
            io_vd: 592,
            vdev_islog: 11456,
            vdev_path: 13200,
            tx_pool: 48,
            ..COMMON
        },
    ),
    (
        [2, 3, 2],
        [2, 3, 3],
        t::zfs_layout {
            ds_object: 328,
            spa_log_class: 864,
            io_type: 120,
            io_spa: 152,
            io_private: 392,
            io_size: 560,
            io_vd: 576,
            vdev_islog: 11472,
            vdev_path: 13312,
            tx_pool: 40,
            ..COMMON
        },
    ),
];

/// Offsets that both layouts have in common.
const COMMON: t::zfs_layout = t::zfs_layout {
    zl_spa: 56,
    zl_os: 72,
    zl_logbias: 304,
    zl_sync: 305,
    ds_object: 0,
    spa_log_class: 0,
    mc_groups: 64,
    lwb_blk: 8,
    lwb_slog: 140,
    lwb_slog_bit: 0,
    io_type: 0,
    io_spa: 0,
    io_private: 0,
    io_size: 0,
    io_vd: 0,
    vdev_top: 120,
    vdev_islog: 0,
    vdev_path: 0,
    tx_pool: 0,
};

/// Layout of a module without BTF, by its version.
pub fn layout(version: &str) -> Option<t::zfs_layout> {
    let mut numbers = version
        .split(|c: char| !c.is_ascii_digit())
        .map(|n| n.parse().ok());
    let v: [u32; 3] = [numbers.next()??, numbers.next()??, numbers.next()??];
    LAYOUTS
        .iter()
        .find(|(first, last, _)| (*first..=*last).contains(&v))
        .map(|(_, _, l)| *l)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_known_for_the_releases_that_were_looked_at() {
        assert!(layout("2.1.11-1+deb12u1").is_some());
        assert!(layout("2.3.2-2~bpo12+2").is_some());
        assert!(layout("2.1.9-1").is_none());
        assert!(layout("2.3.9").is_none());
        assert!(layout("2.3").is_none());
        assert!(layout("").is_none());
    }
}
