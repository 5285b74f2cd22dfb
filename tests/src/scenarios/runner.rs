//! The machine that runs scenarios, one after the other.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nfscope_model::Window;
use serde_json::Value;

use super::figures::Figures;
use super::scenario::Scenario;
use super::window::Moment;
use crate::CountedCpus;
use crate::agent::Agent;
use crate::begun;
use crate::control::Running;
use crate::kernel::Kernel;
use crate::load::Load;
use crate::server::Server;

/// Longest time from the loads' beginning to the window's: afterwards only caches are cold that are meant to be. A short window is
/// preceded by its own length.
const SETTLING: Duration = Duration::from_secs(1);
/// Time from the loads' beginning to the window's beside a fault: its programs are read in meanwhile, too, and may keep the CPU from
/// the clients that start.
const SETTLING_BESIDE_FAULT: Duration = Duration::from_secs(2);
/// Time limit of loads, longer than any window: loads are killed at its end.
const LONGER: Duration = Duration::from_secs(3600);

/// A server with an agent, whose disks, threads and CPUs become those of each scenario.
pub struct Runner {
    server: Server,
    agent: Agent,
}

/// Measurements of an agent in a scenario.
pub struct Seen {
    /// Window between two snapshots while the load ran.
    pub window: Window,
    /// Figures of the window.
    pub figures: Figures,
    /// Output of `nfscope diagnose` on an equal time after the window, if the page was wanted.
    pub page: Option<String>,
}

/// Course of a finding.
pub struct Followed {
    /// End of the finding's cause, by the machine's clock in seconds.
    pub fault_ended: f64,
    /// Findings of `/findings` after the finding has cleared.
    pub findings: Value,
}

impl Runner {
    /// Boots the machine, with one CPU that executes an instruction in a nanosecond.
    pub fn boot(kernel: Kernel) -> Result<Runner> {
        Runner::boot_with(kernel, CountedCpus::One)
    }

    /// Boots the machine with these CPUs.
    pub fn boot_with(kernel: Kernel, cpus: CountedCpus) -> Result<Runner> {
        let server = Server::boot(kernel)
            .export("tmpfs")
            .memory("3G")
            .icount_on(cpus)
            .clients(2)
            .start()?;
        // The probe of mounts is needed by some scenarios.
        let agent = server.agent_start(&["--client"])?;
        // Text patching takes long on one emulated CPU.
        agent
            .wait_until_healthy(Duration::from_secs(600))
            .inspect_err(|_| server.keep_logs())?;
        Ok(Runner { server, agent })
    }

    /// Ends the agent well.
    pub fn close(self) -> Result<()> {
        self.agent.stop().map(drop)
    }

    /// Plays one scenario, and undoes its fault. With `page` it also runs `nfscope diagnose`, while the load goes on.
    pub fn play(&self, scenario: &Scenario, page: bool) -> Result<Seen> {
        self.set(scenario).context("setting the server up")?;
        self.sh(&scenario.fault.begin).context("[fault] begin")?;
        let seen = self.watch(scenario, page);
        let undone = self.sh(&scenario.fault.end).context("[fault] end");
        if scenario.load.iter().any(|load| over_mounts(load)) {
            for client in self.server.clients() {
                client.unmount_all()?;
            }
        }
        let seen = seen?;
        undone?;
        Ok(seen)
    }

    /// Lets the fault go on until the agent finds this kind, ends it while the load goes on, and waits until the finding clears.
    pub fn follow(&self, scenario: &Scenario, kind: &str) -> Result<Followed> {
        self.set(scenario).context("setting the server up")?;
        self.sh(&scenario.fault.begin).context("[fault] begin")?;
        let loads = self.start_all(scenario)?;
        self.until(|found| {
            found["active"]
                .as_array()
                .is_some_and(|all| names(all, kind))
        })
        .with_context(|| format!("{kind} begins"))?;
        self.sh(&scenario.fault.end).context("[fault] end")?;
        let clock = self.server.sh("date +%s.%N")?.stdout;
        let fault_ended = clock.trim().parse().context("the machine's clock")?;
        let over = |found: &Value| {
            found["history"]
                .as_array()
                .is_some_and(|all| names(all, kind))
        };
        let findings = self.until(over).with_context(|| format!("{kind} ends"))?;
        end_all(loads, scenario)?;
        Ok(Followed {
            fault_ended,
            findings,
        })
    }

    /// Returns the agent's findings, as soon as `is_so` holds for them.
    fn until(&self, is_so: impl Fn(&Value) -> bool) -> Result<Value> {
        // Sixty seconds of the machine are six windows.
        for _ in 0..30 {
            let found: Value = serde_json::from_str(&self.agent.get("/findings")?)?;
            if is_so(&found) {
                return Ok(found);
            }
            self.sleep(Duration::from_secs(2))?;
        }
        anyhow::bail!("the agent finds {}", self.agent.get("/findings")?)
    }

    fn set(&self, scenario: &Scenario) -> Result<()> {
        let place = &scenario.server;
        let mut script = String::from("set -e\n");
        if place.fs == "zfs" {
            script += &format!(
                "grep -q '^zfs ' /proc/modules || zfs_load {}\n",
                self.server.kernel().zfs()?.display()
            );
        }
        let log = place.log_ms.map_or(String::new(), |ms| ms.to_string());
        script += &format!(
            "disk_depth={} log_mib={} scene_up {} {} {log}\n",
            place.disk_depth, place.log_mib, place.fs, place.disk_ms
        );
        script += &format!("nfsd_up {}\ngrace_over\n", place.threads);
        script += &place.prepare;
        self.server.sh(&script)?;
        let of: &[&str] = match place.fs.as_str() {
            "ext4" | "ext4-fast" => &["jbd2"],
            "xfs" => &["xfs"],
            "btrfs" => &["btrfs"],
            "zfs" => &["zfs"],
            _ => &[],
        };
        self.wait_for_probes(of)
    }

    /// Waits until probes of a module that has just been loaded are attached, within a second or two.
    fn wait_for_probes(&self, of: &[&str]) -> Result<()> {
        let started = Instant::now();
        let attaching = || -> Result<bool> {
            let probes = self.agent.snapshot()?.probes;
            let mut of_them = probes.iter().filter(|p| of.contains(&p.probe.as_str()));
            Ok(of_them.any(|p| p.state.may_come()))
        };
        while !of.is_empty() && attaching()? {
            ensure!(
                started.elapsed() < Duration::from_secs(1200),
                "the probes {of:?} still wait, and their modules are loaded"
            );
            thread::sleep(Duration::from_millis(500));
        }
        Ok(())
    }

    fn watch(&self, scenario: &Scenario, page: bool) -> Result<Seen> {
        let fault = &scenario.fault;
        let mut beside = match fault.during.as_str() {
            "" => None,
            script => Some(self.spawn(script)?),
        };
        let loads = self.start_all(scenario)?;
        let length = Duration::try_from_secs_f64(scenario.seconds)?;
        let settling = match beside {
            None => SETTLING.min(length),
            Some(_) => SETTLING_BESIDE_FAULT,
        };
        if fault.is_over {
            self.sleep(settling)?;
            if let Some(beside) = beside.take() {
                beside.kill()?;
            }
            self.sh(&fault.end).context("[fault] end")?;
        }
        let [before, after] = self.window(loads.len(), settling, length)?;
        let page = page.then(|| self.page(length)).transpose()?;
        end_all(loads, scenario)?;
        if let Some(beside) = beside {
            ensure!(
                !beside.has_ended(),
                "[fault] during ended before the window"
            );
            beside.kill()?;
        }
        let window = after.seen.since(&before.seen);
        let figures = Figures::of(&window, &before.cpus, &after.cpus);
        Ok(Seen {
            window,
            figures,
            page,
        })
    }

    fn start_all(&self, scenario: &Scenario) -> Result<Vec<Running>> {
        let loads = scenario.load.iter();
        self.server.sh("rm -f /run/begun-*")?;
        let numbered = loads.enumerate();
        numbered
            .map(|(n, load)| self.start(scenario, n, load).with_context(|| load.clone()))
            .collect()
    }

    fn start(&self, scenario: &Scenario, n: usize, load: &str) -> Result<Running> {
        // The clients have priority over the agent and over any fault.
        let priority = if scenario.clients_first {
            "chrt -f 60 "
        } else {
            ""
        };
        let mut line = format!(
            "export {}={}\nexec {priority}$LAB {load} --seconds {}",
            begun::BEGUN,
            begun_file(n),
            LONGER.as_secs()
        );
        if !over_mounts(load) {
            return self.spawn(&line);
        }
        for client in self.server.clients() {
            for mount in client.mounts_for(&Load::mixed())? {
                line += &format!(" {mount}");
            }
        }
        self.spawn(&line)
    }

    /// Takes a window by the machine's clock, which does not depend on the host's speed.
    fn window(&self, loads: usize, settling: Duration, length: Duration) -> Result<[Moment; 2]> {
        let begun: String = (0..loads)
            .map(|n| format!(" --begun {}", begun_file(n)))
            .collect();
        let output = self.server.lab(&format!(
            "window --port {}{begun} --settling {} --seconds {}",
            self.agent.port(),
            settling.as_secs_f64(),
            length.as_secs_f64()
        ))?;
        serde_json::from_str(&output.stdout).context("what `lab window` printed")
    }

    fn page(&self, length: Duration) -> Result<String> {
        let program = self.server.nfscope_path()?;
        let line = format!(
            "{} diagnose --for {}ms --url http://127.0.0.1:{} || [ $? = 2 ]",
            program.display(),
            length.as_millis(),
            self.agent.port()
        );
        let patience = Duration::from_secs(600);
        Ok(self.server.sh_within(patience, &line)?.stdout)
    }

    fn sleep(&self, long: Duration) -> Result<()> {
        self.server
            .sh(&format!("sleep {}", long.as_secs_f64()))
            .map(drop)
    }

    fn sh(&self, script: &str) -> Result<()> {
        if !script.is_empty() {
            self.server.sh(&self.with_lab(script))?;
        }
        Ok(())
    }

    fn spawn(&self, script: &str) -> Result<Running> {
        self.server.spawn(&self.with_lab(script))
    }

    fn with_lab(&self, script: &str) -> String {
        format!("LAB={}\n{script}", self.server.lab_path().display())
    }
}

/// Kills the loads. A load that has ended by itself has failed: none ends before it is killed.
fn end_all(loads: Vec<Running>, scenario: &Scenario) -> Result<()> {
    for (load, what) in loads.into_iter().zip(&scenario.load) {
        let early = load.has_ended();
        let output = load.kill()?;
        ensure!(
            !early,
            "`lab {what}` ended early: {}{}",
            output.stderr,
            output.stdout
        );
    }
    Ok(())
}

/// File that the n-th load makes when it begins.
fn begun_file(n: usize) -> String {
    format!("/run/begun-{n}")
}

fn names(episodes: &[Value], kind: &str) -> bool {
    episodes.iter().any(|e| e["finding"]["kind"] == kind)
}

fn over_mounts(load: &str) -> bool {
    load.starts_with("load ")
}
