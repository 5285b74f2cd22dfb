//! Every query of every dashboard and every rule, evaluated by real Prometheus servers on the scrapes of a busy agent: each must answer
//! with data.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use lab::monitoring::{
    Dashboard, Format, Prometheus, Release, Rule, Sample, Wants, base_name, dashboards, substituted,
};
use lab::{Agent, Kernel, Load, Server};
use nfscope_model::{Info, Kind, Sample as Counted, Series, Snapshot, family, phase};

use crate::page;
use crate::replayed::Replayed;

/// File systems that are exported beside ZFS, one for each client.
const JOURNALS: [&str; 3] = ["ext4", "xfs", "btrfs"];

/// Operations of the mixed load between two scrapes, and the time of the machine that passes besides.
const OPERATIONS: u64 = 150;
const BETWEEN: Duration = Duration::from_secs(1);
/// Seconds between two scrapes by Prometheus, of answers that were recorded.
const INTERVAL: u32 = 1;
/// Range that Grafana substitutes for $__rate_interval at this interval.
const RATE_INTERVAL: &str = "4s";
/// Number of scrapes of each job before the first query. More are recorded: a job whose scrapes are ahead of the others' still has
/// some that differ.
const SCRAPES: usize = 6;
const RECORDED: usize = SCRAPES + 3;
/// Seconds that a dashboard shows: the time of those scrapes.
const SHOWN: u32 = 6;

/// Job of the example configuration: native histograms if the server stores them.
const JOB: &str = "nfscope";
/// Families that are summaries in text: see `agent/serve/src/exposition/classic_edges.rs`.
const WITHOUT_BUCKETS: [&str; 4] = [
    "nfscope_compound_ops",
    "nfscope_session_slots_used",
    "nfscope_block_queue_seconds",
    "nfscope_block_device_seconds",
];
/// Second job of the newer server, which stores both kinds of histograms.
const BOTH: &str = "nfscope-both";

#[test]
fn vm_6_12_every_query_and_rule_is_answered() -> Result<()> {
    let started = Instant::now();
    let done = |what: &str| println!("{what} after {:.0?}", started.elapsed());
    let server = Server::boot(Kernel::V6_12)
        .driven()
        .export("zfs")
        .external_log()
        .cpus(1)
        .clients(3)
        .start()?;
    done("booted");
    // The agent starts first, so that it need not attach to everything at once. The clients are mounts of this host, too.
    server.sh("modprobe -a nfs nfsv3 nfsv4")?;
    let agent = server.agent(&["--client"])?;
    done("agent");
    export_journals(&server)?;
    let journals = mount(&server)?;
    done("mounted");

    let jobs = [
        (Release::Older, JOB),
        (Release::Newer, JOB),
        (Release::Newer, BOTH),
    ];
    let [of_older, of_newer, of_both] =
        [Replayed::start()?, Replayed::start()?, Replayed::start()?];
    let scraper = |release, scraped: &Replayed| {
        let configuration = configuration(release, scraped, &of_both, server.dir())?;
        Prometheus::start(release, &configuration)
    };
    let mut older = scraper(Release::Older, &of_older)?;
    let mut newer = scraper(Release::Newer, &of_newer)?;
    let replayed = [&of_older, &of_newer, &of_both];
    let mut recorded = Vec::new();
    for _ in 0..RECORDED {
        load(&server, &journals)?;
        lab::pass(BETWEEN);
        recorded.push(replayed.map(|r| r.answer_of(&agent)));
    }
    // Families that have data now have them in the last scrape, too: no load has come since.
    let before = agent.snapshot()?;
    for answers in recorded {
        for (answer, r) in answers.into_iter().zip(replayed) {
            r.play(answer?);
        }
    }
    done("recorded");
    for r in replayed {
        r.has_given(SCRAPES)?;
    }
    older.asked_about_now()?;
    newer.asked_about_now()?;
    done("scraped");

    let asked = jobs.map(|(release, job)| match release {
        Release::Older => (&older, job),
        Release::Newer => (&newer, job),
    });
    let wrong = everything_is_asked(&asked, &newer)?;
    done("queries and rules");
    ensure!(
        wrong.is_empty(),
        "{} without an answer:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    for r in replayed {
        r.has_given(RECORDED + 1)?;
    }
    older.asked_about_now()?;
    newer.asked_about_now()?;
    histograms_are_stored_as_asked(&older, &newer, &before)?;
    probes_missing_knows_what_is_required(&newer, &before)?;
    promtool_accepts_what_the_agent_says(&server, &agent)?;
    done("promtool");
    page::shows_what_the_counters_say(&server, &agent)?;
    done("the page");
    Ok(())
}

/// Queries and rules that have no answer now.
fn everything_is_asked(asked: &[(&Prometheus, &str)], parser: &Prometheus) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for (prometheus, job) in asked {
        for dashboard in Dashboard::all()? {
            ask_dashboard(prometheus, job, &dashboard, &mut wrong)?;
        }
    }
    let mut servers: Vec<_> = asked.iter().map(|(prometheus, _)| *prometheus).collect();
    servers.dedup_by_key(|p| p.release());
    for prometheus in servers {
        for rule in prometheus.rules()? {
            ask_rule(prometheus, parser, &rule, &mut wrong)?;
        }
    }
    Ok(wrong)
}

/// Exports the other file systems with a journal, in memory, below the export.
fn export_journals(server: &Server) -> Result<()> {
    server.sh("set -e
        sysctl -qw kernel.bpf_stats_enabled=1
        modprobe -a loop ext4 xfs btrfs
        mkdir /run/disks
        mount -t tmpfs -o size=50% disks /run/disks
        export_journal() { # <file system> <id> <mkfs>...
          fs=$1 id=$2; shift 2
          truncate -s 512M /run/disks/$fs
          \"$@\" /run/disks/$fs
          mkdir -p /run/exp/$fs
          mount -t $fs -o loop /run/disks/$fs /run/exp/$fs
          exportfs -o rw,sync,no_root_squash,insecure,no_subtree_check,fsid=$id \"*:/run/exp/$fs\"
        }
        export_journal ext4 11 mkfs.ext4 -q -F -E lazy_itable_init=1,nodiscard
        export_journal xfs 12 mkfs.xfs -q -f -K
        export_journal btrfs 13 mkfs.btrfs -q -f -K
        # Nobody writes there.
        mkdir /run/exp/lax
        exportfs -o rw,async,no_root_squash,insecure,no_subtree_check,fsid=14 '*:/run/exp/lax'")?;
    Ok(())
}

/// Mounts the whole export and one of the journals at each client. This is done before the load, because a mount under load takes
/// long.
fn mount(server: &Server) -> Result<Vec<String>> {
    let mut journals = Vec::new();
    for (client, fs) in server.clients().zip(JOURNALS) {
        client.mount_v4_2()?;
        let options = "vers=3,nolock,proto=tcp,hard";
        journals.push(client.mount(fs, options, &format!("/run/exp/{fs}"))?);
    }
    Ok(journals)
}

/// Runs the mixed load on ZFS. On each of the others a client of its own makes durable writes, and reads that miss its cache.
fn load(server: &Server, journals: &[String]) -> Result<()> {
    server.load(Load::mixed().versions(&["4.2"]).ops(OPERATIONS))?;
    for (client, at) in server.clients().zip(journals) {
        client.sh(&format!(
            "dd if=/dev/zero of={at}/f bs=4k count=8 oflag=dsync status=none
             dd if={at}/f of=/dev/null bs=4k iflag=direct status=none
             stat {at}/missing 2>/dev/null
             rm {at}/f"
        ))?;
    }
    Ok(())
}

/// The example configuration, with recorded scrapes in the agent's place, and the rules of this workspace.
fn configuration(
    release: Release,
    scraped: &Replayed,
    of_both: &Replayed,
    into: &Path,
) -> Result<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/monitoring/prometheus.yml");
    let mut text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let rules = rules_without_intervals(into)?;
    let agent = scraped.address().to_string();
    let interval = format!("_interval: {INTERVAL}s");
    for (of_the_example, times, here) in [
        ("/etc/prometheus/nfscope/*.yml", 1, &rules),
        ("localhost:9943", 1, &agent),
        ("_interval: 10s", 2, &interval),
    ] {
        ensure!(
            text.matches(of_the_example).count() == times,
            "{} has not {times} times {of_the_example:?}",
            file.display()
        );
        text = text.replace(of_the_example, here);
    }
    if release == Release::Newer {
        text += &format!(
            "  - job_name: {BOTH}
    always_scrape_classic_histograms: true
    static_configs:
      - targets: [\"{}\"]
",
            of_both.address()
        );
    }
    Ok(text)
}

/// Writes copies of the rules of this workspace, without intervals of their own: the configuration's interval counts. Objectives are
/// evaluated once a minute, which is later than the queries of this test.
fn rules_without_intervals(into: &Path) -> Result<String> {
    let into = into.join("rules");
    fs::create_dir_all(&into).with_context(|| format!("creating {}", into.display()))?;
    for file in ["recording.yml", "slo.yml", "alerts.yml"] {
        let from = dashboards().join("rules").join(file);
        let text = fs::read_to_string(&from).with_context(|| from.display().to_string())?;
        fs::write(into.join(file), text.replace("    interval: 1m\n", ""))?;
    }
    Ok(into.join("*.yml").display().to_string())
}

/// Evaluates every query of a dashboard, as Grafana would.
fn ask_dashboard(
    prometheus: &Prometheus,
    job: &str,
    dashboard: &Dashboard,
    wrong: &mut Vec<String>,
) -> Result<()> {
    let values = dashboard.values(prometheus, job, RATE_INTERVAL)?;
    let stores_native = prometheus.release() == Release::Newer;
    let stores_classic = !stores_native || job == BOTH;
    for panel in &dashboard.panels {
        for target in &panel.targets {
            let expression = substituted(&target.expression, &values);
            let answer = if target.instant {
                prometheus.query(&expression)
            } else {
                prometheus.query_range(&expression, SHOWN, INTERVAL)
            };
            // A heat map has one query for each kind of histogram. Disks have native ones only.
            let needs_native = target.expression.starts_with("histogram_quantile(")
                && !target.expression.contains("_bucket{");
            let expected = match target.format {
                Format::Buckets => stores_classic,
                Format::Series if panel.is_heat_map() || needs_native => stores_native,
                Format::Series | Format::Table => true,
            };
            let what = format!("{}: {}", dashboard.name, panel.title);
            expect_answer(prometheus, &what, &expression, answer, expected, wrong);
        }
    }
    Ok(())
}

/// Checks that a rule has been evaluated, and that its metrics exist. Alerts mostly find nothing, so each comparison is changed to
/// return its result instead of filtering by it.
fn ask_rule(
    prometheus: &Prometheus,
    parser: &Prometheus,
    rule: &Rule,
    wrong: &mut Vec<String>,
) -> Result<()> {
    ensure!(
        rule.health == "ok",
        "{}: {} {}",
        rule.name,
        rule.health,
        rule.error
    );
    let mut expression = rule.query.clone();
    if rule.kind == "recording" {
        expression.clone_from(&rule.name);
        let wants = Wants::of(&parser.parse(&rule.query)?);
        // The rule of an objective is a number.
        let known = !wants.metrics.is_empty() || rule.query.starts_with("vector(");
        ensure!(known, "{}: {}", rule.name, rule.query);
    } else {
        for comparison in [" == ", " < ", " > "] {
            expression = expression.replace(comparison, &format!("{comparison}bool "));
        }
        ensure!(expression.contains(" bool "), "{}: {expression}", rule.name);
    }
    let answer = prometheus.query(&expression);
    expect_answer(prometheus, &rule.name, &expression, answer, true, wrong);
    Ok(())
}

/// True if a server may have no data for the expression. Rare phases have no series before they first occur, and gains of changes are
/// computed while there are findings. No client waits for a slot of its session, holds a layout or a lock, asks lockd for one, is
/// refused, leaves replies without an acknowledgement, or has a delegation recalled here. The laundromat may run later than this
/// test. Nothing is compared with last week, objectives are evaluated once a minute, and the use of CPUs is of whole five minutes.
fn is_rare(expression: &str) -> bool {
    let worth = [&family::CHANGE_GAIN.info, &family::RECOMMENDED_THREADS.info];
    let seldom = [
        &family::VIEW_SLOT_WAIT.info,
        &family::RECALL_SECONDS.info,
        &family::CLIENT_RECALLS.info,
        &family::CLIENT_RECALLS_PENDING.info,
        &family::CLIENT_LAYOUTS.info,
        &family::LAUNDROMAT_AGE.info,
        &family::UNACKED_BYTES.info,
        &family::UNACKED_SECONDS.info,
        &family::UNACKED_RETRANSMISSIONS.info,
        &family::UNACKED_ZERO_WINDOW.info,
        &family::CLIENT_LOCKS.info,
        &family::NLM_DURATION.info,
        &family::NLM_ANSWERS.info,
        &family::CLIENT_NLM.info,
        &family::CLIENT_NLM_WAIT.info,
        &family::CLIENT_REFUSED.info,
        &family::CLIENT_LOCKS_HELD.info,
    ];
    let asks = |what: &str| expression.contains(what);
    phase::RARE
        .iter()
        .any(|name| asks(&format!("phase=\"{name}\"")))
        || worth.iter().any(|info| asks(info.name))
        || seldom.iter().any(|info| asks(info.name))
        || asks(" offset 1w")
        || asks("slo:")
        || asks("instance:nfscope_cpu_utilization:")
        || asks("}) == 1)")
}

fn expect_answer(
    prometheus: &Prometheus,
    what: &str,
    expression: &str,
    answer: Result<Vec<Sample>>,
    expected: bool,
    wrong: &mut Vec<String>,
) {
    let problem = match answer {
        Err(e) => format!("{e:#}"),
        Ok(found) if found.iter().any(Sample::says_something) || !expected => return,
        Ok(_) if is_rare(expression) => return,
        Ok(found) => format!("{} series, and nothing in them", found.len()),
    };
    let name = prometheus.release().name();
    wrong.push(format!(
        "Prometheus {name}: {what}: {expression}\n  {problem}"
    ));
}

/// Checks that the older server has classic histograms, and the newer one native ones, or both if it is configured so, and that both
/// count alike.
fn histograms_are_stored_as_asked(
    older: &Prometheus,
    newer: &Prometheus,
    snapshot: &Snapshot,
) -> Result<()> {
    let mut seen = 0;
    for (f, series) in snapshot.filled() {
        let filled = |s: &Series| matches!(&s.sample, Counted::Histogram(h) if h.count() > 0);
        if !matches!(f.kind, Kind::Histogram(_)) || !series.iter().any(filled) {
            continue;
        }
        let name = f.name;
        seen += 1;
        let summary = WITHOUT_BUCKETS.contains(&name);
        ensure!(
            older.query(&last(&format!("{name}_bucket")))?.is_empty() == summary,
            "{name}: not the classic buckets that it should have"
        );
        ensure!(
            !older.query(&last(&format!("{name}_count")))?.is_empty(),
            "{name}: no count"
        );
        for job in [JOB, BOTH] {
            let native = newer.query(&last(&format!("{name}{{job=\"{job}\"}}")))?;
            ensure!(!native.is_empty(), "{name} of {job} was not scraped");
            ensure!(
                native.iter().all(Sample::is_native),
                "{name} of {job} is no native histogram: {native:?}"
            );
        }
        let classic = newer.query(&last(&format!("{name}_bucket{{job=\"{JOB}\"}}")))?;
        ensure!(
            classic.is_empty(),
            "{name} of {JOB} has classic buckets, too"
        );
        same_in_both(newer, f)?;
    }
    ensure!(seen > 10, "only {seen} histograms were scraped");
    Ok(())
}

/// Expression for the newest scrape with the series: scrapes fail on a busy host, and a failed one ends a series for a plain selector.
fn last(series: &str) -> String {
    format!("last_over_time({series}[1h])")
}

fn same_in_both(newer: &Prometheus, f: &Info) -> Result<()> {
    let name = base_name(f.name);
    for part in ["count", "sum"] {
        let of = |series: &str| last(&format!("{name}{series}{{job=\"{BOTH}\"}}"));
        let (native, classic) = (of(""), of(&format!("_{part}")));
        let differ = newer.query(&format!("histogram_{part}({native}) != {classic}"))?;
        ensure!(differ.is_empty(), "{name}: {part}s differ: {differ:?}");
        let both = newer.query(&format!("histogram_{part}({native}) == {classic}"))?;
        ensure!(!both.is_empty(), "{name}: {part}s cannot be compared");
    }
    Ok(())
}

/// Checks that the alert names the programs that the agent itself marks as required.
fn probes_missing_knows_what_is_required(newer: &Prometheus, snapshot: &Snapshot) -> Result<()> {
    let required = snapshot.probes.iter().filter(|p| p.required);
    let mut required: Vec<_> = required.map(|p| p.program.as_str()).collect();
    required.sort_unstable();
    let rules = newer.rules()?;
    let rule = rules.iter().find(|r| r.name == "NfscopeProbesMissing");
    let query = &rule.context("no alert NfscopeProbesMissing")?.query;
    for part in [
        format!("program=~\"{}\"", required.join("|")),
        format!("< {}", required.len()),
    ] {
        ensure!(query.contains(&part), "{query} has not {part:?}");
    }
    Ok(())
}

fn promtool_accepts_what_the_agent_says(server: &Server, agent: &Agent) -> Result<()> {
    let file = server.dir().join("metrics.txt");
    fs::write(&file, agent.get("/metrics")?)?;
    for release in Release::ALL {
        let (content, said) = release.promtool(&["check", "metrics"], Some(&file))?;
        ensure!(content, "promtool {}: {said}", release.name());
    }
    Ok(())
}
