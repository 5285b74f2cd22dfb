//! What each address answers.

use super::page;
use crate::metrics;
use crate::reader::{Body, Reader};
use crate::status::Status;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    ACCEPT, ALLOW, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;

type Answer = Response<Full<Bytes>>;

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// `/probes`
#[derive(Serialize)]
struct Probes<'a> {
    times_operations: bool,
    /// Empty where operations are timed.
    reason: &'a str,
    probes: &'a [crate::model::ProbeStatus],
}

pub(super) async fn answer<B>(reader: &Reader, request: &Request<B>) -> Answer {
    let known = matches!(
        request.uri().path(),
        "/" | "/metrics" | "/snapshot" | "/healthz" | "/probes"
    );
    if !known {
        return plain(
            StatusCode::NOT_FOUND,
            "not here; see / /metrics /healthz /probes /snapshot\n".to_owned(),
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
            let format = metrics::negotiate(accept);
            reading(reader, Body::Metrics(format), format.content_type()).await
        }
        "/snapshot" => reading(reader, Body::Json, JSON).await,
        "/healthz" => match reader.status().health() {
            Ok(()) => plain(StatusCode::OK, "ok\n".to_owned()),
            Err(why) => plain(StatusCode::SERVICE_UNAVAILABLE, why + "\n"),
        },
        "/probes" => probes(&reader.status()),
        _ => landing(&reader.status()),
    }
}

async fn reading(reader: &Reader, body: Body, content_type: &'static str) -> Answer {
    match reader.body(body).await {
        Ok(bytes) => make(StatusCode::OK, content_type, bytes),
        Err(e) => plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{e:#}\n")),
    }
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
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let html = page::render(host.trim(), status);
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
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}
