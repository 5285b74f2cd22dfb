//! `nfscope experiment run`: every run of a plan file is made, or it fails and is not analysed.

use crate::fixture::recorder::{Place, agent};
use crate::fixture::said;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

fn command(place: &Place, words: &[&str]) -> Command {
    let mut c = Command::new(env!("CARGO_BIN_EXE_nfscope"));
    c.arg("experiment").args(words);
    c.arg("--store").arg(place.store());
    c
}

fn ask(place: &Place, words: &[&str]) -> (i32, String, String) {
    said(&command(place, words).output().unwrap())
}

/// Plan file of two factors, each of which is a file with its level. Returns its path.
fn plan(place: &Place, name: &str, load: &str, verify: &str) -> PathBuf {
    let dir = place.0.display();
    let factor = |name: &str, levels: [&str; 2], verify: &str| {
        let level = |of: &str, level: &str| {
            format!(
                "{of}.level = '{level}'\n{of}.set = 'echo {level} >{dir}/{name}'\n{of}.verify = 'test \"$(cat {dir}/{name})\" = {level}{verify}'\n"
            )
        };
        let levels = level("low", levels[0]) + &level("high", levels[1]);
        format!("[[factor]]\nname = '{name}'\n{levels}")
    };
    let text = format!(
        "name = '{name}'\nseed = 3\n[run]\nload = '''{load}'''\nwarmup = '200ms'\nrecord = '1s'\ninterval = '100ms'\n{}{}",
        factor("log", ["disk", "slog"], verify),
        factor("threads", ["8", "16"], "")
    );
    let path = place.0.join(format!("{name}.toml"));
    fs::write(&path, text).unwrap();
    path
}

fn run(place: &Place, file: &Path, url: &str) -> (i32, String, String) {
    ask(place, &["run", file.to_str().unwrap(), "--url", url])
}

/// [`run`] in the background.
fn started(place: &Place, file: &Path, url: &str, stderr: Stdio) -> Child {
    command(place, &["run", file.to_str().unwrap(), "--url", url])
        .stderr(stderr)
        .spawn()
        .unwrap()
}

/// Load that writes its process ID, its run and the levels to a file.
fn noting(place: &Place) -> String {
    let dir = place.0.display();
    format!(
        "echo $$ $NFSCOPE_RUN $NFSCOPE_LEVELS >>{dir}/loads; cat {dir}/log >>{dir}/loads; exec sleep 1000"
    )
}

fn loads(place: &Place) -> Vec<String> {
    let text = fs::read_to_string(place.0.join("loads")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn is_alive(process: &str) -> bool {
    Path::new("/proc").join(process).exists()
}

/// Waits until `is` is true, for two minutes at most.
fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < Duration::from_secs(120), "{what}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn every_run_is_made_and_a_failed_run_is_repeated() {
    let (place, url) = (Place::new("made"), format!("http://{}", agent()));
    let dir = place.0.display().to_string();
    // Level `slog` fails its verification until the file `allowed` exists.
    let allowed = format!(" && {{ ! grep -q slog {dir}/log || test -e {dir}/allowed; }}");
    let file = plan(&place, "slog", &noting(&place), &allowed);
    let (code, _, err) = run(&place, &file, &url);
    assert_eq!(code, 1, "{err}");
    assert!(
        err.contains("log=slog is not set, says its verify") && err.contains("failed: run "),
        "{err}"
    );
    assert_eq!(loads(&place).len(), 4, "{:?}", loads(&place));
    let (code, _, err) = ask(&place, &["analyse", "slog", "--metric", "write:mean"]);
    assert!(
        code == 1 && err.contains("2 of 4 runs are recorded"),
        "{err}"
    );
    fs::write(place.0.join("allowed"), "").unwrap();
    let (code, _, err) = run(&place, &file, &url);
    assert_eq!(code, 0, "{err}");
    assert!(err.contains("`slog`: 2 of 4 runs are recorded"), "{err}");
    assert!(err.contains("all 4 runs are recorded"), "{err}");
    // Loads: each run had one, begun after its levels were set and ended with the run.
    let loads = loads(&place);
    let mut runs = Vec::new();
    for of in loads.chunks(2) {
        let [process, number, log, _] = of[0].split(' ').collect::<Vec<_>>()[..] else {
            panic!("{loads:?}")
        };
        assert!(!is_alive(process), "{loads:?}");
        assert_eq!(log, format!("log={}", of[1]));
        runs.push(number.to_owned());
    }
    runs.sort();
    assert_eq!(runs, ["1", "2", "3", "4"]);
    let (code, out, err) = ask(&place, &["analyse", "slog", "--metric", "write:mean"]);
    assert!(code == 0 && out.contains("log"), "{out}{err}");
    // Other plan with the same name: the runs of this one are not its runs.
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("seed = 3", "seed = 4")).unwrap();
    let (code, _, err) = run(&place, &file, &url);
    assert!(code == 1 && err.contains("has another plan than"), "{err}");
}

/// Levels that change during the recording, and loads that end: the recording is not of the plan's levels.
#[test]
fn a_run_that_was_not_as_planned_is_not_analysed() {
    let (place, url) = (Place::new("unplanned"), format!("http://{}", agent()));
    let dir = place.0.display().to_string();
    let baselines = || {
        let mut c = Command::new(env!("CARGO_BIN_EXE_nfscope"));
        c.args(["baseline", "list", "--json", "--store"])
            .arg(place.store());
        let (_, out, _) = said(&c.output().unwrap());
        out
    };
    // File of a run that is being recorded.
    let experiments = place.store().parent().unwrap().join("experiments");
    let recording = |name: &str| {
        let note = experiments.join(format!("{name}.run"));
        format!("until test -e {}; do sleep 0.1; done", note.display())
    };
    let undone = plan(
        &place,
        "undone",
        &format!(
            "{}; echo other >{dir}/log; exec sleep 1000",
            recording("undone")
        ),
        "",
    );
    let (code, _, err) = run(&place, &undone, &url);
    assert!(
        code == 1
            && err.contains("failed: after the recording: log=")
            && err.contains("`undone-1` was not verified: it is removed"),
        "{err}"
    );
    assert!(!baselines().contains("undone-"), "{}", baselines());
    let ended = plan(&place, "ended", &recording("ended"), "");
    let (code, _, err) = run(&place, &ended, &url);
    assert!(code == 1 && err.contains("the load ended early"), "{err}");
    assert!(!baselines().contains("ended-"), "{}", baselines());
    // Runs are made again with another load.
    let repaired = plan(&place, "ended", "exec sleep 1000", "");
    let (code, _, err) = run(&place, &repaired, &url);
    assert!(
        code == 0 && err.contains("0 of 4 runs are recorded"),
        "{err}"
    );
    let (code, _, err) = run(&place, Path::new("/dev/null"), &url);
    assert!(code == 1 && err.contains("is no plan"), "{err}");
}

/// No other run is made before the recording of a failed one is removed: nothing else would distinguish it from a good one.
#[test]
fn a_recording_that_cannot_be_removed_is_never_a_run() {
    let (place, url) = (Place::new("unremoved"), format!("http://{}", agent()));
    let dir = place.0.display().to_string();
    let db = place.store().display().to_string();
    // Verification after the first recording: it fails, and moves the store away.
    let taken =
        format!(" && {{ ! test -f {db} || {{ mv {db} {dir}/away; mkdir {db}; false; }}; }}");
    let file = plan(&place, "unremoved", &noting(&place), &taken);
    let (code, _, err) = run(&place, &file, &url);
    assert!(
        code == 1 && err.contains("error: what run 1 has recorded cannot be removed"),
        "{err}"
    );
    assert_eq!(loads(&place).len(), 2, "{err}");
    fs::remove_dir(place.store()).unwrap();
    fs::rename(place.0.join("away"), place.store()).unwrap();
    let (_, out, _) = ask(&place, &["list"]);
    assert_eq!(out, "unremoved: 0 of 4 runs recorded\n");
    let repaired = plan(&place, "unremoved", &noting(&place), "");
    let (code, _, err) = run(&place, &repaired, &url);
    assert!(
        code == 0 && err.contains("`unremoved-1` was not verified: it is removed"),
        "{err}"
    );
    let (_, out, _) = ask(&place, &["list"]);
    assert_eq!(out, "unremoved: 4 of 4 runs recorded\n");
}

#[test]
fn one_call_at_a_time_runs_an_experiment() {
    let (place, url) = (Place::new("held"), format!("http://{}", agent()));
    let file = plan(&place, "held", &noting(&place), "");
    let mut first = started(&place, &file, &url, Stdio::null());
    until("a load", || loads(&place).len() >= 2);
    let (code, _, err) = run(&place, &file, &url);
    assert!(
        code == 1 && err.contains("the experiment `held` is being run already; fix:"),
        "{err}"
    );
    assert_eq!(first.wait().unwrap().code(), Some(0));
    let (code, _, err) = run(&place, &file, &url);
    assert!(
        code == 0 && err.contains("4 of 4 runs are recorded"),
        "{err}"
    );
}

/// Refused before anything is set.
#[test]
fn a_plan_that_cannot_be_recorded_sets_nothing() {
    let (place, url) = (Place::new("unrecordable"), format!("http://{}", agent()));
    let file = plan(&place, "short", &noting(&place), "");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("'1s'", "'999ms'")).unwrap();
    let (code, _, err) = run(&place, &file, &url);
    assert!(
        code == 1 && err.contains("record: give a duration"),
        "{err}"
    );
    fs::write(&file, text.replace("'100ms'", "'200ms'")).unwrap();
    let (code, _, err) = run(&place, &file, &url);
    assert!(
        code == 1
            && err.contains("record: 1s has fewer than 10 windows of 200ms")
            && err.contains("fix: record = \"2s\""),
        "{err}"
    );
    assert!(!place.0.join("log").exists() && loads(&place).is_empty());
}

/// SIGKILL: the load ends with the program, and the next call continues.
#[test]
fn an_experiment_continues_after_sigkill() {
    let (place, url) = (Place::new("crash"), format!("http://{}", agent()));
    let file = plan(&place, "long", &noting(&place), "");
    let mut first = started(&place, &file, &url, Stdio::null());
    // Kill during the second run.
    until("a second load", || loads(&place).len() >= 3);
    first.kill().unwrap();
    first.wait().unwrap();
    let process = loads(&place)[2].split(' ').next().unwrap().to_owned();
    until("the load ends", || !is_alive(&process));
    let (code, _, err) = run(&place, &file, &url);
    assert_eq!(code, 0, "{err}");
    assert!(
        err.contains("`long`: 1 of 4 runs are recorded") || err.contains("`long`: 2 of 4"),
        "{err}"
    );
    let (code, out, _) = ask(&place, &["list"]);
    assert_eq!((code, &*out), (0, "long: 4 of 4 runs recorded\n"));
}

#[test]
fn a_signal_ends_load_and_recording() {
    let (place, url) = (Place::new("signal"), format!("http://{}", agent()));
    let file = plan(&place, "stopped", &noting(&place), "");
    let child = started(&place, &file, &url, Stdio::piped());
    until("a load", || loads(&place).len() >= 2);
    let id = rustix::process::Pid::from_raw(child.id() as i32).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    let (code, _, err) = said(&child.wait_with_output().unwrap());
    assert!(code != 0, "{err}");
    let process = loads(&place)[0].split(' ').next().unwrap().to_owned();
    assert!(!is_alive(&process), "{err}");
}

/// A check sets each level once, records nothing, and reports everything that would fail at once.
#[test]
fn a_check_reports_all_that_would_fail() {
    let (place, url) = (Place::new("checked"), format!("http://{}", agent()));
    let check = |file: &Path| {
        let words = [
            "check",
            file.to_str().unwrap(),
            "--duration",
            "3s",
            "--url",
            &url,
        ];
        ask(&place, &words)
    };
    let file = plan(&place, "good", &noting(&place), "");
    let (code, _, err) = check(&file);
    assert_eq!(code, 0, "{err}");
    assert!(
        err.contains("every level can be set; 4 runs take about ") && err.contains("operations in"),
        "{err}"
    );
    // Two runs with opposite levels, each with a load.
    let loads_of = loads(&place);
    assert_eq!(loads_of.len(), 4, "{loads_of:?}");
    assert_ne!(loads_of[1], loads_of[3]);
    assert!(!place.store().exists(), "{err}");
    let (_, out, _) = ask(&place, &["list"]);
    assert_eq!(out, "");
    // Level that cannot be set, verification that accepts anything, load that ends, and no operations.
    let text = fs::read_to_string(&file).unwrap();
    let wrong = |from: &str, to: &str, why: &[&str]| {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{from}");
        fs::write(&file, changed).unwrap();
        let (code, _, err) = check(&file);
        assert_eq!(code, 1, "{to}: {err}");
        for part in why {
            assert!(err.contains(part), "{part}: {err}");
        }
        assert!(err.contains("no run was made"), "{err}");
    };
    let dir = place.0.display();
    wrong(
        &format!("echo slog >{dir}/log"),
        "exit 7",
        &[
            "log=slog cannot be set: `exit 7` failed",
            "log=slog is not set, says its verify",
        ],
    );
    wrong(
        &format!("test \"$(cat {dir}/log)\" = slog"),
        "true",
        &["the verify of its other level succeeds, too: `true` verifies nothing"],
    );
    wrong(
        "exec sleep 1000",
        "exit 3",
        &["2 things would fail", "the load ended early"],
    );
    wrong(
        "record = '1s'",
        "record = '1s'\noperations = 1000000000",
        &["would reach the server in a run of 1s, which needs 1000000000"],
    );
    wrong(
        "record = '1s'",
        "record = '1s'\nnumbers.mbs = 'bw={}MiB'",
        &["the load printed no `bw={}MiB` on its stdout"],
    );
}

/// A run with too few operations is removed, by `run` and by `record`.
#[test]
fn a_run_without_enough_operations_has_failed() {
    let (place, url) = (Place::new("idle"), format!("http://{}", agent()));
    let file = plan(&place, "idle", "exec sleep 1000", "");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(
        &file,
        text.replace("record = '1s'", "record = '1s'\noperations = 1000000000"),
    )
    .unwrap();
    let (code, _, err) = run(&place, &file, &url);
    assert!(
        code == 1
            && err.contains("and a run needs 1000000000; fix:")
            && err.contains("failed: run 1, 2, 3, 4"),
        "{err}"
    );
    let (_, out, _) = ask(&place, &["list"]);
    assert_eq!(out, "idle: 0 of 4 runs recorded\n");
    let record = [
        "record",
        "idle",
        "--duration",
        "1s",
        "--interval",
        "100ms",
        "--url",
        &url,
    ];
    let (code, _, err) = ask(
        &place,
        &[&record[..], &["--min-operations", "1000000000"]].concat(),
    );
    assert!(code == 1 && err.contains("run 1 is removed"), "{err}");
    let (_, out, _) = ask(&place, &["list"]);
    assert_eq!(out, "idle: 0 of 4 runs recorded\n");
    let (code, _, err) = ask(&place, &record);
    assert_eq!(code, 0, "{err}");
}

/// The load prints megabytes per second, twice as many with a separate log. Output during the warm-up does not count. Then a fold-over and
/// replicates extend the plan, and the same file makes their runs.
#[test]
fn a_number_of_the_load_is_a_response_and_plans_are_extended() {
    let (place, url) = (Place::new("numbers"), format!("http://{}", agent()));
    let dir = place.0.display();
    let load = format!(
        "echo bw=9999MiB/s; if grep -q slog {dir}/log; then bw=200; else bw=100; fi; while :; do echo bw=$bw.0MiB/s; echo >{dir}/said; sleep 0.1; done"
    );
    // Verifications: the first one comes before the load. Each later one waits for a line of it: one before the recording, and one within
    // it.
    let verify = format!(
        " && if test -e {dir}/set; then rm {dir}/set; else rm -f {dir}/said; until test -e {dir}/said; do sleep 0.1; done; fi"
    );
    let file = plan(&place, "mbs", &load, &verify);
    let text = fs::read_to_string(&file).unwrap();
    let text = text.replace("set = 'echo ", &format!("set = 'echo >{dir}/set; echo "));
    fs::write(
        &file,
        text.replace("record = '1s'", "record = '1s'\nnumbers.mbs = 'bw={}MiB/s'"),
    )
    .unwrap();
    let (code, _, err) = run(&place, &file, &url);
    assert_eq!(code, 0, "{err}");
    let analyse = |more: &[&str]| ask(&place, &[&["analyse", "mbs"], more].concat());
    let effect_of_log = |runs: usize| {
        let (code, out, err) = analyse(&["--response", "load:mbs", "--json"]);
        assert_eq!(code, 0, "{err}");
        let a: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(
            (&a["unit"], &a["response"]),
            (&"number".into(), &"mbs of the load".into())
        );
        assert_eq!(a["runs"].as_array().unwrap().len(), runs);
        let effects = a["effects"].as_array().unwrap();
        let log = effects.iter().find(|e| e["factors"] == "log").unwrap();
        assert!((log["effect"].as_f64().unwrap() - 2.0).abs() < 1e-6, "{a}");
    };
    effect_of_log(4);
    let (code, _, err) = analyse(&["--response", "load:iops"]);
    assert!(
        code == 1 && err.contains("has no iops of the load; known are load:mbs"),
        "{err}"
    );
    // Response that is a row of a comparison, and one that is misspelled.
    let (code, out, err) = analyse(&["--response", "write 4.2 mean", "--metric", "write:rate"]);
    assert!(
        code == 0 && out.contains("mbs: WRITE 4.2 mean"),
        "{out}{err}"
    );
    let (code, _, err) = analyse(&["--response", "WRIET 4.2 mean"]);
    assert!(
        code == 1 && err.contains("did you mean \"write 4.2 mean\"?"),
        "{err}"
    );
    let (code, _, err) = ask(&place, &["plan", "mbs", "--add-foldover"]);
    assert!(
        code == 1 && err.contains("has no combination that `mbs` has not; fix:"),
        "{err}"
    );
    let (code, _, err) = ask(&place, &["plan", "mbs", "--add-foldover=sync"]);
    assert!(
        code == 1 && err.contains("`mbs` has no factor sync; fix: name log, threads, or all"),
        "{err}"
    );
    let (code, out, err) = ask(&place, &["plan", "mbs", "--add-replicates", "1"]);
    assert!(
        code == 0 && out.contains("8 runs: 4 combinations, 2 of each"),
        "{out}{err}"
    );
    assert!(err.contains("runs 5 to 8 are new"), "{err}");
    let (_, out, _) = ask(&place, &["list"]);
    assert_eq!(out, "mbs: 4 of 8 runs recorded\n");
    let (code, _, err) = run(&place, &file, &url);
    assert!(
        code == 0 && err.contains("all 8 runs are recorded"),
        "{err}"
    );
    effect_of_log(8);
    let (code, out, _) = analyse(&["--metric", "write:mean"]);
    assert!(
        code == 0 && out.contains("between blocks of runs: "),
        "{out}"
    );
}

/// Campaign of a command: rounds until the intervals are narrow, then the table, and the same figures in every format.
#[test]
fn a_campaign_repeats_its_command_until_the_interval_is_narrow() {
    let place = Place::new("campaign");
    let dir = place.0.display().to_string();
    let file = place.0.join("four.toml");
    // Scatter from the number of the run, which looks random.
    let text = format!(
        r#"name = "four"
        replicates = 2
        [run]
        command = "n=$(echo $NFSCOPE_RUN | md5sum | tr -dc 1-9 | cut -c 1-2); v=$(cat {dir}/version); echo mbs=$((1000 * {{processes}} + 3 * $n + 300 * (v == 41)))"
        numbers.mbs = "mbs={{}}"
        [[factor]]
        name = "version"
        levels = ["40", "41"]
        set = "echo {{level}} >{dir}/version"
        verify = "grep -qx {{level}} {dir}/version"
        [[factor]]
        name = "processes"
        levels = ["1", "2", "5"]
        [table]
        columns = "processes"
        responses = ["load:mbs"]
        [until]
        ci = "20%"
        replicates = 60
        "#
    );
    fs::write(&file, &text).unwrap();
    let words = |word: &'static str| [word, file.to_str().unwrap()].map(str::to_owned);
    let call = |word| {
        let words = words(word);
        ask(&place, &words.each_ref().map(String::as_str))
    };
    let (code, _, err) = call("check");
    assert!(
        code == 0 && err.contains("every level can be set; 12 runs take about"),
        "{err}"
    );
    let (code, out, err) = call("run");
    assert_eq!(code, 0, "{out}{err}");
    // Smallest number of rounds for an interval: 13.
    let rounds: usize = (1..=60)
        .find(|n| out.contains(&format!("by processes, {n} rounds")))
        .unwrap();
    assert!((13..60).contains(&rounds), "{out}");
    for part in ["processes=5", "GEO MEAN", "version=41 *", "95 % CI"] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let table = [
        "table",
        "four",
        "--response",
        "load:mbs",
        "--columns",
        "processes",
    ];
    let (code, json, err) = ask(&place, &[&table[..], &["--json"]].concat());
    assert_eq!(code, 0, "{err}");
    let t: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rows = t["responses"][0]["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &t["comparisons"]), (2, &1.into()));
    let (low, high) = (&rows[1]["interval"][0], &rows[1]["interval"][1]);
    // Expected ratio: 300 more at 1000, 2000 and 5000 each, with a mean scatter of 165.
    let truth =
        (1.0 / 3.0) * ((1465f64 / 1165.0).ln() + (2465f64 / 2165.0).ln() + (5465f64 / 5165.0).ln());
    assert!(
        low.as_f64().unwrap() < truth.exp() && truth.exp() < high.as_f64().unwrap(),
        "{rows:?}"
    );
    let (_, csv, _) = ask(&place, &[&table[..], &["--csv"]].concat());
    assert_eq!(csv.lines().count(), 7, "{csv}");
    let (_, markdown, _) = ask(&place, &[&table[..], &["--markdown"]].concat());
    assert!(markdown.contains("| version=41 * |"), "{markdown}");
    // Analysis of a factor with three levels: each of them has a row.
    let (code, out, err) = ask(&place, &["analyse", "four", "--response", "load:mbs"]);
    assert!(
        code == 0 && out.contains("processes *") && out.contains("processes=5 *"),
        "{out}{err}"
    );
    // Column that is no factor.
    let wrong = [
        "table",
        "four",
        "--response",
        "load:mbs",
        "--columns",
        "nconnect",
    ];
    let (code, _, err) = ask(&place, &wrong);
    assert!(
        code == 1 && err.contains("has no factor nconnect; fix: name version, processes"),
        "{err}"
    );
    // Command that prints nothing: no run.
    fs::write(
        &file,
        text.replace("echo mbs=", "echo sbm=")
            .replace("\"four\"", "\"none\""),
    )
    .unwrap();
    let (code, _, err) = call("run");
    assert!(
        code == 1 && err.contains("numbers: mbs: the load printed no `mbs={}`"),
        "{err}"
    );
    let (_, out, _) = ask(&place, &["list"]);
    assert!(out.contains("none: 0 of 12 runs recorded"), "{out}");
}
