//! Transfers a child's report on a probe, and the descriptors that it attached, over a socket.

use super::kretprobe::{Attached, Place};
use super::maps::Map;
use super::object::Loaded;
use super::program::{Build, Probe};
use crate::linux::host::procfs::KernelCounts;
use libbpf_rs::{MapHandle, MapInfo};
use nfscope_model::ProbeStatus;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// Descriptors in one message; the kernel takes 253 at most (SCM_MAX_FD).
const MOST: usize = 64;
const SPACE: usize = rustix::cmsg_space!(ScmRights(MOST));

/// Report on a probe.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// The status of every program.
    pub states: Vec<ProbeStatus>,
    /// See [`Shared::books`](super::maps::Shared::books).
    pub books: bool,
    loaded: Option<Names>,
}

/// Names of the descriptors, in their order.
#[derive(Debug, Serialize, Deserialize)]
struct Names {
    raw: bool,
    maps: Vec<String>,
    programs: Vec<String>,
    /// Place of each link in tracefs.
    places: Vec<Option<Place>>,
    counted: Option<KernelCounts>,
}

/// Reports a probe, and hands over its loaded object.
///
/// # Errors
/// Fails if the other side has gone.
pub fn send(
    socket: &UnixStream,
    loaded: Option<&Loaded>,
    states: &[ProbeStatus],
    books: bool,
) -> io::Result<()> {
    let report = Report {
        states: states.to_vec(),
        books,
        loaded: loaded.map(|l| Names {
            raw: l.build == Build::Raw,
            maps: l.maps.keys().cloned().collect(),
            programs: l
                .programs
                .iter()
                .map(|(name, _)| (*name).to_owned())
                .collect(),
            places: l.links.iter().map(|link| link.place().cloned()).collect(),
            counted: l.counted.clone(),
        }),
    };
    let text = serde_json::to_vec(&report)?;
    let mut descriptors: Vec<BorrowedFd> = Vec::new();
    if let Some(l) = loaded {
        descriptors.extend(l.maps.values().map(Map::descriptor));
        descriptors.extend(l.programs.iter().map(|(_, fd)| fd.as_fd()));
        descriptors.extend(l.links.iter().map(AsFd::as_fd));
    }
    let mut socket_bytes = socket;
    for number in [text.len(), descriptors.len()] {
        socket_bytes.write_all(&(number as u64).to_ne_bytes())?;
    }
    socket_bytes.write_all(&text)?;
    for some in descriptors.chunks(MOST) {
        let mut space = [MaybeUninit::uninit(); SPACE];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(some));
        // Descriptors need at least one byte of data.
        sendmsg(
            socket,
            &[IoSlice::new(&[0])],
            &mut control,
            SendFlags::NOSIGNAL,
        )?;
    }
    Ok(())
}

/// Takes the next report, and the descriptors that belong to it.
///
/// # Errors
/// Fails if the other side has ended, or if nothing comes for as long as the socket may wait.
pub fn receive(socket: &UnixStream) -> io::Result<(Report, Vec<OwnedFd>)> {
    let mut bytes = socket;
    let mut number = || {
        let mut n = [0; 8];
        bytes.read_exact(&mut n)?;
        Ok::<_, io::Error>(u64::from_ne_bytes(n) as usize)
    };
    let (length, count) = (number()?, number()?);
    let mut text = vec![0; length];
    bytes.read_exact(&mut text)?;
    let mut descriptors = Vec::new();
    while descriptors.len() < count {
        let mut space = [MaybeUninit::uninit(); SPACE];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut byte = [0];
        let flags = RecvFlags::CMSG_CLOEXEC;
        match recvmsg(
            socket,
            &mut [IoSliceMut::new(&mut byte)],
            &mut control,
            flags,
        ) {
            Err(Errno::INTR) => continue,
            Err(e) => return Err(e.into()),
            Ok(message) if message.bytes == 0 => {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            Ok(_) => {}
        }
        let before = descriptors.len();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(some) = message {
                descriptors.extend(some);
            }
        }
        // The kernel drops descriptors beyond the limit of this process.
        let wanted = (count - before).min(MOST);
        if descriptors.len() - before < wanted {
            return Err(io::Error::other(format!(
                "{} of {wanted} descriptors arrived; raise the limit of open files",
                descriptors.len() - before
            )));
        }
    }
    Ok((serde_json::from_slice(&text)?, descriptors))
}

impl Report {
    /// Converts the report into a loaded object of this process.
    ///
    /// # Errors
    /// Fails if the kernel does not open a map by its number, which takes CAP_SYS_ADMIN.
    pub fn take(
        self,
        probe: &'static Probe,
        descriptors: Vec<OwnedFd>,
    ) -> (Vec<ProbeStatus>, libbpf_rs::Result<Option<Loaded>>) {
        let loaded = self.loaded.map(|names| names.take(probe, descriptors));
        (self.states, loaded.transpose())
    }
}

impl Names {
    fn take(self, probe: &'static Probe, descriptors: Vec<OwnedFd>) -> libbpf_rs::Result<Loaded> {
        let mut next = descriptors.into_iter();
        let maps = self.maps.into_iter().zip(next.by_ref()).map(|(name, fd)| {
            let number = MapInfo::new(fd.as_fd())?.info.id;
            Ok((name, Map::from(MapHandle::from_map_id(number)?)))
        });
        let maps = maps.collect::<libbpf_rs::Result<_>>()?;
        let known = |name: &String| probe.programs.iter().find(|p| p.name == *name);
        let programs = self.programs.iter().zip(next.by_ref());
        let programs = programs.filter_map(|(name, fd)| Some((known(name)?.name, fd)));
        let programs = programs.collect();
        let links = self.places.into_iter().zip(next);
        Ok(Loaded {
            build: if self.raw { Build::Raw } else { Build::Btf },
            maps,
            programs,
            counted: self.counted,
            links: links.map(|(place, fd)| Attached::take(fd, place)).collect(),
            fixed_memory: Default::default(),
        })
    }
}
