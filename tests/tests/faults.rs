//! Abilities that a host lacks are reported with the reason and the fix; all others are measured exactly.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::{Agent, Output, Server};
use serde_json::Value;

pub fn without_privileges_it_names_the_capabilities(server: &Server) -> Result<()> {
    let nobody = "setpriv --reuid nobody --regid nogroup --clear-groups";
    for command in ["check", "agent --web.listen-address 127.0.0.1:9999"] {
        let refused = nfscope(server, nobody, command)?;
        assert_eq!(refused.status, 1, "{command}: {refused:?}");
        let said = one_line(&(refused.stdout + &refused.stderr));
        for part in [
            "CAP_BPF",
            "CAP_PERFMON",
            "CAP_SYS_ADMIN",
            "run as root",
            "setcap cap_bpf,cap_perfmon,cap_sys_admin+ep",
            "AmbientCapabilities=",
        ] {
            assert!(
                said.contains(part),
                "{command} does not say {part}:\n{said}"
            );
        }
    }
    // The message does not ask for capabilities that the process has.
    let almost = "setpriv --reuid nobody --regid nogroup --clear-groups --inh-caps +bpf,+sys_resource --ambient-caps +bpf,+sys_resource";
    let refused = nfscope(server, almost, "agent --web.listen-address 127.0.0.1:9999")?;
    assert!(
        refused
            .stderr
            .contains("missing CAP_PERFMON and CAP_SYS_ADMIN"),
        "{refused:?}"
    );
    Ok(())
}

pub fn without_btf_it_says_so(server: &Server) -> Result<()> {
    let hidden = "mkdir -p /run/nothing; mount --bind /run/nothing /sys/kernel/btf; exec";
    let without = |command: &str| -> Result<Output> {
        let script = format!("{hidden} {} {command}", program()?.display());
        outcome(server, &format!("unshare -m bash -c '{script}'"))
    };
    let page = without("check")?;
    assert_eq!(page.status, 1, "{page:?}");
    for part in [
        "no BTF (/sys/kernel/btf/vmlinux)",
        "CONFIG_DEBUG_INFO_BTF=y",
        "NFS operations cannot be timed",
    ] {
        assert!(
            one_line(&page.stdout).contains(part),
            "check does not say {part}:\n{}",
            page.stdout
        );
    }
    let json = without("check --json")?;
    assert_eq!(json.status, 1, "{json:?}");
    let report: Value = serde_json::from_str(&json.stdout)?;
    assert_eq!(report["verdict"], "none");
    assert!(
        programs(&report).iter().all(|p| p["state"] == "unsupported"
            && p["reason"].as_str().is_some_and(|r| r.contains("BTF")))
    );
    Ok(())
}

pub fn an_address_in_use_is_named(server: &Server, agent: &Agent) -> Result<()> {
    let address = format!("0.0.0.0:{}", agent.port());
    let second = nfscope(server, "", &format!("agent --web.listen-address {address}"))?;
    assert_eq!(second.status, 1, "{second:?}");
    assert!(second.stderr.contains(&address), "{second:?}");
    assert!(second.stderr.contains("in use"), "{second:?}");
    agent.wait_until_healthy(Duration::from_secs(60))
}

pub fn without_module_btf_it_falls_back(server: &Server) -> Result<()> {
    let json = nfscope(server, "", "check --json")?;
    println!("{}", json.stdout);
    assert_eq!(json.status, 3, "{json:?}");
    let report: Value = serde_json::from_str(&json.stdout)?;
    assert_eq!(report["verdict"], "degraded");
    let facts = report["facts"].as_array().cloned().unwrap_or_default();
    for module in ["module sunrpc", "module nfsd", "module jbd2"] {
        let fact = facts.iter().find(|f| f["name"] == module);
        let fact = fact.unwrap_or_else(|| panic!("no fact about {module}: {facts:?}"));
        assert_eq!(fact["value"], "loaded, without BTF");
        assert!(
            fact["fix"]
                .as_str()
                .is_some_and(|f| f.contains("CONFIG_DEBUG_INFO_BTF_MODULES"))
        );
    }
    for p in programs(&report) {
        let (name, state) = (&p["program"], p["state"].as_str().unwrap_or_default());
        let reason = p["reason"].as_str().unwrap_or_default();
        match state {
            "attached" => {}
            "fallback" => assert!(reason.contains("no BTF of module"), "{name}: {reason}"),
            "unsupported" => {
                assert!(!reason.is_empty(), "{name} is absent without a reason");
                assert_ne!(p["required"], true, "{name}: {reason}");
            }
            // Probes of file systems and mounts that this machine does not have.
            "unused" => assert!(
                ["xfs", "btrfs", "zfs", "client", "recall"]
                    .contains(&p["probe"].as_str().unwrap_or_default()),
                "{p}"
            ),
            other => panic!("{name} is {other}: {reason}"),
        }
    }
    // A return probe would lose most waits: the agent uses none.
    let wait = programs(&report)
        .into_iter()
        .find(|p| p["program"] == "jbd2_wait_end");
    let wait = wait.unwrap_or_default();
    assert_eq!(wait["state"], "unsupported", "{wait}");
    assert!(
        wait["reason"].as_str().is_some_and(|r| r.contains("loses")),
        "{wait}"
    );

    let page = nfscope(server, "", "check --all")?;
    assert_eq!(page.status, 3, "{page:?}");
    for part in ["fallback", "unsupported", "why: ", "fix: "] {
        assert!(page.stdout.contains(part), "no {part:?}:\n{}", page.stdout);
    }
    let page = nfscope(server, "", "check")?;
    assert_eq!(page.status, 3, "{page:?}");
    for part in [
        "part operations",
        "; by a fallback",
        "part phases",
        "; without: ",
        "why: ",
        "fix: ",
    ] {
        let said = one_line(&page.stdout);
        assert!(said.contains(part), "no {part:?}:\n{said}");
    }
    let subjects = page.stdout.lines().take_while(|l| !l.is_empty());
    let subjects = subjects.filter(|l| !l.starts_with(' ')).count();
    ensure!(subjects <= 15, "{}", page.stdout);
    Ok(())
}

/// Joins the wrapped lines of a page.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn programs(report: &Value) -> Vec<Value> {
    report["probes"].as_array().cloned().unwrap_or_default()
}

fn program() -> Result<PathBuf> {
    lab::nfscope_program()
}

/// Runs nfscope in the machine, with the words of `by` in front.
fn nfscope(server: &Server, by: &str, arguments: &str) -> Result<Output> {
    outcome(
        server,
        &format!("{by} {} {arguments}", program()?.display()),
    )
}

/// Outcome of a command that may fail.
fn outcome(server: &Server, script: &str) -> Result<Output> {
    server.spawn(script)?.wait(Duration::from_secs(60))
}

/// Mounts that do not answer: NFS whose server has gone, and FUSE without a server. They lie under every path that an agent reads or
/// writes, and in the table of mounts. No client may have the server mounted.
pub fn a_path_that_hangs_stops_neither_scrapes_nor_signals(server: &Server) -> Result<()> {
    server.sh(&format!(
        "set -e
         mkdir -p {DEAD} {FUSE}
         mount -t nfs -o vers=3,hard,nolock,noac 127.0.0.1:/run/exp {DEAD}
         modprobe fuse"
    ))?;
    // The FUSE connection is open, and no process reads from it.
    let fuse = server.spawn(&format!(
        "exec 9<>/dev/fuse; mount -i -t fuse -o fd=9,rootmode=40000,user_id=0,group_id=0 hangs {FUSE}; exec sleep 1000000"
    ))?;
    server.sh(&format!(
        "for n in $(seq 300); do grep -q ' {FUSE} ' /proc/self/mountinfo && exit; sleep 0.1; done; exit 1"
    ))?;
    lab::finally(
        || {
            a_running_agent_outlives_its_paths(server)?;
            no_start_waits_for_a_path(server)
        },
        || {
            fuse.kill()?;
            server.nfsd_start()?;
            server
                .sh(&format!("umount -l {DEAD}; umount -l {FUSE} || true"))
                .map(drop)
        },
    )
}

/// A mount whose server goes away.
const DEAD: &str = "/run/dead";
/// A mount without a server.
const FUSE: &str = "/run/hangs";
const HANGS: &str = "its file system does not answer";

/// Web configuration and names are in a mount that stops answering. The history is elsewhere: an agent with open files there could
/// not end.
fn a_running_agent_outlives_its_paths(server: &Server) -> Result<()> {
    server.sh(&format!(
        "printf '{{}}' >{DEAD}/web.yml; printf '[[client]]\naddress = \"127.0.0.1\"\nname = \"here\"\n' >{DEAD}/names.toml"
    ))?;
    let [web, names] = ["web.yml", "names.toml"].map(|file| format!("{DEAD}/{file}"));
    let mut agent = server.agent(&[
        "--web.config.file",
        &web,
        "--names-file",
        &names,
        "--history",
        "1h",
        "--history-directory",
        DEAD,
    ])?;
    let refused = format!("{DEAD} is in a network file system (NFS)");
    ensure!(agent.log().contains(&refused), "{}", agent.log());
    server.nfsd_stop()?;
    server.sh("echo 3 >/proc/sys/vm/drop_caches")?;
    agent.signal(HANGUP)?;
    says_what_hangs(server, &mut agent)?;
    server.nfsd_start()
}

/// Each path in turn: the agent names the one that does not answer and ends, or goes on without it.
fn no_start_waits_for_a_path(server: &Server) -> Result<()> {
    let tls =
        format!("tls_server_config:\n  cert_file: {FUSE}/cert.pem\n  key_file: /run/key.pem\n");
    server.sh(&format!(
        "cat >/run/tls.yml <<'END'\n{tls}END\ntouch /run/key.pem"
    ))?;
    let hangs = |file: &str| format!("{FUSE}/{file}");
    for (option, path, named) in [
        ("--config", hangs("nfscope.toml"), hangs("nfscope.toml")),
        ("--web.config.file", hangs("web.yml"), hangs("web.yml")),
        (
            "--web.config.file",
            "/run/tls.yml".to_owned(),
            hangs("cert.pem"),
        ),
        ("--names-file", hangs("names.toml"), hangs("names.toml")),
    ] {
        let refused = nfscope(
            server,
            "",
            &format!("agent --web.listen-address 127.0.0.1:9999 {option} {path}"),
        )?;
        println!("{option} {path}: {refused:?}");
        ensure!(refused.status == 1, "{option} {path}: {refused:?}");
        let said = refused.stdout + &refused.stderr;
        for part in [named.as_str(), HANGS, "umount -l"] {
            ensure!(
                said.contains(part),
                "{option} {path} does not say {part}:\n{said}"
            );
        }
        ensure!(!said.contains("backtrace"), "{option} {path}:\n{said}");
    }
    // An agent without its history still measures.
    let mut agent = server.agent(&["--history", "1h", "--history-directory", FUSE])?;
    says_what_hangs(server, &mut agent)?;
    // The admin can end a replay of a recording that cannot be read.
    let replay = format!("agent --web.listen-address 127.0.0.1:9999 --replay {FUSE}/recording");
    let ended = nfscope(server, "timeout -k 30 10", &replay)?;
    ensure!([0, 1, 124].contains(&ended.status), "--replay: {ended:?}");
    Ok(())
}

/// Checks that the agent answers until its log names the path that hangs, and afterwards, and ends on SIGTERM.
fn says_what_hangs(server: &Server, agent: &mut Agent) -> Result<()> {
    // The agent reads a path for three seconds at most, and no scrape waits for it.
    for _ in 0..60 {
        answers(server, agent)?;
        if agent.log().contains(HANGS) {
            break;
        }
        lab::pass(Duration::from_millis(500));
    }
    ensure!(agent.log().contains(HANGS), "{}", agent.log());
    answers(server, agent)?;
    agent.signal(TERMINATE)?;
    let ended = agent.wait(Duration::from_secs(60)).with_context(|| {
        let process = agent.process();
        let waits =
            format!("for t in /proc/$(pidof {process})/task/*; do cat $t/comm $t/stack; done");
        server
            .sh(&waits)
            .map_or_else(|e| e.to_string(), |said| said.stdout)
    })?;
    println!("what hangs was said: {ended:?}");
    ensure!(ended.status == 0, "{ended:?}");
    Ok(())
}

/// Checks that the agent answers: scrapes, the page's history, the recordings, and the control socket.
fn answers(server: &Server, agent: &Agent) -> Result<()> {
    let log = || agent.log();
    ensure!(agent.get("/-/healthy").is_ok(), "no answer: {}", log());
    ensure!(agent.get("/metrics")?.contains("nfscope_"), "no metrics");
    ensure!(agent.get("/findings").is_ok(), "no findings: {}", log());
    let asked = nfscope(
        server,
        "timeout 60",
        &format!("stuck --url http://127.0.0.1:{}", agent.port()),
    )?;
    ensure!(asked.status == 0, "{asked:?}: {}", log());
    Ok(())
}

/// signal(7)
const HANGUP: i32 = 1;
const TERMINATE: i32 = 15;
