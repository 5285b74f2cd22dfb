//! Durability of acknowledged writes during a recording.
//!
//! A server that acknowledges a write before it is on stable storage is fast, and loses the write in a crash (RFC 1813, section
//! 4.8). Its latencies are no proof that anything got better.

use crate::series::SeriesSet;
use nfscope_model::family as f;
use nfscope_model::family::Info;
use nfscope_text::units::{many, percent};
use std::collections::{BTreeMap, BTreeSet};

/// Families of a recording that this module reads.
pub const FAMILIES: [&Info; 9] = [
    &f::NOT_DURABLE.info,
    &f::DURABLE_WRITES.info,
    &f::UNSAFE_WRITES.info,
    &f::WRITE.info,
    &f::OP_DURATION.info,
    &f::OP_ERRORS.info,
    &f::OP_PHASE.info,
    &f::BLOCK_DEVICE.info,
    &f::BLOCK_FUA.info,
];

/// Difference from which on shares of writes at risk differ.
pub(crate) const DIFFERS: f64 = 0.01;
/// Least number of writes that prove something.
const LEAST: f64 = 20.0;
/// If fewer flushes than this come for each write that clients take for durable, most writes stay in the cache: a commit for more than a
/// hundred writes is rare. Something else on the device may flush it from time to time.
const FLUSHED: f64 = 0.01;
/// There must be as many times fewer as on the other side, too.
const FEWER: f64 = 20.0;
/// Part of a device's flushes per durable write that all devices together must have fewer. Otherwise other devices got them.
const GONE: f64 = 0.5;
/// From this share on WRITEs without any wait are at risk: another thread's wait can make some of them durable, but not most.
const UNWAITED: f64 = 0.5;
/// Share of the stable WRITEs and COMMITs counted by export, below which those of some exports were not counted. Counters that are read one
/// after the other differ by less.
const COUNTED: f64 = 0.9;
/// Least change of the share of WRITEs without a wait: otherwise a server at the limit would differ from itself.
const UNWAITED_DIFFERS: f64 = 0.25;

/// Reason why the durability of writes is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Unknown {
    /// The agent did not count durable writes.
    NotCounted,
    /// The agent did not count those of all exports, and some exports acknowledge too early.
    NotAllCounted,
    /// The waits of the writing threads were not measured.
    NoPhases,
    /// No thread waited for a log or a disk, on a file system whose waits are not counted.
    NoWaits,
}

impl Unknown {
    fn why(self) -> &'static str {
        match self {
            Unknown::NotCounted => {
                "the agent did not count which writes clients take for durable (this kernel, or an older agent)"
            }
            Unknown::NotAllCounted => {
                "the agent did not count the writes of every export, and some of them acknowledge writes too early"
            }
            Unknown::NoPhases => {
                "waits were not measured, and only the options of exports are known"
            }
            Unknown::NoWaits => {
                "no write waited for a log or a disk, and the file system is not one whose waits are counted (tmpfs and others)"
            }
        }
    }
}

/// The durability of acknowledged writes in one recording, or in several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Durability {
    /// Exports whose writes are acknowledged too early, and the reason.
    settings: BTreeSet<(String, String)>,
    /// WRITEs and COMMITs that clients took for durable.
    durable: f64,
    /// Part of `durable` that was acknowledged too early because of a setting of the export.
    by_setting: f64,
    /// Part of `durable` for which the thread waited for no log and no disk.
    unwaited: f64,
    unknown: BTreeSet<Unknown>,
    /// Flushes and writes with FUA, and all writes, of each block device.
    flushes: BTreeMap<String, [f64; 2]>,
}

/// Direction in which durability differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// The side after loses acknowledged writes that the side before did not lose.
    Less,
    /// The side before lost acknowledged writes that the side after does not lose.
    More,
    /// Durability is known before, and not known after.
    Unknown,
}

/// The difference in durability between two sides.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct DurabilityChange {
    /// Direction of the difference.
    pub direction: Direction,
    /// Share of the writes that clients took for durable and that a crash could lose, before and after; `None` if it was not counted, as
    /// for the cache of a device.
    pub at_risk: [Option<f64>; 2],
    /// Sentence with the export, the reason, and the share of the writes.
    pub text: String,
    /// Device that is never asked to flush its write cache, if that is the reason.
    #[serde(skip)]
    pub(crate) unflushed: Option<String>,
}

/// A reason why one side may lose writes that the other does not.
enum Loss {
    /// Lost writes whose share was counted, or is reported as unknown.
    Writes(String),
    /// This device is never asked to flush its write cache, or hardly ever, as it is on the other side. Writes in there are not counted.
    Cache(String, &'static str),
}

/// The reason why a cache matters.
pub(crate) const CACHE: &str = "a cache without a battery loses writes";

impl Durability {
    /// Durability during all of these recordings.
    pub fn of<'a>(all: impl IntoIterator<Item = &'a SeriesSet>) -> Durability {
        let mut sum = Durability::default();
        for c in all {
            sum.add(c);
        }
        sum
    }

    #[cfg(test)]
    pub(crate) fn counted(durable: f64, by_setting: f64) -> Durability {
        Durability {
            durable,
            by_setting,
            ..Durability::default()
        }
    }

    #[cfg(test)]
    pub(crate) fn flushing(device: &str, is_flushed: bool) -> Durability {
        let flushes = if is_flushed { LEAST } else { 0.0 };
        Durability {
            flushes: [(device.to_owned(), [flushes, LEAST])].into(),
            ..Durability::counted(LEAST, 0.0)
        }
    }

    /// Sum of all of these.
    pub fn merged<'a>(all: impl IntoIterator<Item = &'a Durability>) -> Durability {
        let mut sum = Durability::default();
        for one in all {
            sum.settings.extend(one.settings.iter().cloned());
            sum.durable += one.durable;
            sum.by_setting += one.by_setting;
            sum.unwaited += one.unwaited;
            sum.unknown.extend(&one.unknown);
            for (device, [flushes, writes]) in &one.flushes {
                let of = sum.flushes.entry(device.clone()).or_default();
                *of = [of[0] + flushes, of[1] + writes];
            }
        }
        sum
    }

    fn add(&mut self, c: &SeriesSet) {
        for ([export, why], windows) in c.sums(&f::NOT_DURABLE) {
            if windows > 0.0 {
                self.settings.insert((export.to_owned(), why.to_owned()));
            }
        }
        let lost = |reason: &str| c.total(&f::UNSAFE_WRITES, |[why]| why == reason);
        let setting = lost("async") + lost("sync_disabled");
        let unwaited = lost("no_wait");
        let durable = c.numbers(&f::DURABLE_WRITES, |_| true);
        let durable: Option<f64> = durable.map(|n| n.iter().sum());
        self.durable += durable.unwrap_or(0.0);
        self.by_setting += setting;
        self.unwaited += unwaited;
        let writes = |[_, op]: [&str; 2]| matches!(op, "write" | "commit");
        let written = c
            .histograms(&f::OP_DURATION, writes)
            .map_or(0.0, |s| s.count());
        let waits = c.numbers(&f::OP_PHASE, |[_, op, phase]| {
            writes(["", op]) && matches!(phase, "log" | "disk")
        });
        let measured = c.labels(&f::UNSAFE_WRITES).contains(&["no_wait"]);
        let waited = waits.is_some_and(|w| w.iter().sum::<f64>() > 0.0);
        let known = c.labels(&f::UNSAFE_WRITES);
        let is_early = |reason: &str| {
            let of = c.sums(&f::NOT_DURABLE);
            of.iter().any(|([_, why], n)| *why == reason && *n > 0.0)
        };
        let early = ["async", "sync_disabled"].map(|why| (is_early(why), known.contains(&[why])));
        // Exports that acknowledge early and whose writes no counter has.
        let missed = early
            .iter()
            .any(|(is_early, is_counted)| *is_early && !is_counted);
        let any_early = early.iter().any(|(is_early, _)| *is_early);
        let partly = any_early && durable.is_some_and(|n| n < COUNTED * taken_for_durable(c));
        let timed = !c.labels(&f::OP_DURATION).is_empty();
        let unknown = match durable {
            None => (written > 0.0 || any_early && !timed).then_some(Unknown::NotCounted),
            Some(_) if partly => Some(Unknown::NotAllCounted),
            Some(n) if missed && n > 0.0 => Some(Unknown::NotAllCounted),
            // No write can be lost if clients took none for durable. Their risk is known if a setting decides it for all.
            Some(n) if n == 0.0 || setting >= n => None,
            Some(_) if !measured => Some(Unknown::NoPhases),
            Some(_) if unwaited == 0.0 && !waited => Some(Unknown::NoWaits),
            Some(_) => None,
        };
        self.unknown.extend(unknown);
        for ([device, op], h) in c.totals(&f::BLOCK_DEVICE) {
            let of = self.flushes.entry(device.to_owned()).or_default();
            match op {
                "flush" => of[0] += h.count() as f64,
                "write" => of[1] += h.count() as f64,
                _ => {}
            }
        }
        for ([device], n) in c.sums(&f::BLOCK_FUA) {
            self.flushes.entry(device.to_owned()).or_default()[0] += n;
        }
    }

    /// Share of the writes taken for durable that a crash could lose; `None` if it is not known.
    pub fn at_risk(&self) -> Option<f64> {
        let unwaited = if self.is_unwaited() {
            self.unwaited
        } else {
            0.0
        };
        let uncounted = [Unknown::NotCounted, Unknown::NotAllCounted];
        let counted = !uncounted.iter().any(|u| self.unknown.contains(u));
        counted.then(|| self.part(self.by_setting + unwaited))
    }

    fn is_unwaited(&self) -> bool {
        self.unwaited >= LEAST && self.unwaited >= UNWAITED * self.durable
    }

    /// Part of the durable writes, at most 1: counters are read one after the other, so a part may look larger than the whole.
    fn part(&self, n: f64) -> f64 {
        (n / self.durable.max(1.0)).min(1.0)
    }

    /// Text about exports: `/srv/a exported async, /srv/b with sync=disabled`.
    fn exports<'a>(of: impl Iterator<Item = &'a (String, String)>) -> String {
        let each = of.map(|(export, why)| match why.as_str() {
            "async" => format!("{export} is exported async"),
            "sync_disabled" => format!("the dataset of {export} has sync=disabled"),
            other => format!("{export}: {other}"),
        });
        listed(&each.collect::<Vec<_>>())
    }

    /// Text about lost writes: `100.0 % of 1480 writes`; `an unknown number of writes`.
    fn lost(&self) -> String {
        match self.at_risk() {
            None => "how many writes that concerns was not counted".to_owned(),
            Some(_) if self.durable == 0.0 => {
                "no client wrote anything that it took for durable".to_owned()
            }
            Some(share) => format!(
                "{} of {} that clients took for durable",
                percent(share),
                many(self.durable, "write")
            ),
        }
    }

    /// Exports that acknowledge too early here and not on the other side: `/srv is exported async`.
    pub fn added(&self, other: &Durability) -> Option<String> {
        let added = Self::exports(self.settings.difference(&other.settings));
        (!added.is_empty()).then_some(added)
    }

    /// Reason why durability is not known, if it is not.
    pub fn unknown(&self) -> Option<&'static str> {
        self.unknown.first().map(|u| u.why())
    }

    /// Text about the writes that a crash could lose, if any are known: `/srv is exported async`.
    pub fn risk(&self) -> Option<String> {
        let matters = self.at_risk().is_none_or(|share| share > DIFFERS);
        match (self.settings.is_empty(), matters) {
            (false, true) => Some(format!(
                "{} ({})",
                Self::exports(self.settings.iter()),
                self.lost()
            )),
            _ if self.is_unwaited() => Some(format!("{UNWAITED_TEXT} ({})", self.lost())),
            _ => None,
        }
    }

    /// Difference between this side and the one after it, if there is one.
    pub fn change(&self, after: &Durability) -> Option<DurabilityChange> {
        let mut at_risk = [self.at_risk(), after.at_risk()];
        let (lossy, loss) = match (self.lost_in(after), after.lost_in(self)) {
            (Some(loss), _) => (1, loss),
            (None, Some(loss)) => (0, loss),
            (None, None) => {
                let why = after.unknown().filter(|_| self.unknown().is_none())?;
                return Some(DurabilityChange {
                    direction: Direction::Unknown,
                    at_risk,
                    text: format!(
                        "Durability may differ: after, it is not known whether acknowledged writes were durable: {why}. {SHORTER}"
                    ),
                    unflushed: None,
                });
            }
        };
        let [this, other] = [lossy, 1 - lossy].map(|i| ["before", "after"][i]);
        let so = [PRICE, SHORTER][lossy];
        let (text, unflushed) = match loss {
            Loss::Writes(why) => {
                let [lost, kept] = [lossy, 1 - lossy].map(|i| [self, after][i].lost());
                let crash = [
                    "A crash of the server lost acknowledged writes before.",
                    "A crash of the server loses acknowledged writes, and clients do not know.",
                ][lossy];
                let text = format!(
                    "Durability differs: {this}, {why}: {lost}; {other}: {kept}. {crash} {so}"
                );
                (text, None)
            }
            Loss::Cache(device, often) => {
                at_risk[lossy] = None;
                let text = format!(
                    "Durability may differ: {this}, {device} is {often} asked to flush its write cache, as it is on the other side: {CACHE}. \
                     {so}"
                );
                (text, Some(device))
            }
        };
        Some(DurabilityChange {
            direction: [Direction::More, Direction::Less][lossy],
            at_risk,
            text,
            unflushed,
        })
    }

    /// Reason why `other` may lose writes that this side does not; `None` without one.
    fn lost_in(&self, other: &Durability) -> Option<Loss> {
        let counted = self.at_risk().is_some() && other.at_risk().is_some();
        let added = other.settings.difference(&self.settings);
        let added = Self::exports(added);
        let more = other.part(other.by_setting) > self.part(self.by_setting) + DIFFERS;
        // Another export may have become safe meanwhile, which the sum alone does not show. Uncounted writes show nothing at all.
        let any = !counted || other.part(other.by_setting) > DIFFERS;
        if more || (any && !added.is_empty()) {
            return Some(Loss::Writes(match added.is_empty() {
                false => added,
                true if other.settings.is_empty() => {
                    "more writes are acknowledged before they are durable".to_owned()
                }
                true => Self::exports(other.settings.iter()),
            }));
        }
        let unwaited = other.part(other.unwaited) > self.part(self.unwaited) + UNWAITED_DIFFERS;
        if other.is_unwaited() && unwaited {
            return Some(Loss::Writes(UNWAITED_TEXT.to_owned()));
        }
        if self.durable.min(other.durable) < LEAST {
            return None;
        }
        let hardly = self.flushes_no_more(other);
        let [all, all_now] = [self, other].map(|d| d.all_flushes() / d.durable);
        self.flushes.iter().find_map(|(device, [flushed, _])| {
            let now = other.flushes.get(device).copied().unwrap_or_default();
            let fewer = now[0] / other.durable * FEWER < *flushed / self.durable;
            // Writes that went to another device, and are flushed there, take their flushes with them.
            let gone = all - all_now >= GONE * *flushed / self.durable;
            let often = match now[0] == 0.0 {
                true if gone => "never",
                false if hardly && fewer => "hardly ever",
                _ => return None,
            };
            let was_flushed = *flushed >= LEAST && now[1] >= LEAST;
            was_flushed.then(|| Loss::Cache(device.clone(), often))
        })
    }

    /// Flushes and writes with FUA of all devices.
    fn all_flushes(&self) -> f64 {
        self.flushes.values().map(|[flushes, _]| flushes).sum()
    }

    /// True if hardly any device is asked to flush its write cache on the other side, as they are on this one.
    fn flushes_no_more(&self, other: &Durability) -> bool {
        let [was, is] = [self, other].map(|d| d.all_flushes() / d.durable.max(1.0));
        self.all_flushes() >= LEAST && is < FLUSHED && is * FEWER < was
    }

    /// Devices that have all writes on the other side, and that are hardly ever asked to flush a write cache, where others are on this one:
    /// they may have none, or one that loses writes. The names are those of this side and of the other.
    pub fn moved_to_unflushed(
        &self,
        other: &Durability,
        [this_side, other_side]: [&str; 2],
    ) -> Option<String> {
        let enough = self.durable.min(other.durable) >= LEAST && self.flushes_no_more(other);
        let names = |of: &Durability, wanted: &dyn Fn(&[f64; 2]) -> bool| {
            let each = of.flushes.iter().filter(|(_, n)| wanted(n));
            listed(&each.map(|(device, _)| device.clone()).collect::<Vec<_>>())
        };
        let flushed = names(self, &|[flushes, _]| *flushes >= LEAST);
        let written = names(other, &|[_, writes]| *writes >= LEAST);
        (enough && !written.is_empty()).then(|| {
            format!(
                "{other_side}, writes go to {written}, and hardly one is followed by a flush of a write cache, as on {flushed} {this_side}. \
                 A device without such a cache, or with a battery, loses nothing; {CACHE}"
            )
        })
    }
}

/// Stable WRITEs and COMMITs of all exports, without those that failed.
fn taken_for_durable(c: &SeriesSet) -> f64 {
    let stable = c.total(&f::WRITE, |[_, how]| how != "unstable");
    let commits = c.histograms(&f::OP_DURATION, |[_, op]| op == "commit");
    let failed = c.total(&f::OP_ERRORS, |[_, op, _]| matches!(op, "write" | "commit"));
    (stable + commits.map_or(0.0, |s| s.count()) - failed).max(0.0)
}

/// Most exports that a sentence names.
const NAMED: usize = 3;

const PRICE: &str = "Latencies that are longer after may be the price of durability.";
const SHORTER: &str =
    "Latencies that are shorter after may be shorter because of that, and have no verdict.";

const UNWAITED_TEXT: &str = "most threads wait for no log and no disk before they acknowledge: a RAM disk or a cache that is not flushed loses such writes, \
     persistent memory does not";

fn listed(all: &[String]) -> String {
    let mut text = all[..all.len().min(NAMED)].join(", ");
    if all.len() > NAMED {
        text += &format!(", and {} more", all.len() - NAMED);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thousand durable writes, with the flushes and the writes of devices.
    fn flushed(devices: &[(&str, [f64; 2])]) -> Durability {
        let each = devices.iter().map(|(device, n)| ((*device).to_owned(), *n));
        Durability {
            flushes: each.collect(),
            ..Durability::counted(1000.0, 0.0)
        }
    }

    /// An export moves from one device to another, and some background writes are left on the first.
    #[test]
    fn flushes_that_moved_to_another_device_are_not_missing() {
        let before = flushed(&[("sda", [1000.0, 1000.0]), ("nvme0n1", [0.0, 50.0])]);
        let moved = flushed(&[("sda", [0.0, 50.0]), ("nvme0n1", [950.0, 1000.0])]);
        assert_eq!(before.change(&moved), None);
        assert_eq!(moved.change(&before), None);
    }

    /// A device without a flush is reported where its flushes came to no other device, even if that one has many of its own.
    #[test]
    fn flushes_that_no_device_gets_any_more_are_missing() {
        let before = flushed(&[("sda", [500.0, 1000.0]), ("nvme0n1", [500.0, 1000.0])]);
        let after = flushed(&[("sda", [0.0, 1000.0]), ("nvme0n1", [500.0, 1000.0])]);
        let said = |change: Option<DurabilityChange>| change.map(|c| (c.direction, c.unflushed));
        let device = Some("sda".to_owned());
        assert_eq!(
            said(before.change(&after)),
            Some((Direction::Less, device.clone()))
        );
        assert_eq!(said(after.change(&before)), Some((Direction::More, device)));
        // The writes moved to a device that is not flushed, and the rest on the first one is not, too.
        let unflushed = flushed(&[("sda", [0.0, 50.0]), ("nvme0n1", [0.0, 1000.0])]);
        let change = before.change(&unflushed).unwrap();
        assert_eq!(change.direction, Direction::Less);
    }

    #[test]
    fn devices_that_are_not_flushed_have_the_name_of_their_side() {
        let (disk, flash) = (
            flushed(&[("sda", [1000.0, 1000.0])]),
            flushed(&[("nvme0n1", [0.0, 1000.0])]),
        );
        let after = disk.moved_to_unflushed(&flash, ["before", "after"]);
        let said = "after, writes go to nvme0n1, and hardly one is followed by a flush of a write cache, as on sda before. A";
        assert!(after.unwrap().starts_with(said));
        let before = disk.moved_to_unflushed(&flash, ["after", "before"]);
        let said = "before, writes go to nvme0n1, and hardly one is followed by a flush of a write cache, as on sda after. A";
        assert!(before.unwrap().starts_with(said));
        assert_eq!(flash.moved_to_unflushed(&disk, ["before", "after"]), None);
    }
}
