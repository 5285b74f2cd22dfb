//! Report of a soak: the figures of each round as they come, and the verdict.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::clock::Clock;
use super::event::Event;
use super::figures::QUANTITIES;
use super::flat::{Course, FEWEST, Point};
use super::onlookers::Seen;
use super::options::Options;
use super::rounds::Round;

/// File of the verdict.
const REPORT: &str = "report.md";

/// Writer of two files: `rounds.csv` and `report.md`.
#[derive(Debug)]
pub struct Report {
    dir: PathBuf,
    csv: File,
    rounds: Vec<Round>,
    what: String,
}

/// Verdict on all rounds.
#[derive(Debug)]
pub struct Judged {
    /// Text of the report.
    pub text: String,
    /// Errors; empty if all is well.
    pub wrong: Vec<String>,
}

impl Report {
    /// Begins a new report in this directory.
    pub fn create(dir: &Path, options: &Options) -> Result<Report> {
        fs::create_dir_all(dir).with_context(|| format!("creating {}", dir.display()))?;
        // The report of an earlier run rarely exists.
        let _ = fs::remove_file(dir.join(REPORT));
        let path = dir.join("rounds.csv");
        let mut csv =
            File::create(&path).with_context(|| format!("creating {}", path.display()))?;
        let names: Vec<String> = QUANTITIES
            .iter()
            .map(|q| match q.unit {
                "" => q.name.to_owned(),
                unit => format!("{} ({unit})", q.name),
            })
            .collect();
        writeln!(
            csv,
            "round;hours;event;operations;differences;exact clients;evictions;rows;age of nfscope-http (s);{}",
            names.join(";")
        )?;
        Ok(Report {
            dir: dir.to_owned(),
            csv,
            rounds: Vec::new(),
            what: format!("Linux {}, {} CPUs", options.kernel, options.cpus),
        })
    }

    /// Adds a round.
    pub fn add(&mut self, round: &Round) -> Result<()> {
        let figures: Vec<String> = round.figures.iter().map(f64::to_string).collect();
        writeln!(
            self.csv,
            "{};{:.4};{};{};{};{};{};{};{};{}",
            round.n,
            round.hours,
            round.event.map_or("", Event::name),
            round.operations,
            round.wrong.len(),
            round.exact_clients,
            round.evictions,
            round.rows,
            round.http_age,
            figures.join(";")
        )
        .with_context(|| format!("writing {}", self.dir.display()))?;
        self.rounds.push(round.clone());
        Ok(())
    }

    /// Judges all rounds together.
    pub fn judge(&self, seen: &Seen, log: &str, clock: &Clock) -> Result<Judged> {
        let mut wrong = Vec::new();
        let text = self.text(seen, clock, &mut wrong);
        for round in &self.rounds {
            let of = |w: &String| format!("round {}: {w}", round.n);
            wrong.extend(round.wrong.iter().take(5).map(of));
        }
        wrong.extend(
            seen.failed
                .iter()
                .take(5)
                .map(|f| format!("not answered: {f}")),
        );
        let hangups = self.times(Event::Hangup);
        let read = log.matches("SIGHUP: ").count();
        if read < hangups {
            wrong.push(format!(
                "{hangups} times SIGHUP, and the agent's log has {read}"
            ));
        }
        let verdict = match wrong.is_empty() {
            true => "All of it is flat, and every count is exact.\n".to_owned(),
            false => format!("Wrong:\n\n- {}\n", wrong.join("\n- ")),
        };
        // The last report stays whole if the run is killed meanwhile.
        let (path, next) = (self.dir.join(REPORT), self.dir.join("report.next"));
        fs::write(&next, format!("{text}\n{verdict}"))
            .and_then(|()| fs::rename(&next, &path))
            .with_context(|| format!("writing {}", path.display()))?;
        Ok(Judged { text, wrong })
    }

    fn times(&self, event: Event) -> usize {
        self.rounds
            .iter()
            .filter(|r| r.event == Some(event))
            .count()
    }

    /// Rounds that `nfscope-http` has lived through, at the end of each.
    fn lived(&self) -> Vec<usize> {
        let (mut lived, mut age) = (0, 0.0);
        let of = |round: &Round| {
            lived = if round.http_age < age { 0 } else { lived + 1 };
            age = round.http_age;
            lived
        };
        self.rounds.iter().map(of).collect()
    }

    fn text(&self, seen: &Seen, clock: &Clock, wrong: &mut Vec<String>) -> String {
        let hours: Vec<f64> = self.rounds.iter().map(|r| r.hours).collect();
        let operations: u64 = self.rounds.iter().map(|r| r.operations).sum();
        let clients: usize = self.rounds.iter().map(|r| r.exact_clients).sum();
        let differences: usize = self.rounds.iter().map(|r| r.wrong.len()).sum();
        let last = hours.last().copied().unwrap_or_default();
        let mut text = format!(
            "{:.2} hours, {} rounds, {}\n\n| | |\n| --- | ---: |\n",
            last,
            self.rounds.len(),
            self.what
        );
        let mut row = |what: &str, value: String| {
            let _ = writeln!(text, "| {what} | {value} |");
        };
        row("operations that the kernel counted", operations.to_string());
        row("counts that differ in `/metrics`", differences.to_string());
        row(
            "clients with an exact series, over all rounds",
            clients.to_string(),
        );
        let unseen = self.rounds.last().map_or(0, |r| r.unseen);
        row(
            "operations while the module was new and no probe attached",
            unseen.to_string(),
        );
        for event in Event::ALL {
            row(event.name(), self.times(event).to_string());
        }
        row(
            "pauses, in which the machine's clock stood",
            clock.pauses().to_string(),
        );
        row("scrapes answered", seen.scrapes.to_string());
        row(
            "slowest of them",
            format!("{:.1} s", seen.slowest.as_secs_f64()),
        );
        row("other answers", seen.others.to_string());
        row("lines of `/slow`", seen.slow_lines.to_string());
        row(
            "not answered while nobody served or nothing was timed",
            seen.excused.to_string(),
        );
        row(
            "answers 503 with `Retry-After` while the probe was attached anew",
            seen.busy.to_string(),
        );
        row("not answered otherwise", seen.failed.len().to_string());
        text += "\n| | first third | last third | allowed growth | highest | an hour | |\n";
        text += "| --- | ---: | ---: | ---: | ---: | ---: | --- |\n";
        let lived = self.lived();
        let mut few = Vec::new();
        for (i, quantity) in QUANTITIES.iter().enumerate() {
            let name = match quantity.unit {
                "" => quantity.name.to_owned(),
                unit => format!("{}, {unit}", quantity.name),
            };
            let point = |(r, lived): (&Round, &usize)| {
                let (age, lived) = match quantity.of_http {
                    true => (r.http_age, *lived),
                    false => (f64::INFINITY, usize::MAX),
                };
                Point {
                    hours: r.hours,
                    age,
                    lived,
                    value: r.figures[i],
                }
            };
            let points: Vec<Point> = self.rounds.iter().zip(&lived).map(point).collect();
            let Some(course) = Course::of(quantity, &points) else {
                few.push(name);
                continue;
            };
            let verdict = match (quantity.judged, course.flat()) {
                (false, _) => "",
                (true, true) => "flat",
                (true, false) => "grows",
            };
            let allowed = match quantity.judged {
                true => format!("{:.0}", course.allowed),
                false => "-".to_owned(),
            };
            let _ = writeln!(
                text,
                "| {name} | {:.0} | {:.0} | {allowed} | {:.0} | {:+.1} | {verdict} |",
                course.first, course.last, course.most, course.slope
            );
            if verdict == "grows" {
                wrong.push(format!(
                    "{name}: {:.0} in the first third, {:.0} in the last one",
                    course.first, course.last
                ));
            }
        }
        if !few.is_empty() {
            wrong.push(format!(
                "fewer than {FEWEST} settled rounds, too few to tell whether it grows: {}",
                few.join("; ")
            ));
        }
        text
    }
}
