//! Where an agent answers: its default address, and URLs of others.

use thiserror::Error;

/// Where the agent serves by default: this host only.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:9943";

/// The URL of this host's agent where nobody names another.
pub fn default_url() -> String {
    format!("http://{DEFAULT_ADDRESS}")
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// An agent.
    Agent,
    /// A Prometheus, or what has its API.
    Prometheus,
}

/// Not an address that this can read.
#[derive(Debug, Error, PartialEq)]
#[error("cannot read `{0}`: give http://HOST:PORT or https://HOST:PORT")]
pub struct BadUrl(pub String);

/// The parts of `http://HOST:PORT/PREFIX`, or `https`.
#[derive(Debug, PartialEq)]
pub struct Target<'a> {
    /// With port.
    pub address: String,
    /// Host, with the port where the URL has one.
    pub host: &'a str,
    /// With TLS.
    pub encrypted: bool,
    /// Path of the page that is asked for.
    pub path: String,
}

impl Target<'_> {
    /// The host without its port and without the brackets of an address.
    pub fn name(&self) -> &str {
        let end = match self.host.rfind(':') {
            Some(colon) if Some(colon) > self.host.rfind(']') => colon,
            _ => self.host.len(),
        };
        let name = &self.host[..end];
        let bare = name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
        bare.unwrap_or(name)
    }
}

/// Takes a URL apart; `page` is added to its path. `None` where it is no URL of an agent.
pub fn parse<'a>(url: &'a str, page: &str) -> Option<Target<'a>> {
    let (encrypted, rest) = match url.strip_prefix("https://") {
        Some(rest) => (true, rest),
        None => (false, url.strip_prefix("http://")?),
    };
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
            format!("{host}:{}", if encrypted { 443 } else { 80 })
        },
        host,
        encrypted,
        path: if prefix.is_empty() {
            page.to_owned()
        } else {
            format!("/{prefix}{page}")
        },
    })
}

/// The host part of a URL, or without one this host's name, for a title.
pub fn host(url: Option<&str>) -> String {
    match url {
        Some(url) => parse(url, "").map_or(url, |t| t.host).to_owned(),
        None => nfscope_source::hostname::own_name(),
    }
}

/// The port of a URL of an agent.
///
/// # Errors
/// Where it is no such URL.
pub fn port(url: &str) -> Result<u16, BadUrl> {
    parse(url, "")
        .and_then(|t| t.address.rsplit_once(':')?.1.parse().ok())
        .ok_or_else(|| BadUrl(url.to_owned()))
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
            "ftp://a",
            "http://",
            "http://a b/",
            "http://a/b c",
            "http://u@h/",
        ] {
            assert_eq!(t(bad), None, "{bad}");
        }
        assert_eq!(t("https://a/"), own("a:443", "/snapshot"));
        assert!(parse("https://a:1", "").is_some_and(|t| t.encrypted));
        assert!(parse("http://a:1", "").is_some_and(|t| !t.encrypted));
        let e = port("ftp://a").unwrap_err().to_string();
        assert_eq!(
            e,
            "cannot read `ftp://a`: give http://HOST:PORT or https://HOST:PORT"
        );
    }
}
