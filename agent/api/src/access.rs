//! Classes of access: which peers may read an answer, by the names in the answer.

use serde::{Deserialize, Serialize};

const DETAILS: &str = "slow and stuck operations, break-downs, snapshots and recordings name clients and files, and are served on this host only; \
    [web] allow_details \
    (--web.allow-details) of the agent allows them to everybody who can connect, and a web configuration with passwords or \
    certificates of clients to those who have them";

const FILE_NAMES: &str = "break-downs by user and by file are served on this host only; [web] allow_file_names \
    (--web.allow-file-names) of the agent allows them to those on other hosts who may read slow operations";

/// Class of an answer, by the names in it. A peer may read its own class and all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Access {
    /// No files: for every peer that can connect.
    Everybody,
    /// Clients and files: for peers on this host, for those that authenticate, or as `allow_details` says.
    Details,
    /// Users and the files that they work on: for peers on this host, or as `allow_file_names` says.
    FileNames,
}

impl Access {
    /// Reason that a peer of a lower class gets, with the setting that would let it read.
    pub fn refusal(self) -> &'static str {
        match self {
            Access::Everybody | Access::Details => DETAILS,
            Access::FileNames => FILE_NAMES,
        }
    }
}
