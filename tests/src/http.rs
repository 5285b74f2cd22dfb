//! Just enough HTTP to scrape the agent, plain enough to see exactly what it answered.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result};

/// An answer, whole.
#[derive(Clone, Debug)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Header names in lower case, with their values.
    pub headers: Vec<(String, String)>,
    /// The body, freed of chunks.
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
    fetch(address, path, headers).with_context(|| format!("GET http://{address}{path}"))
}

fn fetch(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<Response> {
    let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5))?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let mut request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += "\r\n";
    stream.write_all(request.as_bytes())?;
    read_response(&mut BufReader::new(stream))
}

/// Reads a status line, headers and the body.
pub fn read_response(from: &mut impl BufRead) -> Result<Response> {
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
    if response.header("transfer-encoding") == Some("chunked") {
        read_chunks(from, &mut response.body)?;
    } else if let Some(length) = response.header("content-length") {
        let length: u64 = length.parse().context("content-length")?;
        from.take(length).read_to_end(&mut response.body)?;
        anyhow::ensure!(
            response.body.len() as u64 == length,
            "the body ended after {} of {length} bytes",
            response.body.len()
        );
    } else {
        from.read_to_end(&mut response.body)?;
    }
    Ok(response)
}

fn read_chunks(from: &mut impl BufRead, body: &mut Vec<u8>) -> Result<()> {
    loop {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let size = u64::from_str_radix(line.trim(), 16)
            .with_context(|| format!("not a chunk size: {line:?}"))?;
        from.by_ref().take(size).read_to_end(body)?;
        from.read_line(&mut line)?;
        if size == 0 {
            return Ok(());
        }
    }
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
