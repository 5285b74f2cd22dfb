//! HTTP client of the tests: just enough to scrape the agent, and to see exactly what it answered.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::clock;

/// An HTTP response, complete.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Header names in lower case, with their values.
    pub headers: Vec<(String, String)>,
    /// The body, with chunks joined.
    pub body: Vec<u8>,
}

impl Response {
    /// The first header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let (_, value) = self.headers.iter().find(|(n, _)| n == name)?;
        Some(value)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends one GET on a connection of its own and reads the answer.
pub fn get(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
    let _runs = clock::runs(address);
    fetch(address, path, headers).with_context(|| format!("GET http://{address}{path}"))
}

fn fetch(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
    read_response(&mut ask(address, path, headers)?)
}

fn ask(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<BufReader<TcpStream>> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(60))?;
    stream.set_read_timeout(Some(Duration::from_secs(600)))?;
    let mut request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += "\r\n";
    stream.write_all(request.as_bytes())?;
    Ok(BufReader::new(stream))
}

/// A streamed response, line by line. Dropping it closes the connection.
#[derive(Debug)]
pub struct Lines {
    stream: TcpStream,
    text: Arc<Mutex<Vec<u8>>>,
}

impl Lines {
    /// Sends the request, and returns when the response has begun.
    pub fn open(address: SocketAddr, path: &str) -> Result<Lines> {
        let what = || format!("GET http://{address}{path}");
        let _runs = clock::runs(address);
        let mut from = ask(address, path, &[]).with_context(what)?;
        let head = read_head(&mut from).with_context(what)?;
        if head.status != 200 || head.header("transfer-encoding") != Some("chunked") {
            bail!("{} is no stream: {}", what(), head.status);
        }
        let stream = from.get_ref().try_clone()?;
        stream.set_read_timeout(None)?;
        let text = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&text);
        thread::spawn(move || {
            let mut chunk = Vec::new();
            while read_chunk(&mut from, &mut chunk).is_ok_and(|more| more) {
                let mut text = into.lock().unwrap_or_else(PoisonError::into_inner);
                text.append(&mut chunk);
            }
        });
        Ok(Lines { stream, text })
    }

    /// Complete lines received so far.
    pub fn so_far(&self) -> Vec<String> {
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        let whole = text.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
        let whole = String::from_utf8_lossy(&text[..whole]);
        whole.lines().map(str::to_owned).collect()
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// Reads a status line and headers.
fn read_head(from: &mut impl BufRead) -> Result<Response> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|s| s.trim().parse().ok())
        .with_context(|| format!("not an HTTP status line: {line:?}"))?;
    let mut response = Response {
        status,
        headers: Vec::new(),
        body: Vec::new(),
    };
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        response
            .headers
            .push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    Ok(response)
}

/// Reads a status line, headers and the body.
pub fn read_response(from: &mut impl BufRead) -> Result<Response> {
    let mut response = read_head(from)?;
    if response.header("transfer-encoding") == Some("chunked") {
        while read_chunk(from, &mut response.body)? {}
    } else if let Some(length) = response.header("content-length") {
        let length: u64 = length.parse().context("content-length")?;
        from.take(length).read_to_end(&mut response.body)?;
        ensure!(
            response.body.len() as u64 == length,
            "the body ended after {} of {length} bytes",
            response.body.len()
        );
    } else {
        from.read_to_end(&mut response.body)?;
    }
    Ok(response)
}

/// Adds the next chunk to the body; false at the last one, which is empty.
fn read_chunk(from: &mut impl BufRead, body: &mut Vec<u8>) -> Result<bool> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let size = u64::from_str_radix(line.trim(), 16)
        .with_context(|| format!("not a chunk size: {line:?}"))?;
    let before = body.len();
    from.by_ref().take(size).read_to_end(body)?;
    ensure!((body.len() - before) as u64 == size, "a chunk cut short");
    from.read_line(&mut line)?;
    Ok(size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined() {
        let answer =
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";
        let response = read_response(&mut &answer[..]).expect("a response");
        assert_eq!((response.status, response.text()), (200, "abcd".to_owned()));
    }

    #[test]
    fn a_short_body_is_an_error() {
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
        assert!(read_response(&mut &answer[..]).is_err());
    }
}
