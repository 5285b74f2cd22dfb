//! Kernels of the lab, and the paths of their unpacked packages.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};

use crate::variant::Variant;

/// A kernel of the test matrix, as unpacked by `tests/setup/setup.sh lab`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// Debian 11: no module BTF. The oldest kernel, which must degrade with a clear reason.
    V5_10,
    /// Debian 12.
    V6_1,
    /// Debian 12's security suite, Debian 13: the default.
    V6_12,
    /// A backport to Debian 13: BTF of its modules has copies of the kernel's own types, as BTF of modules built by DKMS has.
    V6_18,
    /// Debian unstable: dynamic nfsd threads.
    V7_2,
}

impl Kernel {
    /// Every kernel of the matrix, oldest first.
    pub const ALL: [Kernel; 5] = [
        Kernel::V5_10,
        Kernel::V6_1,
        Kernel::V6_12,
        Kernel::V6_18,
        Kernel::V7_2,
    ];

    /// The kernels that have OpenZFS: 2.1 without BTF of its own, and a later one with it.
    pub const ZFS: [Kernel; 2] = [Kernel::V6_1, Kernel::V6_12];

    /// The kernel called `name` (`6.12`).
    pub fn named(name: &str) -> Result<Kernel> {
        match Kernel::ALL.into_iter().find(|k| k.name() == name) {
            Some(kernel) => Ok(kernel),
            None => bail!(
                "no lab kernel is called '{name}'; there are {}",
                Kernel::ALL.map(Kernel::name).join(", ")
            ),
        }
    }

    /// Short name of the kernel, and of its directory.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::V5_10 => "5.10",
            Kernel::V6_1 => "6.1",
            Kernel::V6_12 => "6.12",
            Kernel::V6_18 => "6.18",
            Kernel::V7_2 => "7.2",
        }
    }

    /// Release of the kernel, as `uname -r` will print it.
    pub fn release(self) -> Result<String> {
        let file = self.dir()?.join("release");
        let release = fs::read_to_string(&file).with_context(|| {
            format!(
                "kernel {self} is not unpacked ({} is missing); run: tests/setup/setup.sh {}",
                file.display(),
                Variant::of_this_run()
                    .ok()
                    .and_then(|run| run.flavour)
                    .as_deref()
                    .unwrap_or("lab")
            )
        })?;
        Ok(release.trim().to_owned())
    }

    /// The image to boot. Its modules lie beside it in `lib/modules`, where virtme-ng looks for them.
    pub fn image(self) -> Result<PathBuf> {
        Ok(self
            .dir()?
            .join("boot")
            .join(format!("vmlinuz-{}", self.release()?)))
    }

    /// Directory of the kernel's modules.
    pub fn modules(self) -> Result<PathBuf> {
        Ok(self.dir()?.join("lib/modules").join(self.release()?))
    }

    /// Directory of OpenZFS for this kernel: `modules/`, and `user/` with the programs and their libraries.
    pub fn zfs(self) -> Result<PathBuf> {
        ensure!(
            Kernel::ZFS.contains(&self),
            "the lab has no ZFS for kernel {self}, only for {}",
            Kernel::ZFS.map(Kernel::name).join(" and ")
        );
        ensure!(
            Variant::of_this_run()?.flavour.is_none(),
            "the lab has no ZFS for kernels of another flavour: run this test without LAB_FLAVOUR"
        );
        let dir = cache().join("zfs").join(self.name());
        let file = dir.join("release");
        let built = fs::read_to_string(&file).with_context(|| {
            format!(
                "ZFS for kernel {self} is not built ({} is missing); run: tests/setup/setup.sh lab",
                file.display()
            )
        })?;
        let release = self.release()?;
        ensure!(
            built.split_whitespace().last() == Some(release.as_str()),
            "ZFS for kernel {self} is built for another one than {release} ({} says {}); run: tests/setup/setup.sh lab",
            file.display(),
            built.trim()
        );
        Ok(dir)
    }

    fn dir(self) -> Result<PathBuf> {
        let name = match Variant::of_this_run()?.flavour {
            Some(flavour) => format!("{self}-{flavour}"),
            None => self.name().to_owned(),
        };
        Ok(cache().join("kernels").join(name))
    }
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Directory into which `tests/setup/setup.sh lab` put kernels, ZFS and virtme-ng.
pub fn cache() -> PathBuf {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    let root = match (set("NFSCOPE_CACHE"), set("XDG_CACHE_HOME"), set("HOME")) {
        (Some(cache), _, _) => PathBuf::from(cache),
        (None, Some(xdg), _) => PathBuf::from(xdg).join("nfscope"),
        (None, None, home) => PathBuf::from(home.unwrap_or_else(|| "/root".into()))
            .join(".cache")
            .join("nfscope"),
    };
    root.join("lab")
}
