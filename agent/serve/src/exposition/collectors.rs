//! Parts of an exposition, for scrapers that want some families only: `/metrics?collect[]=op&collect[]=block`.

use nfscope_api::query::QueryString;
use nfscope_model::{Info, family};
use nfscope_text::suggest::nearest;

/// Beginnings of family names after `nfscope_`, with their collector. The first match counts.
const COLLECTORS: &[(&str, &[&str])] = &[
    (
        "op",
        &[
            "op_",
            "compound_",
            "io_size",
            "write",
            "durable_",
            "unsafe_",
        ],
    ),
    (
        "rpc",
        &[
            "rpc_",
            "upcall",
            "reply_cache",
            "stuck_",
            "oldest_",
            "pending_",
            "unacknowledged_",
            "connection",
            "listener",
            "limited_",
        ],
    ),
    ("threads", &["thread", "server_"]),
    ("log", &["log_"]),
    ("zfs", &["zfs_"]),
    ("block", &["block_"]),
    ("mounts", &["client_view_"]),
    ("clients", &["client_", "session_", "nfs4_", "lockd_"]),
    ("exports", &["export_"]),
    ("cpu", &["cpu"]),
    (
        "findings",
        &["bottleneck_", "finding_", "change_", "recommended_"],
    ),
    (
        "coverage",
        &[
            "coverage_",
            "kernel_ops",
            "kernel_rpcs",
            "kernel_io",
            "timed_",
        ],
    ),
    (
        "agent",
        &[
            "build_info",
            "host_read_",
            "http_",
            "probe_",
            "kernel_memory",
            "events_lost",
            "map_",
            "scrape_",
            "process_",
        ],
    ),
];

/// Collectors of a scrape; all of them if none is chosen. Equal values choose the same collectors, in whatever order and however often they
/// were named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Collectors {
    only: Vec<&'static str>,
    without: Vec<&'static str>,
}

/// Query with `collect[]` and `exclude[]`; other fields are ignored.
impl QueryString for Collectors {
    fn from_query(query: &str) -> Result<Collectors, String> {
        let mut all = Collectors::default();
        for (field, value) in form_urlencoded::parse(query.as_bytes()) {
            let list = match &*field {
                "collect[]" => &mut all.only,
                "exclude[]" => &mut all.without,
                _ => continue,
            };
            let names = COLLECTORS.iter().map(|(name, _)| *name);
            match names.clone().find(|name| *name == value) {
                Some(name) => list.push(name),
                None => {
                    let hint = nearest(&value, names, |n| format!("`{n}`"));
                    return Err(format!("{field}: no collector is called `{value}`{hint}"));
                }
            }
        }
        for list in [&mut all.only, &mut all.without] {
            list.sort_unstable();
            list.dedup();
        }
        Ok(all)
    }

    fn to_query(&self) -> String {
        let only = self.only.iter().map(|name| format!("collect[]={name}"));
        let without = self.without.iter().map(|name| format!("exclude[]={name}"));
        only.chain(without).collect::<Vec<_>>().join("&")
    }
}

impl Collectors {
    /// Returns true if all collectors are chosen.
    pub fn all(&self) -> bool {
        *self == Collectors::default()
    }

    /// Returns true if the collector of this family is chosen.
    pub fn has(&self, info: &Info) -> bool {
        let name = of(info);
        (self.only.is_empty() || self.only.contains(&name)) && !self.without.contains(&name)
    }
}

/// Collector of a family.
fn of(info: &Info) -> &'static str {
    let name = info.short_name();
    let fits = |(_, begins): &&(&str, &[&str])| begins.iter().any(|b| name.starts_with(b));
    COLLECTORS
        .iter()
        .find(fits)
        .map_or("agent", |(name, _)| name)
}

/// Every collector with its families, for the reference.
pub fn families() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    COLLECTORS.iter().map(|(collector, _)| {
        let its = family::ALL.iter().filter(|info| of(info) == *collector);
        (*collector, its.map(|info| info.name).collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_family_has_a_collector_and_every_collector_a_family() {
        for info in family::ALL {
            let name = info.short_name();
            let begins = COLLECTORS.iter().flat_map(|(_, begins)| *begins);
            assert!(begins.clone().any(|b| name.starts_with(b)), "{name}");
        }
        assert!(families().all(|(_, its)| !its.is_empty()));
        assert_eq!(
            families().map(|(_, its)| its.len()).sum::<usize>(),
            family::ALL.len()
        );
    }

    #[test]
    fn queries_are_read_as_prometheus_sends_them() {
        let names = |query| {
            let c = Collectors::from_query(query).unwrap();
            let all = family::ALL.iter().filter(|i| c.has(i));
            all.map(|i| of(i))
                .collect::<std::collections::BTreeSet<_>>()
        };
        assert_eq!(
            names("collect%5B%5D=op&collect%5B%5D=block&x=1"),
            ["block", "op"].into()
        );
        assert_eq!(names("collect[]=op&exclude[]=op"), [].into());
        assert_eq!(names("exclude[]=clients").len(), COLLECTORS.len() - 1);
        assert!(Collectors::from_query("name[]=x").unwrap().all());
        let some = Collectors::from_query("exclude[]=op&collect[]=cpu&collect[]=log").unwrap();
        assert_eq!(Collectors::from_query(&some.to_query()), Ok(some));
        let same = ["op", "block", "op"].map(|name| format!("collect[]={name}"));
        assert_eq!(
            Collectors::from_query(&same.join("&")),
            Collectors::from_query("collect[]=block&collect[]=op")
        );
        assert_eq!(
            Collectors::from_query("collect[]=blok").unwrap_err(),
            "collect[]: no collector is called `blok`; did you mean `block`?"
        );
    }
}
