//! `nfscope detach` and `nfscope attach`: the command's side. [`nfscope_api::probe_change`] describes the protocol.

use anyhow::{Context, bail};
use nfscope_api::address;
use nfscope_api::probe_change::{self, Change, socket};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// Time for the agent to attach everything, on a slow machine.
const ATTACH_TIMEOUT: Duration = Duration::from_secs(120);

/// Asks this host's agent at `url` for the change, and returns its answer. Without a URL, the agent at the default port is asked, or else
/// the only one. `directory` has the sockets of all agents.
///
/// # Errors
/// Where no agent answers there, or it refuses.
pub fn ask(
    change: Change,
    probes: &[&'static str],
    url: Option<&str>,
    directory: &Path,
) -> anyhow::Result<String> {
    let port = address::port(url.unwrap_or(&address::default_url()))?;
    let (mut stream, at) = reach(port, url.is_some(), directory)?;
    trusted(&stream, &socket(directory, at), directory)?;
    stream.set_read_timeout(Some(ATTACH_TIMEOUT))?;
    writeln!(stream, "{} {}", change.word(), probes.join(" "))?;
    let mut from = BufReader::new(stream);
    let (mut result, mut text) = (String::new(), String::new());
    from.read_line(&mut result)
        .and_then(|_| from.read_to_string(&mut text))
        .context("the agent did not answer")?;
    match result.trim() {
        "ok" => Ok(text),
        _ => bail!("{}", text.trim()),
    }
}

/// Connects to the agent of this port. Unless `exactly` is true, the only other agent will do.
fn reach(port: u16, exactly: bool, directory: &Path) -> anyhow::Result<(UnixStream, u16)> {
    let path = socket(directory, port);
    let why = match UnixStream::connect(&path) {
        Ok(stream) => return Ok((stream, port)),
        Err(why) => why,
    };
    let mut others: Vec<_> = others(directory);
    match (exactly, others.len()) {
        (false, 1) => others.pop().context("there is one"),
        (_, 0) => bail!(
            "no agent that serves on port {port} of this host can be reached ({}: {why}): start one with `nfscope agent`, or \
             name its address with --url",
            path.display()
        ),
        _ => {
            let known = others.iter().map(|(_, port)| port.to_string());
            bail!(
                "no agent that serves on port {port} of this host can be reached ({}: {why}); agents of this host serve on port {}: \
                 name one with --url",
                path.display(),
                known.collect::<Vec<_>>().join(", ")
            )
        }
    }
}

/// Agents of this host that answer, each by its first port.
fn others(directory: &Path) -> Vec<(UnixStream, u16)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut all: Vec<_> = entries
        // Symbolic links are the other ports of an agent.
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()))
        .filter_map(|entry| {
            let port = probe_change::port(entry.file_name().to_str()?)?;
            Some((UnixStream::connect(entry.path()).ok()?, port))
        })
        .collect();
    all.sort_by_key(|(_, port)| *port);
    all
}

/// Checks the peer of a socket: it must be root, this user, or the user to whom root has given the directory.
#[cfg(target_os = "linux")]
fn trusted(stream: &UnixStream, path: &Path, directory: &Path) -> anyhow::Result<()> {
    use rustix::process::{Uid, geteuid};
    use std::os::unix::fs::MetadataExt;
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    let owner = fs::metadata(directory)?.uid();
    anyhow::ensure!(
        peer.uid == Uid::ROOT || peer.uid == geteuid() || peer.uid.as_raw() == owner,
        "the socket {} belongs to neither root nor this user nor the owner of its directory, but to process {} of user {}",
        path.display(),
        peer.pid,
        peer.uid.as_raw()
    );
    Ok(())
}

/// Trusts every peer, because the directory of the socket belongs to root or the agent alone.
#[cfg(not(target_os = "linux"))]
fn trusted(_: &UnixStream, _: &Path, _: &Path) -> anyhow::Result<()> {
    Ok(())
}
