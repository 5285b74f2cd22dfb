//! Reading a running agent: one small HTTP request, no client library.

use crate::model::Snapshot;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use thiserror::Error;

/// Longest answer taken; a snapshot of a busy server is a tenth of it.
const LARGEST: u64 = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no snapshot.
#[derive(Debug, Error)]
pub(super) enum Error {
    /// Nobody listens.
    #[error("no agent at {0}: start one with `nfscope agent`")]
    NoAgent(String),
    /// Not an address that this can read.
    #[error("cannot read `{0}`: give http://HOST:PORT")]
    Url(String),
    /// Somebody listens, and it does not answer as an agent does.
    #[error("{url} does not answer like an nfscope agent: {why}")]
    Answer { url: String, why: String },
}

/// The parts of `http://HOST:PORT/PREFIX`.
#[derive(Debug, PartialEq)]
struct Target<'a> {
    /// With port.
    address: String,
    host: &'a str,
    path: String,
}

fn parse(url: &str) -> Option<Target<'_>> {
    let rest = url.strip_prefix("http://")?;
    let (host, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = prefix.trim_end_matches('/');
    if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control() || c == '@') {
        return None;
    }
    // The port is what follows the last colon outside the brackets of an IPv6 address.
    let has_port = host.rfind(':') > host.rfind(']');
    Some(Target {
        address: if has_port {
            host.to_owned()
        } else {
            format!("{host}:80")
        },
        host,
        path: if prefix.is_empty() {
            "/snapshot".into()
        } else {
            format!("/{prefix}/snapshot")
        },
    })
}

/// The host part of a URL, for a title.
pub(super) fn host(url: &str) -> &str {
    parse(url).map_or(url, |t| t.host)
}

/// Asks the agent at `url` for a snapshot.
pub(super) fn snapshot(url: &str) -> Result<Snapshot, Error> {
    let target = parse(url)
        .filter(|t| {
            !t.path
                .contains(|c: char| c.is_whitespace() || c.is_control())
        })
        .ok_or_else(|| Error::Url(url.to_owned()))?;
    let none = |_| Error::NoAgent(url.to_owned());
    let wrong = |why: String| Error::Answer {
        url: url.to_owned(),
        why,
    };
    let addresses = target.address.to_socket_addrs().map_err(none)?;
    let mut stream = addresses
        .into_iter()
        .find_map(|a| TcpStream::connect_timeout(&a, PATIENCE).ok())
        .ok_or_else(|| Error::NoAgent(url.to_owned()))?;
    let io = |e: std::io::Error| wrong(e.to_string());
    stream.set_read_timeout(Some(PATIENCE)).map_err(io)?;
    stream.set_write_timeout(Some(PATIENCE)).map_err(io)?;
    // HTTP/1.0: the answer is one piece and ends with the connection.
    let request = format!(
        "GET {} HTTP/1.0\r\nHost: {}\r\nAccept: application/json\r\n\r\n",
        target.path, target.host
    );
    stream.write_all(request.as_bytes()).map_err(io)?;
    let mut answer = Vec::new();
    stream.take(LARGEST).read_to_end(&mut answer).map_err(io)?;
    let body = body(&answer).map_err(wrong)?;
    serde_json::from_slice(body).map_err(|e| wrong(e.to_string()))
}

/// The body of a 200 answer.
fn body(answer: &[u8]) -> Result<&[u8], String> {
    let end = answer
        .windows(4)
        .position(|w| w == b"\r\n\r\n")
        .ok_or("it sent no HTTP header")?;
    let head = String::from_utf8_lossy(&answer[..end]);
    let mut lines = head.lines();
    let status = lines.next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        return Err(format!("it sent `{status}`"));
    }
    let body = &answer[end + 4..];
    let length = lines
        .filter_map(|l| l.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, n)| n.trim().parse::<usize>().ok());
    match length {
        Some(n) if n != body.len() => Err(format!("it sent {} of {n} bytes", body.len())),
        _ => Ok(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let t = |url| parse(url).map(|t| (t.address, t.path));
        let own = |a: &str, p: &str| Some((a.to_owned(), p.to_owned()));
        assert_eq!(t("http://a:1"), own("a:1", "/snapshot"));
        assert_eq!(t("http://a:1/"), own("a:1", "/snapshot"));
        assert_eq!(t("http://a/x/"), own("a:80", "/x/snapshot"));
        assert_eq!(t("http://[::1]"), own("[::1]:80", "/snapshot"));
        assert_eq!(t("http://[::1]:9"), own("[::1]:9", "/snapshot"));
        for bad in [
            "",
            "a:1",
            "https://a",
            "http://",
            "http://a b/",
            "http://u@h/",
        ] {
            assert_eq!(t(bad), None, "{bad}");
        }
        let e = snapshot("https://a").unwrap_err().to_string();
        assert_eq!(e, "cannot read `https://a`: give http://HOST:PORT");
    }

    #[test]
    fn answers() {
        assert_eq!(
            body(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
            Ok(&b"{}"[..])
        );
        assert_eq!(
            body(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}"),
            Err("it sent 2 of 3 bytes".to_owned())
        );
        assert_eq!(
            body(b"HTTP/1.1 404 Not Found\r\n\r\n"),
            Err("it sent `HTTP/1.1 404 Not Found`".to_owned())
        );
        assert!(body(b"SSH-2.0").is_err());
    }
}
