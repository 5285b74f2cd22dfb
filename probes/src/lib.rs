//! The kernel side of nfscope.
