//! `/-/healthy`: whether the agent runs at all, as Prometheus and its kin are asked.

use crate::service::endpoint::{Content, Declaration};

pub(super) const DOCUMENT: Declaration = Declaration::document(
    "/-/healthy",
    "200 while the agent runs",
    "200 while the agent runs",
    Content::Word,
    || "nfscope is healthy.\n".into(),
);
