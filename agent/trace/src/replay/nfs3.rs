//! Procedures of NFSv3 (RFC 1813) and of its MOUNT protocol.

use super::rpc::{self, Caller, Credentials};
use super::xdr::{Decoder, Encoder, invalid};
use anyhow::Context;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

/// File handle of the server that is replayed to.
pub(super) type Handle = Box<[u8]>;

/// Numbers of the procedures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub(super) enum Procedure {
    Null = 0,
    GetAttr = 1,
    SetAttr = 2,
    Lookup = 3,
    Access = 4,
    ReadLink = 5,
    Read = 6,
    Write = 7,
    Create = 8,
    MkDir = 9,
    SymLink = 10,
    MkNod = 11,
    Remove = 12,
    RmDir = 13,
    Rename = 14,
    Link = 15,
    ReadDir = 16,
    ReadDirPlus = 17,
    FsStat = 18,
    FsInfo = 19,
    PathConf = 20,
    Commit = 21,
}

/// A server and an export: `SERVER:/EXPORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Name or address.
    pub host: String,
    /// Path that the server exports.
    pub export: String,
}

impl std::str::FromStr for Target {
    type Err = String;

    /// Parses `SERVER:/EXPORT`; an IPv6 address stands in brackets.
    fn from_str(text: &str) -> Result<Target, String> {
        let wrong = || {
            format!(
                "`{text}` is no export: write SERVER:/EXPORT, as mount does; an IPv6 address in brackets"
            )
        };
        let (host, export) = match text.strip_prefix('[') {
            Some(rest) => rest.split_once("]:").ok_or_else(wrong)?,
            None => text.split_once(':').ok_or_else(wrong)?,
        };
        if host.is_empty() || !export.starts_with('/') {
            return Err(wrong());
        }
        Ok(Target {
            host: host.to_owned(),
            export: export.to_owned(),
        })
    }
}

impl Target {
    /// Addresses of the server.
    ///
    /// # Errors
    /// When the name is not known.
    pub fn addresses(&self) -> anyhow::Result<Vec<IpAddr>> {
        let addresses: Vec<_> = (self.host.as_str(), 0)
            .to_socket_addrs()
            .with_context(|| format!("no address is known for {}", self.host))?
            .map(|a| a.ip())
            .collect();
        anyhow::ensure!(
            !addresses.is_empty(),
            "no address is known for {}",
            self.host
        );
        Ok(addresses)
    }
}

/// Ports that are not asked of the server's rpcbind.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ports {
    /// Port of NFS.
    pub nfs: Option<u16>,
    /// Port of MOUNT.
    pub mount: Option<u16>,
}

/// An export of which the root's handle is known.
#[derive(Debug, Clone)]
pub(super) struct Mounted {
    pub(super) address: SocketAddr,
    pub(super) root: Handle,
}

/// Asks the server for the root of the export.
pub(super) fn mount(target: &Target, ports: Ports, who: Credentials) -> anyhow::Result<Mounted> {
    let ip = target.addresses()?[0];
    let nfs = match ports.nfs {
        Some(port) => port,
        None => port(ip, rpc::NFS, "NFSv3", who)?,
    };
    let mount = match ports.mount {
        Some(port) => port,
        None => port(ip, rpc::MOUNT, "MOUNT version 3", who)?,
    };
    let root = root(SocketAddr::new(ip, mount), &target.export, who)
        .with_context(|| format!("{}:{} cannot be mounted", target.host, target.export))?;
    Ok(Mounted {
        address: SocketAddr::new(ip, nfs),
        root,
    })
}

/// Port of a program by the server's rpcbind.
fn port(ip: IpAddr, program: (u32, u32), name: &str, who: Credentials) -> anyhow::Result<u16> {
    let ask = || -> io::Result<u32> {
        let stream = rpc::connect(SocketAddr::new(ip, 111))?;
        let mut rpcbind = Caller::new(stream, who);
        let arguments = |e: &mut Encoder| {
            e.u32(program.0).u32(program.1).u32(6).u32(0);
        };
        rpcbind.call(rpc::PORTMAP, 3, arguments, &[])?.u32()
    };
    let port = ask().with_context(|| {
        format!("the rpcbind of {ip} (port 111) cannot be asked for {name}: give --nfs-port and --mount-port")
    })?;
    u16::try_from(port)
        .ok()
        .filter(|p| *p != 0)
        .with_context(|| {
            format!("{ip} does not serve {name} over TCP: replay needs it, a server of NFSv4 alone cannot be replayed to")
        })
}

fn root(mountd: SocketAddr, export: &str, who: Credentials) -> anyhow::Result<Handle> {
    let mut mountd = Caller::new(rpc::connect(mountd)?, who);
    let arguments = |e: &mut Encoder| {
        e.opaque(export.as_bytes());
    };
    let mut d = mountd.call(rpc::MOUNT, 1, arguments, &[])?;
    match d.u32()? {
        0 => Ok(d.opaque()?.into()),
        2 => anyhow::bail!("there is no such export"),
        13 => anyhow::bail!(
            "the server does not allow it for this host: see /etc/exports there; a process without privileges also needs `insecure`"
        ),
        n => anyhow::bail!("the server refuses it (mountstat3 {n})"),
    }
}

/// Status of a procedure, as in the label `status` of the metrics; "ok" for success.
pub(super) fn status_name(status: u32) -> String {
    match status {
        0 => "ok",
        1 => "perm",
        2 => "noent",
        5 => "io",
        6 => "nxio",
        13 => "access",
        17 => "exist",
        18 => "xdev",
        19 => "nodev",
        20 => "notdir",
        21 => "isdir",
        22 => "inval",
        27 => "fbig",
        28 => "nospc",
        30 => "rofs",
        31 => "mlink",
        63 => "nametoolong",
        66 => "notempty",
        69 => "dquot",
        70 => "stale",
        10001 => "badhandle",
        10002 => "not_sync",
        10003 => "bad_cookie",
        10004 => "notsupp",
        10005 => "toosmall",
        10006 => "serverfault",
        10007 => "badtype",
        10008 => "jukebox",
        n => return format!("status_{n}"),
    }
    .to_owned()
}

/// Arguments `sattr3` with nothing but a mode and a size.
pub(super) fn attributes(e: &mut Encoder, mode: Option<u32>, size: Option<u64>) {
    match mode {
        Some(mode) => e.u32(1).u32(mode),
        None => e.u32(0),
    };
    // User and group.
    e.u32(0).u32(0);
    match size {
        Some(size) => e.u32(1).u64(size),
        None => e.u32(0),
    };
    // Times of access and modification.
    e.u32(0).u32(0);
}

/// Skips `post_op_attr`.
fn skip_attributes(d: &mut Decoder<'_>) -> io::Result<()> {
    if d.bool()? {
        d.bytes(84)?;
    }
    Ok(())
}

/// Handle in the results of CREATE, MKDIR, SYMLINK and MKNOD behind their status; `None` if the server does not send it.
pub(super) fn made(d: &mut Decoder<'_>) -> io::Result<Option<Handle>> {
    Ok(if d.bool()? {
        Some(d.opaque()?.into())
    } else {
        None
    })
}

/// Bytes in the results of READ behind their status.
pub(super) fn read_bytes(d: &mut Decoder<'_>) -> io::Result<u32> {
    skip_attributes(d)?;
    d.u32()
}

/// Bytes in the results of WRITE behind their status.
pub(super) fn written_bytes(d: &mut Decoder<'_>) -> io::Result<u32> {
    if d.bool()? {
        d.bytes(24)?;
    }
    skip_attributes(d)?;
    d.u32()
}

/// Calls of the preparation, one after the other.
impl Caller {
    fn nfs(
        &mut self,
        what: Procedure,
        arguments: impl FnOnce(&mut Encoder),
        data: &[u8],
    ) -> anyhow::Result<Decoder<'_>> {
        let mut d = self.call(rpc::NFS, what as u32, arguments, data)?;
        match d.u32()? {
            0 => Ok(d),
            status => anyhow::bail!("{what:?} failed: {}", status_name(status)),
        }
    }

    pub(super) fn lookup(&mut self, directory: &[u8], name: &str) -> anyhow::Result<Handle> {
        let arguments = |e: &mut Encoder| {
            e.opaque(directory).opaque(name.as_bytes());
        };
        Ok(self
            .nfs(Procedure::Lookup, arguments, &[])?
            .opaque()?
            .into())
    }

    /// Makes a file that does not exist (GUARDED).
    pub(super) fn create(&mut self, directory: &[u8], name: &str) -> anyhow::Result<Handle> {
        let arguments = |e: &mut Encoder| {
            e.opaque(directory).opaque(name.as_bytes()).u32(1);
            attributes(e, Some(0o600), None);
        };
        match made(&mut self.nfs(Procedure::Create, arguments, &[])?)? {
            Some(handle) => Ok(handle),
            None => self.lookup(directory, name),
        }
    }

    pub(super) fn mkdir(&mut self, directory: &[u8], name: &str) -> anyhow::Result<Handle> {
        let arguments = |e: &mut Encoder| {
            e.opaque(directory).opaque(name.as_bytes());
            attributes(e, Some(0o700), None);
        };
        match made(&mut self.nfs(Procedure::MkDir, arguments, &[])?)? {
            Some(handle) => Ok(handle),
            None => self.lookup(directory, name),
        }
    }

    pub(super) fn symlink(&mut self, directory: &[u8], name: &str) -> anyhow::Result<Handle> {
        let arguments = |e: &mut Encoder| {
            e.opaque(directory).opaque(name.as_bytes());
            attributes(e, None, None);
            e.opaque(b"target");
        };
        match made(&mut self.nfs(Procedure::SymLink, arguments, &[])?)? {
            Some(handle) => Ok(handle),
            None => self.lookup(directory, name),
        }
    }

    pub(super) fn set_size(&mut self, file: &[u8], size: u64) -> anyhow::Result<()> {
        let arguments = |e: &mut Encoder| {
            e.opaque(file);
            attributes(e, None, Some(size));
            e.u32(0);
        };
        self.nfs(Procedure::SetAttr, arguments, &[]).map(drop)
    }

    /// Writes UNSTABLE data.
    pub(super) fn write(&mut self, file: &[u8], offset: u64, data: &[u8]) -> anyhow::Result<()> {
        let length = data.len() as u32;
        let arguments = |e: &mut Encoder| {
            e.opaque(file).u64(offset).u32(length).u32(0).u32(length);
        };
        let written = written_bytes(&mut self.nfs(Procedure::Write, arguments, data)?)?;
        anyhow::ensure!(
            written == length,
            "the server wrote {written} of {length} bytes"
        );
        Ok(())
    }

    pub(super) fn commit(&mut self, file: &[u8]) -> anyhow::Result<()> {
        let arguments = |e: &mut Encoder| {
            e.opaque(file).u64(0).u32(0);
        };
        self.nfs(Procedure::Commit, arguments, &[]).map(drop)
    }

    pub(super) fn remove(&mut self, directory: &[u8], name: &[u8]) -> anyhow::Result<()> {
        let arguments = |e: &mut Encoder| {
            e.opaque(directory).opaque(name);
        };
        self.nfs(Procedure::Remove, arguments, &[]).map(drop)
    }

    pub(super) fn rmdir(&mut self, directory: &[u8], name: &[u8]) -> anyhow::Result<()> {
        let arguments = |e: &mut Encoder| {
            e.opaque(directory).opaque(name);
        };
        self.nfs(Procedure::RmDir, arguments, &[]).map(drop)
    }

    /// Largest READ and WRITE of the server, in bytes.
    pub(super) fn transfer_sizes(&mut self, root: &[u8]) -> anyhow::Result<(u32, u32)> {
        let arguments = |e: &mut Encoder| {
            e.opaque(root);
        };
        let mut d = self.nfs(Procedure::FsInfo, arguments, &[])?;
        skip_attributes(&mut d)?;
        let read = d.u32()?;
        d.bytes(8)?;
        let write = d.u32()?;
        anyhow::ensure!(
            read > 0 && write > 0,
            "the server allows READs and WRITEs of 0 bytes"
        );
        Ok((read, write))
    }

    /// Bytes that this user may still store in the file system.
    pub(super) fn available(&mut self, root: &[u8]) -> anyhow::Result<u64> {
        let arguments = |e: &mut Encoder| {
            e.opaque(root);
        };
        let mut d = self.nfs(Procedure::FsStat, arguments, &[])?;
        skip_attributes(&mut d)?;
        d.bytes(16)?;
        Ok(d.u64()?)
    }

    /// Some names of a directory without `.` and `..`; none if it is empty.
    pub(super) fn names(&mut self, directory: &[u8]) -> anyhow::Result<Vec<Vec<u8>>> {
        let arguments = |e: &mut Encoder| {
            e.opaque(directory).u64(0).u64(0).u32(32 << 10);
        };
        let mut d = self.nfs(Procedure::ReadDir, arguments, &[])?;
        skip_attributes(&mut d)?;
        d.bytes(8)?;
        let mut names = Vec::new();
        while d.bool()? {
            d.u64()?;
            let name = d.opaque()?;
            d.u64()?;
            if name != b"." && name != b".." {
                if name.contains(&b'/') {
                    return Err(invalid("the server lists a name with a slash").into());
                }
                names.push(name.to_vec());
            }
        }
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_server_and_a_path() {
        let target = |text: &str| text.parse::<Target>();
        let two = |host: &str, export: &str| Target {
            host: host.into(),
            export: export.into(),
        };
        assert_eq!(target("nas:/srv/a").unwrap(), two("nas", "/srv/a"));
        assert_eq!(target("[::1]:/x").unwrap(), two("::1", "/x"));
        for wrong in ["/srv", "nas", ":/x", "nas:x", "[::1]/x"] {
            assert!(target(wrong).unwrap_err().contains("SERVER:/EXPORT"));
        }
    }
}
