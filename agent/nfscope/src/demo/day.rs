//! Recording of `nfscope demo`: windows that were measured in the lab's virtual machines, one after the other until they fill a day.
//!
//! Each minute is a sum of copies of some of these windows. The values of a copy were measured. The number of copies varies at random from
//! minute to minute. `cargo run -p nfscope --example demo_tape` writes the windows into the file that the program contains.

use anyhow::Context;
use flate2::read::GzDecoder;
use nfscope_baseline::recording::{Metadata, RecordedWindow, Recording, Sample, SeriesKey};
use nfscope_baseline::window::Merger;
use nfscope_diagnose::evaluate;
use nfscope_model::finding::Kind;
use nfscope_model::{ProbeState, ProbeStatus, Snapshot, family};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::time::Duration;

/// Names of the lab scenarios whose windows are used.
pub const SCENARIOS: [&str; 8] = [
    "healthy-balanced",
    "healthy-light-mixed",
    "healthy-bursty",
    "healthy-idle",
    "threads-3-for-24",
    "disk-20ms-reads",
    "log-8ms",
    "log-1ms",
];

/// Name of the server. No machine of the lab has it.
const HOST: &str = "nfs-demo";

const TAPE: &[u8] = include_bytes!("tape.json.gz");

/// Window of the file.
#[derive(Deserialize)]
struct Taped {
    name: String,
    length: Duration,
    delta: Snapshot,
}

/// State of the server. Its parts are scenarios, each with the least and the most copies per minute. The first one has the gauges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scene {
    Night,
    Day,
    FewThreads,
    SlowDisk,
    SlowLog,
    FastLog,
}

impl Scene {
    fn parts(self) -> &'static [(&'static str, u32, u32)] {
        match self {
            Scene::Night => &[("healthy-bursty", 6, 12), ("healthy-idle", 4, 18)],
            Scene::Day => &[
                ("healthy-balanced", 8, 18),
                ("healthy-light-mixed", 4, 10),
                ("healthy-bursty", 1, 4),
            ],
            Scene::FewThreads => &[("threads-3-for-24", 20, 30), ("healthy-bursty", 0, 2)],
            Scene::SlowDisk => &[("disk-20ms-reads", 18, 26), ("healthy-light-mixed", 2, 6)],
            Scene::SlowLog => &[("log-8ms", 18, 26), ("healthy-light-mixed", 2, 6)],
            Scene::FastLog => &[("log-1ms", 18, 26), ("healthy-light-mixed", 2, 6)],
        }
    }
}

/// Measured window of one scenario, with its samples by series number.
struct Template {
    length: Duration,
    samples: Vec<(u32, nfscope_model::Sample)>,
}

/// Windows that the program contains.
pub(crate) struct Tape {
    series: Vec<SeriesKey>,
    templates: HashMap<String, Template>,
    kernel: Option<String>,
    chance: Chance,
    /// Findings of each scene, as samples of a window.
    findings: HashMap<Scene, Vec<(u32, Sample)>>,
}

impl Tape {
    /// Reads the windows in the program.
    ///
    /// # Errors
    /// When the embedded data is damaged.
    pub(crate) fn read() -> anyhow::Result<Tape> {
        let mut text = Vec::new();
        GzDecoder::new(TAPE).read_to_end(&mut text)?;
        let all: Vec<Taped> = serde_json::from_slice(&text)?;
        let mut ids = HashMap::new();
        let mut series = Vec::new();
        let mut id_of = |family: &str, labels: &[String]| {
            *ids.entry((family.to_owned(), labels.to_owned()))
                .or_insert_with(|| {
                    series.push(SeriesKey {
                        id: series.len() as u32,
                        family: family.to_owned(),
                        labels: labels.to_owned(),
                    });
                    series.len() as u32 - 1
                })
        };
        let first = all.first().context("the tape is empty")?;
        let kernel = first.delta.kernel.clone();
        let mut templates = HashMap::new();
        for taped in all {
            let mut samples = Vec::new();
            // Findings of the lab's window do not apply to a sum of windows.
            let told = [&family::BOTTLENECK_ACTIVE, &family::BOTTLENECK_SCORE].map(|f| f.info.name);
            let measured = taped.delta.all().filter(|(name, _)| !told.contains(name));
            for (family, all) in measured {
                for s in all {
                    samples.push((id_of(family, &s.labels), s.sample.clone()));
                }
            }
            let template = Template {
                length: taped.length,
                samples,
            };
            templates.insert(taped.name, template);
        }
        for kind in Kind::ALL {
            for f in [&family::BOTTLENECK_ACTIVE, &family::BOTTLENECK_SCORE] {
                id_of(f.info.name, &[kind.as_str().to_owned()]);
            }
        }
        Ok(Tape {
            series,
            templates,
            kernel,
            chance: Chance(1),
            findings: HashMap::new(),
        })
    }

    /// Window of this scene, with a length of about `length`.
    fn window(
        &mut self,
        began_ms: i64,
        scene: Scene,
        length: Duration,
    ) -> anyhow::Result<RecordedWindow> {
        let mut picked = Vec::new();
        for (name, least, most) in scene.parts() {
            picked.push((*name, self.chance.between(*least, *most)));
        }
        // Scale from a minute to `length`.
        let minute: f64 = (picked.iter())
            .filter_map(|(name, n)| {
                Some(f64::from(*n) * self.templates.get(*name)?.length.as_secs_f64())
            })
            .sum();
        let part = length.as_secs_f64() / minute;
        let mut sum = BTreeMap::new();
        let mut total = Duration::ZERO;
        for (i, (name, n)) in picked.iter().enumerate() {
            let times = (f64::from(*n) * part).round() as u32;
            let template = self
                .templates
                .get(*name)
                .with_context(|| format!("no window {name}"))?;
            if times == 0 {
                continue;
            }
            total += template.length * times;
            for (id, sample) in &template.samples {
                add(&mut sum, *id, sample, times, i == 0);
            }
        }
        let samples = sum.iter().map(|(id, s)| (*id, Sample::from(s)));
        let mut window = RecordedWindow {
            began_ms,
            length: total,
            samples: samples.collect(),
        };
        if !self.findings.contains_key(&scene) {
            let found = self.find(&window)?;
            self.findings.insert(scene, found);
        }
        window
            .samples
            .extend(self.findings.get(&scene).into_iter().flatten().cloned());
        window.samples.sort_by_key(|s| s.0);
        Ok(window)
    }

    /// Findings of the diagnosis in a window, in the form in which an agent's history has them.
    fn find(&self, window: &RecordedWindow) -> anyhow::Result<Vec<(u32, Sample)>> {
        let mut merger = Merger::new(self.series.clone(), |_| true);
        merger.add(window);
        let mut whole = merger.take().context("a window has a length")?;
        whole.delta.probes = vec![ProbeStatus {
            probe: "demo".to_owned(),
            program: "demo".to_owned(),
            hook: String::new(),
            gives: "windows of the past".to_owned(),
            required: true,
            state: ProbeState::Attached,
            reason: String::new(),
            fix: String::new(),
        }];
        let d = evaluate(&whole, &[]);
        let mut found = Vec::new();
        for key in &self.series {
            let kind = Kind::ALL.into_iter().find(|k| key.labels == [k.as_str()]);
            let Some(kind) = kind else { continue };
            let value = match key.family.as_str() {
                name if name == family::BOTTLENECK_ACTIVE.info.name => {
                    Some(f64::from(u8::from(d.finding(kind).is_some())))
                }
                name if name == family::BOTTLENECK_SCORE.info.name => d.share(kind),
                _ => None,
            };
            found.extend(value.map(|v| (key.id, Sample::Gauge(v))));
        }
        Ok(found)
    }

    /// Recording that begins at `began_ms`. `scenes` returns the scene at a time in milliseconds, and `None` at the end.
    pub(crate) fn recording(
        &mut self,
        name: &str,
        began_ms: i64,
        interval: Duration,
        scenes: impl Fn(i64) -> Option<Scene>,
    ) -> anyhow::Result<Recording> {
        let mut windows = Vec::new();
        let mut at = began_ms;
        while let Some(scene) = scenes(at) {
            let window = self.window(at, scene, interval)?;
            at += i64::try_from(window.length.as_millis())?;
            windows.push(window);
        }
        Ok(Recording {
            metadata: Metadata {
                name: name.to_owned(),
                began_ms,
                host: HOST.to_owned(),
                kernel: self.kernel.clone(),
                agent: format!(
                    "{} ({})",
                    nfscope_api::build_info::VERSION,
                    nfscope_api::build_info::REVISION
                ),
                interval,
                labels: BTreeMap::new(),
            },
            series: self.series.clone(),
            windows,
        })
    }
}

/// Adds a sample `times` times. A gauge is taken only if `leads`, from the first scenario.
fn add(
    sum: &mut BTreeMap<u32, nfscope_model::Sample>,
    id: u32,
    sample: &nfscope_model::Sample,
    times: u32,
    leads: bool,
) {
    use nfscope_model::Sample::{Counter, Gauge, Histogram};
    match (sum.get_mut(&id), sample) {
        (Some(Counter(all)), Counter(v)) => *all += v * f64::from(times),
        (Some(Histogram(all)), Histogram(h)) if all.scheme == h.scheme => {
            let counts = all.counts.iter_mut().zip(&h.counts);
            counts.for_each(|(a, b)| *a += b * u64::from(times));
            all.sum += h.sum * f64::from(times);
        }
        (None, Counter(v)) => {
            sum.insert(id, Counter(v * f64::from(times)));
        }
        (None, Histogram(h)) => {
            let mut all = h.clone();
            all.counts.iter_mut().for_each(|n| *n *= u64::from(times));
            all.sum *= f64::from(times);
            sum.insert(id, Histogram(all));
        }
        (None, Gauge(_)) if leads => {
            sum.insert(id, sample.clone());
        }
        _ => {}
    }
}

/// Random numbers that are equal in every run.
struct Chance(u64);

impl Chance {
    fn between(&mut self, least: u32, most: u32) -> u32 {
        // splitmix64 (Steele, Lea and Flood 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let z = z ^ (z >> 31);
        least + (z % u64::from(most - least + 1)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn each_scene_has_its_finding_and_no_other_time_has_one() {
        let mut tape = Tape::read().unwrap();
        for (scene, kind) in [
            (Scene::Night, None),
            (Scene::Day, None),
            (Scene::FewThreads, Some(Kind::ThreadStarvation)),
            (Scene::SlowDisk, Some(Kind::SlowDisk)),
            (Scene::SlowLog, Some(Kind::SlowIntentLog)),
        ] {
            tape.window(0, scene, MINUTE).unwrap();
            let id_of = |kind: Kind| {
                let is = |s: &&SeriesKey| {
                    s.family == family::BOTTLENECK_ACTIVE.info.name && s.labels == [kind.as_str()]
                };
                tape.series.iter().find(is).unwrap().id
            };
            let found: Vec<_> = Kind::ALL
                .into_iter()
                .filter(|k| tape.findings[&scene].contains(&(id_of(*k), Sample::Gauge(1.0))))
                .collect();
            match kind {
                None => assert_eq!(found, [], "{scene:?}"),
                Some(kind) => assert!(found.contains(&kind), "{scene:?}: {found:?}"),
            }
        }
    }

    /// Sums of whole windows keep the relations between counters of the kernel and of the probes.
    #[test]
    fn windows_of_a_scene_follow_each_other_and_count_what_was_measured() {
        let mut tape = Tape::read().unwrap();
        let until = 600_000;
        let told = tape
            .recording("day", 0, MINUTE, |at| (at < until).then_some(Scene::Day))
            .unwrap();
        assert!(
            (8..=13).contains(&told.windows.len()),
            "{}",
            told.windows.len()
        );
        for pair in told.windows.windows(2) {
            let ended = pair[0].began_ms + i64::try_from(pair[0].length.as_millis()).unwrap();
            assert_eq!(pair[1].began_ms, ended);
            assert!(
                (45..75).contains(&pair[0].length.as_secs()),
                "{:?}",
                pair[0].length
            );
        }
        let mut merger = Merger::new(told.series, |_| true);
        told.windows.iter().for_each(|w| merger.add(w));
        let whole = merger.take().unwrap();
        for version in ["3", "4"] {
            let timed = whole.delta.value(&family::TIMED_OPS, [version]);
            assert!(timed.is_some_and(|n| n > 0.0), "{version}");
            assert_eq!(timed, whole.delta.value(&family::KERNEL_OPS, [version]));
        }
    }
}
