//! Classes of access: who may read an answer, by what the answer names.

use serde::{Deserialize, Serialize};

const DETAILS: &str = "slow and stuck operations, break-downs, snapshots and recordings name clients and files, and are served on this host only; \
    [web] allow_details \
    (--web.allow-details) of the agent allows them to everybody who can connect, and a web configuration with passwords or \
    certificates of clients to those who have them";

const FILE_NAMES: &str = "break-downs by user and by file are served on this host only; [web] allow_file_names \
    (--web.allow-file-names) of the agent allows them to those on other hosts who may read slow operations";

/// The class of an answer by what it names. A peer may read its own class and all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Access {
    /// No files: for everybody who can connect.
    Everybody,
    /// Clients and files: for this host, for those who authenticate, or as `allow_details` says.
    Details,
    /// Users and the files that they work on: for this host, or as `allow_file_names` says.
    FileNames,
}

impl Access {
    /// The reason for a peer of a lower class, with the setting that lets it read.
    pub fn refusal(self) -> &'static str {
        match self {
            Access::Everybody | Access::Details => DETAILS,
            Access::FileNames => FILE_NAMES,
        }
    }
}
