//! Paths on the host: the build's programs, and the directory of each running machine.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Context, Result, ensure};

use crate::variant::Variant;

/// The build directory of the workspace (`target/`), found from the running program.
pub fn target_dir() -> Result<PathBuf> {
    let exe = std::env::current_exe().context("finding the running program")?;
    // target/<profile>/lab or target/<profile>/deps/<test>
    let mut dir = exe.parent().map(Path::to_path_buf).unwrap_or_default();
    if dir.ends_with("deps") {
        dir.pop();
    }
    dir.pop();
    Ok(dir)
}

/// The `lab` program itself, which also runs inside the machine.
pub fn lab_program() -> Result<PathBuf> {
    let exe = std::env::current_exe().context("finding the running program")?;
    let mut dir = exe.parent().map(Path::to_path_buf).unwrap_or_default();
    if dir.ends_with("deps") {
        dir.pop();
    }
    let program = dir.join("lab");
    ensure!(
        program.is_file(),
        "{} is missing; build it: cargo build -p lab",
        program.display()
    );
    Ok(program)
}

/// Directory of builds for arm64.
pub fn arm64_programs() -> Result<PathBuf> {
    Ok(target_dir()?.join("aarch64-unknown-linux-gnu/release"))
}

/// `lab` or `nfscope` for arm64.
pub fn arm64_program(name: &str) -> Result<PathBuf> {
    let program = arm64_programs()?.join(name);
    ensure!(
        program.is_file(),
        "{} is missing; build it: tests/arm64.sh",
        program.display()
    );
    Ok(program)
}

/// The nfscope program under test: `NFSCOPE_BIN`, or this workspace's build for the machines of this run. It is the one beside this
/// program if that is a release build, and the one of the profile `machines` otherwise.
pub fn nfscope_program() -> Result<PathBuf> {
    let program = match std::env::var_os("NFSCOPE_BIN") {
        Some(path) => PathBuf::from(path),
        None if Variant::of_this_run()?.arm64() => arm64_program("nfscope")?,
        None => target_dir()?.join(profile()?).join("nfscope"),
    };
    let program = std::path::absolute(&program)
        .with_context(|| format!("resolving {}", program.display()))?;
    ensure!(
        program.is_file(),
        "{} is missing; build it (cargo build --profile {} -p nfscope) or name one in NFSCOPE_BIN",
        program.display(),
        profile()?
    );
    Ok(program)
}

/// The nfscope program for commands on this host: `NFSCOPE_BIN`, or the build beside this program, or the one for the machines.
pub fn host_nfscope() -> Result<PathBuf> {
    let beside = lab_program()?.with_file_name("nfscope");
    if std::env::var_os("NFSCOPE_BIN").is_none() && beside.is_file() {
        return Ok(beside);
    }
    nfscope_program()
}

/// Profile of the nfscope that machines run.
fn profile() -> Result<&'static str> {
    let beside = lab_program()?;
    let release = beside.parent().is_some_and(|dir| dir.ends_with("release"));
    Ok(if release { "release" } else { "machines" })
}

/// A release build of an example program of the crate `nfscope-baseline`.
pub(crate) fn baseline_example(name: &str) -> Result<PathBuf> {
    let program = target_dir()?.join("release/examples").join(name);
    ensure!(
        program.is_file(),
        "{} is missing; build it: cargo build --release -p nfscope-baseline --example {name}",
        program.display()
    );
    Ok(program)
}

/// A new directory name for one machine's files, or a server's: `target/lab/<kernel>-<pid>-<n>`.
pub fn machine_dir(kernel: &str) -> Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("{kernel}-{}-{n}", std::process::id());
    Ok(target_dir()?.join("lab").join(name))
}
