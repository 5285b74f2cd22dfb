//! Sockets to serve on: bound here, or handed over by systemd.

use anyhow::{Context, bail, ensure};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};

/// Connections that the kernel keeps until they are accepted; the kernel has a limit of its own (net.core.somaxconn).
const BACKLOG: i32 = 4096;

/// Binds an address; `:PORT` means every address of the host.
///
/// # Errors
/// With the address and what to do.
pub fn listen(address: &str) -> anyhow::Result<TcpListener> {
    let mistyped =
        || format!("cannot listen on `{address}`: give HOST:PORT to --web.listen-address");
    let bound = match address.strip_prefix(':') {
        Some(port) => everywhere(port.parse().with_context(mistyped)?),
        None => {
            let addresses: Vec<_> = address.to_socket_addrs().with_context(mistyped)?.collect();
            TcpListener::bind(&addresses[..])
        }
    };
    let listener = bound.map_err(|e| match e.kind() {
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
    // The library's backlog of 128 overflows in a crowd. A client whose packet is dropped retries only after a second.
    rustix::net::listen(&listener, BACKLOG)?;
    Ok(listener)
}

/// A socket for every address of the host.
fn everywhere(port: u16) -> io::Result<TcpListener> {
    or_ipv4(both_families(port), port)
}

/// A single socket for IPv6 and IPv4, even if net.ipv6.bindv6only is set.
fn both_families(port: u16) -> rustix::io::Result<TcpListener> {
    let socket = socket_with(
        AddressFamily::INET6,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    sockopt::set_ipv6_v6only(&socket, false)?;
    // The library sets this option, too: connections of an agent that has just ended must not keep the next one from its address.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    bind(&socket, &SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Returns the socket of both families, or one of IPv4 alone if the host has no IPv6.
fn or_ipv4(both: rustix::io::Result<TcpListener>, port: u16) -> io::Result<TcpListener> {
    match both {
        Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))
        }
        both => Ok(both?),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn a_port_alone_is_served_on_every_address() {
        let listener = listen(":0").unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let has_ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
        let connected = TcpStream::connect((Ipv6Addr::LOCALHOST, port)).is_ok();
        assert_eq!(connected, has_ipv6);
        let again = format!("{:#}", listen(&format!(":{port}")).unwrap_err());
        assert!(again.contains("address in use"), "{again}");
        for odd in [":", ":x", ":65536", "x"] {
            let why = format!("{:#}", listen(odd).unwrap_err());
            assert!(why.contains("give HOST:PORT"), "{odd}: {why}");
        }
    }

    #[test]
    fn without_ipv6_it_is_ipv4() {
        for why in [Errno::AFNOSUPPORT, Errno::ADDRNOTAVAIL] {
            let listener = or_ipv4(Err(why), 0).unwrap();
            let ip = listener.local_addr().unwrap().ip();
            assert_eq!(ip, Ipv4Addr::UNSPECIFIED);
        }
        assert!(or_ipv4(Err(Errno::ADDRINUSE), 0).is_err());
    }
}
