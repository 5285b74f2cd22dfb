//! A real Prometheus on this host, as `tests/setup/setup.sh monitoring` unpacked it: a process with a directory of its own that
//! ends with the value.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::kernel::cache;
use crate::machine::free_port;
use crate::{http, paths, supervisor};

/// Loading nothing takes it a second; a host with two busy machines takes longer.
const START: Duration = Duration::from_secs(60);

/// Which Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Release {
    /// Debian 12's, which stores classic histograms.
    Older,
    /// Debian's newest, which stores native ones.
    Newer,
}

impl Release {
    /// Both.
    pub const ALL: [Release; 2] = [Release::Older, Release::Newer];

    /// Its directory's name.
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

    /// Runs promtool with these arguments and this file, if any, as its standard input: whether it was content, and all
    /// that it said.
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

/// A series and what it has at some moment or over some time.
#[derive(Clone, Debug, Deserialize)]
pub struct Sample {
    /// Its labels, `__name__` included.
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
    /// True where there is a native histogram.
    pub fn is_native(&self) -> bool {
        self.histogram.is_some() || !self.histograms.is_empty()
    }

    /// True where there is anything but NaN, which is what a quantile of nothing is.
    pub fn says_something(&self) -> bool {
        let mut numbers = self.value.iter().chain(&self.values);
        self.is_native() || numbers.any(|(_, v)| v != "NaN")
    }
}

/// A rule as Prometheus has understood it.
#[derive(Clone, Debug, Deserialize)]
pub struct Rule {
    /// The alert's name, or the series' that is recorded.
    pub name: String,
    /// Its expression.
    pub query: String,
    /// `alerting` or `recording`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Labels that it adds.
    #[serde(default)]
    pub labels: std::collections::BTreeMap<String, String>,
    /// What an alert says.
    #[serde(default)]
    pub annotations: std::collections::BTreeMap<String, String>,
    /// `ok` once it has been evaluated.
    pub health: String,
    /// Why not.
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
}

impl Prometheus {
    /// Starts it with this configuration, and waits until it answers.
    pub fn start(release: Release, configuration: &str) -> Result<Prometheus> {
        Prometheus::start_on(release, configuration, |_| Ok(()))
    }

    /// The same with a history: `prepare` gets the directory of its data before it starts.
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
        // It ends, and its directory goes, with the pipe to the supervisor: however this process ends.
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
            // Out of the terminal's reach: the supervisor must outlive the Ctrl-C that ends its owner.
            .process_group(0)
            .spawn()
            .context("starting lab supervisor")?;
        let started = Prometheus {
            release,
            address,
            supervisor,
            dir,
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

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Which it is.
    pub fn release(&self) -> Release {
        self.release
    }

    /// The series that an expression has now.
    pub fn query(&self, expression: &str) -> Result<Vec<Sample>> {
        self.vector("query", &[("query", expression)])
    }

    /// The series that an expression has had in the last seconds.
    pub fn query_range(&self, expression: &str, seconds: u64, step: u64) -> Result<Vec<Sample>> {
        let now = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .context("this host's clock is before 1970")?
            .as_secs();
        let parameters = [
            ("query", expression),
            ("start", &(now - seconds).to_string()),
            ("end", &now.to_string()),
            ("step", &step.to_string()),
        ];
        self.vector("query_range", &parameters)
    }

    /// Values of a label in the series that a selector names.
    pub fn label_values(&self, selector: &str, label: &str) -> Result<Vec<String>> {
        self.ask(&format!("label/{label}/values"), &[("match[]", selector)])
    }

    /// How the newer release has parsed an expression.
    pub fn parse(&self, expression: &str) -> Result<Value> {
        self.ask("parse_query", &[("query", expression)])
    }

    /// Every rule that it has loaded.
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

/// For an address: everything but what needs no quoting anywhere.
fn encoded(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.".contains(&b);
    text.bytes()
        .map(|b| match plain(b) {
            true => char::from(b).to_string(),
            false => format!("%{b:02X}"),
        })
        .collect()
}
