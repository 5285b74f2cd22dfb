//! The command line.

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    " (",
    env!("NFSCOPE_REVISION"),
    ")"
);

// Lines of these stay below 80 columns: clap would wrap them, and lose their columns.
const EXAMPLES: &str = "\
Examples:
  sudo nfscope check    what can be measured here, and what would help the rest
  sudo nfscope agent    measure, and serve Prometheus at 127.0.0.1:9943/metrics
  nfscope top           operations per second, latency and share of time, live
  nfscope metrics       every metric with its labels and meaning";

const AGENT_EXAMPLES: &str = "\
Examples:
  sudo nfscope agent
  sudo nfscope agent --web.listen-address 0.0.0.0:9943
  sudo nfscope agent --config /etc/nfscope.toml --no-late-attach

A configuration file holds the same settings; a flag overrides it:
  [web]
  listen_address = \"127.0.0.1:9943\"
  [probes]
  late_attach = true      # --no-late-attach makes it false
  statistics = false      # --probe-stats makes it true

Served:
  /metrics     for Prometheus: text, OpenMetrics, native histograms
  /healthz     200 while NFS operations are being timed, else 503 and why
  /probes      every probe, its state and the reason, as JSON
  /snapshot    every value, as JSON
  /            a page for people

Stops on SIGTERM and SIGINT. Nothing stays attached, however it ends.";

const CHECK_EXAMPLES: &str = "\
Exit code:
  0   NFS operations can be timed, with everything that belongs to it
  3   they can, but some probes are absent or use a fallback
  1   they cannot

Examples:
  sudo nfscope check
  sudo nfscope check --json";

const TOP_EXAMPLES: &str = "\
Examples:
  nfscope top                            this host's agent; where none runs,
                                         probes of its own (needs root)
  nfscope top --url http://nfs1:9943     an agent elsewhere
  nfscope top --once --interval 10s      one table over ten seconds

SHARE is the part of all operations' time that went into this one.
Set NO_COLOR to do without colours.";

/// Shows where every NFS operation's time goes, on the server.
#[derive(Debug, Parser)]
#[command(name = "nfscope", version = VERSION, after_help = EXAMPLES, max_term_width = 120)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Attach the probes and serve what they measure until SIGTERM or SIGINT
    Agent(AgentArgs),
    /// Tell what this host lets nfscope measure, and why not more
    Check(CheckArgs),
    /// Show a table of operations that refreshes
    Top(TopArgs),
    /// Print the reference of all metrics
    Metrics(MetricsArgs),
}

/// `nfscope agent`
#[derive(Debug, Default, Args)]
#[command(after_help = AGENT_EXAMPLES)]
pub struct AgentArgs {
    /// Address to serve on [default: 127.0.0.1:9943]
    #[arg(long = "web.listen-address", value_name = "HOST:PORT")]
    pub listen_address: Option<String>,
    /// TOML file with settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Drop every capability once attached; modules that load later (nfsd, sunrpc) are then not followed
    #[arg(long)]
    pub no_late_attach: bool,
    /// Have the kernel count runs and run time of every probe program (slower probes)
    #[arg(long)]
    pub probe_stats: bool,
}

/// `nfscope check`
#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct CheckArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `nfscope top`
#[derive(Debug, Args)]
#[command(after_help = TOP_EXAMPLES)]
pub struct TopArgs {
    /// Agent to read from [default: http://127.0.0.1:9943, or probes of its own where no agent answers]
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
    /// Length of one window: 500ms, 2s, 1m
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = interval)]
    pub interval: Duration,
    /// Print one window and stop
    #[arg(long)]
    pub once: bool,
}

/// `nfscope metrics`
#[derive(Debug, Args)]
pub struct MetricsArgs {
    /// Print a Markdown page
    #[arg(long)]
    pub markdown: bool,
}

/// `2s`, `500ms`, `1m` or a bare number of seconds, between 100 ms and one hour.
fn interval(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" => 60.0,
        _ => return Err("give a time as 500ms, 2s or 1m".into()),
    };
    match digits.parse::<f64>() {
        Ok(n) if (0.1..=3600.0).contains(&(n * factor)) => Ok(Duration::from_secs_f64(n * factor)),
        Ok(_) => Err("give a time between 100ms and 60m".into()),
        Err(_) => Err("give a time as 500ms, 2s or 1m".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn clap_finds_no_fault_with_it() {
        Cli::command().debug_assert();
    }

    #[test]
    fn intervals() {
        for (text, ms) in [
            ("1s", 1000),
            ("500ms", 500),
            ("2", 2000),
            ("1.5s", 1500),
            ("1m", 60_000),
        ] {
            assert_eq!(interval(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for text in ["", "s", "0s", "2h", "-1s", "99ms", "1e9s", "NaN"] {
            assert!(interval(text).is_err(), "{text}");
        }
    }
}
