//! What a host lacks is reported with the reason and the fix; what can still be measured is measured exactly.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
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
    // What it has is not asked for.
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
            // Of file systems and mounts that this machine does not have.
            "unused" => assert!(
                ["xfs", "btrfs", "zfs", "client", "recall"]
                    .contains(&p["probe"].as_str().unwrap_or_default()),
                "{p}"
            ),
            other => panic!("{name} is {other}: {reason}"),
        }
    }
    // A return probe would lose most waits: better none.
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

/// A page whose lines are wrapped, as one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn programs(report: &Value) -> Vec<Value> {
    report["probes"].as_array().cloned().unwrap_or_default()
}

fn program() -> Result<PathBuf> {
    lab::nfscope_program()
}

/// Runs nfscope in the machine, by way of another program if one is given.
fn nfscope(server: &Server, by: &str, arguments: &str) -> Result<Output> {
    outcome(
        server,
        &format!("{by} {} {arguments}", program()?.display()),
    )
}

/// What became of a command that may fail.
fn outcome(server: &Server, script: &str) -> Result<Output> {
    server.spawn(script)?.wait(Duration::from_secs(60))
}

/// A mount whose server has gone, under the web configuration and in the table of mounts. Nobody else may have the server mounted.
pub fn a_dead_mount_stops_neither_scrapes_nor_signals(server: &Server) -> Result<()> {
    server.sh("set -e
         mkdir -p /run/dead
         mount -t nfs -o vers=3,hard,nolock,noac 127.0.0.1:/run/exp /run/dead
         printf '{}' >/run/dead/web.yml")?;
    let mut agent = server.agent(&["--web.config.file", "/run/dead/web.yml"])?;
    server.nfsd_stop()?;
    server.sh("echo 3 >/proc/sys/vm/drop_caches")?;
    agent.signal(HANGUP)?;
    // The reader has three seconds, and whoever scrapes waits for nothing.
    let says = "its file system does not answer";
    for _ in 0..60 {
        ensure!(
            agent.get("/-/healthy").is_ok(),
            "no answer: {}",
            agent.log()
        );
        ensure!(agent.get("/metrics")?.contains("nfscope_"), "no metrics");
        if agent.log().contains(says) {
            break;
        }
        lab::pass(Duration::from_millis(500));
    }
    ensure!(agent.log().contains(says), "{}", agent.log());
    agent.signal(TERMINATE)?;
    let ended = agent.wait(Duration::from_secs(60))?;
    ensure!(ended.status == 0, "{ended:?}");
    server.nfsd_start()?;
    server.sh("umount -l /run/dead")?;
    Ok(())
}

/// signal(7)
const HANGUP: i32 = 1;
const TERMINATE: i32 = 15;
