//! Report that an admin of an illumos machine can send to the developers: which scripts compile there, which probes exist, and the state of
//! the scripts. Paths and addresses are left out; names of pools, exports and clients never reach these messages.

use super::child::{Child, Reader};
use super::kstat::{self, Stats};
use super::running::dtrace_arguments;
use super::scripts::{Parts, SCRIPTS, SLOW};
use super::tools::Tools;
use nfscope_model::host_report::{Compiled, IllumosReport};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Time for `dtrace` to compile a script, or to list probes.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Limit of lines: two for each operation, and some more.
const MOST_LINES: usize = 4096;
/// Longer lines are cut.
const MOST_LINE: usize = 1024;
/// Files that every system has, which a message may name.
const PUBLIC: [&str; 2] = ["/dev/stdin", "/usr/lib/dtrace/"];

/// Lines of text.
#[derive(Debug, Default)]
struct Lines(Vec<u8>);

impl Reader for Lines {
    type Value = String;

    fn feed(&mut self, text: &[u8], done: &mut dyn FnMut(String)) {
        for &byte in text {
            match byte {
                b'\n' => {
                    done(crate::lossless::text(&self.0));
                    self.0.clear();
                }
                _ if self.0.len() < MOST_LINE => self.0.push(byte),
                _ => {}
            }
        }
    }

    fn bad(&self) -> u64 {
        0
    }
}

/// Result of a `dtrace`: its output, its messages, and true if it ended well.
struct Ran {
    printed: Vec<String>,
    said: Vec<String>,
    well: bool,
}

fn run(tools: &Tools, arguments: &[String], input: String) -> Ran {
    let started = Child::start(
        &tools.dtrace,
        arguments,
        input,
        Lines::default(),
        MOST_LINES,
    );
    let mut child = match started {
        Ok(child) => child,
        Err(e) => {
            return Ran {
                printed: Vec::new(),
                said: vec![plain(&e.to_string())],
                well: false,
            };
        }
    };
    let begun = Instant::now();
    child.wait_for(TIMEOUT, |_| false);
    let mut status = child.ended();
    // The exit status may come a moment after the pipes are closed.
    while status.is_none() && begun.elapsed() < TIMEOUT {
        std::thread::sleep(Duration::from_millis(10));
        status = child.ended();
    }
    let inbox = child.inbox();
    let mut said: Vec<_> = inbox.said.iter().map(|line| plain(line)).collect();
    if status.is_none() {
        said.push(format!("it did not end within {} s", TIMEOUT.as_secs()));
    }
    Ran {
        printed: inbox.values.iter().cloned().collect(),
        said,
        well: status.is_some_and(|s| s.success()),
    }
}

/// Removes paths and addresses from a message.
fn plain(line: &str) -> String {
    let word = |word: &str| {
        let other = |c: char| !c.is_ascii_alphanumeric();
        let bare = word.trim_start_matches(|c| other(c) && !"/:".contains(c));
        let bare = bare.trim_end_matches(|c| other(c) && c != '/');
        let address = bare.split('%').next().unwrap_or(bare);
        if address.parse::<IpAddr>().is_ok() {
            return word.replace(bare, "<address>");
        }
        if bare.contains('/') && !PUBLIC.iter().any(|known| bare.starts_with(known)) {
            return word.replace(bare, "<path>");
        }
        match bare.strip_prefix("0x") {
            Some(hex) if hex.len() > 4 => word.replace(bare, "<pointer>"),
            _ => word.to_owned(),
        }
    };
    line.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// Single probes that the scripts name.
fn named() -> BTreeSet<String> {
    let texts = SCRIPTS.iter().chain([&SLOW]);
    let texts: Vec<_> = texts.map(|s| s.text(Parts::ALL, "$pid")).collect();
    let words = texts
        .iter()
        .flat_map(|text| text.split([' ', ',', '\n', '\t']));
    let probes = words.filter(|w| w.matches(':').count() == 3 && !w.contains(['(', '"', '?']));
    probes.map(str::to_owned).collect()
}

/// Provider, module, function and name of a line of `dtrace -l`; the function may be missing.
fn listed(line: &str) -> Option<[&str; 4]> {
    let words: Vec<_> = line.split_whitespace().collect();
    match words[..] {
        [id, provider, name] if id.parse::<u32>().is_ok() => Some([provider, "", "", name]),
        [id, provider, module, name] if id.parse::<u32>().is_ok() => {
            Some([provider, module, "", name])
        }
        [id, provider, module, function, .., name] if id.parse::<u32>().is_ok() => {
            Some([provider, module, function, name])
        }
        _ => None,
    }
}

/// True if a probe matches a description, which may have a `*` in a part.
fn matches(description: &str, probe: [&str; 4]) -> bool {
    description.split(':').zip(probe).all(|(wanted, is)| {
        let Some((start, end)) = wanted.split_once('*') else {
            return wanted.is_empty() || wanted == is;
        };
        is.len() >= start.len() + end.len() && is.starts_with(start) && is.ends_with(end)
    })
}

/// See [`crate::report`].
pub fn report(tools: &Tools) -> IllumosReport {
    let checked = super::check(tools.clone());
    let scripts = SCRIPTS.iter().chain([&SLOW]).map(|script| {
        let mut arguments = vec!["-e".to_owned()];
        arguments.extend(dtrace_arguments(&[]));
        let text = script.text(Parts::ALL, "$pid").replace("OVER_NS", "0");
        let ran = run(tools, &arguments, text);
        Compiled {
            name: script.name.to_owned(),
            compiles: ran.well,
            said: ran.said,
        }
    });
    let scripts = scripts.collect();
    let named = named();
    let descriptions = named.iter().flat_map(|name| ["-n", name]);
    let arguments: Vec<_> = ["-l"].into_iter().chain(descriptions).collect();
    let arguments: Vec<_> = arguments.into_iter().map(str::to_owned).collect();
    let ran = run(tools, &arguments, String::new());
    let there: Vec<_> = ran.printed.iter().filter_map(|l| listed(l)).collect();
    let probes = named.iter().map(|name| {
        let is_there = there.iter().any(|probe| matches(name, *probe));
        (name.clone(), is_there)
    });
    let probes = probes.collect();
    let providers = ["-l", "-P", "nfsv3", "-P", "nfsv4"].map(str::to_owned);
    let ran = run(tools, &providers, String::new());
    let operations = ran.printed.iter().filter_map(|l| listed(l));
    let operations = operations.filter(|[provider, ..]| provider.starts_with("nfsv"));
    let operations = operations.map(|[provider, _, _, name]| format!("{provider}:{name}"));
    let operations: BTreeSet<_> = operations.collect();
    let release = rustix::system::uname();
    let words = [
        release.sysname(),
        release.release(),
        release.version(),
        release.machine(),
    ];
    let words = words.map(|w| w.to_string_lossy().into_owned());
    let states = checked.probes.into_iter().map(|mut p| {
        p.reason = plain(&p.reason);
        p
    });
    IllumosReport {
        nfscope: String::new(),
        release: words.join(" "),
        verdict: checked.verdict,
        states: states.collect(),
        scripts,
        probes,
        operations: operations.into_iter().collect(),
        statistics: statistics(tools),
    }
}

/// Number of statistics of each kind that the agent reads.
fn statistics(tools: &Tools) -> BTreeMap<String, usize> {
    let arguments = kstat::ARGUMENTS.map(str::to_owned);
    let parser = kstat::Parser::default();
    let started = Child::start(&tools.kstat, &arguments, String::new(), parser, 1);
    let mut all = BTreeMap::new();
    let Ok(child) = started else { return all };
    child.wait_for(super::KSTAT_TIMEOUT, |inbox| inbox.made > 0);
    let newest: Option<Stats> = child.inbox().values.pop_back();
    for (name, _) in newest.iter().flat_map(Stats::all) {
        // Instances and the names of disks are left out, because they are private to the host.
        let parts: Vec<_> = name.split(':').collect();
        let kind = match parts[..] {
            [module @ ("nfs" | "unix"), _, name, _] => format!("{module}:{name}"),
            [module, _, _, statistic] => format!("{module}:{statistic}"),
            _ => continue,
        };
        *all.entry(kind).or_default() += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lose_paths_and_addresses() {
        for (line, expected) in [
            (
                "dtrace: failed to compile script /dev/stdin: line 9: probe description fbt:zfs:zil_commit:entry does not match any probes",
                "dtrace: failed to compile script /dev/stdin: line 9: probe description fbt:zfs:zil_commit:entry does not match any probes",
            ),
            (
                "\"/usr/lib/dtrace/nfs.d\", line 60: syntax error near \"tank/home\"",
                "\"/usr/lib/dtrace/nfs.d\", line 60: syntax error near \"<path>\"",
            ),
            (
                "cannot open '/export/home/a': of 192.0.2.7.",
                "cannot open '<path>': of <address>.",
            ),
            (
                "fe80::3%net0 (::1) at 0xffffff01deadbeef, line 0x9",
                "<address> (<address>) at <pointer>, line 0x9",
            ),
            ("2001:db8::1: no", "<address>: no"),
            ("", ""),
        ] {
            assert_eq!(plain(line), expected);
        }
    }

    #[test]
    fn every_probe_of_the_scripts_is_named() {
        let all = named();
        for probe in [
            "nfsv3*:::op-read-done",
            "nfsv4*:::op-release-lockowner-start",
            "fbt:rpcmod:svc_getreq:return",
            "fbt::page_create_throttle:entry",
            "sdt:zfs::zil-process-commit-itx",
            "sched:::off-cpu",
            "io:::start",
            "syscall::kill:entry",
            "profile:::tick-10s",
        ] {
            assert!(all.contains(probe), "{probe}");
        }
        assert!(
            all.iter().all(|probe| !probe.contains(['$', '/', '>'])),
            "{all:?}"
        );
    }

    #[test]
    fn a_listed_probe_is_found_by_its_description() {
        let line = "57043        fbt               zfs                        zil_commit entry";
        let probe = listed(line).unwrap();
        assert!(matches("fbt:zfs:zil_commit:entry", probe));
        assert!(matches("fbt::zil_commit:entry", probe));
        assert!(!matches("fbt:zfs:zil_commit:return", probe));
        let line =
            " 4711      nfsv3            nfssrv                        rfs3_read op-read-done";
        let probe = listed(line).unwrap();
        assert!(matches("nfsv3*:::op-read-done", probe));
        assert!(matches("nfsv3*:::op-*-done", probe));
        assert!(!matches("nfsv4*:::op-*-done", probe));
        assert!(!matches("nfsv3*:::op-read-done-*-op-read-done", probe));
        let tick =
            listed("    3    profile                                           tick-10s").unwrap();
        assert!(matches("profile:::tick-10s", tick));
        assert_eq!(
            listed("   ID   PROVIDER            MODULE                          FUNCTION NAME"),
            None
        );
    }
}
