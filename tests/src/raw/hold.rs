//! `lab hold`: opens connections, holds them, and counts those that the server closes: a reference for nfscope's limit of
//! connections.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::lab_server::NFS_PORT;

/// Connections to open.
#[derive(Clone, Debug, clap::Args)]
pub struct Hold {
    /// Number of connections, opened one after the other
    pub connections: u32,
    /// Address of the server
    #[arg(long, default_value_t = Ipv4Addr::LOCALHOST)]
    pub to: Ipv4Addr,
    /// Send the head of a record that is longer than any allowed one on each connection, instead of nothing
    #[arg(long)]
    pub garbage: bool,
    /// File for the state as JSON, written anew after each change
    #[arg(long)]
    pub report: PathBuf,
}

/// State of the connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Connections opened.
    pub opened: u64,
    /// Connections among these that the server has closed.
    pub closed: u64,
}

/// Opens the connections and holds them until killed.
pub fn run(hold: &Hold) -> Result<()> {
    let mut open = Vec::new();
    for _ in 0..hold.connections {
        let mut stream = TcpStream::connect((hold.to, NFS_PORT))
            .with_context(|| format!("connecting to {}", hold.to))?;
        if hold.garbage {
            stream.write_all(&[0xff; 4])?;
        }
        stream.set_nonblocking(true)?;
        open.push(stream);
    }
    let mut told = None;
    loop {
        open.retain_mut(is_open);
        let held = Held {
            opened: u64::from(hold.connections),
            closed: u64::from(hold.connections) - open.len() as u64,
        };
        if told != Some(held) {
            tell(&hold.report, &held)?;
            told = Some(held);
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Writes a state to a file anew. A reader never sees half of it, because the file is replaced in one step.
pub(super) fn tell(file: &Path, state: &impl Serialize) -> Result<()> {
    let unfinished = file.with_extension("new");
    fs::write(&unfinished, serde_json::to_string(state)?)?;
    fs::rename(&unfinished, file).with_context(|| format!("writing {}", file.display()))
}

fn is_open(stream: &mut TcpStream) -> bool {
    let mut byte = [0];
    match stream.read(&mut byte) {
        Ok(0) => false,
        Ok(_) => true,
        Err(e) => e.kind() == ErrorKind::WouldBlock,
    }
}
