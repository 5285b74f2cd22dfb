//! Parser of plan files: valid files, and the errors of invalid ones.

use super::written::parse;
use super::*;
use nfscope_stats::experiment::Levels;
use std::fs;

const GOOD: &str = r#"
    name = "slog"
    replicates = 3
    seed = 7
    [run]
    load = "sleep 1000"
    warmup = "5s"
    record = "10m"
    [[factor]]
    name = "log"
    low = { level = "disk", set = "true" }
    high = { level = "slog", verify = "true" }
"#;

/// Quoted name of 99 characters. The suffix of its baselines makes 101, and 100 is the limit.
const LONG: &str = "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"";

fn recorded_of(file: &PlanFile) -> &Recorded {
    match &file.run.measure {
        Measure::Record(run) => run,
        other => panic!("{other:?}"),
    }
}

fn wrong(text: &str) -> String {
    format!("{:#}", parse(text).unwrap_err())
}

#[test]
fn a_plan_file_is_a_plan_with_commands() {
    let file = parse(GOOD).unwrap();
    assert_eq!((file.plan.replicates, file.plan.seed), (3, 7));
    assert_eq!(file.plan.runs().unwrap().len(), 6);
    assert_eq!(file.levels[0][0].set.as_deref(), Some("true"));
    assert_eq!(file.levels[0][1].set, None);
    assert_eq!(recorded_of(&file).length, Duration::from_secs(600));
    assert_eq!(recorded_of(&file).interval, Duration::from_secs(10));
}

#[test]
fn what_is_wrong_is_told() {
    for (from, to, why) in [
        ("seed = 7", "sed = 7", "unknown field `sed`"),
        ("replicates = 3", "replicates = 0", "give 1 to 100"),
        ("\"slog\"", "\"a/b\"", "name:"),
        ("\"10m\"", "\"10 apples\"", "record:"),
        ("seed = 7", "fraction = \"1/3\"", "fraction:"),
        ("seed = 7", "generators = [\"x\"]", "generators:"),
        ("level = \"slog\"", "level = \"disk\"", "factor log:"),
        ("name = \"log\"", "", "missing field `name`"),
        (
            "\"10m\"",
            "\"99s\"",
            "record: 99s has fewer than 10 windows of 10s, and its variation would not be known; fix: record = \"100s\"",
        ),
        (
            "\"10m\"",
            "\"10m\"\ninterval = \"2m\"",
            "fix: record = \"20m\"",
        ),
        ("\"slog\"", LONG, "-6`, but a name has 1 to 100 letters"),
        (
            "\"log\"",
            "\"lo=g\"",
            "factor lo=g: its name is empty or has a `=`",
        ),
        (
            "\"log\"",
            r#""l\u009bog""#,
            r#"factor "l\u{9b}og": control"#,
        ),
        ("\"disk\"", r#""\u0000""#, r#"factor "\0": control"#),
        (
            "\"disk\"",
            r#""a\u202eb""#,
            r#"factor "a\u{202e}b": control"#,
        ),
        ("\"true\"", r#""a\u0000b""#, "has the character U+0000"),
        ("sleep 1000", r"\u0000", "has the character U+0000"),
        (
            "\"10m\"",
            "\"10m\"\nnumbers.mbs = 'bw'",
            "numbers: mbs: give a text with {} in place of the number",
        ),
        (
            "load = \"sleep 1000\"",
            "numbers.mbs = 'bw={}'",
            "numbers: there is no load",
        ),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        assert!(wrong(&text).contains(why), "{to}: {}", wrong(&text));
    }
}

#[test]
fn factors_have_names_of_their_own() {
    let second = GOOD.split_once("[[factor]]").unwrap().1;
    let text = format!("{GOOD}\n[[factor]]\n{second}");
    let why = "factor log: two factors have this name; fix:";
    assert!(wrong(&text).contains(why), "{}", wrong(&text));
}

#[test]
fn as_few_windows_and_as_long_a_name_as_can_be() {
    let text = GOOD
        .replace("10m", "100s")
        .replacen("\"slog\"", &LONG.replacen('x', "", 1), 1);
    let file = parse(&text).unwrap();
    assert_eq!(recorded_of(&file).length, Duration::from_secs(100));
}

/// Plan file of the documentation.
const CAMPAIGN: &str = r#"
    name = "four"
    replicates = 8
    [mount]
    source = "10.9.0.1:/"
    v3_source = "10.9.0.1:/run/exp"
    options = "vers={version},nconnect={nconnect}"
    [run]
    workload = "{load}"
    threads = "{processes}"
    runtime = "2s"
    [[factor]]
    name = "version"
    levels = ["3", "4.0", "4.1", "4.2"]
    [[factor]]
    name = "nconnect"
    levels = ["1", "4"]
    [[factor]]
    name = "load"
    levels = ["reads", "open-4", "postmark"]
    [[factor]]
    name = "processes"
    levels = ["10", "20", "50"]
    set = "echo {level} ${level} {version} >/tmp/level"
    [table]
    columns = "processes"
    responses = ["load:operations_per_second"]
    [until]
    ci = "5%"
    replicates = 40
"#;

#[test]
fn levels_of_any_number_are_put_where_they_are_named() {
    let file = parse(CAMPAIGN).unwrap();
    assert_eq!(file.plan.counts(), [4, 2, 3, 3]);
    assert_eq!(file.plan.runs().unwrap().len(), 8 * 72);
    let levels = Levels::default().with(0, 2).with(3, 1);
    let run = experiment::Run { block: 0, levels };
    let mount = file.mount.as_ref().unwrap();
    assert_eq!(
        file.filled(&mount.options, &run, None),
        "vers=4.1,nconnect=1"
    );
    let (what, level) = file.levels_of(&run).last().unwrap();
    assert_eq!(what, "processes=20");
    let set = file.filled(level.set.as_ref().unwrap(), &run, None);
    assert_eq!(set, "echo 20 ${level} 4.1 >/tmp/level");
    let at = file.filled("ls {mount} {x}", &run, Some(Path::new("/m")));
    assert_eq!(at, "ls /m {x}");
    assert_eq!(
        file.until,
        Some(Until {
            ci: 0.05,
            rounds: 40,
            time: Duration::MAX,
        })
    );
}

#[test]
fn what_is_wrong_with_a_campaign_is_told() {
    for (from, to, why) in [
        (
            "vers={version},",
            "",
            "mount: options have no version; fix:",
        ),
        ("\"load\"", "\"level\"", "stands for something else"),
        (
            "columns = \"processes\"",
            "columns = \"x\"",
            "table: columns: `four` has no factor x",
        ),
        (
            "replicates = 40",
            "replicates = 12",
            "give 13 to 100, as the most rounds",
        ),
        (
            "runtime = \"2s\"",
            "operations = 9",
            "[run] operations is for record",
        ),
        (
            "runtime = \"2s\"",
            "record = \"10m\"",
            "[run] measures one thing; fix:",
        ),
        (
            "workload = \"{load}\"",
            "command = 'true'",
            "[run] threads is for workload",
        ),
        (
            "\"1\", \"4\"",
            "\"1\"",
            "factor nconnect: give 2 to 64 levels",
        ),
        (
            "\"1\", \"4\"",
            "\"1\", \"1\"",
            "a level is empty or there twice",
        ),
        (
            "replicates = 8",
            "replicates = 8\nfraction = \"1/2\"",
            "are for factors with two",
        ),
        (
            "replicates = 8",
            "replicates = 8\ncentre_points = 2",
            "are for factors with two",
        ),
    ] {
        let text = CAMPAIGN.replacen(from, to, 1);
        assert_ne!(text, CAMPAIGN, "{from}");
        assert!(wrong(&text).contains(why), "{to}: {}", wrong(&text));
    }
    let without = CAMPAIGN.split_once("[mount]").unwrap().0.to_owned()
        + "[run]\nworkload = 'reads'\n[[factor]]\nname = 'a'\nlevels = ['1', '2']";
    assert!(wrong(&without).contains("there is no mount for it; fix:"));
}

/// Check of responses: an unknown number of the load is refused before the first run.
#[test]
fn numbers_that_no_run_has_are_refused() {
    let of = |part: &str, response: &str, numbers: &str| {
        let text = GOOD.replacen("[[factor]]", &format!("{numbers}\n[[factor]]"), 1);
        let text = format!("{text}\n[{part}]\nresponses = ['{response}']\n");
        parse(&text).map_err(|e| format!("{e:#}"))
    };
    let numbers = "numbers.mbs = 'bw={}'";
    for part in ["effects", "table"] {
        assert!(of(part, "load:mbs", numbers).is_ok());
        assert!(of(part, "write:mean", "").is_ok());
        let why = of(part, "load:mb", numbers).unwrap_err();
        let fix = "fix: name load:mbs, or add it to [run.numbers]";
        let expected = format!("{part}: responses: no run has the number `mb`; {fix}");
        assert!(why.contains(&expected), "{why}");
        let why = of(part, "load:mb", "").unwrap_err();
        assert!(why.contains("fix: add it to [run.numbers]"), "{why}");
    }
    // Workloads have numbers of their own, and each fio job has some, too.
    let of = |response: &str| {
        let text = format!("{CAMPAIGN}\n[effects]\nresponses = ['{response}']\nlinear = true\n");
        parse(&text).map_err(|e| format!("{e:#}"))
    };
    for known in ["load:rpcs", "load:mib_per_second", "load:write.p99_seconds"] {
        assert!(of(known).unwrap().effects.unwrap().linear, "{known}");
    }
    let why = of("load:mbs").unwrap_err();
    assert!(
        why.contains("fix: name load:client_cpu_seconds, load:"),
        "{why}"
    );
}

/// Centre points have commands of their own, or the commands of all levels with the middle value.
#[test]
fn the_centre_is_set_as_levels_are() {
    let text = GOOD.replace("replicates = 3", "centre_points = 2\nreplicates = 3");
    assert!(wrong(&text).contains("factor log: centre_points need two levels that are numbers"));
    let (head, _) = text.split_once("[[factor]]").unwrap();
    let factor = |more: &str| format!("{head}[[factor]]\nname = 'threads'\n{more}");
    let file = parse(&factor("levels = ['8', '16']\nset = 'echo {level}'")).unwrap();
    assert_eq!(file.levels[0][2].set.as_deref(), Some("echo 12"));
    assert_eq!(file.plan.runs().unwrap().len(), 12);
    let two = "low = { level = '8k' }\nhigh = { level = '16k' }\n";
    assert!(wrong(&factor(two)).contains("give centre.level = \"12k\""));
    let file = parse(&factor(&format!(
        "{two}centre = {{ level = '12k', set = 'true' }}"
    )))
    .unwrap();
    let centre = experiment::Run {
        block: 0,
        levels: Levels::centre(1),
    };
    assert_eq!(file.plan.levels(centre), "threads=12k");
    let (_, level) = file.levels_of(&centre).next().unwrap();
    assert_eq!(level.set.as_deref(), Some("true"));
}

/// Recordings with `until_ci` need enough windows for a confidence interval.
#[test]
fn until_ci_is_of_each_run() {
    let text = GOOD.replace(
        "\"10m\"",
        "\"10m\"\nuntil_ci = \"5%\"\nmetric = \"write:mean\"",
    );
    let file = parse(&text).unwrap();
    assert_eq!(recorded_of(&file).until_ci, Some(0.05));
    let short = text.replace("\"10m\"", "\"100s\"");
    assert!(
        wrong(&short).contains("fewer than 53 windows"),
        "{}",
        wrong(&short)
    );
    let other = text.replace("write:mean", "wriet");
    assert!(wrong(&other).contains("metric:"), "{}", wrong(&other));
}

/// Plan files of the lab's campaigns are valid.
#[test]
fn the_campaigns_of_the_lab_are_plans() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/campaigns");
    let mut rounds = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let file = read(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        assert_eq!(file.plan.name, name);
        rounds.push(file.plan.runs().unwrap().len());
    }
    assert!(
        rounds.len() >= 7 && rounds.iter().all(|n| *n >= 16),
        "{rounds:?}"
    );
}
