//! nfscope: where every NFS operation's time goes, on the server.

pub mod model;
pub mod source;
