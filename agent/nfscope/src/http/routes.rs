//! What each address answers.

use crate::api::slow_filter;
use crate::exposition;
use crate::http::landing_page;
use crate::http::ndjson_stream::{Deadline, Stream};
use crate::http::place::Place;
use crate::http::places::PEER_STREAMS;
use crate::service::source_thread::{Body, SourceHandle};
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{
    ACCEPT, ALLOW, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use nfscope_model::status::Status;
use serde::Serialize;

type Answer = Response<Either<Full<Bytes>, Stream>>;

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const LINES: &str = "application/x-ndjson";

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
    deadline: &Deadline,
    place: &Place,
    request: &Request<B>,
) -> Answer {
    let known = matches!(
        request.uri().path(),
        "/" | "/metrics" | "/snapshot" | "/healthz" | "/probes" | "/slow" | "/findings"
    );
    if !known {
        return plain(
            StatusCode::NOT_FOUND,
            "no such page; see / /metrics /healthz /probes /snapshot /findings /slow\n".to_owned(),
        );
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut answer = plain(
            StatusCode::METHOD_NOT_ALLOWED,
            "only GET and HEAD\n".to_owned(),
        );
        answer
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return answer;
    }
    match request.uri().path() {
        "/metrics" => {
            let accept = request.headers().get(ACCEPT).and_then(|v| v.to_str().ok());
            let format = exposition::negotiate(accept);
            reading(source, Body::Metrics(format), format.content_type()).await
        }
        "/snapshot" => reading(source, Body::Json, JSON).await,
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
        "/probes" => probes(&source.status()),
        "/findings" => match source.findings().await {
            Ok(json) => make(StatusCode::OK, JSON, json),
            Err(e) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{e:#}\n")),
        },
        "/slow" => slow(source, deadline, place, request).await,
        _ => landing(&source.status()),
    }
}

async fn reading(source: &SourceHandle, body: Body, content_type: &'static str) -> Answer {
    match source.body(body).await {
        Ok(bytes) => make(StatusCode::OK, content_type, bytes),
        Err(e) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{e:#}\n")),
    }
}

/// Goes on until the peer hangs up.
async fn slow<B>(
    source: &SourceHandle,
    deadline: &Deadline,
    place: &Place,
    request: &Request<B>,
) -> Answer {
    let want = match slow_filter::from_query(request.uri().query().unwrap_or_default()) {
        Ok(want) => want,
        Err(why) => return plain(StatusCode::BAD_REQUEST, why + "\n"),
    };
    if let Err(why) = source.status().health() {
        return plain(StatusCode::SERVICE_UNAVAILABLE, why + "\n");
    }
    let body = if request.method() == Method::HEAD {
        Either::Left(Full::default())
    } else if !place.stream() {
        return plain(
            StatusCode::SERVICE_UNAVAILABLE,
            format!(
                "this agent serves at most {PEER_STREAMS} listeners for slow operations to one address at once\n"
            ),
        );
    } else {
        match source.slow(want).await {
            Ok(lines) => Either::Right(Stream::new(lines, deadline.clone())),
            Err(why) => {
                place.answer();
                return plain(StatusCode::SERVICE_UNAVAILABLE, format!("{why:#}\n"));
            }
        }
    };
    with(StatusCode::OK, LINES, body)
}

fn probes(status: &Status) -> Answer {
    let health = status.health();
    let body = Probes {
        times_operations: health.is_ok(),
        reason: health.as_ref().err().map_or("", String::as_str),
        probes: status.probes(),
    };
    match serde_json::to_vec_pretty(&body) {
        Ok(json) => make(StatusCode::OK, JSON, json.into()),
        Err(e) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{e}\n")),
    }
}

fn landing(status: &Status) -> Answer {
    let html = landing_page::render(&nfscope_source::hostname::own_name(), status);
    let mut answer = make(StatusCode::OK, "text/html; charset=utf-8", html.into());
    answer.headers_mut().insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'"),
    );
    answer
}

fn plain(status: StatusCode, text: String) -> Answer {
    make(status, TEXT, text.into())
}

fn make(status: StatusCode, content_type: &'static str, body: Bytes) -> Answer {
    with(status, content_type, Either::Left(Full::new(body)))
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
