//! The kept recordings (`tests/recordings/`), compared and analysed without a machine. `vm_baselines` and `vm_experiment` record those
//! anew that are stale, and judge these with the same checks.

use anyhow::Result;
use lab::baselines::Experiments;
use lab::experiment::Done;
use lab::recordings::{BASELINES, EXPERIMENT, LOG_DEVICE, tables_of_log_device};

use crate::{vm_baselines, vm_experiment};

#[test]
fn comparisons_tell_what_changed() -> Result<()> {
    vm_baselines::judge(&BASELINES.unpacked(Experiments::compared_in)?)
}

#[test]
fn an_experiment_finds_what_a_log_device_needs() -> Result<()> {
    vm_experiment::needs_are_found(&EXPERIMENT.unpacked(Done::analysed_in)?)
}

#[test]
fn a_campaign_finds_what_a_log_device_is_worth() -> Result<()> {
    vm_experiment::worth_is_found(&LOG_DEVICE.unpacked(tables_of_log_device)?)
}
