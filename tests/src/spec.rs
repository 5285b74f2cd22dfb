//! What a machine is made of, as its builder says it.

use crate::accel::Accel;
use crate::kernel::Kernel;

/// What a machine is made of.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub kernel: Kernel,
    /// It is arm64's, as everything in the machine.
    pub arm64: bool,
    pub cpus: u32,
    /// Words for its command line.
    pub kernel_args: Option<String>,
    pub possible_cpus: Option<u32>,
    pub memory: String,
    /// Made on the host, where mkfs takes no time; no words for an empty disk, `None` for no disk.
    pub mkfs: Option<Vec<String>>,
    /// One more disk, empty.
    pub log_disk: bool,
    pub icount: bool,
    /// Where its CPUs are emulated it counts instructions, and [its clock stands](crate::clock) while nobody waits for it.
    pub driven: bool,
    /// It runs for hours, and takes none of the places of the others.
    pub beside: bool,
    /// QEMU listens for commands that stop it and let it go on.
    pub can_halt: bool,
    /// An instruction takes 2 to the power of so many nanoseconds there.
    pub icount_shift: u32,
    /// What is counted in it is what an admin's server would do.
    pub faithful: bool,
    /// Host port wanted for the first agent.
    pub agent_port: Option<u16>,
}

impl Spec {
    /// The same, as far as it depends on what runs its CPUs.
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

/// Eight nanoseconds an instruction: a busy second of the machine takes the host about one.
const DRIVEN_SHIFT: u32 = 3;
