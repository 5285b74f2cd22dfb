//! `/`: the page, whose other files are in `http/page_assets.rs`.

use crate::service::endpoint::{Content, Declaration};
use bytes::Bytes;

/// Document that loads the other files of the page.
pub(crate) const PAGE: &str = include_str!(concat!(env!("OUT_DIR"), "/page/index.html"));

/// Content security policy: only files of this agent are run, shown or requested.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

pub(super) const DOCUMENT: Declaration = Declaration::document(
    "/",
    "the page: latency, phases, findings, as they happen",
    "the page: latency, phases, findings, as they happen",
    Content::Html(POLICY),
    || Bytes::from_static(PAGE.as_bytes()),
);
