//! Reasons why the kernel refused a program, from the messages of libbpf and of the verifier.

use crate::linux::host::facts;
use libbpf_rs::PrintLevel;
use std::sync::Mutex;

/// Reason why a program or object does not load or attach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The reason, in a line.
    pub reason: String,
    /// Action that would help; empty if there is none.
    pub fix: String,
}

impl Refusal {
    /// Explains an error by the messages in the log, and empties the log.
    pub fn from_log(error: &libbpf_rs::Error) -> Self {
        Self::explain(&take_log(), error)
    }

    /// True if the kernel refuses every program of this kind. It refuses them before the verifier runs, so the verifier has no message.
    pub(super) fn is_of_the_kind(&self) -> bool {
        self.reason == "BPF program load failed: -EPERM"
    }

    pub(super) fn explain(log: &str, error: &libbpf_rs::Error) -> Self {
        Refusal {
            reason: reason(log, error),
            fix: fix(log),
        }
    }
}

/// Messages of libbpf and the verifier while an object loads, to name the refused program and the reason.
static LOG: Mutex<String> = Mutex::new(String::new());

/// Makes libbpf write to the log from now on.
pub(super) fn keep_log() {
    libbpf_rs::set_print(Some((PrintLevel::Info, append)));
}

fn append(_: PrintLevel, message: String) {
    if let Ok(mut log) = LOG.lock() {
        log.push_str(&message);
    }
}

/// Content of the log, which is emptied.
pub(super) fn take_log() -> String {
    LOG.lock()
        .map(|mut l| std::mem::take(&mut *l))
        .unwrap_or_default()
}

/// Program that the log blames.
pub(super) fn refused_program(log: &str) -> Option<String> {
    log.lines()
        .filter(|l| l.contains("fail") || l.contains("not found"))
        .find_map(|l| {
            let (_, rest) = l.split_once("prog '")?;
            Some(rest.split_once('\'')?.0.to_owned())
        })
}

/// Reason in one line: libbpf's first complaint, or the verifier's last.
fn reason(log: &str, error: &libbpf_rs::Error) -> String {
    let complaint = log
        .lines()
        .find(|l| l.contains("prog '") && (l.contains("fail") || l.contains("not found")))
        // The program's name is cut off, because the status has it: equal reasons then have equal texts.
        .and_then(|l| Some(l.split_once("prog '")?.1.split_once("': ")?.1.trim()));
    let verifier = log
        .split_once("BEGIN PROG LOAD LOG")
        .and_then(|(_, r)| r.split_once("END PROG LOAD LOG"))
        .and_then(|(body, _)| {
            body.lines()
                .rfind(|l| {
                    let l = l.trim();
                    !l.is_empty() && !l.starts_with("processed ") && !l.starts_with("--")
                })
                .map(|l| l.trim().to_owned())
        });
    match (complaint, verifier) {
        (Some(c), Some(v)) => format!("{c}: {v}"),
        (Some(c), None) => c.to_owned(),
        _ => format!("{error:#}"),
    }
}

/// Fix for a refusal: capabilities if they are missing, nothing if the kernel's decision is final.
fn fix(log: &str) -> String {
    if !log.contains("-EPERM") {
        return String::new();
    }
    if facts::may_load() {
        "nothing here: this kernel refuses this kind of program to everybody (lockdown=confidentiality, or a sandbox)"
            .into()
    } else {
        "run as root or with CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_names_the_program_and_the_verifiers_last_word() {
        let log = "libbpf: prog 'nfsd_arrive': BPF program load failed: -EPERM\n\
                   libbpf: prog 'nfsd_arrive': -- BEGIN PROG LOAD LOG --\n0: (85) call 1\nunknown func bpf_x#1\nprocessed 3 insns\n\
                   -- END PROG LOAD LOG --\nlibbpf: prog 'nfsd_arrive': failed to load: -1\n";
        assert_eq!(refused_program(log).as_deref(), Some("nfsd_arrive"));
        let e = libbpf_rs::Error::from_raw_os_error(libc::EPERM);
        let why = Refusal::explain(log, &e).reason;
        assert_eq!(why, "BPF program load failed: -EPERM: unknown func bpf_x#1");
    }
}
