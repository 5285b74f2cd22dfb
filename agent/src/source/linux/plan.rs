//! What will be loaded, and what not and why: a pure function of what the host has.

use super::facts::Facts;
use crate::model::ProbeState;

/// One program of a probe.
#[derive(Debug)]
pub struct Program {
    /// Name in the object, at most 15 characters.
    pub name: &'static str,
    /// Its hook where the module has BTF.
    pub btf: &'static str,
    /// Its hook where it has not, or why there is none.
    pub raw: Result<&'static str, &'static str>,
    /// What it gives.
    pub gives: &'static str,
    /// NFS operations cannot be timed without it.
    pub required: bool,
    /// Where it is loaded at all.
    pub when: When,
}

/// Where a program is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Everywhere.
    Always,
    /// In the raw build; the other gets the same elsewhere.
    Raw,
    /// Where the kernel may run tracepoints preemptibly, and then skips programs at times.
    Preemptible,
}

/// One probe: an object, the modules that it looks into, and its programs in the order in which they attach: ends before
/// beginnings, so that no half of a request is counted.
#[derive(Debug)]
pub struct Probe {
    /// Its word.
    pub word: &'static str,
    /// Modules that must be loaded.
    pub modules: &'static [&'static str],
    /// What brings the modules.
    pub waits_for: &'static str,
    /// Programs.
    pub programs: &'static [Program],
}

const SAME: &str = "";

const fn program(
    name: &'static str,
    btf: &'static str,
    raw: Result<&'static str, &'static str>,
    gives: &'static str,
    required: bool,
) -> Program {
    Program {
        name,
        btf,
        raw,
        gives,
        required,
        when: When::Always,
    }
}

/// Every probe.
pub static PROBES: [Probe; 3] = [
    Probe {
        word: "nfsd",
        modules: &["sunrpc", "nfsd"],
        waits_for: "the NFS server (module nfsd)",
        programs: &[
            program(
                "send",
                "tp_btf/svc_send",
                Ok(SAME),
                "end of a replied request",
                true,
            ),
            program(
                "drop",
                "tp_btf/svc_drop",
                Ok(SAME),
                "end of a dropped request",
                false,
            ),
            program(
                "defer",
                "tp_btf/svc_defer",
                Ok(SAME),
                "requests deferred for an upcall",
                false,
            ),
            program(
                "reply",
                "tp_btf/svc_stats_latency",
                Ok(SAME),
                "end of execution, start of the reply",
                true,
            ),
            program(
                "op_status",
                "tp_btf/nfsd_compound_status",
                Ok(SAME),
                "end of each NFSv4 component op",
                true,
            ),
            program(
                "compound",
                "tp_btf/nfsd_compound",
                Ok(SAME),
                "start of a COMPOUND's first op",
                true,
            ),
            program(
                "read_done",
                "tp_btf/nfsd_read_io_done",
                Ok(SAME),
                "bytes of each READ",
                false,
            ),
            // With BTF the WRITE's own result tells its bytes, and no program is needed.
            Program {
                when: When::Raw,
                ..program(
                    "write_done",
                    "tp_btf/nfsd_write_io_done",
                    Ok(SAME),
                    "bytes of each WRITE",
                    false,
                )
            },
            program(
                "upcall",
                "tp_btf/cache_entry_upcall",
                Ok(SAME),
                "threads that wait for mountd count as busy",
                false,
            ),
            program(
                "receive",
                "tp_btf/svcsock_tcp_recv",
                Ok(SAME),
                "queue time over TCP; UDP and RDMA have no clock of a request's arrival and stay without",
                false,
            ),
            program(
                "xprt_free",
                "tp_btf/svc_xprt_free",
                Ok(SAME),
                "forgets closed connections",
                false,
            ),
            program(
                "arrive",
                "fentry/svc_data_ready",
                Ok("kprobe/svc_data_ready"),
                "arrival of requests on TCP sockets",
                false,
            ),
            program(
                "take",
                "tp_btf/svc_xprt_dequeue",
                Ok(SAME),
                "a thread takes a request",
                false,
            ),
            Program {
                when: When::Preemptible,
                ..program(
                    "idle",
                    "fentry/svc_recv",
                    Err("only for kernels that run tracepoints preemptibly"),
                    "requests whose end the kernel skipped",
                    false,
                )
            },
            program(
                "run",
                "tp_btf/svc_process",
                Ok(SAME),
                "start of execution",
                true,
            ),
        ],
    },
    Probe {
        word: "jbd2",
        modules: &["jbd2"],
        waits_for: "an ext4 filesystem with a journal (module jbd2)",
        programs: &[
            program(
                "wait_end",
                "fexit/jbd2_log_wait_commit",
                Err(
                    "it sleeps, and a return probe on a function that sleeps loses returns (58 to 90 % of them measured); needs BTF of module jbd2 for fexit",
                ),
                "how long threads wait for the journal",
                false,
            ),
            program(
                "wait_begin",
                "fentry/jbd2_log_wait_commit",
                Err("of no use without its end, wait_end"),
                "start of such a wait",
                false,
            ),
            program(
                "commit_end",
                "tp_btf/jbd2_run_stats",
                Ok(SAME),
                "how long a journal commit takes",
                false,
            ),
            program(
                "commit_begin",
                "tp_btf/jbd2_start_commit",
                Ok(SAME),
                "start of such a commit",
                false,
            ),
        ],
    },
    Probe {
        word: "block",
        modules: &[],
        waits_for: "",
        programs: &[
            program(
                "complete",
                "tp_btf/block_rq_complete",
                Ok(SAME),
                "device time, bytes, FUA",
                false,
            ),
            program(
                "requeue",
                "tp_btf/block_rq_requeue",
                Ok(SAME),
                "requests that a busy device gave back",
                false,
            ),
            program(
                "issue",
                "tp_btf/block_rq_issue",
                Ok(SAME),
                "end of queueing, start of device time",
                false,
            ),
            program(
                "insert",
                "tp_btf/block_rq_insert",
                Ok(SAME),
                "start of queueing",
                false,
            ),
        ],
    },
];

impl Probe {
    /// The programs that belong to a build.
    pub fn programs_of(
        &self,
        build: Build,
        preemptible: bool,
    ) -> impl Iterator<Item = &'static Program> {
        self.programs.iter().filter(move |p| match p.when {
            When::Always => true,
            When::Raw => build == Build::Raw,
            When::Preemptible => build == Build::Btf && preemptible,
        })
    }
}

impl Program {
    /// The hook in the chosen build.
    pub fn hook(&self, build: Build) -> String {
        match (build, self.raw) {
            (Build::Raw, Ok(SAME)) => self.btf.replace("tp_btf/", "raw_tp/"),
            (Build::Raw, Ok(hook)) => hook.to_owned(),
            _ => self.btf.to_owned(),
        }
    }
}

/// Which of an object's two builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// Typed tracepoints, fentry and fexit.
    Btf,
    /// Raw tracepoints and kprobes.
    Raw,
}

/// What is to be done about one probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Load this build.
    Load(Build),
    /// Nothing to attach to yet.
    Wait(String),
    /// Not here.
    Impossible {
        /// What is missing.
        reason: String,
        /// What would bring it.
        fix: String,
    },
}

/// Decides by what the kernel answers, never by its version.
pub fn decide(probe: &Probe, facts: &Facts) -> Decision {
    if !facts.vmlinux_btf {
        return Decision::Impossible {
            reason: "this kernel has no BTF (/sys/kernel/btf/vmlinux), so the layout of its structures is unknown".into(),
            fix: "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y; every current distribution's is".into(),
        };
    }
    if let Some(m) = probe.modules.iter().find(|m| !facts.loaded(m)) {
        return Decision::Wait(format!(
            "module {m} is not loaded: waits for {}",
            probe.waits_for
        ));
    }
    if probe.modules.iter().all(|m| facts.btf_of(m)) {
        Decision::Load(Build::Btf)
    } else {
        Decision::Load(Build::Raw)
    }
}

/// The state and the reason of a program that attached in the chosen build.
pub fn attached(probe: &Probe, program: &Program, build: Build) -> (ProbeState, String) {
    if build == Build::Btf {
        return (ProbeState::Attached, String::new());
    }
    let lost = match (probe.word, program.name) {
        ("nfsd", "op_status" | "compound") => {
            "; the NFSv4 minor version and the stability of WRITEs cannot be read, ops count under version 4"
        }
        ("nfsd", "run") => "; busy threads cannot be counted",
        _ => "",
    };
    (
        ProbeState::Fallback,
        format!(
            "no BTF of module {}: {}{lost}",
            probe.modules.last().unwrap_or(&"vmlinux"),
            program.hook(Build::Raw)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(loaded: &[&str], btf: &[&str]) -> Facts {
        Facts {
            vmlinux_btf: true,
            loaded: loaded.iter().map(|s| s.to_string()).collect(),
            module_btf: btf.iter().map(|s| s.to_string()).collect(),
            ..Default::default()
        }
    }

    #[test]
    fn a_module_that_is_not_loaded_is_waited_for() {
        let Decision::Wait(why) = decide(&PROBES[0], &facts(&["sunrpc"], &["sunrpc"])) else {
            panic!()
        };
        assert!(why.contains("module nfsd is not loaded"), "{why}");
    }

    #[test]
    fn module_btf_decides_between_the_two_builds() {
        let all = ["sunrpc", "nfsd", "jbd2"];
        assert_eq!(
            decide(&PROBES[0], &facts(&all, &all)),
            Decision::Load(Build::Btf)
        );
        assert_eq!(
            decide(&PROBES[0], &facts(&all, &["sunrpc"])),
            Decision::Load(Build::Raw)
        );
        assert_eq!(
            decide(&PROBES[2], &facts(&[], &[])),
            Decision::Load(Build::Btf)
        );
    }

    #[test]
    fn without_btf_nothing_can_be_read() {
        let f = Facts::default();
        assert!(matches!(
            decide(&PROBES[2], &f),
            Decision::Impossible { .. }
        ));
    }

    #[test]
    fn names_fit_the_kernels_fifteen_characters() {
        for p in &PROBES {
            assert!(p.word.len() <= 15);
            for x in p.programs {
                assert!(x.name.len() <= 15, "{}", x.name);
            }
        }
    }
}
