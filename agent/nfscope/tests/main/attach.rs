//! Real agent that attaches to this host as root: its memory, what it leaves behind, and that it can attach again.

use crate::fixture::serve::{control_directory, get};
use caps::{CapSet, Capability};
use libbpf_rs::query::ProgInfoIter;
use nfscope_agent_client::control::ask;
use nfscope_api::probe_change::Change;
use nfscope_model::{ProbeState, ProbeStatus};
use rustix::fs::inotify;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

/// Types of the kernel (BTF).
const BTF: &str = "/sys/kernel/btf/vmlinux";
/// Limit for the kernel to end processes and to free programs.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(60);
/// Limit of the resident memory of the agent, in KiB, as documented.
const RESIDENT: u64 = 12 << 10;
/// Limit of the part that is not the text of the program and its libraries, in KiB.
const OWN: u64 = 4 << 10;

/// Agent on a free port; killed when it is dropped.
struct Agent {
    process: Child,
    said: BufReader<ChildStderr>,
    address: SocketAddr,
}

impl Agent {
    /// Starts an agent, and returns once it serves. It may not have attached its probes yet.
    fn start(mut command: Command) -> Agent {
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap());
        let line = line_with(&mut said, "serving http://");
        let address = line.split("http://").nth(1).unwrap();
        let address = address.trim().trim_end_matches("/metrics").parse().unwrap();
        Agent {
            process,
            said,
            address,
        }
    }

    fn attached() -> Agent {
        let mut agent = Agent::start(nfscope());
        line_with(&mut agent.said, "attached ");
        agent
    }

    /// Field of the process's status, in KiB.
    fn memory(&self, field: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix(field)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Peak resident memory without mapped files, in KiB: the program's text is three times as long without optimisation.
    fn own_peak(&self) -> u64 {
        let maps = fs::read_to_string(format!("/proc/{}/smaps", self.process.id())).unwrap();
        let (mut file, mut files) = (false, 0);
        for line in maps.lines() {
            let mut words = line.split_whitespace();
            match words.next() {
                Some("Rss:") if file => files += words.next().unwrap().parse::<u64>().unwrap(),
                // First line of a mapping: it begins with the addresses.
                Some(first) if !first.ends_with(':') => {
                    file = words.nth(4).is_some_and(|path| path.starts_with('/'));
                }
                _ => {}
            }
        }
        self.memory("VmHWM:") - files
    }

    fn probes(&self) -> Vec<ProbeStatus> {
        let answer = get(self.address, "/probes", "Connection: close\r\n");
        let (_, body) = answer.split_once("\r\n\r\n").unwrap();
        let mut answer: serde_json::Value = serde_json::from_str(body).unwrap();
        serde_json::from_value(answer["probes"].take()).unwrap()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn line_with(said: &mut impl BufRead, part: &str) -> String {
    let mut all = String::new();
    for line in said.lines() {
        let line = line.unwrap();
        if line.contains(part) {
            return line;
        }
        all += &(line + "\n");
    }
    panic!("no `{part}` in:\n{all}");
}

fn nfscope() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfscope"));
    command.args(["agent", "--web.listen-address", "127.0.0.1:0"]);
    command.env("RUNTIME_DIRECTORY", control_directory());
    command
}

fn may_attach() -> bool {
    let may = caps::has_cap(None, CapSet::Permitted, Capability::CAP_SYS_ADMIN);
    let may = may.unwrap_or(false);
    if !may {
        println!("SKIPPED: attaching: this process may not load programs");
    }
    may
}

#[test]
fn memory_stays_small_while_probes_attach_and_are_read() {
    if !may_attach() {
        return;
    }
    let agent = Agent::attached();
    for round in 0..4 {
        let (own, peak) = (agent.own_peak(), agent.memory("VmHWM:"));
        assert!(own <= OWN, "round {round}: {own} KiB of {peak}");
        if !cfg!(debug_assertions) {
            assert!(peak <= RESIDENT, "round {round}: {peak} KiB");
        }
        for path in ["/metrics", "/snapshot"] {
            assert!(get(agent.address, path, "Connection: close\r\n").contains("nfscope_"));
        }
        // Pause until the last reading is too old to be repeated.
        std::thread::sleep(Duration::from_millis(300));
        if round == 2 {
            let url = format!("http://{}", agent.address);
            ask(Change::Detach, &["block"], Some(&url), &control_directory()).unwrap();
            ask(Change::Attach, &["block"], Some(&url), &control_directory()).unwrap();
        }
    }
    for child in children(agent.process.id()) {
        let name = fs::read_to_string(format!("/proc/{child}/comm")).unwrap();
        assert_eq!(name.trim(), "nfscope-http");
        assert_ne!(huge_pages(child), Some(true));
    }
    assert_ne!(huge_pages(agent.process.id()), Some(true));
}

/// True if a process may have transparent huge pages. `None` if the kernel does not report it.
fn huge_pages(process: u32) -> Option<bool> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("THP_enabled"))?;
    Some(line.ends_with('1'))
}

#[test]
fn an_agent_that_has_dropped_its_capabilities_attaches_again() {
    if !may_attach() {
        return;
    }
    let mut agent = Agent::start(nfscope());
    // Last line of the start: capabilities are dropped by then.
    line_with(&mut agent.said, "attached ");
    let url = format!("http://{}", agent.address);
    let before = agent.probes();
    let loaded: BTreeSet<_> = before
        .iter()
        .filter(|p| p.state.measures())
        .map(|p| p.probe.clone())
        .collect();
    for word in nfscope_source::words().filter(|w| loaded.contains(*w)) {
        let said = ask(Change::Detach, &[word], Some(&url), &control_directory()).unwrap();
        assert!(said.starts_with(&format!("{word}: detached")), "{said}");
        let detached = |p: &&ProbeStatus| p.probe == word && p.state == ProbeState::Detached;
        assert!(agent.probes().iter().any(|p| detached(&p)));
        ask(Change::Attach, &[word], Some(&url), &control_directory()).unwrap();
    }
    assert_eq!(agent.probes(), before);
}

#[test]
fn the_kernels_types_are_parsed_once_for_each_object() {
    if !may_attach() {
        return;
    }
    // Copy of the types, in a mount namespace of its own: no other process opens it.
    let copy = std::env::temp_dir().join(format!("nfscope-btf-{}", std::process::id()));
    let _removed = Removed(&copy);
    if fs::copy(BTF, &copy).is_err() {
        println!("SKIPPED: counting parses: this kernel has no BTF");
        return;
    }
    let mut command = Command::new("unshare");
    let script = "mount --bind \"$0\" \"$1\" && shift && exec \"$@\"";
    command.args(["--mount", "sh", "-c", script]);
    command.arg(&copy).arg(BTF).arg(nfscope().get_program());
    command.args(nfscope().get_args());
    let events = inotify::init(inotify::CreateFlags::NONBLOCK).unwrap();
    // CLOSE events between two OPEN events: inotify merges equal events that follow each other.
    let both = inotify::WatchFlags::OPEN | inotify::WatchFlags::CLOSE;
    inotify::add_watch(&events, &copy, both).unwrap();
    let mut agent = Agent::start(command);
    line_with(&mut agent.said, "attached ");
    let mut space = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(&events, &mut space);
    let mut opened = 0;
    while let Ok(event) = reader.next() {
        opened += usize::from(event.events().contains(inotify::ReadFlags::OPEN));
    }
    let tried = agent.probes();
    let tried = tried
        .iter()
        .filter(|p| !p.state.may_come() && p.state != ProbeState::Unused);
    let objects: BTreeSet<_> = tried.map(|p| &p.probe).collect();
    println!("opened {opened} times for {objects:?}");
    // Additional reading: the one that looks up the names of types.
    assert!(opened >= 1, "the agent did not read the copy");
    assert!(opened - 1 <= objects.len(), "{opened} for {objects:?}");
}

struct Removed<'a>(&'a Path);

impl Drop for Removed<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.0);
    }
}

fn children(of: u32) -> BTreeSet<u32> {
    let mut out = BTreeSet::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(number) = entry.file_name().to_string_lossy().parse::<u32>() else {
            continue;
        };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        // Fields behind the name in parentheses: the state, and the parent.
        let parent = stat.rsplit(") ").next().and_then(|s| s.split(' ').nth(1));
        if parent == Some(&of.to_string()) {
            out.insert(number);
        }
    }
    out
}

/// IDs of the BPF programs of which a process has descriptors.
fn programs(of: u32) -> BTreeSet<u32> {
    let infos = fs::read_dir(format!("/proc/{of}/fdinfo")).into_iter();
    let texts = infos
        .flatten()
        .flatten()
        .map(|f| fs::read_to_string(f.path()).unwrap_or_default());
    let number = |text: String| {
        let line = text.lines().find_map(|l| l.strip_prefix("prog_id:"))?;
        line.trim().parse().ok()
    };
    texts.filter_map(number).collect()
}

#[test]
fn nothing_is_left_of_an_agent_that_is_killed_at_any_time() {
    if !may_attach() {
        return;
    }
    let mut seen = 0;
    for milliseconds in (0..400).step_by(25).chain([1000]) {
        let mut process = nfscope().stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap());
        // Line before the agent attaches.
        line_with(&mut said, " serves HTTP as ");
        std::thread::sleep(Duration::from_millis(milliseconds));
        if milliseconds == 1000 {
            line_with(&mut said, "attached ");
        }
        let number = process.id();
        let children = children(number);
        let all = children.iter().chain([&number]).copied();
        let programs: BTreeSet<u32> = all.flat_map(programs).collect();
        seen += programs.len();
        // SIGKILL: the agent cannot clean up.
        process.kill().unwrap();
        process.wait().unwrap();
        let killed = Instant::now();
        loop {
            let alive: Vec<_> = children.iter().filter(|n| works(**n)).collect();
            let loaded: BTreeSet<u32> = ProgInfoIter::default().map(|p| p.id).collect();
            let loaded: Vec<_> = programs.intersection(&loaded).collect();
            if alive.is_empty() && loaded.is_empty() {
                break;
            }
            assert!(
                killed.elapsed() < RELEASE_TIMEOUT,
                "killed after {milliseconds} ms: processes {alive:?} and programs {loaded:?} are left"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    println!("{seen} programs were loaded, and none is left");
}

/// True if this is still a process that attaches.
fn works(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.contains("(nfscope-attach)") && !stat.contains(") Z ")
}
