//! Every path that the agent serves, one file each, in the order of the list at `/about`.
//!
//! `docs/develop/add-an-endpoint.md` says how to add one.

mod about;
mod breakdown;
mod docs_findings;
mod docs_metrics;
mod findings;
mod healthy;
mod healthz;
pub(crate) mod index;
mod metrics;
mod probes;
mod ready;
mod recordings;
mod slow;
mod snapshot;
mod stuck;
mod windows;

use crate::service::endpoint::Declaration;

/// The closed list of endpoints: a path that is not here is not answered.
pub static ALL: [Declaration; 16] = [
    Declaration::of::<metrics::Metrics>(),
    healthy::DOCUMENT,
    Declaration::of::<ready::Ready>(),
    Declaration::of::<healthz::Healthz>(),
    Declaration::of::<probes::Probes>(),
    Declaration::of::<snapshot::Snapshot>(),
    Declaration::of::<findings::Findings>(),
    Declaration::of::<stuck::Stuck>(),
    Declaration::of::<slow::Slow>(),
    Declaration::of::<breakdown::Breakdown>(),
    docs_metrics::DOCUMENT,
    docs_findings::DOCUMENT,
    Declaration::of::<windows::Windows>(),
    Declaration::of::<recordings::Recordings>(),
    Declaration::of::<about::About>(),
    index::DOCUMENT,
];

/// Endpoint of this path.
pub fn find(path: &str) -> Option<&'static Declaration> {
    ALL.iter().find(|e| e.path == path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_model::status::Status;

    #[test]
    fn the_landing_page_links_every_other_page() {
        let html = about::render("host", &Status::Attaching, &ALL);
        for endpoint in ALL.iter().filter(|e| e.path != "/about") {
            let link = format!("<a href=\"{}\">", endpoint.path);
            assert!(html.contains(&link), "{}", endpoint.path);
        }
    }

    #[test]
    fn a_path_has_one_endpoint() {
        for (i, endpoint) in ALL.iter().enumerate() {
            let first = ALL.iter().position(|e| e.path == endpoint.path);
            assert_eq!(first, Some(i), "{}", endpoint.path);
            assert!(endpoint.path.starts_with('/'), "{}", endpoint.path);
        }
    }
}
