//! `nfscope detach` and `nfscope attach`: the agent's side. [`nfscope_api::probe_change`] describes the protocol.
//!
//! The agent accepts requests of root and of its own user.

use super::source_thread::SourceHandle;
use anyhow::{Context, ensure};
use nfscope_api::probe_change::{Change, socket};
use nfscope_text::console::warn;
use rustix::io::Errno;
use rustix::process::geteuid;
use std::convert::Infallible;
use std::fs::{self, Permissions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

/// Longest request line.
const LINE: u64 = 1024;
/// Time for a peer to send its request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The agent's socket, and its names, which are removed with it.
#[derive(Debug)]
pub struct ControlSocket {
    listener: StdListener,
    paths: Vec<PathBuf>,
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        for path in &self.paths {
            // A name that cannot be removed stays; the next agent removes it.
            let _ = fs::remove_file(path);
        }
    }
}

/// Binds the socket of the agent that serves on these ports; `None`, with a warning, if that is not possible.
pub fn listen(directory: &Path, ports: &[u16]) -> Option<ControlSocket> {
    bind(directory, ports)
        .inspect_err(|e| {
            warn(&format!(
                "`nfscope detach` cannot reach this agent: {e:#}; as root, make the directory and give it to the agent's user: \
                 install -d -m 755 -o USER {}",
                directory.display()
            ));
        })
        .ok()
}

fn bind(directory: &Path, ports: &[u16]) -> anyhow::Result<ControlSocket> {
    let of = |path: &Path| path.display().to_string();
    let mut builder = fs::DirBuilder::new();
    builder.mode(0o755).recursive(true);
    builder.create(directory).with_context(|| of(directory))?;
    let now = fs::metadata(directory).with_context(|| of(directory))?;
    ensure!(
        now.mode() & 0o022 == 0,
        "{}: others than its owner may write to this directory",
        of(directory)
    );
    let mut paths: Vec<_> = ports.iter().map(|port| socket(directory, *port)).collect();
    paths.sort_unstable();
    paths.dedup();
    let own = socket(directory, *ports.first().context("there is no port")?);
    for path in &paths {
        ensure!(
            !is_answered(path),
            "another agent has {}, with the same port on another address or in another network namespace; give one of the two a \
             RUNTIME_DIRECTORY of its own",
            of(path)
        );
    }
    for path in &paths {
        // A socket of this name was left by an agent that has ended.
        let _ = fs::remove_file(path);
    }
    let listener = StdListener::bind(&own).with_context(|| of(&own))?;
    let bound = ControlSocket { listener, paths };
    fs::set_permissions(&own, Permissions::from_mode(0o600)).with_context(|| of(&own))?;
    for path in bound.paths.iter().filter(|path| **path != own) {
        let name = own.file_name().context("a socket has a name")?;
        symlink(name, path).with_context(|| of(path))?;
    }
    bound.listener.set_nonblocking(true)?;
    Ok(bound)
}

/// Returns true if a process listens on the socket. The check does not wait for an answer, so a stopped process counts as well.
fn is_answered(path: &Path) -> bool {
    use rustix::net::{
        AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let asked = SocketAddrUnix::new(path).and_then(|address| {
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        connect(&socket, &address)
    });
    // A full queue belongs to a listener, too.
    matches!(asked, Ok(()) | Err(Errno::AGAIN))
}

/// Serves peers one after the other, until dropped.
///
/// # Errors
/// When the listener cannot be watched.
pub async fn serve(
    bound: Option<ControlSocket>,
    source: Arc<SourceHandle>,
) -> anyhow::Result<Infallible> {
    let Some(bound) = bound else {
        return Ok(std::future::pending().await);
    };
    let listener = UnixListener::from_std(bound.listener.try_clone()?)?;
    loop {
        match listener.accept().await {
            Ok((stream, _)) => answer(stream, &source).await,
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn answer(mut stream: UnixStream, source: &SourceHandle) {
    let asked = stream.peer_cred().is_ok_and(|c| trusted(c.uid()));
    let reply = if asked {
        let mut line = String::new();
        let mut from = tokio::io::BufReader::new(&mut stream).take(LINE);
        match timeout(REQUEST_TIMEOUT, from.read_line(&mut line)).await {
            Ok(Ok(_)) => obey(&line, source).await,
            _ => return,
        }
    } else {
        Err(anyhow::anyhow!(
            "only root and the user that the agent runs as may detach and attach probes"
        ))
    };
    let text = match reply {
        Ok(said) => format!("ok\n{}\n", said.join("\n")),
        Err(e) => format!("error\n{e:#}\n"),
    };
    // The peer may have gone; the change is done in any case.
    let _ = timeout(REQUEST_TIMEOUT, stream.write_all(text.as_bytes())).await;
}

fn trusted(uid: u32) -> bool {
    uid == 0 || uid == geteuid().as_raw()
}

async fn obey(line: &str, source: &SourceHandle) -> anyhow::Result<Vec<String>> {
    let mut words = line.split_ascii_whitespace();
    let change = words.next().and_then(Change::of);
    let change = change.context("unknown request: this agent accepts `detach` and `attach`")?;
    let mut probes = Vec::new();
    for word in words {
        let known = nfscope_source::words().find(|w| *w == word);
        probes.push(known.with_context(|| format!("this agent has no probe `{word}`"))?);
    }
    source.change(change, probes).await
}
