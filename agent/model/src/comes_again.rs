//! Answers after which a client asks again: the server is not the end of such a request, although its part is done.
//!
//! RFC 1813 (2.6), RFC 7530 (13.1) and RFC 8881 (15.1) define the statuses. The Linux client acts on them in `nfs4_handle_exception()`,
//! `nfs4_proc_setlk()` and `nfs4_layoutget_handle_exception()` (fs/nfs/nfs4proc.c), and in `nfs3_async_handle_jukebox()`
//! (fs/nfs/nfs3proc.c). All other statuses are final: the client reports them to its program. Examples are NOENT, ACCESS, EXIST, NOSPC,
//! SHARE_DENIED, and on Linux RESOURCE and LOCKED.

/// How a client goes on after an answer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ComesAgain {
    /// The client waits, and asks for the same thing again. The value is the shortest wait of a Linux client in seconds.
    Later(f64),
    /// The client makes a new lease or session, or recovers its state, and asks for the same thing again.
    Recovers,
}

/// `NFS4_POLL_RETRY_MIN` (fs/nfs/nfs4proc.c): it doubles with each answer, up to 15 s.
const DELAY_SECONDS: f64 = 0.1;
/// `NFS_JUKEBOX_RETRY_TIME` (include/linux/nfs_fs.h).
const JUKEBOX_SECONDS: f64 = 5.0;
/// `NFS4_LOCK_MINTIMEOUT` (fs/nfs/nfs4proc.c): it doubles with each answer, up to 30 s.
const LOCK_SECONDS: f64 = 1.0;
/// Seconds between two attempts to destroy a client id (`nfs4_proc_destroy_clientid()`).
const BUSY_SECONDS: f64 = 1.0;

/// How a client goes on after this answer to an operation, with names as in the labels `op` and `status`; `None` where the answer
/// is final. LOCKT asks who has a lock, so that NFS4ERR_DENIED is its result.
pub fn comes_again(op: &str, status: &str) -> Option<ComesAgain> {
    Some(match status {
        "delay" | "grace" | "file_open" | "layouttrylater" | "recallconflict"
        | "returnconflict" | "back_chan_busy" => ComesAgain::Later(DELAY_SECONDS),
        "jukebox" => ComesAgain::Later(JUKEBOX_SECONDS),
        "denied" if op == "lock" => ComesAgain::Later(LOCK_SECONDS),
        "clientid_busy" => ComesAgain::Later(BUSY_SECONDS),
        "expired"
        | "fhexpired"
        | "clid_inuse"
        | "moved"
        | "stale_clientid"
        | "stale_stateid"
        | "old_stateid"
        | "bad_stateid"
        | "bad_seqid"
        | "lease_moved"
        | "no_grace"
        | "reclaim_bad"
        | "reclaim_conflict"
        | "admin_revoked"
        | "cb_path_down"
        | "badsession"
        | "badslot"
        | "conn_not_bound_to_session"
        | "seq_misordered"
        | "retry_uncached_rep"
        | "seq_false_retry"
        | "bad_high_slot"
        | "deadsession"
        | "deleg_revoked" => ComesAgain::Recovers,
        _ => return None,
    })
}

/// The status in the RFC's spelling: `NFS4ERR_DELAY`.
pub fn rfc_name(version: &str, status: &str) -> String {
    let prefix = if version == "3" { "NFS3ERR" } else { "NFS4ERR" };
    format!("{prefix}_{}", status.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_final_answer_makes_no_client_ask_again() {
        for status in [
            "noent",
            "access",
            "exist",
            "nospc",
            "dquot",
            "share_denied",
            "resource",
            "locked",
            "same",
            "not_same",
            "notsupp",
            "layoutunavailable",
            "too_many_ops",
            "deadlock",
            "complete_already",
        ] {
            assert_eq!(comes_again("open", status), None, "{status}");
        }
        assert_eq!(comes_again("lockt", "denied"), None);
    }

    #[test]
    fn a_client_waits_or_recovers_after_the_other_answers() {
        assert_eq!(comes_again("lock", "denied"), Some(ComesAgain::Later(1.0)));
        assert_eq!(
            comes_again("setattr", "jukebox"),
            Some(ComesAgain::Later(5.0))
        );
        for status in ["delay", "grace", "layouttrylater", "recallconflict"] {
            assert_eq!(
                comes_again("open", status),
                Some(ComesAgain::Later(0.1)),
                "{status}"
            );
        }
        for status in [
            "expired",
            "stale_stateid",
            "stale_clientid",
            "badsession",
            "deadsession",
            "bad_stateid",
            "seq_misordered",
        ] {
            assert_eq!(
                comes_again("sequence", status),
                Some(ComesAgain::Recovers),
                "{status}"
            );
        }
        assert_eq!(rfc_name("4.0", "denied"), "NFS4ERR_DENIED");
        assert_eq!(rfc_name("3", "jukebox"), "NFS3ERR_JUKEBOX");
    }
}
