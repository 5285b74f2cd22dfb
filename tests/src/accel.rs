//! Accelerator of a machine's CPUs: KVM where it really boots a stock kernel, QEMU's software emulation elsewhere.
//!
//! `/dev/kvm` alone says little: nested and restricted hypervisors open it and then fail to boot. The first machine after a boot of
//! the host is therefore tried with KVM, and the cache remembers the result. icount machines are always emulated: only the emulator
//! can count instructions.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::kernel::cache;

/// Accelerator of a machine's CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accel {
    /// KVM; a trial if its result on this host is not known yet.
    Kvm {
        /// The first machine since the host's boot: its boot decides whether KVM works.
        trial: bool,
    },
    /// Software emulation.
    Tcg,
}

impl Accel {
    /// Chooses for an icount machine or any other. `LAB_ACCEL` is `auto` (the default), `kvm` or `tcg`.
    ///
    /// # Errors
    /// When `LAB_ACCEL` has another value.
    pub fn choose(icount: bool) -> Result<Accel> {
        let wanted = std::env::var("LAB_ACCEL").unwrap_or_else(|_| "auto".to_owned());
        let known = fs::read_to_string(record()).unwrap_or_default();
        let readable = fs::File::options()
            .read(true)
            .write(true)
            .open("/dev/kvm")
            .is_ok();
        decide(&wanted, icount, readable, &known, &boot_id())
    }

    /// Longest time until a machine answers.
    pub fn boot_timeout(self, counting: bool) -> Duration {
        match self {
            // Kernels that boot at all under KVM are up in seconds.
            Accel::Kvm { trial: true } => Duration::from_secs(30),
            // icount machines only have the CPU time that other processes leave: a tenth of a core for minutes.
            _ if counting => Duration::from_secs(1200),
            // Emulated boots take six to nine seconds alone, and three times that beside a build.
            _ => Duration::from_secs(240),
        }
    }

    /// Remembers how a trial went, until the host boots again.
    pub fn remember(self, works: bool) {
        if self == (Accel::Kvm { trial: true }) {
            let word = if works { "works" } else { "fails" };
            // Without a record the next machine makes the trial again.
            let _ = fs::write(record(), format!("{} {word}\n", boot_id()));
        }
    }
}

fn decide(wanted: &str, icount: bool, usable: bool, known: &str, boot: &str) -> Result<Accel> {
    let known = known.trim().strip_prefix(boot).map(str::trim);
    Ok(match (wanted, known) {
        ("tcg", _) => Accel::Tcg,
        ("kvm" | "auto", _) if icount => Accel::Tcg,
        ("kvm", _) => Accel::Kvm { trial: false },
        ("auto", _) if !usable => Accel::Tcg,
        ("auto", Some("works")) => Accel::Kvm { trial: false },
        ("auto", Some("fails")) => Accel::Tcg,
        ("auto", _) => Accel::Kvm { trial: true },
        _ => bail!("LAB_ACCEL is `{wanted}`; give auto, kvm or tcg"),
    })
}

fn record() -> PathBuf {
    cache().join("kvm")
}

fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kvm_is_tried_once_a_boot_and_never_counts_instructions() {
        let auto = |icount, usable, known| decide("auto", icount, usable, known, "b1").unwrap();
        assert_eq!(auto(false, true, ""), Accel::Kvm { trial: true });
        assert_eq!(auto(false, true, "b0 fails\n"), Accel::Kvm { trial: true });
        assert_eq!(auto(false, true, "b1 fails\n"), Accel::Tcg);
        assert_eq!(auto(false, true, "b1 works\n"), Accel::Kvm { trial: false });
        assert_eq!(auto(true, true, "b1 works\n"), Accel::Tcg);
        assert_eq!(auto(false, false, "b1 works\n"), Accel::Tcg);
        assert_eq!(decide("tcg", false, true, "", "b1").unwrap(), Accel::Tcg);
        let forced = decide("kvm", false, false, "", "b1").unwrap();
        assert_eq!(forced, Accel::Kvm { trial: false });
        assert!(decide("fast", false, true, "", "b1").is_err());
    }
}
