//! Addresses of agents: the default one, and URLs of others.

use thiserror::Error;

/// Where the agent serves by default: this host only.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:9943";

/// URL of this host's agent, which is the default.
pub fn default_url() -> String {
    format!("http://{DEFAULT_ADDRESS}")
}

/// Kind of server that a URL names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// An agent.
    Agent,
    /// A Prometheus, or a server with its API.
    Prometheus,
}

/// A text that is not the URL of an agent.
#[derive(Debug, Error, PartialEq)]
#[error("cannot read `{0}`: give http://HOST:PORT or https://HOST:PORT")]
pub struct BadUrl(pub String);

impl Whom {
    /// Port that this kind of server has by default.
    fn port(self) -> &'static str {
        match self {
            Whom::Agent => "9943",
            Whom::Prometheus => "9090",
        }
    }
}

/// Completes a URL as a person types it: `nfs1` is `http://nfs1:9943`. A text with a scheme stays as it is.
pub fn complete(text: &str, whom: Whom, encrypted: bool) -> String {
    if text.contains("://") || text.is_empty() {
        return text.to_owned();
    }
    let scheme = if encrypted { "https" } else { "http" };
    let (host, prefix) = match text.find('/') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let port = whom.port();
    if host.parse::<std::net::Ipv6Addr>().is_ok() {
        return format!("{scheme}://[{host}]:{port}{prefix}");
    }
    match host.rfind(':') > host.rfind(']') {
        true => format!("{scheme}://{text}"),
        false => format!("{scheme}://{host}:{port}{prefix}"),
    }
}

/// The parts of `http://HOST:PORT/PREFIX`, or `https`.
#[derive(Debug, PartialEq)]
pub struct Target<'a> {
    /// Host with its port.
    pub address: String,
    /// Host, with the port where the URL has one.
    pub host: &'a str,
    /// True with TLS.
    pub encrypted: bool,
    /// Path of the page.
    pub path: String,
}

impl Target<'_> {
    /// Host without its port and without the brackets of an IPv6 address.
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

/// Takes a URL apart and adds `page` to its path. `None` where it is no URL of an agent.
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

/// Host part of a URL, or this host's name without a URL, for a title.
pub fn host(url: Option<&str>) -> String {
    match url {
        Some(url) => parse(url, "").map_or(url, |t| t.host).to_owned(),
        None => nfscope_source::hostname::own_name(),
    }
}

/// Port in the URL of an agent.
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
    fn what_a_url_leaves_out_is_filled_in() {
        let agent = |text| complete(text, Whom::Agent, false);
        for (text, url) in [
            ("nfs1", "http://nfs1:9943"),
            ("nfs1:80", "http://nfs1:80"),
            ("nfs1/metrics-of/a", "http://nfs1:9943/metrics-of/a"),
            ("192.0.2.7", "http://192.0.2.7:9943"),
            ("fe80::1", "http://[fe80::1]:9943"),
            ("[fe80::1]", "http://[fe80::1]:9943"),
            ("[fe80::1]:80", "http://[fe80::1]:80"),
            ("https://nfs1", "https://nfs1"),
            ("ftp://nfs1", "ftp://nfs1"),
            ("", ""),
        ] {
            assert_eq!(agent(text), url, "{text}");
        }
        assert_eq!(DEFAULT_ADDRESS, format!("127.0.0.1:{}", Whom::Agent.port()));
        let prometheus = complete("prometheus", Whom::Prometheus, true);
        assert_eq!(prometheus, "https://prometheus:9090");
    }

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
