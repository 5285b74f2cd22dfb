//! Admission of requests: by the rules of the web configuration, and by the host of the peer.

use super::basic_auth::Verdict;
use super::hosts;
use super::large_answers::LargeAnswers;
use super::ndjson_stream::Deadline;
use super::place::Place;
use super::refusals::Refusals;
use super::response::{Answer, and, plain};
use super::web_config::WebConfig;
use hyper::header::{AUTHORIZATION, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Request, StatusCode};
use nfscope_api::access::Access;
use std::net::IpAddr;
use std::time::Instant;

/// A peer, and the rules that apply to it.
#[derive(Clone, Copy)]
pub(super) struct Peer<'a> {
    pub(super) address: IpAddr,
    /// Address of this host that the peer connected to.
    pub(super) local: Option<IpAddr>,
    pub(super) web: &'a WebConfig,
    pub(super) deadline: &'a Deadline,
    pub(super) place: &'a Place,
    pub(super) refusals: &'a Refusals,
    pub(super) large: &'a LargeAnswers,
}

impl Peer<'_> {
    /// Returns true if the connection uses the loopback network, so that both ends are on this host.
    fn over_loopback(&self) -> bool {
        self.address.is_loopback() || self.local.is_some_and(|local| local.is_loopback())
    }

    /// Returns true if the peer is on this host, and its request is for this host.
    fn is_here<B>(&self, request: &Request<B>) -> bool {
        let own = hosts::named(request).is_none_or(|host| hosts::is_own(host, &self.web.hosts));
        is_here(self.address, self.local) && own
    }

    /// Returns true if the peer may read answers that name files and clients.
    fn may_read_details<B>(&self, request: &Request<B>) -> bool {
        self.is_here(request) || self.web.allow_details || self.web.authenticates()
    }

    /// Highest class of access that the peer has.
    pub(super) fn may<B>(&self, request: &Request<B>) -> Access {
        match self.may_read_details(request) {
            false => Access::Everybody,
            true if self.is_here(request) || self.web.allow_file_names => Access::FileNames,
            true => Access::Details,
        }
    }
}

/// Returns true if a peer is on this host, which was connected to at `local`.
fn is_here(peer: IpAddr, local: Option<IpAddr>) -> bool {
    peer.is_loopback() || local == Some(peer)
}

/// Answer to a request above the rate of the web configuration.
fn too_many(peer: &Peer<'_>) -> Option<Answer> {
    let limit = peer.web.rate_limit.as_ref()?;
    (!limit.admits(Instant::now())).then(|| {
        and(
            plain(
                StatusCode::TOO_MANY_REQUESTS,
                "more requests than rate_limit of the web configuration allows\n".to_owned(),
            ),
            RETRY_AFTER,
            HeaderValue::from_static("1"),
        )
    })
}

/// Answer to a request over loopback that is for another host. Where peers authenticate, the check is not needed.
fn misdirected<B>(peer: &Peer<'_>, request: &Request<B>) -> Option<Answer> {
    if peer.web.authenticates() || !peer.over_loopback() {
        return None;
    }
    let host = hosts::named(request).filter(|host| !hosts::is_own(host, &peer.web.hosts))?;
    Some(plain(
        StatusCode::MISDIRECTED_REQUEST,
        format!(
            "requests over loopback must be for localhost, an address or a name of this host, not for `{host}`; [web] allowed_hosts \
             (--web.allowed-host) of the agent adds names\n"
        ),
    ))
}

/// Answer to a peer without the right password.
async fn wrong_password<B>(peer: &Peer<'_>, request: &Request<B>) -> Option<Answer> {
    let users = peer.web.users.as_ref()?;
    let given = request.headers().get(AUTHORIZATION);
    let verdict = users.check(given, peer.address).await;
    // A request without a password is not noted: programs send one first, to learn that they need a password.
    if verdict == Verdict::Refused && given.is_some() {
        peer.refusals.note(peer.address);
    }
    let (status, text, header, value) = match verdict {
        Verdict::Welcome => return None,
        Verdict::Refused => (
            StatusCode::UNAUTHORIZED,
            "a name and a password of basic_auth_users are needed\n",
            WWW_AUTHENTICATE,
            HeaderValue::from_static("Basic realm=\"nfscope\""),
        ),
        Verdict::Busy => (
            StatusCode::TOO_MANY_REQUESTS,
            "too many passwords are being checked; try again\n",
            RETRY_AFTER,
            HeaderValue::from_static("1"),
        ),
    };
    Some(and(plain(status, text.to_owned()), header, value))
}

/// Answer in place of the page, if the request is refused.
pub(super) async fn refusal<B>(peer: &Peer<'_>, request: &Request<B>) -> Option<Answer> {
    if hosts::is_ambiguous(request) {
        let text = "a request of HTTP/1.1 needs one Host header, and no more than one\n";
        return Some(plain(StatusCode::BAD_REQUEST, text.to_owned()));
    }
    match too_many(peer).or_else(|| misdirected(peer, request)) {
        Some(answer) => Some(answer),
        None => wrong_password(peer, request).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_for_this_host() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let own = Some(ip("192.0.2.1"));
        assert!(is_here(ip("127.0.0.2"), Some(ip("127.0.0.1"))));
        assert!(is_here(ip("::1"), None));
        assert!(is_here(ip("192.0.2.1"), own));
        assert!(!is_here(ip("192.0.2.2"), own));
        assert!(!is_here(ip("192.0.2.2"), None));
    }
}
