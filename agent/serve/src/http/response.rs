//! Answers: the types of body, and the headers that each one needs.

use super::large_answers::Held;
use super::ndjson_stream::Stream;
use crate::exposition::Format;
use crate::service::endpoint::Content;
use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName,
    HeaderValue, RETRY_AFTER, VARY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};

/// Body of an answer: short or shared, a stream, or one with a memory limit.
pub(super) type Sent = Either<Full<Bytes>, Either<Stream, Held>>;
pub(super) type Answer = Response<Sent>;

const TEXT: &str = "text/plain; charset=utf-8";
/// Headers of a request that decide the body.
pub(super) const VARIES: &str = "accept, accept-encoding";

/// `Content-Type` of an endpoint's answer.
pub(super) fn content_type(content: Content, format: Format) -> &'static str {
    match content {
        Content::Word | Content::Text => TEXT,
        Content::Json => "application/json",
        Content::Lines => "application/x-ndjson",
        Content::Html(_) => "text/html; charset=utf-8",
        Content::Exposition => format.content_type(),
    }
}

pub(super) fn failed(error: &anyhow::Error) -> Answer {
    plain(StatusCode::INTERNAL_SERVER_ERROR, format!("{error:#}\n"))
}

pub(super) fn plain(status: StatusCode, text: String) -> Answer {
    with(status, TEXT, Either::Left(Full::new(text.into())))
}

/// An answer in the form that its endpoint declares.
pub(super) fn formed(
    content: Content,
    content_type: &'static str,
    body: Sent,
    packed: bool,
) -> Answer {
    match content {
        Content::Word => with(StatusCode::OK, content_type, body),
        Content::Html(policy) => and(
            encoded(content_type, body, packed),
            CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(policy),
        ),
        _ => encoded(content_type, body, packed),
    }
}

/// An answer whose body other requests may get compressed.
pub(super) fn encoded(content_type: &'static str, body: Sent, packed: bool) -> Answer {
    let answer = with(StatusCode::OK, content_type, body);
    let answer = and(answer, VARY, HeaderValue::from_static(VARIES));
    match packed {
        true => and(answer, CONTENT_ENCODING, HeaderValue::from_static("gzip")),
        false => answer,
    }
}

pub(super) fn and(mut answer: Answer, name: HeaderName, value: HeaderValue) -> Answer {
    answer.headers_mut().insert(name, value);
    answer
}

pub(super) fn with(status: StatusCode, content_type: &'static str, body: Sent) -> Answer {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}

pub(super) fn later(why: String) -> Answer {
    let answer = plain(StatusCode::SERVICE_UNAVAILABLE, why);
    and(answer, RETRY_AFTER, HeaderValue::from_static("2"))
}

/// Forbids caching without a check, because another version of the agent has other files of the same names.
pub(super) fn unstored(answer: Answer) -> Answer {
    and(answer, CACHE_CONTROL, HeaderValue::from_static("no-cache"))
}
