//! Reading a running agent: one small HTTP request, no client library.

use crate::console::say;
use crate::model::Snapshot;
use crate::{agent, privileges};
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use thiserror::Error;

/// Longest answer taken; a snapshot of a busy server is a tenth of it.
const LARGEST: u64 = 64 << 20;
const LARGEST_HEADER: u64 = 16 << 10;
const PATIENCE: Duration = Duration::from_secs(10);

/// Why there is no answer.
#[derive(Debug, Error)]
pub(crate) enum Error {
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

fn parse<'a>(url: &'a str, page: &str) -> Option<Target<'a>> {
    let rest = url.strip_prefix("http://")?;
    let (host, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    let prefix = prefix.trim_end_matches('/');
    let odd = |c: char| c.is_whitespace() || c.is_control();
    if host.is_empty() || host.contains(|c: char| odd(c) || c == '@') || prefix.contains(odd) {
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
            page.to_owned()
        } else {
            format!("/{prefix}{page}")
        },
    })
}

/// The host part of a URL, or without one this host's name, for a title.
pub(crate) fn host(url: Option<&str>) -> String {
    match url {
        Some(url) => parse(url, "").map_or(url, |t| t.host).to_owned(),
        None => own_name(),
    }
}

/// This host's name.
pub(crate) fn own_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// The port of a URL of an agent.
///
/// # Errors
/// Where it is no such URL.
pub(crate) fn port(url: &str) -> Result<u16, Error> {
    parse(url, "")
        .and_then(|t| t.address.rsplit_once(':')?.1.parse().ok())
        .ok_or_else(|| Error::Url(url.to_owned()))
}

/// Who tells what is measured.
pub(crate) enum Found<T> {
    /// The agent at this address, with its first answer.
    Agent(String, T),
    /// Nobody yet: probes of this very process will.
    Own,
}

/// Asks the agent at `url`. Where none is named and this host's does not answer, says that probes of its own measure.
///
/// # Errors
/// When there is no agent and probes of its own are not possible, or with the agent's own trouble.
pub(crate) fn agent_or_own<T>(
    url: Option<&str>,
    ask: impl FnOnce(&str) -> Result<T, Error>,
) -> anyhow::Result<Found<T>> {
    let at = match url {
        Some(url) => url.to_owned(),
        None => format!("http://{}", agent::DEFAULT_ADDRESS),
    };
    match ask(&at) {
        Ok(answer) => Ok(Found::Agent(at, answer)),
        Err(e @ Error::NoAgent(_)) if url.is_none() => {
            say(&format!(
                "no agent at {at}: measuring with probes of its own"
            ));
            // Without the right to do that, the missing agent is the news.
            privileges::require().map_err(|why| anyhow::anyhow!("{e}; or {why}"))?;
            Ok(Found::Own)
        }
        Err(e) => Err(e.into()),
    }
}

/// Asks the agent at `url` for a snapshot.
pub(crate) fn snapshot(url: &str) -> Result<Snapshot, Error> {
    json(url, "/snapshot")
}

/// Asks the agent at `url` for a page of JSON.
pub(crate) fn json<T: DeserializeOwned>(url: &str, page: &str) -> Result<T, Error> {
    let wrong = |why: String| Error::Answer {
        url: url.to_owned(),
        why,
    };
    let body = ask(url, page)?.whole().map_err(wrong)?;
    serde_json::from_slice(&body).map_err(|e| wrong(e.to_string()))
}

/// Sends the agent at `url` a request for a page (which may have a query), and reads the answer's header.
pub(crate) fn ask(url: &str, page: &str) -> Result<Answer<TcpStream>, Error> {
    let target = parse(url, page).ok_or_else(|| Error::Url(url.to_owned()))?;
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
    // HTTP/1.0: the answer comes without chunks and ends with the connection.
    let request = format!(
        "GET {} HTTP/1.0\r\nHost: {}\r\n\r\n",
        target.path, target.host
    );
    stream.write_all(request.as_bytes()).map_err(io)?;
    Answer::read(stream).map_err(wrong)
}

/// An answer whose header has been read.
#[derive(Debug)]
pub(crate) struct Answer<R> {
    /// The status line.
    status: String,
    length: Option<usize>,
    /// What has not been read of the body.
    pub(crate) body: BufReader<R>,
}

impl<R: Read> Answer<R> {
    fn read(from: R) -> Result<Self, String> {
        let mut body = BufReader::new(from);
        let mut head = (&mut body).take(LARGEST_HEADER);
        let (mut status, mut length) = (None, None);
        loop {
            let mut line = Vec::new();
            head.read_until(b'\n', &mut line)
                .map_err(|e| e.to_string())?;
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

    /// The status code.
    pub(crate) fn code(&self) -> Option<u16> {
        self.status.split(' ').nth(1)?.parse().ok()
    }

    /// The body of a 200 answer, whole.
    fn whole(self) -> Result<Vec<u8>, String> {
        if self.code() != Some(200) {
            return Err(format!("it sent `{}`", self.status));
        }
        let mut body = Vec::new();
        self.body
            .take(LARGEST)
            .read_to_end(&mut body)
            .map_err(|e| e.to_string())?;
        match self.length {
            Some(n) if n != body.len() => Err(format!("it sent {} of {n} bytes", body.len())),
            _ => Ok(body),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls() {
        let t = |url| parse(url, "/snapshot").map(|t| (t.address, t.path));
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
            "http://a/b c",
            "http://u@h/",
        ] {
            assert_eq!(t(bad), None, "{bad}");
        }
        let e = snapshot("https://a").unwrap_err().to_string();
        assert_eq!(e, "cannot read `https://a`: give http://HOST:PORT");
    }

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
        for none in [&b"SSH-2.0"[..], b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200 OK\r\n"] {
            assert_eq!(body(none), Err("it sent no HTTP header".to_owned()));
        }
    }
}
