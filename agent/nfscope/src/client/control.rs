//! `nfscope detach` and `nfscope attach`: the side that asks. [`crate::api::probe_change`] has how the two sides speak.

use crate::api::endpoint;
use crate::api::probe_change::{Change, address};
use anyhow::Context;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// For the agent to attach everything, on a slow machine.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(120);

/// Asks this host's agent at `url`, and says what it answered.
///
/// # Errors
/// Where no agent answers there, or it refuses.
pub fn ask(change: Change, probes: &[&'static str], url: &str) -> anyhow::Result<String> {
    let port = endpoint::port(url)?;
    let none = || {
        format!(
            "no agent that serves on port {port} of this host can be reached: start one with `nfscope agent`, or name its \
             address with --url"
        )
    };
    let mut stream = UnixStream::connect_addr(&address(port)?).with_context(none)?;
    trusted(&stream, port)?;
    stream.set_read_timeout(Some(ATTACH_TIMEOUT))?;
    writeln!(stream, "{} {}", change.word(), probes.join(" "))?;
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

/// Anybody may take an abstract name that is free.
#[cfg(target_os = "linux")]
fn trusted(stream: &UnixStream, port: u16) -> anyhow::Result<()> {
    use crate::api::probe_change;
    use rustix::process::{Uid, geteuid};
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    anyhow::ensure!(
        peer.uid == Uid::ROOT || peer.uid == geteuid(),
        "the socket {} belongs to neither root nor this user, but to process {} of user {}",
        probe_change::socket_name(port),
        peer.pid,
        peer.uid.as_raw()
    );
    Ok(())
}

/// The directory of the socket is its owner's alone.
#[cfg(not(target_os = "linux"))]
fn trusted(_: &UnixStream, _: u16) -> anyhow::Result<()> {
    Ok(())
}
