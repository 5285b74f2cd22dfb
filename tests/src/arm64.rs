//! Machines with Debian's arm64 kernel (`LAB_FLAVOUR=arm64`), emulated on any host. Their root file system is not the host's, and
//! programs for them are built by `tests/arm64.sh`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::kernel::cache;
use crate::paths;
use crate::variant::ARM64;

/// Mount point of the host's files in the machine, and the machine's first process; `tests/setup/arm64.sh` makes both.
const HOST: &str = "/host";
const FIRST: &str = "/init";

/// The machine's root file system.
pub fn root() -> Result<PathBuf> {
    let root = dir().join("root");
    ensure!(
        root.join("release").is_file(),
        "{} is missing; run: tests/setup/setup.sh arm64",
        root.display()
    );
    Ok(root)
}

/// A server's CPU with atomic instructions of its own, and without pointer authentication, which costs much to emulate.
pub const CPU: &str = "neoverse-n1";

/// The emulator, and where it finds its own files.
pub fn emulator() -> String {
    let own = dir().join("qemu/usr");
    format!(
        "{own}/bin/qemu-system-aarch64 -L {own}/share/qemu",
        own = own.display()
    )
}

/// Arguments of virtme-ng.
pub fn vng_options() -> Result<Vec<String>> {
    let root = root()?;
    let root = root.to_str().context("the cache's path is not UTF-8")?;
    Ok(["--arch", ARM64, "--root", root].map(str::to_owned).into())
}

/// Words of the kernel's `init=`, which start a program of the host with these arguments.
pub fn init(lab: &Path, arguments: &str) -> Result<String> {
    Ok(format!(
        "{FIRST} -- {lab} {arguments} {HOST} {programs}",
        lab = lab.display(),
        programs = paths::arm64_programs()?.display()
    ))
}

fn dir() -> PathBuf {
    cache().join(ARM64)
}
