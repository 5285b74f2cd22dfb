//! Sockets to serve on: bound here, or handed over by systemd.

use anyhow::{Context, bail, ensure};
use std::io::ErrorKind;
use std::net::{TcpListener, ToSocketAddrs};

/// Connections that the kernel keeps until they are accepted; it has a limit of its own (net.core.somaxconn).
const BACKLOG: i32 = 4096;

/// Binds an address; `:PORT` means every address of the host.
///
/// # Errors
/// Names the address and what to do.
pub fn listen(address: &str) -> anyhow::Result<TcpListener> {
    let full = match address.strip_prefix(':') {
        Some(port) => format!("[::]:{port}"),
        None => address.to_owned(),
    };
    let addresses: Vec<_> = full
        .to_socket_addrs()
        .with_context(|| {
            format!("cannot listen on `{address}`: give HOST:PORT to --web.listen-address")
        })?
        .collect();
    let listener = TcpListener::bind(&addresses[..]).map_err(|e| match e.kind() {
        ErrorKind::AddrInUse => anyhow::anyhow!(
            "cannot listen on {address}: address in use, perhaps by another agent; \
             choose another with --web.listen-address HOST:PORT"
        ),
        ErrorKind::AddrNotAvailable => anyhow::anyhow!(
            "cannot listen on {address}: no interface of this host has it; \
             choose another with --web.listen-address HOST:PORT"
        ),
        _ => anyhow::anyhow!(
            "cannot listen on {address}: {e}; choose another with --web.listen-address HOST:PORT"
        ),
    })?;
    listener.set_nonblocking(true)?;
    // The library's 128 overflow in a crowd, and a client whose packet is dropped tries again only after a second.
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// Takes the sockets that systemd has bound (sd_listen_fds(3)).
///
/// # Errors
/// Where there is none, or one that is no TCP socket.
pub fn from_systemd() -> anyhow::Result<Vec<TcpListener>> {
    let mut handed = listenfd::ListenFd::from_env();
    ensure!(
        handed.len() > 0,
        "systemd has handed over no socket: start the agent by its socket unit, or leave out --web.systemd-socket"
    );
    let mut all = Vec::new();
    for at in 0..handed.len() {
        let listener = handed.take_tcp_listener(at);
        match listener.with_context(|| format!("socket {at} of systemd"))? {
            Some(listener) => {
                listener.set_nonblocking(true)?;
                all.push(listener);
            }
            None => bail!("socket {at} of systemd is taken already"),
        }
    }
    Ok(all)
}
