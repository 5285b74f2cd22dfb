//! Waits for logs, and what logs write, are counted as the kernel counts them. One machine for each kernel, because machines
//! cost more than checks.

mod journals;

use anyhow::Result;
use lab::Kernel;

#[test]
fn vm_6_1_counts_waits_for_logs() -> Result<()> {
    journals::are_counted(Kernel::V6_1, 200)
}

#[test]
fn vm_6_12_counts_waits_for_logs() -> Result<()> {
    journals::are_counted(Kernel::V6_12, 1000)
}

#[test]
fn vm_7_2_counts_waits_for_logs() -> Result<()> {
    journals::are_counted(Kernel::V7_2, 200)
}
