//! kstats: counts of OpenZFS itself, as files under `/proc/spl/kstat/zfs` (module/os/linux/spl/spl-kstat.c).
//!
//! A file of named values has a line about itself, a line of headings, and then `name type value`. Each pool has a
//! directory, with a file for each dataset that is in use (`objset-0x36`). From OpenZFS 2.2 on these have the figures of
//! the dataset's intent log; before, file `zil` has those of all pools together.

use crate::{host_table, lossless};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// The pseudo pool of figures that all pools share.
pub const ALL: &str = "all";

/// Statistics of an intent log that are read, by the names of include/sys/zil.h.
pub const ZIL: [&str; 9] = [
    "zil_commit_count",
    "zil_commit_writer_count",
    "zil_itx_indirect_bytes",
    "zil_itx_copied_bytes",
    "zil_itx_needcopy_bytes",
    "zil_commit_error_count",
    "zil_commit_stall_count",
    "zil_commit_suspend_count",
    "zil_commit_crash_count",
];

/// Names of these tables for failures of reading them.
const ROOT: &str = "/proc/spl/kstat/zfs";
const POOL: &str = "/proc/spl/kstat/zfs/POOL";

/// Values of [`ZIL`]; `None` if this version does not have one.
pub type Zil = [Option<u64>; ZIL.len()];

/// Values by name. A value may have spaces.
pub fn parse(text: &str) -> HashMap<&str, &str> {
    text.lines()
        .skip(2)
        .filter_map(|l| {
            let (name, rest) = l.split_once(char::is_whitespace)?;
            let (_, value) = rest.trim_start().split_once(char::is_whitespace)?;
            Some((name, value.trim()))
        })
        .collect()
}

fn zil(values: &HashMap<&str, &str>) -> Zil {
    ZIL.map(|name| values.get(name)?.parse().ok())
}

/// Content of a dataset's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dataset {
    /// Name of the dataset.
    pub name: String,
    /// Values of its log.
    pub zil: Zil,
}

/// Kstats of one moment.
#[derive(Debug, Default)]
pub struct Kstats {
    /// Datasets in use by pool and object set.
    pub pools: BTreeMap<String, BTreeMap<u64, Dataset>>,
    /// Sum over the logs of all pools.
    pub all: Option<Zil>,
}

impl Kstats {
    /// Reads the kstats; empty if module zfs is not loaded.
    pub fn read(root: &Path) -> Self {
        let mut k = Kstats::default();
        let entries = host_table::entries(ROOT, root).into_iter().flatten();
        for e in entries.filter(|e| e.file_type().is_ok_and(|t| t.is_dir())) {
            let pool = k
                .pools
                .entry(lossless::of_path(Path::new(&e.file_name())))
                .or_default();
            for f in host_table::entries(POOL, e.path()).into_iter().flatten() {
                let file = f.file_name();
                let id = file
                    .to_str()
                    .and_then(|n| n.strip_prefix("objset-0x"))
                    .and_then(|n| u64::from_str_radix(n, 16).ok());
                // A dataset may go between the listing and the reading.
                if let (Some(id), Some(text)) = (id, host_table::read_at(POOL, f.path())) {
                    let values = parse(&text);
                    let name = values.get("dataset_name").copied().unwrap_or_default();
                    let dataset = Dataset {
                        name: name.to_owned(),
                        zil: zil(&values),
                    };
                    pool.insert(id, dataset);
                }
            }
        }
        k.all = host_table::read_at(ROOT, root.join("zil")).map(|text| zil(&parse(&text)));
        k
    }
}

/// Values of pools as counters that only rise: a dataset's values begin with 0 when it is mounted again, and disappear when it is
/// unmounted.
#[derive(Debug, Default)]
pub struct Totals {
    last: BTreeMap<(String, u64), Zil>,
    pools: BTreeMap<String, Zil>,
}

impl Totals {
    /// Adds the values since the last call; pools by name, or [`ALL`].
    pub fn add(&mut self, k: &Kstats) -> &BTreeMap<String, Zil> {
        let mut here = BTreeSet::new();
        for (pool, datasets) in &k.pools {
            for (id, d) in datasets.iter().filter(|(_, d)| d.zil[0].is_some()) {
                here.insert((pool.clone(), *id));
                let last = self.last.insert((pool.clone(), *id), d.zil);
                let total = self.pools.entry(pool.clone()).or_default();
                for (i, (t, now)) in total.iter_mut().zip(d.zil).enumerate() {
                    let Some(now) = now else { continue };
                    let before = last.and_then(|l| l[i]).filter(|&b| b <= now);
                    *t = Some(t.unwrap_or(0) + now - before.unwrap_or(0));
                }
            }
        }
        self.last.retain(|known, _| here.contains(known));
        self.pools.retain(|pool, _| k.pools.contains_key(pool));
        let per_dataset = !here.is_empty() || k.pools.is_empty();
        if let (false, Some(all)) = (per_dataset, k.all) {
            self.pools.insert(ALL.to_owned(), all);
        }
        &self.pools
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJSET: &str = "36 1 0x01 7 2160 4293432 129034820\n\
        name                            type data\n\
        dataset_name                    7    tank/my data\n\
        writes                          4    12\n\
        zil_commit_count                4    40\n\
        zil_commit_writer_count         4    10\n\
        zil_itx_indirect_bytes          4    4096\n";

    #[test]
    fn values_are_found_by_name_and_may_have_spaces() {
        let v = parse(OBJSET);
        assert_eq!(v["dataset_name"], "tank/my data");
        assert_eq!(v["writes"], "12");
        assert_eq!(
            zil(&v)[..4],
            [Some(40), Some(10), Some(4096), None],
            "what is not there is not zero"
        );
        assert!(parse("").is_empty());
    }

    fn kstats(pools: &[(&str, u64, Option<u64>)]) -> Kstats {
        let mut k = Kstats {
            all: Some([Some(7); ZIL.len()]),
            ..Kstats::default()
        };
        for &(pool, id, commits) in pools {
            let mut zil = [None; ZIL.len()];
            zil[0] = commits;
            let name = format!("{pool}/{id}");
            let datasets = k.pools.entry(pool.to_owned()).or_default();
            datasets.insert(id, Dataset { name, zil });
        }
        k
    }

    #[test]
    fn totals_only_rise_while_datasets_come_and_go() {
        let mut t = Totals::default();
        let mut commits = |pools: &[(&str, u64, Option<u64>)]| -> Vec<(String, u64)> {
            t.add(&kstats(pools))
                .iter()
                .map(|(p, z)| (p.clone(), z[0].unwrap()))
                .collect()
        };
        let is = |p: &str, n| (p.to_owned(), n);
        let two = [("a", 1, Some(5)), ("a", 2, Some(3)), ("b", 1, Some(1))];
        assert_eq!(commits(&two), [is("a", 8), is("b", 1)]);
        assert_eq!(commits(&[("a", 1, Some(6))]), [is("a", 9)]);
        // The dataset was mounted again, and used since.
        let again = [("a", 1, Some(2)), ("a", 2, Some(1))];
        assert_eq!(commits(&again), [is("a", 12)]);
        assert_eq!(commits(&[]), []);
        assert_eq!(commits(&[("a", 1, Some(4))]), [is("a", 4)]);
    }

    #[test]
    fn before_2_2_all_pools_share_their_figures() {
        let mut t = Totals::default();
        assert!(t.add(&kstats(&[])).is_empty());
        let all: Vec<_> = t.add(&kstats(&[("a", 1, None)])).keys().cloned().collect();
        assert_eq!(all, [ALL]);
    }
}
