//! Accepts connections and sees that each of them ends.

use super::admission::Peer;
use super::agent_link::AgentLink;
use super::large_answers::LargeAnswers;
use super::ndjson_stream::Deadline;
use super::place::{AllPlaces, Place};
use super::refusals::{self, Refusals};
use super::routes;
use super::web_config::{Tls, WebConfig};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use nfscope_text::console::{self, Level, log};
use rustix::io::Errno;
use std::convert::Infallible;
use std::net::{IpAddr, TcpListener as StdListener};
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{sleep, timeout};
use tokio_rustls::server::TlsStream;

/// Connections that are accepted in a row, before the runtime serves them: by then their headers have arrived.
const BATCH: usize = 32;
/// Largest request header; that of a browser is a tenth.
const HEADER_BYTES: usize = 16 << 10;
/// Time for a peer to send the first byte, then to agree on encryption, and then for the rest of its header.
const HEADER_TIME: Duration = Duration::from_secs(5);
/// Time for a whole connection: a peer that reads too slowly for it is cut off.
const CONNECTION_TIME: Duration = Duration::from_secs(30);
/// Part of that time in which a peer can read that the agent has not answered.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Turns of the runtime that a connection without a place gets: in the first it reads what has arrived, in the next it answers.
const TURNS: usize = 3;
/// Bytes that a refused peer may still send before its connection is reset.
const DRAIN_BYTES: u64 = 4 << 20;
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// A server: the agent that it asks, and the rules for peers.
#[derive(Clone)]
pub struct Server {
    agent: Arc<AgentLink>,
    web: Arc<RwLock<Arc<WebConfig>>>,
    places: AllPlaces,
    refusals: Arc<Refusals>,
    large: LargeAnswers,
    connection_time: Duration,
}

impl Server {
    /// Server for this agent, by this web configuration.
    pub fn new(agent: Arc<AgentLink>, web: WebConfig) -> Server {
        Server {
            agent,
            web: Arc::new(RwLock::new(Arc::new(web))),
            places: AllPlaces::default(),
            refusals: Arc::default(),
            large: LargeAnswers::default(),
            connection_time: CONNECTION_TIME,
        }
    }

    /// Applies another web configuration. An answer under way keeps the old one. A stream would keep it for as long as its peer likes, so
    /// streams end if the new configuration requires authentication, or allows less.
    pub fn configure(&self, mut web: WebConfig) {
        let mut running = self.web.write().unwrap_or_else(PoisonError::into_inner);
        web.succeed(&running);
        let asks = web.users.is_some() || web.tls.is_some();
        let ends = asks
            || (running.allow_details && !web.allow_details)
            || (running.allow_file_names && !web.allow_file_names);
        *running = Arc::new(web);
        if ends {
            self.places.end_streams();
        }
    }

    /// Serves on these listeners until dropped.
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
                        // The result is not reported: the peer notices it on its connection.
                        let deadline = Deadline::after(server.connection_time, LAST_WORDS);
                        let mut connection =
                            pin!(server.connection(stream, peer.ip(), &deadline, &place));
                        let displaced = tokio::select! {
                            () = &mut connection => false,
                            () = deadline.passed() => false,
                            told = ended => told.is_ok(),
                        };
                        if displaced {
                            // A request that has arrived gets an answer before the connection ends.
                            deadline.pass();
                            tokio::select! {
                                biased;
                                () = &mut connection => {}
                                () = turns(TURNS) => {}
                            }
                        }
                    });
                }
                // The process or the host has no descriptor left.
                Err(e) if matches!(Errno::from_io_error(&e), Some(Errno::MFILE | Errno::NFILE)) => {
                    self.places.make_room();
                    sleep(Duration::from_millis(5)).await;
                }
                // A peer has given up before it was accepted.
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
        // A peer that sends nothing gets no buffer.
        if !matches!(timeout(HEADER_TIME, stream.readable()).await, Ok(Ok(()))) {
            return;
        }
        let web = self.web.read();
        let web = web.unwrap_or_else(PoisonError::into_inner).clone();
        let peer = Peer {
            address: address.to_canonical(),
            local: stream.local_addr().ok().map(|a| a.ip().to_canonical()),
            web: &web,
            deadline,
            place,
            refusals: &self.refusals,
            large: &self.large,
        };
        let Some(tls) = &web.tls else {
            // The futures are boxed, so that a connection that has sent nothing needs no room for them.
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
            Ok::<_, Infallible>(routes::answer(&self.agent, peer, &request).await)
        });
        let mut http = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIME)
            .max_buf_size(HEADER_BYTES)
            // Keep-alive is off, because an idle connection would hold a place. A new connection costs a scraper nothing.
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), answer);
        if (&mut http).await.is_err() {
            // Closing with unread input resets the connection, and the answer (431) would be lost.
            let _ = timeout(DRAIN_TIME, drain(http.into_parts().io.into_inner())).await;
        }
    }
}

/// Does the TLS handshake with a peer that may connect, or returns the reason against it.
async fn encrypted(tls: &Tls, stream: TcpStream) -> Result<TlsStream<TcpStream>, String> {
    let accepted = timeout(HEADER_TIME, tls.acceptor.accept(stream)).await;
    let accepted = accepted.map_err(|_| format!("no handshake in {} s", HEADER_TIME.as_secs()))?;
    let stream = accepted.map_err(|e| e.to_string())?;
    match tls.admits(stream.get_ref().1.peer_certificates()) {
        true => Ok(stream),
        false => Err("the certificate has no name of client_allowed_sans".to_owned()),
    }
}

/// Yields to the runtime `count` times, so that it polls what has arrived.
async fn turns(count: usize) {
    for _ in 0..count {
        yield_now().await;
    }
}

async fn drain(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    if stream.shutdown().await.is_ok() {
        let mut rest = stream.take(DRAIN_BYTES);
        let mut buffer = [0; 4096];
        while matches!(rest.read(&mut buffer).await, Ok(n) if n > 0) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::endpoints;
    use crate::http::places::PEER_PLACES;
    use std::io::Write;
    use std::net::{SocketAddr, TcpStream as StdTcpStream};
    use std::os::unix::net::UnixStream;

    /// Connections of one peer: more than it has places.
    const PEERS: usize = 300;

    /// Server of an agent that receives every question and answers none.
    fn silent(connection_time: Duration) -> (SocketAddr, JoinSet<()>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        theirs.set_nonblocking(true).unwrap();
        let link = AgentLink::new(vec![theirs], Vec::new(), &endpoints::ALL).unwrap();
        let mut server = Server::new(Arc::new(link), WebConfig::default());
        server.connection_time = connection_time;
        let listener = StdListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let mut running = JoinSet::new();
        running.spawn(async move { match server.serve(vec![listener]).await.unwrap() {} });
        (address, running, ours)
    }

    /// Connection whose header has arrived before the server can look.
    fn ask(address: SocketAddr, path: &str) -> TcpStream {
        let mut stream = StdTcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream.set_nonblocking(true).unwrap();
        TcpStream::from_std(stream).unwrap()
    }

    async fn answer(mut stream: TcpStream) -> String {
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn an_agent_that_is_busy_is_said_to_be() {
        let (address, _running, _agent) = silent(LAST_WORDS);
        for path in ["/metrics", "/windows", "/snapshot", "/healthz", "/slow"] {
            let answer = answer(ask(address, path)).await;
            assert!(answer.starts_with("HTTP/1.1 503 "), "{path}: {answer:?}");
            assert!(answer.contains("retry-after: 2\r\n"), "{answer}");
            assert!(answer.contains("the agent is busy"), "{answer}");
        }
    }

    /// The first connections are evicted while they wait for the agent, others before their header has been read.
    #[tokio::test]
    async fn requests_whose_place_is_taken_are_answered() {
        let (address, _running, _agent) = silent(CONNECTION_TIME);
        let mut waiting = JoinSet::new();
        for n in 0..PEERS {
            waiting.spawn(answer(ask(address, "/metrics")));
            // Fewer connections than are accepted in a row.
            if n % (BATCH / 2) == 0 {
                turns(2 * TURNS).await;
            }
        }
        for _ in 0..PEERS - PEER_PLACES {
            let answer = waiting.join_next().await.unwrap().unwrap();
            assert!(answer.starts_with("HTTP/1.1 503 "), "{answer:?}");
            assert!(answer.contains("retry-after: 2\r\n"), "{answer}");
            assert!(answer.contains("gave way to another"), "{answer}");
        }
    }
}
