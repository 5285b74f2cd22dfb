//! Arguments of QEMU and of the kernel that the lab adds to virtme-ng's.

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::Path;
use std::thread;

use crate::accel::Accel;
use crate::arm64;
use crate::kernel::cache;
use crate::machine_slots;
use crate::protocol::{AGENT_PORTS, CONTROL_PORT};
use crate::spec::Spec;

/// Socket at which QEMU listens for [`crate::qmp`], in the machine's directory.
pub const QMP_SOCKET: &str = "qmp.sock";

/// Script that runs in QEMU's place.
pub const SCRIPT: &str = include_str!("../guest/qemu.sh");

/// The CPU of machines without mitigations. It lacks features for which the kernel has a substitute that costs less to emulate.
/// Copies by single bytes (erms, fsrm) are eight times as many steps; page tables of five levels and checks of every access are more.
const QUICK_CPU: &str = "max,erms=off,fsrm=off,smap=off,smep=off,umip=off,pku=off,la57=off";

/// The emulator, and where it finds its own files: set-up's, or the installed one, with which the figures have been counted.
pub fn emulator(spec: &Spec) -> String {
    if spec.arm64 {
        return arm64::emulator();
    }
    let own = cache().join("qemu");
    let shared = own.join("usr/share");
    if spec.faithful || !own.join("release").is_file() {
        return "qemu-system-x86_64".into();
    }
    format!(
        "{own}/usr/bin/qemu-system-x86_64 -L {shared}/seabios -L {shared}/qemu",
        own = own.display(),
        shared = shared.display()
    )
}

/// Words of the kernel's command line besides virtme-ng's.
pub fn kernel_options(spec: &Spec) -> Vec<String> {
    // Retpolines are the most expensive instructions to emulate. Debian's kernels also zero each page that they hand out. No test is
    // about either.
    let usual = (!spec.faithful).then_some("mitigations=off init_on_alloc=0");
    let words = usual.into_iter().chain(spec.kernel_args.as_deref());
    words
        .flat_map(|words| ["--append".to_owned(), words.to_owned()])
        .collect()
}

pub fn options(
    spec: &Spec,
    accel: Accel,
    dir: &Path,
    control: SocketAddr,
    agents: &[SocketAddr],
) -> String {
    let mut forwards = format!("hostfwd=tcp:{control}-:{CONTROL_PORT}");
    for (host, guest) in agents.iter().zip(AGENT_PORTS) {
        forwards += &format!(",hostfwd=tcp:{host}-:{guest}");
    }
    // A single thread emulates all CPUs if two machines would compete for the host's: a CPU that spins until another one is done
    // would keep that one from running, and boots take three times as long.
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = if cores >= machine_slots::SLOTS * spec.cpus as usize && !spec.icount {
        "multi"
    } else {
        "single"
    };
    let accel = match accel {
        Accel::Kvm { .. } => "kvm -cpu host".to_owned(),
        Accel::Tcg => {
            let cpu = match spec.faithful {
                _ if spec.arm64 => arm64::CPU,
                true => "max",
                false => QUICK_CPU,
            };
            format!("tcg,thread={threads} -cpu {cpu}")
        }
    };
    let mut options = format!(
        "-nodefaults -accel {accel} -netdev user,id=lab,restrict=on,{forwards} -device virtio-net-pci,netdev=lab,romfile="
    );
    let disks = [(spec.mkfs.is_some(), "disk"), (spec.log_disk, "log")];
    for (_, disk) in disks.iter().filter(|(wanted, _)| *wanted) {
        // The guest sees a volatile write cache and sends its flushes; the host need not honour them.
        options += &format!(
            " -drive file={}/{disk}.img,if=none,id={disk},format=raw,cache=unsafe -device virtio-blk-pci,drive={disk}",
            dir.display()
        );
    }
    if let Some(most) = spec.possible_cpus {
        // Sockets of their own are needed: kernels count no CPU as possible that could only be added to a socket that is there.
        let sockets = most / spec.cpus;
        options += &format!(
            " -smp {cpus},sockets={sockets},cores={cpus},threads=1,maxcpus={most}",
            cpus = spec.cpus
        );
    }
    if spec.can_halt {
        options += &format!(
            " -qmp unix:{},server=on,wait=off",
            dir.join(QMP_SOCKET).display()
        );
    }
    if spec.icount {
        options += &format!(" -icount shift={},sleep=off", spec.icount_shift);
    }
    if let Some(socket) = std::env::var_os("LAB_MONITOR") {
        options += &format!(" -monitor unix:{},server=on,wait=off", socket.display());
    }
    options
}
