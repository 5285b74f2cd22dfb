//! Dashboards, rules and a real Prometheus, for tests of `dashboards/`.
//!
//! Expressions are parsed, checked and evaluated by Prometheus itself: no code here understands PromQL.

mod dashboards;
mod prometheus;
mod promql;

pub use dashboards::{Dashboard, Format, Panel, Target, Variable, substituted};
pub use prometheus::{Prometheus, Release, Rule, Sample};
pub use promql::{Wants, base_name};

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::kernel::cache;

/// `dashboards/` of this workspace.
pub fn dashboards() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../dashboards")
}

/// Generates every dashboard and every rule into this directory, which gets `grafana/` and `rules/`. `table` is a metric table in the
/// form of `docs/metrics.md`: a family of it without a panel of its own gets one.
pub fn generate(into: &Path, table: &Path) -> Result<()> {
    generate_for(into, table, &dashboards().join("slo.yml"))
}

/// Generates them with other objectives than those of `dashboards/slo.yml`.
pub fn generate_for(into: &Path, table: &Path, objectives: &Path) -> Result<()> {
    let python = cache().join("dashboards/bin/python");
    ensure!(
        python.is_file(),
        "{} is missing; run: tests/setup/setup.sh monitoring",
        python.display()
    );
    let output = Command::new(&python)
        .arg("-B")
        .arg(dashboards().join("generate.py"))
        .args([into, table, objectives])
        .output()
        .with_context(|| format!("running {}", python.display()))?;
    ensure!(
        output.status.success(),
        "dashboards/generate.py failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
