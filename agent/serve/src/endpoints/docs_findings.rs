//! `/docs/findings`: every finding of this release, and what to do about it.

use crate::service::endpoint::{Content, Declaration};
use bytes::Bytes;

const FINDINGS: &str = include_str!("../../../../docs/findings.md");

pub(super) const DOCUMENT: Declaration = Declaration::document(
    "/docs/findings",
    "every finding of this release, and what to do about it",
    "the reference of this release, as text",
    Content::Text,
    || Bytes::from_static(FINDINGS.as_bytes()),
);
