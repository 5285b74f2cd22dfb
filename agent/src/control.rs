//! `nfscope detach` and `nfscope attach`: how they reach the running agent.
//!
//! A Unix socket without a place in the file system (an abstract one, unix(7)), named by the agent's port: nothing to
//! clean up, nobody on another host can reach it, and the kernel tells each side who the other is. The agent listens to
//! root and to its own user; a request is a line `detach zfs btrfs`, the answer a line `ok` or `error` and then text.

use crate::console::say;
use crate::fetch;
use crate::reader::{Change, Reader};
use crate::source;
use anyhow::Context;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Uid, geteuid};
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener as StdListener, UnixStream as StdStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

/// Longest line taken.
const LINE: u64 = 1024;
/// For a peer to say what it wants.
const HURRY: Duration = Duration::from_secs(5);
/// For the agent to attach everything, on a slow machine.
const PATIENCE: Duration = Duration::from_secs(120);

fn address(port: u16) -> std::io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("nfscope-{port}"))
}

/// Binds the socket of the agent that serves on this port; `None`, and said, where somebody else has it.
pub fn listen(port: u16) -> Option<StdListener> {
    let bound = address(port).and_then(|a| {
        let listener = StdListener::bind_addr(&a)?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    bound
        .inspect_err(|e| {
            say(&format!(
                "`nfscope detach` will not reach this agent: its socket @nfscope-{port}: {e}"
            ));
        })
        .ok()
}

/// Serves, one after the other, until dropped.
///
/// # Errors
/// When the listener cannot be watched.
pub async fn serve(
    listener: Option<StdListener>,
    reader: Arc<Reader>,
) -> anyhow::Result<Infallible> {
    let Some(listener) = listener else {
        return Ok(std::future::pending().await);
    };
    let listener = UnixListener::from_std(listener)?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => answer(stream, &reader).await,
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn answer(mut stream: UnixStream, reader: &Reader) {
    let asked = stream.peer_cred().is_ok_and(|c| trusted(c.uid()));
    let reply = if asked {
        let mut line = String::new();
        let mut from = tokio::io::BufReader::new(&mut stream).take(LINE);
        match timeout(HURRY, from.read_line(&mut line)).await {
            Ok(Ok(_)) => obey(&line, reader).await,
            _ => return,
        }
    } else {
        Err(anyhow::anyhow!(
            "only root, and the user that the agent runs as, may ask for that"
        ))
    };
    let text = match reply {
        Ok(said) => format!("ok\n{}\n", said.join("\n")),
        Err(e) => format!("error\n{e:#}\n"),
    };
    // Whoever asked may have gone; it is done all the same.
    let _ = timeout(HURRY, stream.write_all(text.as_bytes())).await;
}

fn trusted(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

async fn obey(line: &str, reader: &Reader) -> anyhow::Result<Vec<String>> {
    let mut words = line.split_ascii_whitespace();
    let change = match words.next() {
        Some("detach") => Change::Detach,
        Some("attach") => Change::Attach,
        _ => anyhow::bail!("this agent knows `detach` and `attach`"),
    };
    let mut probes = Vec::new();
    for word in words {
        let known = source::words().find(|w| *w == word);
        probes.push(known.with_context(|| format!("this agent has no probe `{word}`"))?);
    }
    reader.change(change, probes).await
}

/// Asks this host's agent at `url`, and says what it answered.
///
/// # Errors
/// Where no agent answers there, or it refuses.
pub fn ask(change: Change, probes: &[&'static str], url: &str) -> anyhow::Result<String> {
    let port = fetch::port(url)?;
    let none = || {
        format!(
            "no agent that serves on port {port} of this host can be reached: start one with `nfscope agent`, or name its \
             address with --url"
        )
    };
    let mut stream = StdStream::connect_addr(&address(port)?).with_context(none)?;
    let peer = socket_peercred(&stream)?;
    anyhow::ensure!(
        peer.uid == Uid::ROOT || peer.uid == geteuid(),
        "what listens at @nfscope-{port} is not root's agent, but process {} of user {}",
        peer.pid,
        peer.uid.as_raw()
    );
    stream.set_read_timeout(Some(PATIENCE))?;
    let verb = match change {
        Change::Detach => "detach",
        Change::Attach => "attach",
    };
    writeln!(stream, "{verb} {}", probes.join(" "))?;
    let mut from = BufReader::new(stream);
    let (mut result, mut text) = (String::new(), String::new());
    from.read_line(&mut result)
        .and_then(|_| from.read_to_string(&mut text))
        .context("the agent did not answer")?;
    match result.trim() {
        "ok" => Ok(text),
        _ => anyhow::bail!("{}", text.trim()),
    }
}
