//! `nfscope workload run --record`: records a workload's results window by window, with the metrics of the server's agent.

use crate::workload::cli::WorkloadRunArgs;
use anyhow::ensure;
use nfscope_agent_client::http;
use nfscope_api::address;
use nfscope_api::build_info::{REVISION, VERSION};
use nfscope_baseline::recording::Metadata;
use nfscope_baseline::store::{Error, RecordingWriter, State, Store};
use nfscope_baseline::workload as families;
use nfscope_load::workload::fio_report::{JobTotals, RunReport};
use nfscope_load::workload::work_dir::FileSystem;
use nfscope_model::{Snapshot, Window, family};
use nfscope_source::hostname;
use nfscope_text::units;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Windows of one repeat: enough for statistics of each repeat, and each at least as long as fio's report interval.
const WINDOWS: u64 = 30;

/// Recorder of a workload.
pub(super) struct WorkloadRecorder {
    metadata: Metadata,
    /// True if the server is another host.
    is_remote: bool,
    /// Store, until the first repeat begins and moves it to `writer`.
    store: Option<Store>,
    writer: Option<RecordingWriter>,
    /// URL of the server's agent.
    agent: Option<String>,
    /// Length of a window; `None` if a repeat is one window.
    window: Option<Duration>,
    /// Beginning of the current window.
    begun: Option<Boundary>,
    /// Possible end of the current window.
    next: Option<Boundary>,
    /// Windows without server metrics, because the agent did not answer.
    alone: u64,
}

/// Totals at a moment of a repeat.
struct Boundary {
    at_ms: i64,
    totals: Vec<(String, String, JobTotals)>,
    errors: BTreeMap<String, u64>,
    server: Option<Snapshot>,
}

impl WorkloadRecorder {
    /// Checks that the name is free and that the agent answers, before anything runs.
    ///
    /// # Errors
    /// When the name is taken, the store cannot be written, or the agent of --url does not answer.
    pub(super) fn open(
        args: &WorkloadRunArgs,
        name: &str,
        phases: bool,
        filesystem: Option<&FileSystem>,
        parameters: &BTreeMap<&'static str, String>,
    ) -> anyhow::Result<WorkloadRecorder> {
        let mut labels: BTreeMap<String, String> = args.labels.iter().cloned().collect();
        for own in [families::NAME, families::PARAMETERS] {
            ensure!(
                !labels.contains_key(own),
                "--label {own}: a recording of a workload has that label already; fix: use another key"
            );
        }
        let mut told = vec![format!("size={}", args.size.word())];
        told.extend(parameters.iter().map(|(k, v)| format!("{k}={v}")));
        if args.rate.is_some() || args.name.is_timed() {
            told.push(format!("runtime={}s", args.runtime.as_secs()));
        }
        told.extend(args.rate.map(|rate| format!("rate={rate}")));
        told.extend(args.depth.map(|depth| format!("depth={depth}")));
        labels.insert(families::NAME.into(), args.name.name.into());
        labels.insert(families::PARAMETERS.into(), told.join(" "));
        let store = Store::create(&args.store)?;
        match store.entry(name) {
            Ok(_) => return Err(Error::Taken(name.to_owned()).into()),
            Err(Error::Unknown { .. }) => {}
            Err(e) => return Err(e.into()),
        }
        let remote = filesystem.and_then(server).filter(|s| !is_this_host(s));
        let (agent, first) = match (&args.url, &remote) {
            (Some(url), _) => (Some(url.clone()), Some(http::snapshot(url)?)),
            // The agent of this host has no metrics of another host's server.
            (None, Some(_)) => (None, None),
            (None, None) => {
                let url = address::default_url();
                let first = http::snapshot(&url).ok();
                (first.is_some().then_some(url), first)
            }
        };
        let builds = first.as_ref().map(|f| f.numbers(&family::BUILD_INFO));
        let (version, revision) = match builds.into_iter().flatten().next() {
            Some(([version, revision], _)) => (version, revision),
            None => (VERSION, REVISION),
        };
        let host = match (&first, &remote) {
            (Some(f), _) if f.host.is_some() => f.host.clone().unwrap_or_default(),
            (None, Some(server)) => server.clone(),
            _ => address::host(args.url.as_deref()),
        };
        let seconds = (args.runtime.as_secs() / WINDOWS).max(1);
        let window = (!phases).then(|| Duration::from_secs(seconds));
        Ok(WorkloadRecorder {
            metadata: Metadata {
                name: name.to_owned(),
                began_ms: 0,
                host,
                kernel: first.as_ref().and_then(|f| f.kernel.clone()),
                agent: format!("{version} ({revision})"),
                interval: window.unwrap_or(args.runtime),
                labels,
            },
            is_remote: remote.is_some(),
            store: Some(store),
            writer: None,
            agent,
            window,
            begun: None,
            next: None,
            alone: 0,
        })
    }

    /// Sentence about the sources of the recording.
    pub(super) fn source(&self) -> String {
        match &self.agent {
            Some(url) => format!(
                "recording `{}`, with the server's metrics of {url}",
                self.metadata.name
            ),
            None if !self.is_remote => format!(
                "recording `{}`: the client's results alone, because no agent answers at {}",
                self.metadata.name,
                address::default_url()
            ),
            None => format!(
                "recording `{}`: the client's results alone. --url http://{}:{} adds the server's, where its agent listens",
                self.metadata.name,
                self.metadata.host,
                address::DEFAULT_ADDRESS
                    .rsplit(':')
                    .next()
                    .unwrap_or_default()
            ),
        }
    }

    /// Length of a window; `None` if a repeat is one window.
    pub(super) fn window(&self) -> Option<Duration> {
        self.window
    }

    /// Options that make fio report periodically, and continue after I/O errors.
    pub(super) fn options(&self) -> Vec<String> {
        let mut options = fio_goes_on();
        options.extend(
            self.window
                .map(|w| format!("--status-interval={}", w.as_secs())),
        );
        options
    }

    /// Begins a repeat. `one` is the duration of the warm-up, which stands for the window length if a repeat is one window.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub(super) fn begin(&mut self, one: Duration) -> anyhow::Result<()> {
        let boundary = self.boundary(Vec::new(), BTreeMap::new());
        if let Some(store) = self.store.take() {
            self.metadata.began_ms = boundary.at_ms;
            if self.window.is_none() {
                self.metadata.interval = one;
            }
            self.writer = Some(RecordingWriter::begin(store, &self.metadata)?);
        }
        (self.begun, self.next) = (Some(boundary), None);
        Ok(())
    }

    /// Takes a report of fio, whose totals count from the beginning of the repeat.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub(super) fn report(&mut self, report: &RunReport) -> anyhow::Result<()> {
        let errors = report.errors.iter().map(|(job, (n, _))| (job.clone(), *n));
        let new = self.boundary(report.totals.clone(), errors.collect());
        let half = self.window.map_or(0, |w| w.as_millis() as i64 / 2);
        // A remainder shorter than half a window is merged into the last one.
        if let (Some(begun), Some(next)) = (&self.begun, &self.next)
            && next.at_ms - begun.at_ms >= half
            && new.at_ms - next.at_ms >= half
        {
            self.write()?;
        }
        self.next = Some(new);
        Ok(())
    }

    /// Ends a repeat.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub(super) fn end_repeat(&mut self) -> anyhow::Result<()> {
        self.write()?;
        (self.begun, self.next) = (None, None);
        Ok(())
    }

    /// Ends the recording; returns a sentence about it, or `None` if nothing was recorded.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub(super) fn end(self, state: State) -> anyhow::Result<Option<String>> {
        let Some(writer) = self.writer else {
            return Ok(None);
        };
        let (name, windows) = (&self.metadata.name, writer.windows());
        writer.end(state)?;
        let alone = match self.alone {
            0 => String::new(),
            n => format!("; the server's agent did not answer in {n} of them"),
        };
        Ok((windows > 0).then(|| {
            let windows = units::many(windows as f64, "window");
            format!("recorded `{name}`: {windows}{alone}; `nfscope baseline show {name}` shows it")
        }))
    }

    fn boundary(
        &self,
        totals: Vec<(String, String, JobTotals)>,
        errors: BTreeMap<String, u64>,
    ) -> Boundary {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let url = self.agent.as_ref();
        Boundary {
            at_ms: since.map_or(0, |d| d.as_millis() as i64),
            totals,
            errors,
            server: url.and_then(|url| http::snapshot(url).ok()),
        }
    }

    /// Writes the window between `begun` and `next`, and begins another at `next`.
    fn write(&mut self) -> anyhow::Result<()> {
        let (Some(from), Some(to)) = (self.begun.take(), self.next.take()) else {
            return Ok(());
        };
        let mut delta = Snapshot::new(Duration::ZERO);
        match server_between(&from, &to) {
            Some(server) => delta = server,
            None if self.agent.is_some() => self.alone += 1,
            None => {}
        }
        add_results(&mut delta, &from, &to);
        // The wall clock may have been set back.
        let ms = u64::try_from(to.at_ms - from.at_ms).unwrap_or(0).max(1);
        let length = Duration::from_millis(ms);
        if let Some(writer) = &mut self.writer {
            writer.add(from.at_ms, &Window { length, delta })?;
        }
        self.begun = Some(to);
        Ok(())
    }
}

/// Returns the server's metrics between two boundaries; `None` if its agent did not answer, was restarted, or detached a probe.
fn server_between(from: &Boundary, to: &Boundary) -> Option<Snapshot> {
    let (from, to) = (from.server.as_ref()?, to.server.as_ref()?);
    let goes_on = !from.at.is_zero() && to.goes_on_from(from);
    goes_on.then(|| to.since(from).delta)
}

/// Adds the client's results between two boundaries.
fn add_results(delta: &mut Snapshot, from: &Boundary, to: &Boundary) {
    let none = JobTotals::default();
    for (job, operation, totals) in &to.totals {
        let same = |t: &&(String, String, JobTotals)| (&t.0, &t.1) == (job, operation);
        let before = from.totals.iter().find(same).map_or(&none, |t| &t.2);
        let new = totals.since(before);
        let labels = [job.as_str(), operation.as_str()];
        delta.histogram(&families::DURATION, labels, new.histogram());
        delta.counter(&families::SECONDS, labels, new.seconds());
        delta.counter(&families::BYTES, labels, new.bytes() as f64);
        // A job without errors has a known count of zero.
        if delta.get(&families::ERRORS, [job]).is_none() {
            let of = |b: &Boundary| b.errors.get(job).copied().unwrap_or(0);
            let failed = of(to).saturating_sub(of(from));
            delta.counter(&families::ERRORS, [job], failed as f64);
        }
    }
}

/// Options that make fio continue after errors of the server or the network: EIO, EACCES, ENOSPC, EROFS, ETIMEDOUT, ESTALE, EREMOTEIO,
/// EDQUOT.
fn fio_goes_on() -> Vec<String> {
    let errors = "5:13:28:30:110:116:121:122";
    vec![
        "--continue_on_error=io".to_owned(),
        format!("--ignore_error={errors},{errors}"),
    ]
}

/// Server of a mount: `nfs1` of `nfs1:/export`. `None` for other file systems.
fn server(of: &FileSystem) -> Option<String> {
    of.version.as_ref()?;
    let (host, _) = of.source.split_once(":/")?;
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    Some(bare.unwrap_or(host).to_owned())
}

fn is_this_host(name: &str) -> bool {
    let loopback = name.parse::<IpAddr>().is_ok_and(|a| a.is_loopback());
    loopback || name == "localhost" || name == hostname::own_name()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounted(source: &str) -> FileSystem {
        FileSystem {
            kind: "nfs4".into(),
            version: Some("4.2".into()),
            source: source.into(),
        }
    }

    #[test]
    fn the_server_of_a_mount() {
        for (source, host) in [("nfs1:/a:/b", "nfs1"), ("[fe80::1]:/a", "fe80::1")] {
            assert_eq!(server(&mounted(source)).as_deref(), Some(host));
            assert!(!is_this_host(host));
        }
        assert!(
            ["127.0.0.1", "::1", "localhost"]
                .into_iter()
                .all(is_this_host)
        );
        let local = FileSystem {
            version: None,
            ..mounted("/dev/sda1")
        };
        assert_eq!(server(&local), None);
    }
}
