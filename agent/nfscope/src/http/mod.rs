//! The HTTP side: who may connect, how long, with how much memory.
//!
//! Whatever a peer does, the agent goes on, scrapes are answered, and memory stays bounded: every connection is accepted at
//! once and may have to give way ([`places`]), a small header, a time limit on each connection, one request per connection, and
//! bodies that all connections share. The few answers that go on and on are cut off when their peer stops reading.

mod landing_page;
mod ndjson_stream;
mod place;
mod places;
mod routes;

use crate::service::source_thread::SourceHandle;
use anyhow::Context;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use ndjson_stream::Deadline;
use place::{AllPlaces, Place};
use rustix::io::Errno;
use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{TcpListener as StdListener, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

/// Connections that the kernel keeps until they are accepted; it has a limit of its own (net.core.somaxconn).
const BACKLOG: i32 = 4096;
/// Connections accepted before those that were are looked at: their headers are there by then.
const BATCH: usize = 32;
/// Largest request header; a browser sends a tenth.
const HEADER_BYTES: usize = 16 << 10;
/// Time for a peer to send the first byte, and then for the rest of its header.
const HEADER_TIME: Duration = Duration::from_secs(5);
/// Time for a whole connection: a peer that reads slower than this is cut off.
const CONNECTION_TIME: Duration = Duration::from_secs(30);
/// What a refused peer may still send before the connection is reset under it.
const DRAIN_BYTES: u64 = 4 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// Binds the address that the agent serves on; `:PORT` means every address of the host.
///
/// # Errors
/// Names the address and what to do.
pub fn listen(address: &str) -> anyhow::Result<StdListener> {
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
    let listener = StdListener::bind(&addresses[..]).map_err(|e| match e.kind() {
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

/// Serves until dropped.
///
/// # Errors
/// When the listener cannot be watched.
pub async fn serve(listener: StdListener, source: Arc<SourceHandle>) -> anyhow::Result<Infallible> {
    let listener = TcpListener::from_std(listener)?;
    let all = AllPlaces::default();
    let mut accepted = 0;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let (end, ended) = oneshot::channel();
                let place = all.admit(peer.ip(), end);
                let source = source.clone();
                tokio::spawn(async move {
                    // Cut off or not, the peer learns it from its connection; there is nobody else to tell.
                    let deadline = Deadline::after(CONNECTION_TIME);
                    tokio::select! {
                        () = connection(stream, &source, &deadline, &place) => {}
                        () = deadline.passed() => {}
                        _ = ended => {}
                    }
                });
            }
            // The process has no descriptor left, or the host.
            Err(e) if matches!(Errno::from_io_error(&e), Some(Errno::MFILE | Errno::NFILE)) => {
                all.make_room();
                sleep(Duration::from_millis(5)).await;
            }
            // A peer that gave up.
            Err(_) => sleep(Duration::from_millis(5)).await,
        }
        accepted = (accepted + 1) % BATCH;
        if accepted == 0 {
            yield_now().await;
        }
    }
}

async fn connection(stream: TcpStream, source: &SourceHandle, deadline: &Deadline, place: &Place) {
    // Who sends nothing gets no buffer.
    if !matches!(timeout(HEADER_TIME, stream.readable()).await, Ok(Ok(()))) {
        return;
    }
    let answer = service_fn(|request| async move {
        place.answer();
        Ok::<_, Infallible>(routes::answer(source, deadline, place, &request).await)
    });
    let mut http = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(HEADER_BYTES)
        // An idle connection would hold a place; opening one costs a scraper nothing.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), answer);
    if (&mut http).await.is_err() {
        // Closing with unread input resets the connection and takes the answer (431) with it.
        let _ = timeout(DRAIN_TIME, drain(http.into_parts().io.into_inner())).await;
    }
}

async fn drain(mut stream: TcpStream) {
    if stream.shutdown().await.is_ok() {
        let mut rest = stream.take(DRAIN_BYTES);
        let mut buffer = [0; 4096];
        while matches!(rest.read(&mut buffer).await, Ok(n) if n > 0) {}
    }
}
