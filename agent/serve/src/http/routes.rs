//! Passes a request to the endpoint of its path, and makes an answer of the result.

use super::admission::{Peer, refusal};
use super::agent_link::{AgentLink, Told, pack};
use super::ndjson_stream::Stream;
use super::page_assets;
use super::places::{NoStream, PEER_STREAMS};
use super::response::{
    Answer, VARIES, and, content_type, failed, formed, later, plain, unstored, with,
};
use crate::endpoints;
use crate::exposition::{self, Format, accepts_gzip};
use crate::service::endpoint::{Content, Declaration, Origin};
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{ACCEPT, ACCEPT_ENCODING, ALLOW, HeaderValue, RETRY_AFTER, VARY};
use hyper::{Method, Request, StatusCode};
use nfscope_api::link::{Ask, Have, Turn, Why};
use nfscope_text::console::{Level, log};

pub(super) async fn answer<B>(agent: &AgentLink, peer: &Peer<'_>, request: &Request<B>) -> Answer {
    let mut answer = tokio::select! {
        biased;
        answer = refusal_or_page(agent, peer, request) => answer,
        () = peer.deadline.calls_for_an_answer() => no_answer(peer.place.is_taken()),
    };
    // Short answers and errors have this header, too: a cache must not give them to a client that wants another format.
    let endpoint = endpoints::find(request.uri().path());
    if endpoint.is_some_and(|e| e.content == Content::Exposition) {
        answer = and(answer, VARY, HeaderValue::from_static(VARIES));
    }
    for (name, value) in &peer.web.headers {
        answer.headers_mut().insert(name, value.clone());
    }
    log(
        Level::Debug,
        &format!(
            "{} {} {} {}",
            peer.address,
            request.method(),
            request.uri(),
            answer.status().as_u16()
        ),
    );
    answer
}

async fn refusal_or_page<B>(agent: &AgentLink, peer: &Peer<'_>, request: &Request<B>) -> Answer {
    match refusal(peer, request).await {
        Some(refusal) => refusal,
        None => page(agent, peer, request).await,
    }
}

/// Answer to a request whose place is taken by another connection, or whose time is over.
fn no_answer(taken: bool) -> Answer {
    later(
        match taken {
            true => "too many connections are open; this one gave way to another; try again\n",
            false => {
                "the agent is busy, as it is while it attaches to a kernel module; try again\n"
            }
        }
        .to_owned(),
    )
}

async fn page<B>(agent: &AgentLink, peer: &Peer<'_>, request: &Request<B>) -> Answer {
    let path = request.uri().path();
    let (asset, endpoint) = (page_assets::find(path), endpoints::find(path));
    if asset.is_none() && endpoint.is_none() {
        return no_such_page();
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return and(
            plain(
                StatusCode::METHOD_NOT_ALLOWED,
                "only GET and HEAD\n".to_owned(),
            ),
            ALLOW,
            HeaderValue::from_static("GET, HEAD"),
        );
    }
    let packed = accepts_gzip(header(request, ACCEPT_ENCODING));
    if let Some(asset) = asset {
        let body = Bytes::from_static(asset.text.as_bytes());
        return unstored(of_release(Content::Text, asset.content_type, body, packed));
    }
    match endpoint {
        Some(endpoint) if peer.may(request) < endpoint.access => {
            refused(Why::Access, endpoint.access.refusal())
        }
        Some(endpoint) => match endpoint.origin {
            Origin::Program(text) => document(endpoint, text(), packed),
            Origin::Agent(..) => ask(agent, peer, request, endpoint, packed).await,
        },
        None => no_such_page(),
    }
}

/// Answer to a path without an endpoint.
fn no_such_page() -> Answer {
    let known: Vec<_> = endpoints::ALL.iter().map(|e| e.path).collect();
    let text = format!("no such page; see {}\n", known.join(" "));
    plain(StatusCode::NOT_FOUND, text)
}

fn header<B>(request: &Request<B>, name: hyper::header::HeaderName) -> Option<&str> {
    request.headers().get(name)?.to_str().ok()
}

/// A text of this release; compressed if that is worth it.
fn of_release(content: Content, kind: &'static str, text: Bytes, packed: bool) -> Answer {
    match pack(text, packed && content != Content::Word) {
        Ok((body, packed)) => formed(content, kind, Either::Left(Full::new(body)), packed),
        Err(e) => failed(&e),
    }
}

fn document(endpoint: &Declaration, text: Bytes, packed: bool) -> Answer {
    let kind = content_type(endpoint.content, Format::Plain);
    let answer = of_release(endpoint.content, kind, text, packed);
    match endpoint.content {
        Content::Html(_) => unstored(answer),
        _ => answer,
    }
}

/// Asks the agent, and makes an answer of its reply.
async fn ask<B>(
    agent: &AgentLink,
    peer: &Peer<'_>,
    request: &Request<B>,
    endpoint: &Declaration,
    packed: bool,
) -> Answer {
    if endpoint.is_large && peer.large.full(peer.address) {
        return no_room();
    }
    let format = match endpoint.content {
        Content::Exposition => exposition::negotiate(header(request, ACCEPT)),
        _ => Format::Plain,
    };
    let ask = Ask {
        path: endpoint.path.to_owned(),
        query: request.uri().query().unwrap_or_default().to_owned(),
        format: format as u8,
        may: peer.may(request),
        turn: Turn::Quick,
        have: Have::default(),
    };
    let packed = packed && endpoint.content != Content::Word;
    let (body, packed) = match agent.ask(endpoint, ask.clone(), packed).await {
        Ok(Told::Body(body, packed)) => (body, packed),
        Ok(Told::Lines) => return listen(agent, peer, request, endpoint, ask).await,
        Ok(Told::Refused(why, text)) => return refused(why, &text),
        Err(e) => return failed(&e),
    };
    let kind = content_type(endpoint.content, format);
    let body = match endpoint.is_large {
        true => match peer.large.hold(peer.address, body) {
            Some(held) => Either::Right(Either::Right(held)),
            None => return no_room(),
        },
        false => Either::Left(Full::new(body)),
    };
    formed(endpoint.content, kind, body, packed)
}

/// Passes lines on until the peer hangs up, if the peer may have another stream.
async fn listen<B>(
    agent: &AgentLink,
    peer: &Peer<'_>,
    request: &Request<B>,
    endpoint: &Declaration,
    ask: Ask,
) -> Answer {
    let kind = content_type(endpoint.content, Format::Plain);
    if request.method() == Method::HEAD {
        return with(StatusCode::OK, kind, Either::Left(Full::default()));
    }
    if let Err(why) = peer.place.stream() {
        return refused(Why::Unavailable, &no_stream(why));
    }
    match agent.listen(ask).await {
        Ok(lines) => {
            let body = Stream::new(lines, peer.deadline.clone());
            with(StatusCode::OK, kind, Either::Right(Either::Left(body)))
        }
        Err(why) => {
            peer.place.answer();
            refused(Why::Unavailable, &format!("{why:#}"))
        }
    }
}

fn no_stream(why: NoStream) -> String {
    match why {
        NoStream::TooMany => format!(
            "this agent serves at most {PEER_STREAMS} listeners for operations to one address at once"
        ),
        NoStream::TooOld => "the web configuration has changed; connect again".to_owned(),
    }
}

fn refused(why: Why, text: &str) -> Answer {
    let (status, again) = match why {
        Why::Query => (StatusCode::BAD_REQUEST, None),
        Why::Access => (StatusCode::FORBIDDEN, None),
        Why::Absent => (StatusCode::NOT_FOUND, None),
        Why::Failed => (StatusCode::INTERNAL_SERVER_ERROR, None),
        Why::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, None),
        Why::Busy => (StatusCode::SERVICE_UNAVAILABLE, Some("2")),
        Why::Crowded => (StatusCode::SERVICE_UNAVAILABLE, Some("1")),
    };
    let answer = plain(status, format!("{text}\n"));
    match again {
        Some(seconds) => and(answer, RETRY_AFTER, HeaderValue::from_static(seconds)),
        None => answer,
    }
}

/// Answer if the memory for large answers is used up, because peers have not read theirs yet.
fn no_room() -> Answer {
    later("too many windows are being sent already; try again\n".to_owned())
}
