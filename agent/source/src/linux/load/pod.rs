//! Bytes of a map's value as the type that the probes' headers declare, and back.

use nfscope_probes::Pod;
use std::mem::MaybeUninit;

/// A value's bytes as a map stores them.
pub fn bytes_of<T: Pod>(value: &T) -> &[u8] {
    // SAFETY: integers, in the layout of the probes' C compiler, which is initialised as a whole.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(value).cast(), size_of::<T>()) }
}

/// Value with all bytes zero.
pub fn zero<T: Pod>() -> T {
    // SAFETY: integers, of which zero is a value.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// Value as words of 64 bits, as far as whole words fit and the type is aligned to them; otherwise empty.
pub fn words_of<T: Pod>(value: &mut T) -> &mut [u64] {
    if !align_of::<T>().is_multiple_of(align_of::<u64>()) {
        return &mut [];
    }
    // SAFETY: within the value, aligned, and any bytes are a value of a Pod type.
    unsafe { std::slice::from_raw_parts_mut(std::ptr::from_mut(value).cast(), size_of::<T>() / 8) }
}

/// Reads a value; `None` if the length does not match the type.
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
