//! Host that a request is for. A page of another site in a browser of this host can have its name resolved to 127.0.0.1 (DNS rebinding),
//! and then read the answers of this agent. Its requests still carry its own name.

use hyper::header::HOST;
use hyper::{Request, Version};
use std::net::IpAddr;

/// Host that a request names, without its port; `None` if it names none, as HTTP/1.0 may.
pub(super) fn named<B>(request: &Request<B>) -> Option<&str> {
    let header = request.headers().get(HOST);
    match (request.uri().authority(), header) {
        (Some(authority), _) => Some(without_port(authority.as_str())),
        (None, Some(value)) => Some(value.to_str().map_or("?", without_port)),
        (None, None) => None,
    }
}

/// Returns true for a request that names no host, or several: a proxy and the agent could understand different ones (RFC 9112, 3.2).
/// HTTP/1.0 may name none.
pub(super) fn is_ambiguous<B>(request: &Request<B>) -> bool {
    match request.headers().get_all(HOST).iter().count() {
        0 => request.version() > Version::HTTP_10,
        1 => false,
        _ => true,
    }
}

fn without_port(host: &str) -> &str {
    // The port is what follows the last colon outside the brackets of an IPv6 address.
    match host.rfind(':') {
        Some(colon) if Some(colon) > host.rfind(']') => &host[..colon],
        _ => host,
    }
}

/// Returns true for an address, which no name server has given, for `localhost`, and for these names of this host.
pub(super) fn is_own(host: &str, names: &[String]) -> bool {
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    if bare.unwrap_or(host).parse::<IpAddr>().is_ok() {
        return true;
    }
    let host = host.strip_suffix('.').unwrap_or(host);
    let mut own = ["localhost"]
        .into_iter()
        .chain(names.iter().map(String::as_str));
    own.any(|name| name.eq_ignore_ascii_case(host))
}

/// Names of this host: its own name, in full and without the domain, and names that `text`, the contents of /etc/hosts, gives to loopback
/// addresses.
pub fn of_this_host(own: &str, text: &str) -> Vec<String> {
    let mut names = vec![own.to_owned()];
    names.extend(own.split_once('.').map(|(short, _)| short.to_owned()));
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let address = words.next().and_then(|a| a.parse::<IpAddr>().ok());
        if address.is_some_and(|a| a.is_loopback()) {
            names.extend(words.map(str::to_owned));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_own_names_are_right_and_others_are_not() {
        let hosts = "127.0.0.1 localhost\n127.0.1.1 nfs1.example nfs # own\n192.0.2.1 other\n::1 ip6-loopback\nx\n";
        let names = of_this_host("nfs1.lan", hosts);
        for own in [
            "127.0.0.1",
            "127.9.9.9",
            "[::1]",
            "::1",
            "192.0.2.7",
            "localhost",
            "LocalHost.",
            "nfs1",
            "NFS1.lan",
            "nfs1.example",
            "ip6-loopback",
        ] {
            assert!(is_own(own, &names), "{own}");
        }
        for other in [
            "",
            "other",
            "evil.example",
            "nfs1.evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "?",
            "[::1",
        ] {
            assert!(!is_own(other, &names), "{other}");
        }
    }

    #[test]
    fn a_request_names_one_host() {
        let ambiguous = |version: Version, hosts: &[&str]| {
            let mut builder = Request::builder().uri("/").version(version);
            for host in hosts {
                builder = builder.header(HOST, *host);
            }
            is_ambiguous(&builder.body(()).unwrap())
        };
        assert!(ambiguous(Version::HTTP_11, &[]));
        assert!(!ambiguous(Version::HTTP_11, &["a"]));
        assert!(ambiguous(Version::HTTP_11, &["a", "a"]));
        assert!(!ambiguous(Version::HTTP_10, &[]));
        assert!(ambiguous(Version::HTTP_10, &["a", "b"]));
    }

    #[test]
    fn the_name_is_taken_from_where_it_stands() {
        let request = |uri: &str, host: Option<&str>| {
            let mut builder = Request::builder().uri(uri);
            if let Some(host) = host {
                builder = builder.header(HOST, host);
            }
            let request = builder.body(()).unwrap();
            named(&request).map(str::to_owned)
        };
        let is = |name: &str| Some(name.to_owned());
        assert_eq!(request("/", None), None);
        assert_eq!(request("/", Some("a:1")), is("a"));
        assert_eq!(request("/", Some("[::1]:1")), is("[::1]"));
        assert_eq!(request("/", Some("[::1]")), is("[::1]"));
        assert_eq!(request("http://b:2/", Some("localhost")), is("b"));
    }
}
