//! Bytes of a map's value as the type that the probes' headers declare.

use nfscope_probes::types as t;

/// Types that any bytes of their size are a value of: integers and structures of integers, from the objects' BTF.
///
/// # Safety
/// Only for types without invalid values and without references.
pub unsafe trait Pod: Copy {}

macro_rules! pod {
    ($($t:ty),*) => {
        $(
            // SAFETY: an integer or a structure of integers.
            unsafe impl Pod for $t {}
        )*
    };
}

pod!(
    u32,
    u64,
    t::block_key,
    t::block_row,
    t::client_key,
    t::client_row,
    t::error_key,
    t::op_times,
    t::slow_count,
    t::slow_event,
    t::slow_want,
    t::log_row,
    t::pool_now,
    t::pool_row,
    t::time_hist,
    t::version_row,
    t::zfs_dataset_key,
    t::zfs_dataset_now,
    t::zfs_device_key,
    t::zfs_layout,
    t::zfs_pool_key,
    t::zfs_pool_now,
    t::zfs_pool_row
);

/// A value's bytes as a map stores them.
pub fn bytes_of<T: Pod>(value: &T) -> &[u8] {
    // SAFETY: integers, in the layout of the probes' C compiler; padding, where a type has some, is initialised by
    // whoever made the value as a whole, and the kernel ignores it.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// Reads a value; `None` where the length is another type's.
pub fn from_bytes<T: Pod>(bytes: &[u8]) -> Option<T> {
    // Values of per-CPU maps are padded to eight bytes.
    if bytes.len().next_multiple_of(8) != size_of::<T>().next_multiple_of(8)
        || bytes.len() < size_of::<T>()
    {
        return None;
    }
    // SAFETY: at least size_of::<T>() bytes, any of which are a value of a Pod type; the read needs no alignment.
    Some(unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
}
