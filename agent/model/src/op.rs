//! The values of the label `op`: NFSv3 procedures, NFSACL procedures and NFSv4 operations by the RFCs' names, lower case.

/// NFSv3 procedures by number (RFC 1813 section 3.3).
pub const V3_PROCS: [&str; 22] = [
    "null",
    "getattr",
    "setattr",
    "lookup",
    "access",
    "readlink",
    "read",
    "write",
    "create",
    "mkdir",
    "symlink",
    "mknod",
    "remove",
    "rmdir",
    "rename",
    "link",
    "readdir",
    "readdirplus",
    "fsstat",
    "fsinfo",
    "pathconf",
    "commit",
];

/// Procedures of NFSACL version 3, which Linux and Solaris clients speak beside NFSv3 (fs/nfsd/nfs3acl.c). Its NULL gets a
/// name of its own, so that it does not count as NFSv3's.
pub const ACL_PROCS: [&str; 4] = ["acl_null", "getacl", "setacl", "getxattrdir"];

/// NFSv4 operations by number, from 3: RFC 7530 (to 39), 8881 (to 58), 7862 (to 71), 8276 (to 75).
pub const V4_OPS: [&str; 73] = [
    "access",
    "close",
    "commit",
    "create",
    "delegpurge",
    "delegreturn",
    "getattr",
    "getfh",
    "link",
    "lock",
    "lockt",
    "locku",
    "lookup",
    "lookupp",
    "nverify",
    "open",
    "openattr",
    "open_confirm",
    "open_downgrade",
    "putfh",
    "putpubfh",
    "putrootfh",
    "read",
    "readdir",
    "readlink",
    "remove",
    "rename",
    "renew",
    "restorefh",
    "savefh",
    "secinfo",
    "setattr",
    "setclientid",
    "setclientid_confirm",
    "verify",
    "write",
    "release_lockowner",
    "backchannel_ctl",
    "bind_conn_to_session",
    "exchange_id",
    "create_session",
    "destroy_session",
    "free_stateid",
    "get_dir_delegation",
    "getdeviceinfo",
    "getdevicelist",
    "layoutcommit",
    "layoutget",
    "layoutreturn",
    "secinfo_no_name",
    "sequence",
    "set_ssv",
    "test_stateid",
    "want_delegation",
    "destroy_clientid",
    "reclaim_complete",
    "allocate",
    "copy",
    "copy_notify",
    "deallocate",
    "io_advise",
    "layouterror",
    "layoutstats",
    "offload_cancel",
    "offload_status",
    "read_plus",
    "seek",
    "write_same",
    "clone",
    "getxattr",
    "setxattr",
    "listxattrs",
    "removexattr",
];

/// First NFSv4 operation number.
pub const FIRST_V4_OP: usize = 3;

/// The name of an NFSv4 operation number; `None` outside 3 to 75.
pub fn v4_op(num: usize) -> Option<&'static str> {
    V4_OPS.get(num.checked_sub(FIRST_V4_OP)?).copied()
}

/// All names; a name that several versions share comes more than once.
pub fn names() -> impl Iterator<Item = &'static str> {
    V3_PROCS.into_iter().chain(ACL_PROCS).chain(V4_OPS)
}

/// True where an operation has this name.
pub fn exists(name: &str) -> bool {
    names().any(|n| n == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operation_numbers_stand_where_the_rfcs_put_them() {
        for (num, name) in [
            (3, "access"),
            (9, "getattr"),
            (22, "putfh"),
            (25, "read"),
            (38, "write"),
            (39, "release_lockowner"),
            (42, "exchange_id"),
            (53, "sequence"),
            (58, "reclaim_complete"),
            (59, "allocate"),
            (68, "read_plus"),
            (71, "clone"),
            (72, "getxattr"),
            (75, "removexattr"),
        ] {
            assert_eq!(v4_op(num), Some(name));
        }
        assert_eq!(v4_op(2), None);
        assert_eq!(v4_op(76), None);
        assert_eq!(V3_PROCS[21], "commit");
    }

    #[test]
    fn known_and_unknown() {
        assert!(exists("write") && exists("read_plus") && exists("getacl"));
        assert!(!exists("wirte") && !exists(""));
    }
}
