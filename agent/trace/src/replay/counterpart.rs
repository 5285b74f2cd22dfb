//! Procedure of NFSv3 that is called in place of a recorded operation.

use super::nfs3::Procedure;
use crate::{Operation, Version};

/// Procedure for an operation; otherwise the reason that there is none.
pub(super) fn of(o: &Operation) -> Result<Procedure, &'static str> {
    use Procedure as P;
    const STATE: &str = "state of NFSv4 (sessions, opens, locks), which NFSv3 does not have";
    const FRAME: &str = "it only frames a COMPOUND of NFSv4, and NFSv3 has no COMPOUNDs";
    const NONE: &str = "NFSv3 has no such operation";
    let v4 = !matches!(o.version, Version::V2 | Version::V3);
    Ok(match o.op.name() {
        "null" => P::Null,
        "getattr" => P::GetAttr,
        "setattr" => P::SetAttr,
        "lookup" | "lookupp" => P::Lookup,
        "access" => P::Access,
        "readlink" => P::ReadLink,
        "read" | "read_plus" => P::Read,
        "write" => P::Write,
        // NFSv4 has CREATE for all but files.
        "create" if v4 => P::MkDir,
        "create" => P::Create,
        // An OPEN that sets a size makes the file, or makes it empty.
        "open" if o.size.is_some() && o.succeeded() => P::Create,
        "open" => P::Lookup,
        "mkdir" => P::MkDir,
        "symlink" => P::SymLink,
        "mknod" => P::MkNod,
        "remove" => P::Remove,
        "rmdir" => P::RmDir,
        "rename" => P::Rename,
        "link" => P::Link,
        "readdir" if v4 => P::ReadDirPlus,
        "readdir" => P::ReadDir,
        "readdirplus" => P::ReadDirPlus,
        "fsstat" | "statfs" => P::FsStat,
        "fsinfo" => P::FsInfo,
        "pathconf" => P::PathConf,
        "commit" => P::Commit,
        "compound" | "putfh" | "putrootfh" | "putpubfh" | "getfh" | "savefh" | "restorefh"
        | "sequence" | "verify" | "nverify" => return Err(FRAME),
        "close"
        | "delegpurge"
        | "delegreturn"
        | "lock"
        | "lockt"
        | "locku"
        | "open_confirm"
        | "open_downgrade"
        | "openattr"
        | "renew"
        | "setclientid"
        | "setclientid_confirm"
        | "release_lockowner"
        | "backchannel_ctl"
        | "bind_conn_to_session"
        | "exchange_id"
        | "create_session"
        | "destroy_session"
        | "free_stateid"
        | "get_dir_delegation"
        | "test_stateid"
        | "want_delegation"
        | "destroy_clientid"
        | "reclaim_complete" => {
            return Err(STATE);
        }
        _ => return Err(NONE),
    })
}

/// True where the file of the operation is a directory in which it works.
pub(super) fn in_directory(procedure: Procedure) -> bool {
    use Procedure as P;
    matches!(
        procedure,
        P::Lookup
            | P::Create
            | P::MkDir
            | P::SymLink
            | P::MkNod
            | P::Remove
            | P::RmDir
            | P::Rename
            | P::ReadDir
            | P::ReadDirPlus
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Op;

    #[test]
    fn each_operation_of_version_3_is_itself_and_framing_has_no_counterpart() {
        let of = |version, op: &str| of(&Operation::new(0, 0, version, Op::named(op).unwrap()));
        for (op, procedure) in [
            ("write", Procedure::Write),
            ("create", Procedure::Create),
            ("readdir", Procedure::ReadDir),
            ("commit", Procedure::Commit),
        ] {
            assert_eq!(of(Version::V3, op), Ok(procedure));
        }
        assert_eq!(of(Version::V4_2, "create"), Ok(Procedure::MkDir));
        assert_eq!(of(Version::V4_2, "open"), Ok(Procedure::Lookup));
        for op in ["sequence", "close", "copy"] {
            assert!(of(Version::V4_2, op).is_err(), "{op}");
        }
    }

    #[test]
    fn an_open_with_a_size_makes_the_file() {
        let mut open = Operation::new(0, 0, Version::V4_2, Op::named("open").unwrap());
        open.size = Some(0);
        assert_eq!(super::of(&open), Ok(Procedure::Create));
        open.status = Some(13);
        assert_eq!(super::of(&open), Ok(Procedure::Lookup));
    }
}
