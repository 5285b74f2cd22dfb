//! Accepts connections and sees that each of them ends.

use super::ndjson_stream::Deadline;
use super::place::{AllPlaces, Place};
use super::refusals::{self, Refusals};
use super::routes::{self, Peer};
use super::web_config::{Tls, WebConfig};
use crate::service::source_thread::SourceHandle;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nfscope_text::console::{self, Level, log};
use rustix::io::Errno;
use std::convert::Infallible;
use std::net::{IpAddr, TcpListener as StdListener};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};
use tokio_rustls::server::TlsStream;

/// Connections accepted before those that were are looked at: their headers are there by then.
const BATCH: usize = 32;
/// Largest request header; a browser sends a tenth.
const HEADER_BYTES: usize = 16 << 10;
/// Time for a peer to send the first byte, then to agree on encryption, and then for the rest of its header.
const HEADER_TIME: Duration = Duration::from_secs(5);
/// Time for a whole connection: a peer that reads slower than this is cut off.
const CONNECTION_TIME: Duration = Duration::from_secs(30);
/// What a refused peer may still send before the connection is reset under it.
const DRAIN_BYTES: u64 = 4 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// What is served, and to whom.
#[derive(Clone)]
pub struct Server {
    source: Arc<SourceHandle>,
    web: Arc<RwLock<Arc<WebConfig>>>,
    places: AllPlaces,
    refusals: Arc<Refusals>,
}

impl Server {
    /// Serves what the source has, as the web configuration says.
    pub fn new(source: Arc<SourceHandle>, web: WebConfig) -> Server {
        Server {
            source,
            web: Arc::new(RwLock::new(Arc::new(web))),
            places: AllPlaces::default(),
            refusals: Arc::default(),
        }
    }

    /// Takes another web configuration. An answer that is under way keeps the old one. A stream would keep it for as long as its
    /// peer likes: where the new one asks for something, streams end.
    pub fn configure(&self, mut web: WebConfig) {
        let mut running = self.web.write().unwrap_or_else(PoisonError::into_inner);
        web.succeed(&running);
        let asks = web.users.is_some() || web.tls.is_some();
        *running = Arc::new(web);
        if asks {
            self.places.end_streams();
        }
    }

    /// Serves on these until dropped.
    ///
    /// # Errors
    /// When a listener cannot be watched.
    pub async fn serve(&self, listeners: Vec<StdListener>) -> anyhow::Result<Infallible> {
        let mut all = JoinSet::new();
        for listener in listeners {
            all.spawn(self.clone().accept(TcpListener::from_std(listener)?));
        }
        let refused = self.refusals.tell(refusals::PERIOD, console::warn);
        tokio::select! {
            never = refused => match never {},
            end = all.join_next() => match end {
                Some(never) => match never? {},
                None => anyhow::bail!("there is no address to serve on"),
            },
        }
    }

    async fn accept(self, listener: TcpListener) -> Infallible {
        let mut accepted = 0;
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let (end, ended) = oneshot::channel();
                    let place = self.places.admit(peer.ip(), end);
                    let server = self.clone();
                    tokio::spawn(async move {
                        // Cut off or not, the peer learns it from its connection; there is nobody else to tell.
                        let deadline = Deadline::after(CONNECTION_TIME);
                        tokio::select! {
                            () = server.connection(stream, peer.ip(), &deadline, &place) => {}
                            () = deadline.passed() => {}
                            _ = ended => {}
                        }
                    });
                }
                // The process has no descriptor left, or the host.
                Err(e) if matches!(Errno::from_io_error(&e), Some(Errno::MFILE | Errno::NFILE)) => {
                    self.places.make_room();
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

    async fn connection(
        &self,
        stream: TcpStream,
        address: IpAddr,
        deadline: &Deadline,
        place: &Place,
    ) {
        // Who sends nothing gets no buffer.
        if !matches!(timeout(HEADER_TIME, stream.readable()).await, Ok(Ok(()))) {
            return;
        }
        let web = self.web.read();
        let web = web.unwrap_or_else(PoisonError::into_inner).clone();
        let peer = Peer {
            address: address.to_canonical(),
            web: &web,
            deadline,
            place,
            refusals: &self.refusals,
        };
        let Some(tls) = &web.tls else {
            // In boxes: a connection that has sent nothing needs no room for what comes then.
            return Box::pin(self.requests(stream, &peer)).await;
        };
        match Box::pin(encrypted(tls, stream)).await {
            Ok(stream) => Box::pin(self.requests(stream, &peer)).await,
            Err(why) => log(Level::Debug, &format!("{} TLS: {why}", peer.address)),
        }
    }

    async fn requests(&self, stream: impl AsyncRead + AsyncWrite + Unpin, peer: &Peer<'_>) {
        let answer = service_fn(|request| async move {
            peer.place.answer();
            Ok::<_, Infallible>(routes::answer(&self.source, peer, &request).await)
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
}

/// Agrees on encryption with a peer that may come in, or says why not.
async fn encrypted(tls: &Tls, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
    let accepted = timeout(HEADER_TIME, tls.acceptor.accept(stream)).await;
    let accepted = accepted.map_err(|_| format!("no handshake in {} s", HEADER_TIME.as_secs()))?;
    let stream = accepted.map_err(|e| e.to_string())?;
    match tls.admits(stream.get_ref().1.peer_certificates()) {
        true => Ok(stream),
        false => Err("the certificate has no name of client_allowed_sans".to_owned()),
    }
}

async fn drain(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    if stream.shutdown().await.is_ok() {
        let mut rest = stream.take(DRAIN_BYTES);
        let mut buffer = [0; 4096];
        while matches!(rest.read(&mut buffer).await, Ok(n) if n > 0) {}
    }
}
