//! Bytes of a map's value as the type that the probes' headers declare, and back.

use nfscope_probes::Pod;

/// A value's bytes as a map stores them.
pub fn bytes_of<T: Pod>(value: &T) -> &[u8] {
    // SAFETY: integers, in the layout of the probes' C compiler, which is initialised as a whole.
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
