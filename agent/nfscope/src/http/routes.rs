//! What each address answers.

use crate::api::slow_filter;
use crate::exposition::{self, Collectors, accepts_gzip};
use crate::http::basic_auth::Verdict;
use crate::http::landing_page;
use crate::http::ndjson_stream::{Deadline, Stream};
use crate::http::place::Place;
use crate::http::places::{NoStream, PEER_STREAMS};
use crate::http::refusals::Refusals;
use crate::http::web_config::WebConfig;
use crate::service::source_thread::{Body, MAX_PARTS, SourceHandle, gzip};
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, ALLOW, AUTHORIZATION, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use nfscope_model::status::Status;
use nfscope_text::console::{Level, log};
use serde::Serialize;
use std::net::IpAddr;

type Answer = Response<Either<Full<Bytes>, Stream>>;

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";
/// What a request says of the body that it wants.
const VARIES: &str = "accept, accept-encoding";
/// Shorter bodies are not worth packing.
const PACKED_FROM: usize = 1024;

/// Every path that is served.
const PATHS: [&str; 9] = [
    "/",
    "/metrics",
    "/healthz",
    "/-/healthy",
    "/-/ready",
    "/probes",
    "/snapshot",
    "/findings",
    "/slow",
];

/// Who asks, and by what rules.
#[derive(Clone, Copy)]
pub(super) struct Peer<'a> {
    pub(super) address: IpAddr,
    pub(super) web: &'a WebConfig,
    pub(super) deadline: &'a Deadline,
    pub(super) place: &'a Place,
    pub(super) refusals: &'a Refusals,
}

/// `/probes`
#[derive(Serialize)]
struct Probes<'a> {
    times_operations: bool,
    /// Empty where operations are timed.
    reason: &'a str,
    probes: &'a [nfscope_model::ProbeStatus],
}

pub(super) async fn answer<B>(
    source: &SourceHandle,
    peer: &Peer<'_>,
    request: &Request<B>,
) -> Answer {
    let mut answer = match refusal(peer, request).await {
        Some(refusal) => refusal,
        None => page(source, peer, request).await,
    };
    // Also of an answer that is short or an error: a cache must not give it to those who want another format.
    if request.uri().path() == "/metrics" {
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

/// For a peer without the right password.
async fn refusal<B>(peer: &Peer<'_>, request: &Request<B>) -> Option<Answer> {
    let users = peer.web.users.as_ref()?;
    let given = request.headers().get(AUTHORIZATION);
    let verdict = users.check(given, peer.address).await;
    // Programs ask without a password first, to learn that they need one.
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

async fn page<B>(source: &SourceHandle, peer: &Peer<'_>, request: &Request<B>) -> Answer {
    let path = request.uri().path();
    if !PATHS.contains(&path) {
        let known = PATHS.join(" ");
        return plain(
            StatusCode::NOT_FOUND,
            format!("no such page; see {known}\n"),
        );
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
    let header = |name| {
        request
            .headers()
            .get(name)
            .and_then(|v: &HeaderValue| v.to_str().ok())
    };
    let packed = accepts_gzip(header(ACCEPT_ENCODING));
    match path {
        "/metrics" => metrics(source, request.uri().query(), header(ACCEPT), packed).await,
        "/snapshot" => match source.body(Body::Json, packed).await {
            Ok(body) => ready(JSON, body, packed),
            Err(e) => failed(&e),
        },
        "/healthz" => match source.status().health() {
            // The agent is well: who restarts it for its answer would only lose sight of the server.
            Ok(()) => plain(
                StatusCode::OK,
                source
                    .degraded()
                    .map_or_else(|| "ok\n".to_owned(), |why| format!("degraded: {why}\n")),
            ),
            Err(why) => plain(StatusCode::SERVICE_UNAVAILABLE, why + "\n"),
        },
        "/-/healthy" => plain(StatusCode::OK, "nfscope is healthy.\n".to_owned()),
        "/-/ready" => match source.status() {
            Status::Attaching => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "nfscope is attaching its probes.\n".to_owned(),
            ),
            Status::Running(_) => plain(StatusCode::OK, "nfscope is ready.\n".to_owned()),
        },
        "/probes" => match probes(&source.status()) {
            Ok(json) => pack(JSON, json, packed),
            Err(e) => failed(&e),
        },
        "/findings" => match source.findings().await {
            Ok(json) => pack(JSON, json, packed),
            Err(e) => failed(&e),
        },
        "/slow" => slow(source, peer, request).await,
        _ => landing(&source.status(), packed),
    }
}

async fn metrics(
    source: &SourceHandle,
    query: Option<&str>,
    accept: Option<&str>,
    packed: bool,
) -> Answer {
    let format = exposition::negotiate(accept);
    let body = match Collectors::from_query(query.unwrap_or_default()) {
        Err(why) => return plain(StatusCode::BAD_REQUEST, why + "\n"),
        Ok(all) if all.all() => source.body(Body::Metrics(format), packed).await,
        Ok(some) => match source.metrics_of(some, format, packed).await {
            Ok(Some(body)) => Ok(body),
            Ok(None) => return too_many_parts(),
            Err(e) => Err(e),
        },
    };
    match body {
        Ok(body) => ready(format.content_type(), body, packed),
        Err(e) => failed(&e),
    }
}

/// The next reading may be had in a moment, and with it as many parts again.
fn too_many_parts() -> Answer {
    let text = format!(
        "at most {MAX_PARTS} different parts of the metrics are made of one reading; try again\n"
    );
    let answer = plain(StatusCode::SERVICE_UNAVAILABLE, text);
    and(answer, RETRY_AFTER, HeaderValue::from_static("1"))
}

/// Goes on until the peer hangs up.
async fn slow<B>(source: &SourceHandle, peer: &Peer<'_>, request: &Request<B>) -> Answer {
    let want = match slow_filter::from_query(request.uri().query().unwrap_or_default()) {
        Ok(want) => want,
        Err(why) => return plain(StatusCode::BAD_REQUEST, why + "\n"),
    };
    if let Err(why) = source.status().health() {
        return plain(StatusCode::SERVICE_UNAVAILABLE, why + "\n");
    }
    if request.method() == Method::HEAD {
        return with(StatusCode::OK, LINES, Either::Left(Full::default()));
    }
    if let Err(why) = peer.place.stream() {
        return plain(StatusCode::SERVICE_UNAVAILABLE, no_stream(why));
    }
    match source.slow(want).await {
        Ok(lines) => {
            let body = Stream::new(lines, peer.deadline.clone());
            with(StatusCode::OK, LINES, Either::Right(body))
        }
        Err(why) => {
            peer.place.answer();
            plain(StatusCode::SERVICE_UNAVAILABLE, format!("{why:#}\n"))
        }
    }
}

fn no_stream(why: NoStream) -> String {
    match why {
        NoStream::TooMany => format!(
            "this agent serves at most {PEER_STREAMS} listeners for slow operations to one address at once\n"
        ),
        NoStream::TooOld => "the web configuration has changed; connect again\n".to_owned(),
    }
}

fn probes(status: &Status) -> anyhow::Result<Bytes> {
    let health = status.health();
    let body = Probes {
        times_operations: health.is_ok(),
        reason: health.as_ref().err().map_or("", String::as_str),
        probes: status.probes(),
    };
    Ok(serde_json::to_vec_pretty(&body)?.into())
}

fn landing(status: &Status, packed: bool) -> Answer {
    let html = landing_page::render(&nfscope_source::hostname::own_name(), status);
    and(
        pack("text/html; charset=utf-8", html.into(), packed),
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'"),
    )
}

/// Packs a body that is worth it, for a peer that takes it packed.
fn pack(content_type: &'static str, body: Bytes, packed: bool) -> Answer {
    match packed && body.len() >= PACKED_FROM {
        true => match gzip(&body) {
            Ok(body) => ready(content_type, body, true),
            Err(e) => failed(&e),
        },
        false => ready(content_type, body, false),
    }
}

fn failed(error: &anyhow::Error) -> Answer {
    plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}\n"))
}

fn plain(status: StatusCode, text: String) -> Answer {
    with(status, TEXT, Either::Left(Full::new(text.into())))
}

/// A body that others may get packed.
fn ready(content_type: &'static str, body: Bytes, packed: bool) -> Answer {
    let answer = with(StatusCode::OK, content_type, Either::Left(Full::new(body)));
    let answer = and(answer, VARY, HeaderValue::from_static(VARIES));
    match packed {
        true => and(answer, CONTENT_ENCODING, HeaderValue::from_static("gzip")),
        false => answer,
    }
}

fn and(mut answer: Answer, name: HeaderName, value: HeaderValue) -> Answer {
    answer.headers_mut().insert(name, value);
    answer
}

fn with(
    status: StatusCode,
    content_type: &'static str,
    body: Either<Full<Bytes>, Stream>,
) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_landing_page_links_every_other_page() {
        let html = landing_page::render("host", &Status::Attaching);
        for path in &PATHS[1..] {
            assert!(html.contains(&format!("<a href=\"{path}\">")), "{path}");
        }
    }
}
