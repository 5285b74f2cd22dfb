//! `nfscope detach` and `nfscope attach`: the side that answers. [`crate::api::probe_change`] has how the two sides speak.
//!
//! The agent listens to root and to its own user.

use super::source_thread::SourceHandle;
use crate::api::probe_change::{self, Change};
use anyhow::Context;
use nfscope_text::console::warn;
use rustix::process::geteuid;
use std::convert::Infallible;
use std::os::unix::net::UnixListener as StdListener;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

/// Longest line taken.
const LINE: u64 = 1024;
/// For a peer to say what it wants.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Binds the socket of the agent that serves on this port; `None`, and said, where somebody else has it.
pub fn listen(port: u16) -> Option<StdListener> {
    bind(port)
        .inspect_err(|e| {
            warn(&format!(
                "`nfscope detach` cannot reach this agent: socket {}: {e}",
                probe_change::socket_name(port)
            ));
        })
        .ok()
}

fn bind(port: u16) -> std::io::Result<StdListener> {
    let address = probe_change::address(port)?;
    if let Some(path) = address.as_pathname() {
        use std::os::unix::fs::DirBuilderExt;
        let mut directory = std::fs::DirBuilder::new();
        directory.mode(0o700).recursive(true);
        directory.create(probe_change::DIRECTORY)?;
        // The port is ours by now: what has this name was left by an agent that is gone.
        let _ = std::fs::remove_file(path);
    }
    let listener = StdListener::bind_addr(&address)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Serves, one after the other, until dropped.
///
/// # Errors
/// When the listener cannot be watched.
pub async fn serve(
    listener: Option<StdListener>,
    source: Arc<SourceHandle>,
) -> anyhow::Result<Infallible> {
    let Some(listener) = listener else {
        return Ok(std::future::pending().await);
    };
    let listener = UnixListener::from_std(listener)?;
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
    // Whoever asked may have gone; it is done all the same.
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
