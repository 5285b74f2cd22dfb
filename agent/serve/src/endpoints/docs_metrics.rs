//! `/docs/metrics`: every metric of this release.

use crate::exposition::reference;
use crate::service::endpoint::{Content, Declaration};

pub(super) const DOCUMENT: Declaration = Declaration::document(
    "/docs/metrics",
    "every metric of this release, its labels and meaning",
    "the reference of this release, as text",
    Content::Text,
    || reference::plain().into(),
);
