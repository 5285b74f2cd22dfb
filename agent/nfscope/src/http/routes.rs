//! What each address answers.

use super::admission::{Peer, refusal};
use super::response::{
    Answer, JSON, LINES, PACKED_FROM, TEXT, VARIES, and, encoded, failed, later, pack, plain,
    ready, unstored, with,
};
use crate::api::breakdown_query::Query;
use crate::api::link::Health;
use crate::api::query::QueryString;
use crate::api::stuck_query::Over;
use crate::api::windows_query::Wanted;
use crate::exposition::{self, Collectors, accepts_gzip, reference};
use crate::http::agent_link::{AgentLink, Page, gzip};
use crate::http::landing_page;
use crate::http::ndjson_stream::Stream;
use crate::http::page_assets;
use crate::http::places::{NoStream, PEER_STREAMS};
use crate::service::source_thread::MAX_PARTS;
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, ALLOW, CONTENT_SECURITY_POLICY, HeaderValue, RETRY_AFTER, VARY,
};
use hyper::{Method, Request, StatusCode};
use nfscope_model::SlowFilter;
use nfscope_model::status::Status;
use nfscope_text::console::{Level, log};
use serde::Serialize;
use tokio::sync::mpsc::Receiver;

/// Where nothing but the last quarter of an hour is known.
const NO_HISTORY: &str = "this agent keeps no history on a disk; --history-directory, or the unit of the package, gives it a place\n";

/// Where the agent looks for no recordings.
const NO_RECORDINGS: &str = "this agent shows no recordings; `nfscope baseline open NAME` does\n";

/// Every path that is served.
const PATHS: [&str; 16] = [
    "/",
    "/about",
    "/metrics",
    "/healthz",
    "/-/healthy",
    "/-/ready",
    "/probes",
    "/snapshot",
    "/findings",
    "/slow",
    "/breakdown",
    "/stuck",
    "/docs/metrics",
    "/docs/findings",
    "/windows",
    "/recordings",
];

/// What each finding means and what to do about it, as this release has it.
const FINDINGS_PAGE: &str = include_str!("../../../../docs/findings.md");

/// `/probes`
#[derive(Serialize)]
struct Probes<'a> {
    times_operations: bool,
    /// Empty where operations are timed.
    reason: &'a str,
    probes: &'a [nfscope_model::ProbeStatus],
}

pub(super) async fn answer<B>(agent: &AgentLink, peer: &Peer<'_>, request: &Request<B>) -> Answer {
    let mut answer = tokio::select! {
        biased;
        answer = refusal_or_page(agent, peer, request) => answer,
        () = peer.deadline.calls_for_an_answer() => no_answer(peer.place.is_taken()),
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

async fn refusal_or_page<B>(agent: &AgentLink, peer: &Peer<'_>, request: &Request<B>) -> Answer {
    match refusal(peer, request).await {
        Some(refusal) => refusal,
        None => page(agent, peer, request).await,
    }
}

/// For a request whose place is taken by another connection, or whose time is over.
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

const DETAILS: &str = "slow and stuck operations, break-downs, snapshots and recordings name clients and files, and are served on this host only; \
    [web] allow_details \
    (--web.allow-details) of the agent allows them to everybody who can connect, and a web configuration with passwords or \
    certificates of clients to those who have them\n";

const FILE_NAMES: &str = "break-downs by user and by file are served on this host only; [web] allow_file_names \
    (--web.allow-file-names) of the agent allows them to those on other hosts who may read slow operations\n";

async fn page<B>(agent: &AgentLink, peer: &Peer<'_>, request: &Request<B>) -> Answer {
    let path = request.uri().path();
    let asset = page_assets::find(path);
    if asset.is_none() && !PATHS.contains(&path) {
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
    let details = ["/slow", "/breakdown", "/snapshot", "/stuck", "/recordings"];
    if details.contains(&path) && !peer.may_read_details(request) {
        return plain(StatusCode::FORBIDDEN, DETAILS.to_owned());
    }
    let header = |name| {
        request
            .headers()
            .get(name)
            .and_then(|v: &HeaderValue| v.to_str().ok())
    };
    let packed = accepts_gzip(header(ACCEPT_ENCODING));
    if let Some(asset) = asset {
        let body = Bytes::from_static(asset.text.as_bytes());
        return unstored(pack(asset.content_type, body, packed));
    }
    match path {
        "/metrics" => metrics(agent, request.uri().query(), header(ACCEPT), packed).await,
        "/snapshot" => body(agent, Page::Snapshot, JSON, packed).await,
        "/-/healthy" => plain(StatusCode::OK, "nfscope is healthy.\n".to_owned()),
        "/healthz" | "/-/ready" => match agent.health().await {
            Ok(health) => well(path, health),
            Err(e) => failed(&e),
        },
        "/probes" => match agent.status().await.and_then(|status| probes(&status)) {
            Ok(json) => pack(JSON, json, packed),
            Err(e) => failed(&e),
        },
        "/findings" => match agent.findings().await {
            Ok(json) => pack(JSON, json, packed),
            Err(e) => failed(&e),
        },
        "/windows" => windows(agent, peer, request, packed).await,
        "/recordings" => match agent.recordings().await {
            Ok(Some(json)) => pack(JSON, json, packed),
            Ok(None) => plain(StatusCode::NOT_FOUND, NO_RECORDINGS.to_owned()),
            Err(e) => later(format!("{e:#}\n")),
        },
        "/slow" => slow(agent, peer, request).await,
        "/breakdown" => breakdown(agent, peer, request).await,
        "/stuck" => stuck(agent, request.uri().query(), packed).await,
        "/docs/metrics" => pack(TEXT, reference::plain().into(), packed),
        "/docs/findings" => pack(TEXT, Bytes::from_static(FINDINGS_PAGE.as_bytes()), packed),
        "/about" => match agent.status().await {
            Ok(status) => landing(&status, packed),
            Err(e) => failed(&e),
        },
        _ => index(packed),
    }
}

/// `/healthz`: whether operations are timed. `/-/ready`: whether that can be said already.
fn well(path: &str, health: Health) -> Answer {
    let (is_well, text) = match (path, health) {
        ("/-/ready", health) => match health.attaching {
            true => (false, "nfscope is attaching its probes.".to_owned()),
            false => (true, "nfscope is ready.".to_owned()),
        },
        (_, Health { why: Some(why), .. }) => (false, why),
        // The agent is well: who restarts it for its answer would only lose sight of the server.
        (_, health) => (
            true,
            (health.degraded).map_or_else(|| "ok".to_owned(), |why| format!("degraded: {why}")),
        ),
    };
    let status = match is_well {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    plain(status, text + "\n")
}

async fn metrics(
    agent: &AgentLink,
    query: Option<&str>,
    accept: Option<&str>,
    packed: bool,
) -> Answer {
    let format = exposition::negotiate(accept);
    match Collectors::from_query(query.unwrap_or_default()) {
        Err(why) => plain(StatusCode::BAD_REQUEST, why + "\n"),
        Ok(some) => {
            body(
                agent,
                Page::Metrics(format, some),
                format.content_type(),
                packed,
            )
            .await
        }
    }
}

async fn body(agent: &AgentLink, page: Page, content_type: &'static str, packed: bool) -> Answer {
    match agent.body(page, packed).await {
        Ok(Some(body)) => ready(content_type, body, packed),
        Ok(None) => too_many_parts(),
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
async fn slow<B>(agent: &AgentLink, peer: &Peer<'_>, request: &Request<B>) -> Answer {
    let want = match SlowFilter::from_query(request.uri().query().unwrap_or_default()) {
        Ok(want) => want,
        Err(why) => return plain(StatusCode::BAD_REQUEST, why + "\n"),
    };
    stream(agent, peer, request, agent.slow(&want)).await
}

/// The same.
async fn breakdown<B>(agent: &AgentLink, peer: &Peer<'_>, request: &Request<B>) -> Answer {
    let query = match Query::from_query(request.uri().query().unwrap_or_default()) {
        Ok(query) => query,
        Err(why) => return plain(StatusCode::BAD_REQUEST, why + "\n"),
    };
    if query.is_private() && !peer.is_here(request) && !peer.web.allow_file_names {
        return plain(StatusCode::FORBIDDEN, FILE_NAMES.to_owned());
    }
    stream(agent, peer, request, agent.breakdown(&query)).await
}

/// Passes on what comes, where operations are timed and the peer may have another stream.
async fn stream<B>(
    agent: &AgentLink,
    peer: &Peer<'_>,
    request: &Request<B>,
    ask: impl Future<Output = anyhow::Result<Receiver<Bytes>>>,
) -> Answer {
    match agent.health().await {
        Ok(Health { why: None, .. }) => {}
        Ok(Health { why: Some(why), .. }) => {
            return plain(StatusCode::SERVICE_UNAVAILABLE, why + "\n");
        }
        Err(e) => return failed(&e),
    }
    if request.method() == Method::HEAD {
        return with(StatusCode::OK, LINES, Either::Left(Full::default()));
    }
    if let Err(why) = peer.place.stream() {
        return plain(StatusCode::SERVICE_UNAVAILABLE, no_stream(why));
    }
    match ask.await {
        Ok(lines) => {
            let body = Stream::new(lines, peer.deadline.clone());
            with(StatusCode::OK, LINES, Either::Right(Either::Left(body)))
        }
        Err(why) => {
            peer.place.answer();
            plain(StatusCode::SERVICE_UNAVAILABLE, format!("{why:#}\n"))
        }
    }
}

async fn stuck(agent: &AgentLink, query: Option<&str>, packed: bool) -> Answer {
    match Over::from_query(query.unwrap_or_default()) {
        Err(why) => plain(StatusCode::BAD_REQUEST, why + "\n"),
        Ok(Over(over)) => match agent.held(over).await {
            Ok(json) => pack(JSON, json, packed),
            Err(e) => failed(&e),
        },
    }
}

fn no_stream(why: NoStream) -> String {
    match why {
        NoStream::TooMany => format!(
            "this agent serves at most {PEER_STREAMS} listeners for operations to one address at once\n"
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

/// The latest windows that a page has not seen, or those of a range or of a recording.
async fn windows<B>(
    agent: &AgentLink,
    peer: &Peer<'_>,
    request: &Request<B>,
    packed: bool,
) -> Answer {
    let wanted = match Wanted::from_query(request.uri().query().unwrap_or_default()) {
        Ok(wanted) => wanted,
        Err(why) => return plain(StatusCode::BAD_REQUEST, why + "\n"),
    };
    let recorded = matches!(wanted, Wanted::Recorded(_));
    if recorded && !peer.may_read_details(request) {
        return plain(StatusCode::FORBIDDEN, DETAILS.to_owned());
    }
    if peer.large.full(peer.address) {
        return no_room();
    }
    let answer = match wanted {
        Wanted::Latest(seen) => agent.windows(seen).await.map(Some),
        stored => agent.stored(&stored).await,
    };
    let json = match answer {
        Ok(Some(json)) => json,
        Ok(None) if recorded => return plain(StatusCode::NOT_FOUND, NO_RECORDINGS.to_owned()),
        Ok(None) => return plain(StatusCode::NOT_FOUND, NO_HISTORY.to_owned()),
        Err(e) => return later(format!("{e:#}\n")),
    };
    let packed = packed && json.len() >= PACKED_FROM;
    let body = if packed { gzip(&json) } else { Ok(json) };
    match body.map(|body| peer.large.hold(peer.address, body)) {
        Ok(Some(held)) => encoded(JSON, Either::Right(Either::Right(held)), packed),
        Ok(None) => no_room(),
        Err(e) => failed(&e),
    }
}

/// Others have not read theirs yet.
fn no_room() -> Answer {
    later("too many windows are being sent already; try again\n".to_owned())
}

fn index(packed: bool) -> Answer {
    let body = Bytes::from_static(page_assets::INDEX.as_bytes());
    let answer = pack("text/html; charset=utf-8", body, packed);
    let policy = HeaderValue::from_static(page_assets::POLICY);
    unstored(and(answer, CONTENT_SECURITY_POLICY, policy))
}

fn landing(status: &Status, packed: bool) -> Answer {
    let html = landing_page::render(&nfscope_source::hostname::own_name(), status);
    and(
        pack("text/html; charset=utf-8", html.into(), packed),
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_landing_page_links_every_other_page() {
        let html = landing_page::render("host", &Status::Attaching);
        for path in PATHS.iter().filter(|p| **p != "/about") {
            assert!(html.contains(&format!("<a href=\"{path}\">")), "{path}");
        }
    }
}
