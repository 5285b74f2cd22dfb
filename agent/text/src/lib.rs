//! Text for people: what the terminal, the log and error messages share. Nothing here knows NFS but for the names of operations.

#![forbid(unsafe_code)]

pub mod console;
pub mod html;
pub mod parse;
pub mod progress_line;
pub mod suggest;
pub mod table;
pub mod timestamp;
pub mod units;
pub mod wrap;
