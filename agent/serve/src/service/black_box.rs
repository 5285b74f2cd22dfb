//! Black box: the agent counts the operations behind a finding that has begun, by itself, and keeps the answer with the finding.
//!
//! It counts for [`LENGTH`], by client, export, operation, user and file, and begins at most once in [`PAUSE`]: findings that begin together
//! share one count, and others wait for the next one. The kernel's tables are those of the break-downs on demand, and so are the costs.

use super::breakdown_listeners::Listeners;
use nfscope_api::breakdown_query::INTERVAL;
use nfscope_diagnose::counted::{Counted, TOO_MANY_FILES, has_room};
use nfscope_diagnose::tracker::{Counts, FindingTracker};
use nfscope_model::breakdown::{FileKey, FilePath, Keys};
use nfscope_model::{BreakdownBatch, BreakdownWant, Dimension};
use nfscope_source::Source;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// Time for which operations are counted.
pub(crate) const LENGTH: Duration = Duration::from_secs(5);
/// Least time between the begins of two counts, whatever findings come and go.
const PAUSE: Duration = Duration::from_secs(60);
/// Most paths that are kept while operations are counted.
const MOST_PATHS: usize = 4096;

/// Dimensions that are counted, those of the first entry that the source grants and the kernel's table has room for.
const WISHES: [&[Dimension]; 4] = [
    &[
        Dimension::Client,
        Dimension::Export,
        Dimension::Op,
        Dimension::User,
        Dimension::File,
    ],
    &[
        Dimension::Client,
        Dimension::Export,
        Dimension::Op,
        Dimension::User,
    ],
    &[Dimension::Client, Dimension::Op, Dimension::User],
    &[Dimension::Client, Dimension::Op],
];

/// Counting in progress.
pub(crate) struct Recorder {
    /// Entry of [`WISHES`].
    wish: usize,
    since: Instant,
    counted: Counted,
    paths: HashMap<FileKey, Arc<str>>,
    /// True if too many operations found no room in the kernel's table.
    crowded: bool,
    not_known: Vec<String>,
}

fn now_on_the_wall() -> f64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}

impl Recorder {
    pub(super) fn new(now: Instant) -> Recorder {
        Recorder {
            wish: 0,
            since: now,
            counted: Counted::default(),
            paths: HashMap::new(),
            crowded: false,
            not_known: Vec::new(),
        }
    }

    fn by(&self) -> &'static [Dimension] {
        WISHES[self.wish]
    }

    pub(super) fn want(&self) -> BreakdownWant {
        let by = self.by();
        BreakdownWant {
            by: by.iter().copied().collect(),
            paths: by.contains(&Dimension::File),
            ..BreakdownWant::default()
        }
    }

    /// A recorder with fewer dimensions that begins now, if there are any.
    pub(super) fn with_less(self, why: &str, now: Instant) -> Option<Recorder> {
        let before = self.by();
        let wish = self.wish + 1;
        let by = WISHES.get(wish)?;
        let mut not_known = self.not_known;
        let lost = before.iter().filter(|d| !by.contains(d));
        not_known.extend(lost.map(|d| format!("{}: {why}", d.name())));
        Some(Recorder {
            wish,
            not_known,
            ..Recorder::new(now)
        })
    }

    /// Counts without any operation, for this reason.
    pub(super) fn refused(why: &str) -> Counts {
        Counts {
            not_known: vec![why.to_owned()],
            at: now_on_the_wall(),
            ..Counts::default()
        }
    }

    pub(super) fn add(&mut self, batch: &BreakdownBatch) {
        let by = self.by();
        let unplaced = batch.unplaced.count() + batch.lost;
        let rows: u64 = batch.rows.iter().map(|r| r.times.count()).sum();
        if by.contains(&Dimension::File) && !has_room(unplaced, rows + unplaced) {
            self.crowded = true;
            return;
        }
        for row in &batch.rows {
            // Another listener may want other dimensions, too.
            let mut keys = Keys::default();
            for d in by {
                keys[*d as usize].clone_from(&row.keys[*d as usize]);
            }
            (self.counted).add(keys, row.times.count(), row.times.sum, row.moved);
        }
        self.counted.add_other(batch.unplaced.sum);
        for (file, path) in &batch.paths {
            if let FilePath::Is(path) = path
                && self.paths.len() < MOST_PATHS
            {
                self.paths.insert(file.clone(), path.clone());
            }
        }
    }

    /// Reason to begin anew with fewer dimensions.
    pub(super) fn is_crowded(&self) -> Option<&'static str> {
        self.crowded.then_some(TOO_MANY_FILES)
    }

    /// True if operations were counted for long enough. Looks come a little early or late.
    pub(super) fn is_due(&self, now: Instant) -> bool {
        now.duration_since(self.since) + INTERVAL / 2 >= LENGTH
    }

    pub(super) fn end(mut self, now: Instant) -> Counts {
        self.counted.length = now.duration_since(self.since).as_secs_f64();
        Counts {
            counted: self.counted,
            paths: self.paths,
            not_known: self.not_known,
            at: now_on_the_wall(),
        }
    }
}

/// Decides when operations are counted, and hands the counts to the findings.
#[derive(Debug, Default)]
pub(crate) struct BlackBox {
    is_on: bool,
    began: Option<Instant>,
    is_counting: bool,
}

impl BlackBox {
    /// Counts from now on.
    pub(crate) fn turn_on(&mut self) {
        self.is_on = true;
    }

    /// Hands over counts that are complete, and starts to count if a finding waits for it.
    pub(crate) fn step(
        &mut self,
        findings: &mut FindingTracker,
        listeners: &mut Listeners,
        source: &mut dyn Source,
        now: Instant,
    ) {
        if let Some(counts) = listeners.take_recorded() {
            self.is_counting = false;
            findings.answer(&counts);
        }
        let rests = |began: Instant| now.duration_since(began) < PAUSE;
        let busy = self.is_counting || self.began.is_some_and(rests);
        if self.is_on && !busy && findings.wait_for_counts() {
            self.began = Some(now);
            self.is_counting = true;
            listeners.record(source, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nfscope_api::breakdown_query::Query;
    use nfscope_api::query::QueryString;
    use nfscope_diagnose::Talkers;
    use nfscope_example::{Script, probe};
    use nfscope_model::breakdown::Moved;
    use nfscope_model::{BreakdownRow, Histogram, ProbeState, Scheme, Snapshot, family as f};

    /// Reading of a server after these windows of ten seconds, in the second one and later of which WRITEs wait for the log or the disk.
    fn reading(windows: u64, phase: &str) -> Snapshot {
        let mut s = Snapshot::new(Duration::from_secs(100 + 10 * windows));
        let (n, each) = (2000 * windows, 0.03);
        let all = each * n as f64;
        let mut times = Histogram::new(Scheme::TIME);
        times.counts[Scheme::TIME.bucket(each)] = n;
        times.sum = all;
        for op in ["cpu", "runqueue", "log", "disk", "lock"] {
            let seconds = if op == phase { all } else { 0.0 };
            s.counter(&f::OP_PHASE, ["3", "write", op], seconds);
        }
        for of in ["queue", "receive", "upcall", "execute", "reply"] {
            let seconds = if of == "execute" { all } else { 0.0 };
            s.counter(&f::RPC_PHASE, ["3", of], seconds);
        }
        s.histogram(&f::OP_DURATION, ["3", "write"], times.clone());
        s.histogram(&f::RPC_DURATION, ["3"], times.clone());
        let mut queue = Histogram::new(Scheme::TIME);
        queue.counts[0] = n;
        s.histogram(&f::RPC_QUEUE, ["0"], queue);
        s.gauge(&f::THREADS, ["0"], 8.0);
        s.counter(&f::THREADS_SATURATED, ["0"], 0.0);
        if phase == "log" {
            s.histogram(&f::LOG_WAIT, ["ext4", "sda"], times);
        } else {
            s.histogram(&f::BLOCK_DEVICE, ["sdb", "write"], times);
        }
        let mut nfsd = probe("nfsd", ProbeState::Attached, "");
        nfsd.required = true;
        s.probes = vec![nfsd];
        s
    }

    struct Agent {
        findings: FindingTracker,
        listeners: Listeners,
        source: Script,
        black_box: BlackBox,
        now: Instant,
        windows: u64,
    }

    impl Agent {
        fn new() -> Agent {
            let mut black_box = BlackBox::default();
            black_box.turn_on();
            Agent {
                findings: FindingTracker::default(),
                listeners: Listeners::default(),
                source: Script::default(),
                black_box,
                now: Instant::now(),
                windows: 0,
            }
        }

        fn window(&mut self, phase: &str) {
            self.windows += 1;
            let at = SystemTime::UNIX_EPOCH + Duration::from_secs(10 * self.windows);
            self.findings.step(reading(self.windows, phase), at);
        }

        /// Lets these seconds pass, with this break-down in each.
        fn seconds(&mut self, seconds: u64, batch: &BreakdownBatch) {
            for _ in 0..seconds {
                let Agent {
                    findings,
                    listeners,
                    source,
                    ..
                } = self;
                (self.black_box).step(findings, listeners, source, self.now);
                self.now += INTERVAL;
                self.source.breakdown = batch.clone();
                (self.listeners).poll(&mut self.source, self.now);
            }
        }

        fn who(&self) -> Vec<Option<Talkers>> {
            let active = self.findings.report().active.into_iter();
            active.map(|e| e.who).collect()
        }

        /// Dimensions that the source was asked for, in order; 0 for none.
        fn asked(&self) -> Vec<usize> {
            let by = self.source.broken_down.iter();
            by.map(|w| w.as_ref().map_or(0, |w| w.by.len())).collect()
        }
    }

    fn second() -> BreakdownBatch {
        let row = |keys: [&str; 6], count, sum, written| {
            let mut times = Histogram::new(Scheme::TIME);
            (times.counts[3], times.sum) = (count, sum);
            BreakdownRow {
                keys: keys.map(str::to_owned),
                times,
                moved: Moved { read: 0, written },
            }
        };
        let file = ("/srv".to_owned(), "12".to_owned());
        BreakdownBatch {
            rows: vec![
                row(
                    ["10.9.0.2", "/srv", "write", "3", "1000", "12"],
                    160,
                    4.8,
                    8000,
                ),
                row(
                    ["10.9.0.3", "/srv", "write", "3", "1001", "13"],
                    40,
                    1.2,
                    2000,
                ),
                row(
                    ["10.9.0.3", "/srv", "getattr", "3", "1001", "13"],
                    900,
                    0.1,
                    0,
                ),
            ],
            paths: HashMap::from([(file, FilePath::Is("/srv/db".into()))]),
            ..BreakdownBatch::default()
        }
    }

    #[test]
    fn a_finding_that_begins_is_counted_for_five_seconds_and_keeps_the_answer() {
        let mut agent = Agent::new();
        agent.window("log");
        agent.seconds(10, &second());
        assert_eq!(
            agent.asked(),
            [0; 0],
            "nothing is counted without a finding"
        );
        agent.window("log");
        agent.window("log");
        agent.seconds(7, &second());
        assert_eq!(agent.asked(), [5, 0], "the tables end with the count");
        let [Some(who)] = &agent.who()[..] else {
            panic!("{:?}", agent.who())
        };
        assert_eq!((who.seconds, who.count), (5.0, 1000));
        let first = |all: &[nfscope_diagnose::Talker]| (all[0].value.clone(), all[0].share);
        assert_eq!(first(&who.client), ("10.9.0.2".to_owned(), 0.8));
        assert_eq!(first(&who.user), ("1000".to_owned(), 0.8));
        assert_eq!(first(&who.file), ("/srv:12".to_owned(), 0.8));
        assert_eq!(who.file[0].name.as_deref(), Some("/srv/db"));
        assert_eq!(who.moved.written, 50_000);
        // Later windows have the sentence, too.
        agent.window("log");
        let report = agent.findings.report();
        let told = report.active[0].finding.evidence.iter();
        let told = told.filter(|e| e.text.starts_with("client 10.9.0.2 has 80 % of the 30.0 s"));
        assert_eq!(told.count(), 1);
    }

    #[test]
    fn findings_are_counted_at_most_once_a_minute() {
        let mut agent = Agent::new();
        for _ in 0..3 {
            agent.window("log");
        }
        agent.seconds(7, &second());
        assert_eq!(agent.asked(), [5, 0]);
        // Another finding begins while the first one is active, or after it.
        for _ in 0..3 {
            agent.window("disk");
        }
        let waits = |agent: &Agent| agent.who().iter().filter(|w| w.is_none()).count();
        assert_eq!(waits(&agent), 1, "{:?}", agent.who());
        agent.seconds(52, &second());
        assert_eq!((agent.asked(), waits(&agent)), (vec![5, 0], 1));
        agent.seconds(8, &second());
        assert_eq!((agent.asked(), waits(&agent)), (vec![5, 0, 5, 0], 0));
    }

    #[test]
    fn an_agent_whose_black_box_is_off_counts_nothing() {
        let mut agent = Agent::new();
        agent.black_box = BlackBox::default();
        for _ in 0..3 {
            agent.window("log");
        }
        agent.seconds(10, &second());
        assert_eq!(agent.asked(), [0; 0]);
        assert_eq!(agent.who(), [None]);
    }

    #[test]
    fn a_source_without_files_or_clients_has_the_reason_in_the_answer() {
        for (refused, asked, reasons) in [
            (Dimension::File, vec![4, 0], vec!["file: no file here"]),
            (
                Dimension::Export,
                vec![3, 0],
                vec!["file: no export here", "export: no export here"],
            ),
            (Dimension::Client, vec![], vec!["no client here"]),
        ] {
            let mut agent = Agent::new();
            agent.source.breaks_down_no = Some(refused);
            for _ in 0..3 {
                agent.window("log");
            }
            agent.seconds(8, &second());
            let [Some(who)] = &agent.who()[..] else {
                panic!("{:?}", agent.who())
            };
            assert_eq!(agent.asked(), asked);
            assert_eq!(who.not_known, reasons);
            assert_eq!(who.client.is_empty(), refused == Dimension::Client);
            assert!(who.file.is_empty());
        }
    }

    #[test]
    fn more_files_than_the_kernels_table_has_rows_are_left_out() {
        let mut agent = Agent::new();
        for _ in 0..3 {
            agent.window("log");
        }
        let mut crowded = second();
        crowded.unplaced.counts[3] = 500;
        crowded.unplaced.sum = 10.0;
        agent.seconds(1, &crowded);
        agent.seconds(7, &second());
        assert_eq!(agent.asked(), [5, 4, 0]);
        let [Some(who)] = &agent.who()[..] else {
            panic!("{:?}", agent.who())
        };
        assert_eq!(who.not_known, [format!("file: {TOO_MANY_FILES}")]);
        assert_eq!((who.seconds, who.without_row_seconds), (5.0, 0.0));
        assert!(who.file.is_empty() && who.user.len() == 2);
    }

    #[test]
    fn a_listener_beside_the_black_box_keeps_its_rows() {
        let mut agent = Agent::new();
        let query = Query::from_query("by=version").unwrap();
        let listener = agent
            .listeners
            .subscribe(&mut agent.source, query, agent.now);
        let mut listener = listener.unwrap();
        for _ in 0..3 {
            agent.window("log");
        }
        agent.seconds(8, &second());
        assert_eq!(agent.asked(), [1, 6, 1]);
        let [Some(who)] = &agent.who()[..] else {
            panic!("{:?}", agent.who())
        };
        assert_eq!(who.client.len(), 2);
        let mut count = 0;
        while let Ok(line) = listener.try_recv() {
            let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
            count += line["rows"][0]["count"].as_u64().unwrap_or(0);
        }
        assert!(count >= 3 * 1100, "{count}");
    }
}
