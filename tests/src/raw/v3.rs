//! NFSv3 calls, and RPC errors, which are the same for every version.

use anyhow::{Context, Result, ensure};

use super::lab_server::EXPORT;
use super::rpc::{Auth, Call, Reply, Xdr, root_handle};
use super::sent::count;
use super::wire::Wire;
use crate::names::PROC3;

fn procedure(name: &str) -> Result<u32> {
    let number = PROC3.iter().position(|n| *n == name);
    Ok(u32::try_from(number.context("no such procedure")?)?)
}

impl Wire {
    pub(super) fn call3(&mut self, name: &str, body: Xdr) -> Result<Reply> {
        count(&mut self.sent.proc3, name);
        self.exchange(name, &Call::nfs(3, procedure(name)?, body))
    }
}

/// Attributes (sattr3) that set only the mode.
pub(super) fn mode(mode: u32) -> Xdr {
    Xdr::new().u32s(&[1, mode, 0, 0, 0, 0, 0])
}

pub(super) fn calls(wire: &mut Wire) -> Result<()> {
    let root = root_handle(EXPORT)?;
    let on_root = || Xdr::new().opaque(&root);
    let named = |name: &str| on_root().opaque(name.as_bytes());
    let name = format!("raw-{}", std::process::id());
    wire.call3("null", Xdr::new())?;
    wire.call3("getattr", on_root())?;
    wire.call3("access", on_root().u32(0x3f))?;
    wire.call3("fsstat", on_root())?;
    wire.call3("fsinfo", on_root())?;
    wire.call3("pathconf", on_root())?;
    wire.call3("mkdir", named(&name).append(&mode(0o755)))?;
    wire.call3("lookup", named(&name))?;
    wire.call3("rmdir", named(&name))?;
    // The second LOOKUP fails with ENOENT.
    wire.call3("lookup", named(&name))?;
    let unchecked = 0;
    let created = wire.call3("create", named(&name).u32(unchecked).append(&mode(0o644)))?;
    ensure!(
        created.body()?.starts_with(&[0, 0, 0, 0, 0, 0, 0, 1]),
        "CREATE gave no handle: {created:?}"
    );
    let mut created = super::rpc::Cursor(&created.body()?[8..]);
    let file = created.opaque()?.to_vec();
    let on_file = || Xdr::new().opaque(&file);
    for stable in 0..3 {
        let write = on_file().u64(0).u32s(&[512, stable]).opaque(&[b'x'; 512]);
        wire.call3("write", write)?;
    }
    wire.call3("commit", on_file().u64(0).u32(0))?;
    wire.call3("read", on_file().u64(0).u32(512))?;
    wire.call3("setattr", on_file().append(&mode(0o600)).u32(0))?;
    wire.call3("readdir", on_root().u64(0).fixed(&[0; 8]).u32(4096))?;
    wire.call3(
        "readdirplus",
        on_root().u64(0).fixed(&[0; 8]).u32s(&[4096, 8192]),
    )?;
    wire.call3("remove", named(&name))?;
    Ok(())
}

pub(super) fn replay(wire: &mut Wire) -> Result<()> {
    let root = root_handle(EXPORT)?;
    let name = format!("replay-{}", std::process::id());
    let body = Xdr::new()
        .opaque(&root)
        .opaque(name.as_bytes())
        .append(&mode(0o755));
    let mkdir = Call::nfs(3, procedure("mkdir")?, body);
    let xid = 0xabcd_0000 | (std::process::id() & 0xffff);
    for what in ["mkdir", "mkdir replayed"] {
        wire.sent.calls += 1;
        count(&mut wire.sent.proc3, "mkdir");
        wire.connection()?.send_as(xid, &mkdir)?;
        let reply = wire.connection()?.receive()?;
        wire.note(what, &reply);
    }
    wire.sent.cache_hits += 1;
    wire.call3("rmdir", Xdr::new().opaque(&root).opaque(name.as_bytes()))?;
    Ok(())
}

pub(super) fn rpc_errors(wire: &mut Wire) -> Result<()> {
    // The kernel counts the procedure, because it exists, and cannot decode its arguments.
    wire.call3("getattr", Xdr::new())?;
    wire.call3("write", Xdr::new().u32(0xffff_ffff))?;

    let good = Call::nfs(3, 0, Xdr::new());
    let bad = [
        (
            "procedure 99",
            Call {
                procedure: 99,
                ..good.clone()
            },
        ),
        (
            "version 9",
            Call {
                version: 9,
                ..good.clone()
            },
        ),
        (
            "program 100099",
            Call {
                program: 100_099,
                ..good.clone()
            },
        ),
        (
            "RPC version 3",
            Call {
                rpc: 3,
                ..good.clone()
            },
        ),
        (
            "v4 procedure 2",
            Call {
                version: 4,
                procedure: 2,
                ..good.clone()
            },
        ),
    ];
    for (what, call) in bad {
        wire.sent.bad_format += 1;
        wire.exchange(what, &call)?;
    }
    wire.sent.bad_auth += 1;
    let call = Call {
        auth: Auth::Unknown,
        ..good
    };
    wire.exchange("unknown credentials", &call)?;
    Ok(())
}
