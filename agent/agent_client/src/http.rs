//! Reads a running agent: one small HTTP request, no client library.

use super::trust::Untrusted;
use super::{access, known_names};
use crate::stream::{Deadline, REQUEST_TIMEOUT, Socket, Stream};
use nfscope_api::address::{BadUrl, Target, parse};
use nfscope_api::query::QueryString;
use nfscope_api::stuck_query::Over;
use nfscope_model::{HeldRequests, Snapshot};
use serde::de::DeserializeOwned;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use thiserror::Error;

/// Longest answer that is accepted; a snapshot of a busy server is a tenth of it.
const MAX_BODY: u64 = 64 << 20;
const MAX_HEADER: u64 = 16 << 10;
/// Longest reason of a refusal that is read.
const MAX_REASON: u64 = 2 << 10;
/// First bytes of an alert of TLS: its type and the major version of the record (RFC 8446, section 5.1).
const ALERT: &[u8] = &[21, 3];
const NOTHING: &str = "it ended the connection without an answer";
const TLS_ALERT: &str = "it sent an alert of TLS";
const GIVE_HTTPS: &str = "it speaks TLS; give https://";

/// Time after which an agent gives a new answer. It repeats the same answer to all clients within a quarter of a second.
pub const FRESH: Duration = Duration::from_millis(300);

/// Bounds of a whole answer, where the limits of a single read are not enough.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Time from the connection to the last byte.
    pub time: Duration,
    /// Bytes of the body.
    pub bytes: u64,
}

/// Reasons why there is no answer.
#[derive(Debug, Error)]
pub enum Error {
    /// The host refuses the connection: no process listens at this port.
    #[error("no agent at {0}: start one with `nfscope agent`")]
    NoAgent(String),
    /// The name cannot be resolved or the host cannot be reached, so it is not known whether an agent runs there.
    #[error("cannot reach {url}: {why}")]
    Unreached {
        /// URL of the agent.
        url: String,
        /// Failure of the connection.
        why: String,
    },
    /// The text is not the URL of an agent.
    #[error(transparent)]
    Url(#[from] BadUrl),
    /// A process listens, and it does not answer as an agent does.
    #[error("{url} does not answer like an nfscope agent: {why}")]
    Answer {
        /// URL of the agent.
        url: String,
        /// Part of the answer that is not an agent's.
        why: String,
    },
}

/// Asks the agent at `url` for a snapshot.
pub fn snapshot(url: &str) -> Result<Snapshot, Error> {
    let body = body(url, "/snapshot")?;
    known_names::learn(&body);
    parsed(url, &body)
}

/// Asks the agent at `url` for requests that nfsd's threads have had in hand for at least this time.
pub fn held(url: &str, over: Duration) -> Result<HeldRequests, Error> {
    let body = body(url, &format!("/stuck?{}", Over(over).to_query()))?;
    known_names::learn(&body);
    parsed(url, &body)
}

/// Asks the agent at `url` for a page of JSON.
pub fn json<T: DeserializeOwned>(url: &str, page: &str) -> Result<T, Error> {
    parsed(url, &body(url, page)?)
}

/// Asks the agent at `url` for a page of JSON that comes whole within these bounds. An agent that sends a byte now and then holds no
/// caller for longer.
pub fn json_within<T: DeserializeOwned>(url: &str, page: &str, bounds: Bounds) -> Result<T, Error> {
    let answer = ask_until(url, page, Some(Deadline::after(bounds.time)))?;
    let body = answer.whole_up_to(bounds.bytes);
    parsed(url, &body.map_err(|why| not_an_agents(url, why))?)
}

/// Asks the agent at `url` for a page of JSON that it may not have: the error is the agent's reason alone, if it gives one.
pub fn json_or_reason<T: DeserializeOwned>(url: &str, page: &str) -> Result<T, String> {
    let answer = ask(url, page).map_err(|e| e.to_string())?;
    let body = answer.whole_or_reason()?;
    parsed(url, &body).map_err(|e| e.to_string())
}

fn body(url: &str, page: &str) -> Result<Vec<u8>, Error> {
    (ask(url, page)?.whole()).map_err(|why| not_an_agents(url, why))
}

fn not_an_agents(url: &str, why: String) -> Error {
    Error::Answer {
        url: url.to_owned(),
        why,
    }
}

fn parsed<T: DeserializeOwned>(url: &str, body: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(body).map_err(|e| Error::Answer {
        url: url.to_owned(),
        why: e.to_string(),
    })
}

/// Sends the agent at `url` a request for a page (which may have a query), and reads the answer's header.
pub fn ask(url: &str, page: &str) -> Result<Answer<Stream>, Error> {
    ask_until(url, page, None)
}

fn ask_until(url: &str, page: &str, deadline: Option<Deadline>) -> Result<Answer<Stream>, Error> {
    let target = parse(url, page).ok_or_else(|| BadUrl(url.to_owned()))?;
    let wrong = |why: String| not_an_agents(url, why);
    let stream = connect(url, &target, deadline)?;
    let io = |e: std::io::Error| wrong(e.to_string());
    stream.set_read_timeout(Some(REQUEST_TIMEOUT)).map_err(io)?;
    stream
        .set_write_timeout(Some(REQUEST_TIMEOUT))
        .map_err(io)?;
    let here = (stream.peer_addr()).is_ok_and(|a| a.ip().to_canonical().is_loopback());
    let authorization = access::password(target.encrypted, here)
        .map_or(String::new(), |value| format!("Authorization: {value}\r\n"));
    let stream = Socket { stream, deadline };
    let mut stream = match target.encrypted {
        false => Stream::Plain(stream),
        true => Stream::encrypted(stream, target.name()).map_err(|e| wrong(format!("{e:#}")))?,
    };
    // HTTP/1.0 is used so that the answer comes without chunks and ends with the connection.
    let request = format!(
        "GET {} HTTP/1.0\r\nHost: {}\r\n{authorization}\r\n",
        target.path, target.host
    );
    (stream.write_all(request.as_bytes()))
        .and_then(|()| stream.flush())
        .map_err(|e| wrong(unencrypted(e)))?;
    Answer::read(stream).map_err(|why| match (target.encrypted, why.as_str()) {
        (false, NOTHING) => wrong(format!("{NOTHING}; where it speaks TLS, give https://")),
        (false, TLS_ALERT) => wrong(GIVE_HTTPS.to_owned()),
        _ => wrong(why),
    })
}

/// Connects to the first address that accepts.
fn connect(url: &str, target: &Target, deadline: Option<Deadline>) -> Result<TcpStream, Error> {
    let unreached = |why: String| Error::Unreached {
        url: url.to_owned(),
        why,
    };
    let addresses = target.address.to_socket_addrs().map_err(|e| {
        let name = target.name();
        unreached(match e.kind() {
            ErrorKind::InvalidInput => e.to_string(),
            _ => format!(
                "`{name}` is no name that this host finds ({e}); fix: check it, or give an address"
            ),
        })
    })?;
    let mut last = None;
    for address in addresses {
        let left = deadline.map_or(Ok(REQUEST_TIMEOUT), Deadline::left);
        match left.and_then(|time| TcpStream::connect_timeout(&address, time)) {
            Ok(stream) => return Ok(stream),
            // A refusal is kept over errors of other addresses, because it shows that a host has answered.
            Err(e) if e.kind() == ErrorKind::ConnectionRefused => last = Some(e),
            Err(e) => last = last.or(Some(e)),
        }
    }
    Err(match last {
        Some(e) if e.kind() == ErrorKind::ConnectionRefused => Error::NoAgent(url.to_owned()),
        Some(e) if e.kind() == ErrorKind::TimedOut => unreached(format!(
            "no answer within {} s; fix: check that the host is up, and that no firewall drops connections to this port",
            deadline
                .map_or(REQUEST_TIMEOUT, |d| d.time.min(REQUEST_TIMEOUT))
                .as_secs()
        )),
        Some(e) => unreached(e.to_string()),
        None => unreached("its name has no address".to_owned()),
    })
}

/// Reason why a connection failed, with a fix if it is about certificates.
fn unencrypted(e: io::Error) -> String {
    use rustls::{CertificateError, Error as Tls};
    let tls = e.get_ref().and_then(|inner| inner.downcast_ref::<Tls>());
    match tls {
        Some(Tls::InvalidCertificate(CertificateError::Other(why))) if why.0.is::<Untrusted>() => {
            why.0.to_string()
        }
        Some(Tls::InvalidCertificate(why)) => format!("its certificate is not valid: {why}"),
        Some(Tls::InvalidMessage(_)) => "it does not encrypt; give http://".to_owned(),
        Some(Tls::AlertReceived(why)) => format!(
            "it ended the connection ({why:?}); where it asks for a certificate, give --cert-file and --key-file"
        ),
        _ => e.to_string(),
    }
}

/// An answer whose header has been read.
#[derive(Debug)]
pub struct Answer<R> {
    /// Status line.
    status: String,
    length: Option<usize>,
    /// Rest of the body that has not been read.
    pub body: BufReader<R>,
}

impl<R: Read> Answer<R> {
    fn read(from: R) -> Result<Self, String> {
        let mut body = BufReader::new(from);
        let mut head = (&mut body).take(MAX_HEADER);
        let (mut status, mut length) = (None, None);
        loop {
            let mut line = Vec::new();
            match head.read_until(b'\n', &mut line) {
                // The server closed the connection without reading the request, but its answer may have arrived.
                Err(e) if status.is_none() && e.kind() == ErrorKind::ConnectionReset => {}
                read => {
                    read.map_err(unencrypted)?;
                }
            }
            if status.is_none() && line.is_empty() {
                return Err(NOTHING.to_owned());
            }
            if status.is_none() && line.starts_with(ALERT) {
                return Err(TLS_ALERT.to_owned());
            }
            if line.pop() != Some(b'\n') {
                return Err("it sent no HTTP header".to_owned());
            }
            let line = String::from_utf8_lossy(&line);
            match (&status, line.trim_end()) {
                (None, line) if line.starts_with("HTTP/") => status = Some(line.to_owned()),
                (None, _) => return Err("it sent no HTTP header".to_owned()),
                (Some(status), "") => {
                    return Ok(Answer {
                        status: status.clone(),
                        length,
                        body,
                    });
                }
                (Some(_), line) => match line.split_once(':') {
                    Some((name, n)) if name.eq_ignore_ascii_case("content-length") => {
                        length = n.trim().parse().ok();
                    }
                    _ => {}
                },
            }
        }
    }

    /// Status code.
    pub fn code(&self) -> Option<u16> {
        self.status.split(' ').nth(1)?.parse().ok()
    }

    /// Error text for a response that is not the requested page.
    pub fn refusal(self) -> String {
        let (code, status) = (self.code(), self.status);
        let mut why = Vec::new();
        // Errors are ignored: a part of the reason is better than none.
        let _ = self.body.take(MAX_REASON).read_to_end(&mut why);
        let why = String::from_utf8_lossy(&why);
        match code {
            Some(401) => "it asks for a password: give --user and --password-file, or set NFSCOPE_PASSWORD; a wrong one is refused \
                          likewise"
                .to_owned(),
            // nginx, Apache and Go answer a request without TLS in words.
            Some(400) if ["HTTPS", "SSL-enabled"].iter().any(|w| why.contains(w)) => {
                GIVE_HTTPS.to_owned()
            }
            Some(403 | 421 | 429) => why.trim().to_owned(),
            _ => format!("it sent `{status}`"),
        }
    }

    /// Reads the body of a 200 answer, or the reason why there is none: a 404 and a 503 of an agent have it in one line.
    fn whole_or_reason(self) -> Result<Vec<u8>, String> {
        if !matches!(self.code(), Some(404 | 503)) {
            return self.whole();
        }
        let status = self.status.clone();
        let mut why = Vec::new();
        let _ = self.body.take(MAX_REASON).read_to_end(&mut why);
        let why = String::from_utf8_lossy(&why);
        let why = why.trim().trim_end_matches('.');
        // A page of a proxy in front of the agent is not a reason.
        match why.is_empty() || why.contains(['<', '\n']) {
            true => Err(format!("it sent `{status}`")),
            false => Err(why.to_owned()),
        }
    }

    /// Reads the whole body of a 200 answer.
    fn whole(self) -> Result<Vec<u8>, String> {
        self.whole_up_to(MAX_BODY)
    }

    /// Reads the whole body of a 200 answer that has at most these bytes.
    fn whole_up_to(self, most: u64) -> Result<Vec<u8>, String> {
        if self.code() != Some(200) {
            return Err(self.refusal());
        }
        let too_long = || format!("its answer has more than {most} bytes");
        if self.length.is_some_and(|n| n as u64 > most) {
            return Err(too_long());
        }
        let mut body = Vec::new();
        // Bytes beyond the announced length are not read: a body that has come whole is good, even if the connection then ends badly.
        let end = self.length.map_or(most + 1, |n| n as u64);
        self.body
            .take(end)
            .read_to_end(&mut body)
            .map_err(|e| e.to_string())?;
        match self.length {
            None if body.len() as u64 > most => Err(too_long()),
            Some(n) if n != body.len() => Err(format!("it sent {} of {n} bytes", body.len())),
            _ => Ok(body),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn answers() {
        let body = |answer: &'static [u8]| Answer::read(answer)?.whole();
        assert_eq!(
            body(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
            Ok(b"{}".to_vec())
        );
        assert_eq!(
            body(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}"),
            Err("it sent 2 of 3 bytes".to_owned())
        );
        assert_eq!(
            body(b"HTTP/1.1 404 Not Found\r\n\r\n"),
            Err("it sent `HTTP/1.1 404 Not Found`".to_owned())
        );
        assert_eq!(body(b""), Err(NOTHING.to_owned()));
        assert_eq!(body(&[21, 3, 3, 0, 2, 2, 10]), Err(TLS_ALERT.to_owned()));
        for told in [
            &b"HTTP/1.1 400 Bad Request\r\n\r\nThe plain HTTP request was sent to HTTPS port"[..],
            b"HTTP/1.1 400 Bad Request\r\n\r\nYou're speaking plain HTTP to an SSL-enabled server port.",
            b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n",
        ] {
            assert_eq!(body(told), Err(GIVE_HTTPS.to_owned()));
        }
        for none in [&b"SSH-2.0"[..], b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200 OK\r\n"] {
            assert_eq!(body(none), Err("it sent no HTTP header".to_owned()));
        }
    }

    /// Timeouts of single reads never fire while an agent sends a byte now and then. Only the deadline of the whole response ends the call.
    #[test]
    fn an_answer_that_drips_ends_at_its_deadline() {
        for head in ["", "HTTP/1.0 200 OK\r\n\r\n"] {
            let agent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}", agent.local_addr().unwrap());
            std::thread::spawn(move || {
                let (mut to, _) = agent.accept().unwrap();
                let mut sent = to.write_all(head.as_bytes());
                // The agent sends bytes for a hundred seconds: without a deadline the call outlasts the limit of the test.
                for _ in 0..1000 {
                    std::thread::sleep(Duration::from_millis(100));
                    sent = sent.and_then(|()| to.write_all(b" "));
                    if sent.is_err() {
                        return;
                    }
                }
            });
            let bounds = Bounds {
                time: Duration::from_secs(1),
                bytes: 1 << 20,
            };
            let began = Instant::now();
            let answer = json_within::<serde_json::Value>(&url, "/findings", bounds);
            let why = answer.unwrap_err().to_string();
            assert!(why.contains("no whole answer within 1 s"), "{why}");
            assert!(began.elapsed() < Duration::from_secs(20), "{head:?}");
        }
    }

    #[test]
    fn an_answer_has_no_more_bytes_than_its_bound() {
        let body = |answer: &'static [u8]| Answer::read(answer)?.whole_up_to(2);
        let good = Ok(b"{}".to_vec());
        assert_eq!(body(b"HTTP/1.0 200 OK\r\n\r\n{}"), good);
        assert_eq!(
            body(b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
            good
        );
        let long = Err("its answer has more than 2 bytes".to_owned());
        assert_eq!(body(b"HTTP/1.0 200 OK\r\n\r\n{ }"), long);
        assert_eq!(
            body(b"HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\n{ }"),
            long
        );
    }

    #[test]
    fn an_agent_that_lacks_a_page_says_why() {
        let body = |answer: &'static [u8]| Answer::read(answer)?.whole_or_reason();
        for (answer, why) in [
            (
                &b"HTTP/1.1 404 Not Found\r\n\r\nthis agent keeps no history on a disk; fix\n"[..],
                "this agent keeps no history on a disk; fix",
            ),
            (
                b"HTTP/1.1 503 Service Unavailable\r\n\r\nbusy; ask again.\n",
                "busy; ask again",
            ),
            (
                b"HTTP/1.1 404 Not Found\r\n\r\n<html>nginx</html>",
                "it sent `HTTP/1.1 404 Not Found`",
            ),
            (
                b"HTTP/1.1 503 Service Unavailable\r\n\r\n",
                "it sent `HTTP/1.1 503 Service Unavailable`",
            ),
            (b"HTTP/1.1 500 Oh\r\n\r\nno", "it sent `HTTP/1.1 500 Oh`"),
        ] {
            assert_eq!(body(answer), Err(why.to_owned()));
        }
        assert_eq!(
            body(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
            Ok(b"{}".to_vec())
        );
    }
}
