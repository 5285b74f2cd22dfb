//! A raw client: its own connection, and the operation that it repeats over it.

use std::net::Ipv4Addr;

use anyhow::{Context, Result, bail, ensure};

use super::client_load::ClientLoad;
use super::lab_server::NFS_PORT;
use super::operation::Operation;
use super::rpc::{Call, Connection, Cursor, Reply, Xdr};
use super::v3;
use super::v4::{self, Op, Session, op};
use super::wire::Wire;

/// A client, prepared for its operation.
pub(super) struct Client<'a> {
    load: &'a ClientLoad,
    n: u32,
    pub wire: Wire,
    directory: Vec<u8>,
    file: Vec<u8>,
    major: u32,
    minor: u32,
    session: Option<Session>,
}

impl<'a> Client<'a> {
    pub fn prepare(
        load: &'a ClientLoad,
        n: u32,
        address: Ipv4Addr,
        root: &[u8],
    ) -> Result<Client<'a>> {
        let mut wire = Wire {
            connection: Some(Connection::open_from(address, NFS_PORT, load.buffer)?),
            user: load.user,
            ..Wire::default()
        };
        let file = match load.operation {
            Operation::Read => look_up(&mut wire, root, &load.file)?,
            Operation::Write if load.together => look_up(&mut wire, root, &load.file)?,
            Operation::Write | Operation::Rename | Operation::Lookup | Operation::Revalidate => {
                create(&mut wire, root, &own_name(n))?
            }
            _ => Vec::new(),
        };
        let (major, minor) = load.nfs.split_once('.').unwrap_or((&load.nfs, "0"));
        let (major, minor) = (major.parse()?, minor.parse()?);
        let session = match (major, minor) {
            (3, _) | (4, 0) => None,
            _ => Some(Session::open(&mut wire, minor)?),
        };
        Ok(Client {
            load,
            n,
            wire,
            directory: root.to_vec(),
            file,
            major,
            minor,
            session,
        })
    }

    /// Sends the operation once more.
    pub fn go(&mut self, step: u32) -> Result<()> {
        if self.major == 3 {
            self.over_v3(step)
        } else {
            self.over_v4(step)
        }
    }

    /// Ends the client's session.
    pub fn end(mut self) -> Result<Wire> {
        if let Some(session) = self.session {
            session.close(&mut self.wire)?;
        }
        Ok(self.wire)
    }

    fn over_v3(&mut self, step: u32) -> Result<()> {
        let in_it = Xdr::new().opaque(&self.directory);
        let on_it = Xdr::new().opaque(&self.file);
        let own = own_name(self.n);
        let size = self.load.size;
        let wire = &mut self.wire;
        let reply = match self.load.operation.at(step) {
            Operation::Null => return wire.call3("null", Xdr::new()).map(drop),
            Operation::Session | Operation::TestStateid => bail!("there are no sessions in v3"),
            Operation::Getattr => wire.call3("getattr", in_it)?,
            Operation::Lookup => wire.call3("lookup", in_it.opaque(own.as_bytes()))?,
            Operation::Access | Operation::Revalidate => {
                wire.call3("access", in_it.u32(ALL_ACCESS))?
            }
            Operation::Read => {
                let from = on_it.u64(self.load.read_at(self.n, step));
                wire.call3("read", from.u32(size))?
            }
            Operation::Write => {
                let (unstable, file_sync) = (0, 2);
                let stable = if self.load.unstable {
                    unstable
                } else {
                    file_sync
                };
                let at = on_it.u64(self.load.write_at(self.n, step));
                let how = at.u32s(&[size, stable]);
                wire.call3("write", how.opaque(&vec![b'c'; size as usize]))?
            }
            Operation::Create => {
                let name = format!("made-{}-{}-{step}", std::process::id(), self.n);
                return create(wire, &self.directory, &name).map(drop);
            }
            Operation::Rename => {
                let other = format!("{own}-renamed");
                let (from, to) = if step.is_multiple_of(2) {
                    (&own, &other)
                } else {
                    (&other, &own)
                };
                let from = in_it.opaque(from.as_bytes());
                wire.call3("rename", from.opaque(&self.directory).opaque(to.as_bytes()))?
            }
            Operation::Readdir => {
                let from_its_beginning = in_it.u64(0).fixed(&[0; 8]);
                let all = from_its_beginning.u32s(&[65536, 262_144]);
                wire.call3("readdirplus", all)?
            }
        };
        succeeded(&reply)
    }

    fn over_v4(&mut self, step: u32) -> Result<()> {
        let anonymous = || Xdr::new().fixed(&[0; 16]);
        let in_it = || op("putfh", Xdr::new().opaque(&self.directory));
        let on_it = || op("putfh", Xdr::new().opaque(&self.file));
        let size = self.load.size;
        let ops: Vec<Op> = match self.load.operation.at(step) {
            Operation::Null => {
                self.wire.sent.null4 += 1;
                let null = Call::nfs(4, 0, Xdr::new());
                return self.wire.exchange("null", &null).map(drop);
            }
            Operation::Getattr => vec![in_it(), v4::get_attributes()],
            Operation::Lookup => {
                let own = Xdr::new().opaque(own_name(self.n).as_bytes());
                let handle = op("getfh", Xdr::new());
                vec![in_it(), op("lookup", own), handle, v4::get_attributes()]
            }
            Operation::Access | Operation::Revalidate => {
                let access = op("access", Xdr::new().u32(ALL_ACCESS));
                vec![in_it(), access, v4::get_attributes()]
            }
            Operation::Read => {
                let from = anonymous().u64(self.load.read_at(self.n, step));
                vec![on_it(), op("read", from.u32(size))]
            }
            Operation::Write => {
                let unstable = 0;
                let at = self.load.write_at(self.n, step);
                let what = anonymous().u64(at).u32(unstable);
                let what = what.opaque(&vec![b'c'; size as usize]);
                let commit = op("commit", Xdr::new().u64(0).u32(0));
                let write = [on_it(), op("write", what)].into_iter();
                let durable = (!self.load.unstable).then_some(commit);
                write.chain(durable).collect()
            }
            Operation::TestStateid => vec![op("test_stateid", Xdr::new().u32(1).fixed(&[9; 16]))],
            Operation::Session => {
                return Session::open(&mut self.wire, self.minor)?.close(&mut self.wire);
            }
            operation => bail!("{operation:?} is done over v3 only"),
        };
        let sequence = self.session.as_mut().map(|session| session.next(false));
        let compound: Vec<_> = sequence.into_iter().chain(ops).collect();
        let status = self
            .wire
            .compound("operation", self.minor, &compound)?
            .status;
        ensure!(status == 0, "a COMPOUND ended with {status}");
        Ok(())
    }
}

const ALL_ACCESS: u32 = 0x3f;

fn own_name(n: u32) -> String {
    format!("client-{n}")
}

fn succeeded(reply: &Reply) -> Result<()> {
    let status = Cursor(reply.body()?).u32()?;
    ensure!(status == 0, "status {status}");
    Ok(())
}

fn look_up(wire: &mut Wire, directory: &[u8], name: &str) -> Result<Vec<u8>> {
    let body = Xdr::new().opaque(directory).opaque(name.as_bytes());
    let reply = wire.call3("lookup", body)?;
    succeeded(&reply).with_context(|| format!("looking up {name}"))?;
    Ok(Cursor(&reply.body()?[4..]).opaque()?.to_vec())
}

fn create(wire: &mut Wire, directory: &[u8], name: &str) -> Result<Vec<u8>> {
    let unchecked = 0;
    let body = Xdr::new().opaque(directory).opaque(name.as_bytes());
    let reply = wire.call3("create", body.u32(unchecked).append(&v3::mode(0o644)))?;
    succeeded(&reply).with_context(|| format!("creating {name}"))?;
    // The status and the flag that a handle follows are skipped.
    Ok(Cursor(&reply.body()?[8..]).opaque()?.to_vec())
}
