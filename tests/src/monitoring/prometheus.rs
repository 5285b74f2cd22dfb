//! A real Prometheus on this host, as `tests/setup/setup.sh monitoring` unpacked it: a process with a directory of its own. Dropping
//! the value ends both.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::kernel::cache;
use crate::machine::free_port;
use crate::{http, paths, supervisor};

/// Time limit of the start: an empty one takes a second, and longer on a host with two busy machines.
const START: Duration = Duration::from_secs(60);

/// Release of Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Debian 12's release, which stores classic histograms.
    Older,
    /// Debian's newest release, which stores native histograms.
    Newer,
}

impl Release {
    /// Both releases.
    pub const ALL: [Release; 2] = [Release::Older, Release::Newer];

    /// Name of the release's directory.
    pub fn name(self) -> &'static str {
        match self {
            Release::Older => "2.42",
            Release::Newer => "3.5",
        }
    }

    /// A program of the release: `prometheus` or `promtool`.
    pub fn program(self, name: &str) -> Result<PathBuf> {
        let path = cache().join("prometheus").join(self.name()).join(name);
        ensure!(
            path.is_file(),
            "{} is missing; run: tests/setup/setup.sh monitoring",
            path.display()
        );
        Ok(path)
    }

    /// Runs promtool with these arguments and this file, if any, as its standard input. Returns whether it succeeded, and its output.
    pub fn promtool(self, arguments: &[&str], input: Option<&Path>) -> Result<(bool, String)> {
        let stdin = match input {
            Some(path) => File::open(path)
                .with_context(|| format!("opening {}", path.display()))?
                .into(),
            None => Stdio::null(),
        };
        let output = Command::new(self.program("promtool")?)
            .args(arguments)
            .stdin(stdin)
            .output()
            .with_context(|| format!("running promtool {}", self.name()))?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        Ok((output.status.success(), said))
    }

    fn options(self) -> &'static [&'static str] {
        match self {
            Release::Older => &[],
            Release::Newer => &["--enable-feature=native-histograms"],
        }
    }
}

/// Series with its values at a moment or over a time.
#[derive(Clone, Debug, Deserialize)]
pub struct Sample {
    /// Labels of the series, `__name__` included.
    pub metric: std::collections::BTreeMap<String, String>,
    /// Time and number.
    #[serde(default)]
    value: Option<(f64, String)>,
    #[serde(default)]
    values: Vec<(f64, String)>,
    /// A native histogram.
    #[serde(default)]
    histogram: Option<Value>,
    #[serde(default)]
    histograms: Vec<Value>,
}

impl Sample {
    /// True if there is a native histogram.
    pub fn is_native(&self) -> bool {
        self.histogram.is_some() || !self.histograms.is_empty()
    }

    /// True if any value is not NaN, which is the quantile of an empty histogram.
    pub fn says_something(&self) -> bool {
        let mut numbers = self.value.iter().chain(&self.values);
        self.is_native() || numbers.any(|(_, v)| v != "NaN")
    }
}

/// Rule as Prometheus has parsed it.
#[derive(Clone, Debug, Deserialize)]
pub struct Rule {
    /// Name of the alert, or of the recorded series.
    pub name: String,
    /// Expression of the rule.
    pub query: String,
    /// `alerting` or `recording`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Labels that the rule adds.
    #[serde(default)]
    pub labels: std::collections::BTreeMap<String, String>,
    /// Texts of an alert.
    #[serde(default)]
    pub annotations: std::collections::BTreeMap<String, String>,
    /// `ok` once it has been evaluated.
    pub health: String,
    /// Error of the last evaluation.
    #[serde(default, rename = "lastError")]
    pub error: String,
}

/// A running Prometheus.
#[derive(Debug)]
pub struct Prometheus {
    release: Release,
    address: SocketAddr,
    supervisor: Child,
    dir: PathBuf,
    /// Seconds since 1970 that every question is about; `None` for the present.
    moment: Option<f64>,
}

impl Prometheus {
    /// Starts Prometheus with this configuration, and waits until it answers.
    pub fn start(release: Release, configuration: &str) -> Result<Prometheus> {
        Prometheus::start_on(release, configuration, |_| Ok(()))
    }

    /// Starts Prometheus with a history: `prepare` gets the directory of its data before the start.
    pub fn start_on(
        release: Release,
        configuration: &str,
        prepare: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<Prometheus> {
        let program = release.program("prometheus")?;
        let dir = paths::machine_dir(&format!("prometheus{}", release.name()))?;
        fs::create_dir_all(&dir).with_context(|| format!("creating {}", dir.display()))?;
        let file = dir.join("prometheus.yml");
        fs::write(&file, configuration).with_context(|| format!("writing {}", file.display()))?;
        prepare(&dir.join("data"))?;
        let log = File::create(dir.join("log"))
            .with_context(|| format!("creating a log in {}", dir.display()))?;
        let address = free_port(None)?;
        // The supervisor ends Prometheus and removes its directory when this process ends, in whatever way.
        let supervisor = Command::new(paths::lab_program()?)
            .arg("supervisor")
            .arg(&dir)
            .arg(program)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                dir.join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .args(release.options())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            // The supervisor must outlive the Ctrl-C that ends its owner: a process group of its own keeps the terminal's signals
            // away.
            .process_group(0)
            .spawn()
            .context("starting lab supervisor")?;
        let started = Prometheus {
            release,
            address,
            supervisor,
            dir,
            moment: None,
        };
        started.wait_until_ready()?;
        Ok(started)
    }

    fn wait_until_ready(&self) -> Result<()> {
        let started = Instant::now();
        while !http::get(self.address, "/-/ready", &[]).is_ok_and(|answer| answer.status == 200) {
            let ended = self.dir.join(supervisor::ENDED).exists();
            if ended || started.elapsed() > START {
                let log = fs::read_to_string(self.dir.join("log")).unwrap_or_default();
                bail!(
                    "Prometheus {} does not get ready:\n{log}",
                    self.release.name()
                );
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Address at which Prometheus answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Release of this Prometheus.
    pub fn release(&self) -> Release {
        self.release
    }

    /// Makes every later question one about this moment: answers do not depend on how long the questions take.
    pub fn asked_about_now(&mut self) -> Result<()> {
        self.moment = Some(self.now()?);
        Ok(())
    }

    /// Seconds since 1970 that questions are about.
    fn now(&self) -> Result<f64> {
        let present = SystemTime::now().duration_since(UNIX_EPOCH);
        let present = present.context("this host's clock is before 1970")?;
        Ok(self.moment.unwrap_or(present.as_secs_f64()))
    }

    /// Values of an expression's series, now or at [the moment of all questions](Prometheus::asked_about_now).
    pub fn query(&self, expression: &str) -> Result<Vec<Sample>> {
        let now = self.now()?.to_string();
        self.vector("query", &[("query", expression), ("time", &now)])
    }

    /// Values of an expression's series in the seconds before.
    pub fn query_range(&self, expression: &str, seconds: u32, step: u32) -> Result<Vec<Sample>> {
        let now = self.now()?;
        let parameters = [
            ("query", expression),
            ("start", &(now - f64::from(seconds)).to_string()),
            ("end", &now.to_string()),
            ("step", &step.to_string()),
        ];
        self.vector("query_range", &parameters)
    }

    /// Values of a label in the series of a selector.
    pub fn label_values(&self, selector: &str, label: &str) -> Result<Vec<String>> {
        self.ask(&format!("label/{label}/values"), &[("match[]", selector)])
    }

    /// Syntax tree of an expression; only the newer release has one.
    pub fn parse(&self, expression: &str) -> Result<Value> {
        self.ask("parse_query", &[("query", expression)])
    }

    /// Every rule that Prometheus has loaded.
    pub fn rules(&self) -> Result<Vec<Rule>> {
        #[derive(Deserialize)]
        struct Groups {
            groups: Vec<Group>,
        }
        #[derive(Deserialize)]
        struct Group {
            rules: Vec<Rule>,
        }
        let groups: Groups = self.ask("rules", &[])?;
        Ok(groups.groups.into_iter().flat_map(|g| g.rules).collect())
    }

    fn vector(&self, what: &str, parameters: &[(&str, &str)]) -> Result<Vec<Sample>> {
        #[derive(Deserialize)]
        struct Data {
            result: Vec<Sample>,
        }
        let data: Data = self.ask(what, parameters)?;
        Ok(data.result)
    }

    fn ask<T: DeserializeOwned>(&self, what: &str, parameters: &[(&str, &str)]) -> Result<T> {
        #[derive(Deserialize)]
        struct Answer {
            data: Option<Value>,
            error: Option<String>,
        }
        let parameters: Vec<_> = parameters
            .iter()
            .map(|(name, value)| format!("{}={}", encoded(name), encoded(value)))
            .collect();
        let path = format!("/api/v1/{what}?{}", parameters.join("&"));
        let about = || format!("Prometheus {}: {what} {parameters:?}", self.release.name());
        let response = http::get(self.address, &path, &[])?;
        let answer: Answer = serde_json::from_slice(&response.body)
            .with_context(|| format!("{}: status {}", about(), response.status))?;
        if let Some(error) = answer.error {
            bail!("{}: {error}", about());
        }
        serde_json::from_value(answer.data.unwrap_or_default()).with_context(about)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }
}

/// Percent-encodes text for an address: everything but characters that never need it.
fn encoded(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    text.bytes()
        .map(|b| match plain(b) {
            true => char::from(b).to_string(),
            false => format!("%{b:02X}"),
        })
        .collect()
}
