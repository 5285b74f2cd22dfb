//! Description of a machine, as its builder makes it.

use crate::accel::Accel;
use crate::kernel::Kernel;

/// Description of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub kernel: Kernel,
    /// The machine, and every program in it, is arm64's.
    pub arm64: bool,
    pub cpus: u32,
    /// Words for the kernel's command line.
    pub kernel_args: Option<String>,
    pub possible_cpus: Option<u32>,
    pub memory: String,
    /// Command that makes the disk's file system on the host, where mkfs takes no time; no words for an empty disk, `None` for no
    /// disk.
    pub mkfs: Option<Vec<String>>,
    /// The machine has one more disk, empty.
    pub log_disk: bool,
    pub icount: bool,
    /// An emulated machine counts instructions, and [its clock stands still](crate::clock) while no caller waits for it.
    pub driven: bool,
    /// The machine runs for hours, and takes none of the others' slots.
    pub beside: bool,
    /// QEMU listens for commands that stop it and let it go on.
    pub can_halt: bool,
    /// An instruction takes 2 to the power of this number of nanoseconds.
    pub icount_shift: u32,
    /// The kernel has its mitigations on: instructions are counted as an admin's server would execute them.
    pub faithful: bool,
    /// Wanted host port of the first agent.
    pub agent_port: Option<u16>,
}

impl Spec {
    /// The description, adapted to the accelerator of its CPUs.
    pub fn on(&self, accel: Accel) -> Spec {
        let mut spec = self.clone();
        spec.driven &= accel == Accel::Tcg && !spec.arm64;
        if spec.driven {
            spec.icount = true;
            spec.icount_shift = DRIVEN_SHIFT;
            spec.can_halt = true;
        }
        spec
    }
}

/// Eight nanoseconds an instruction: a busy second of the machine takes the host about one second.
const DRIVEN_SHIFT: u32 = 3;
