//! `/-/healthy`: returns 200 if the agent runs, under the path of Prometheus and similar programs.

use crate::service::endpoint::{Content, Declaration};

pub(super) const DOCUMENT: Declaration = Declaration::document(
    "/-/healthy",
    "200 while the agent runs",
    "200 while the agent runs",
    Content::Word,
    || "nfscope is healthy.\n".into(),
);
