//! Options of a soak.

use std::path::PathBuf;

use crate::kernel::Kernel;

/// Length of the run, and its machine.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Hours to run
    #[arg(long, default_value_t = 8.0)]
    pub hours: f64,
    /// The machine's kernel: 6.1, 6.12, 6.18 or 7.2
    #[arg(long, default_value = "6.12", value_parser = Kernel::named)]
    pub kernel: Kernel,
    /// CPUs of the machine
    #[arg(long, default_value_t = 2)]
    pub cpus: u32,
    /// Directory for the figures of each round and the report [default: target/soak]. While a file `pause` is in it, the machine and
    /// its clock stand still between two rounds
    #[arg(long)]
    pub out: Option<PathBuf>,
}
