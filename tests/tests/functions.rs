//! The kernel functions by which the diagnosis names a sleep, and which of the lab's kernels have them in their modules.
//!
//! The table is compared whole: a kernel that calls a function otherwise changes it, and the test fails. Until then a sleep there is of
//! unknown kind, because stacks are compared by name alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lab::Kernel;
use nfscope_diagnose::observed::functions;

/// Modules that have such functions.
const MODULES: [&str; 12] = [
    "btrfs", "ext4", "f2fs", "fuse", "jbd2", "lockd", "nfs", "nfsd", "nfsv3", "nfsv4", "sunrpc",
    "xfs",
];
const KERNELS: [Kernel; 5] = [
    Kernel::V5_10,
    Kernel::V6_1,
    Kernel::V6_12,
    Kernel::V6_18,
    Kernel::V7_2,
];

/// Module files below a directory, by name.
fn modules(dir: &Path, into: &mut BTreeMap<String, PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("{}", dir.display()))? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            modules(&path, into)?;
        } else if path.extension().is_some_and(|e| e == "ko") {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            into.insert(name.into_owned(), path);
        }
    }
    Ok(())
}

/// Text of a kernel's modules, their names of functions in it.
fn texts(kernel: Kernel) -> Result<Vec<Vec<u8>>> {
    let mut all = BTreeMap::new();
    modules(&kernel.modules()?.join("kernel"), &mut all)?;
    let mut wanted: Vec<_> = MODULES
        .iter()
        .filter_map(|m| all.get(*m).cloned())
        .collect();
    if Kernel::ZFS.contains(&kernel) {
        let mut zfs = BTreeMap::new();
        modules(&kernel.zfs()?.join("modules"), &mut zfs)?;
        wanted.extend(zfs.into_values());
    }
    wanted.iter().map(|p| Ok(fs::read(p)?)).collect()
}

/// True if a function begins like that: names in a module's table of strings begin behind a zero.
fn has(text: &[u8], begin: &str) -> bool {
    let mut sought = vec![0];
    sought.extend(begin.as_bytes());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|b| *b == 0) {
        rest = &rest[at..];
        if rest.starts_with(&sought) {
            return true;
        }
        rest = &rest[1..];
    }
    false
}

#[test]
fn functions_of_stacks_are_those_of_the_kernels() -> Result<()> {
    let texts: Vec<_> = KERNELS.into_iter().map(texts).collect::<Result<_>>()?;
    let mut table = String::from(
        "# Functions in kernel stacks\n\n\
         <!-- written by UPDATE_GOLDEN=1 cargo test -p lab --test suites functions_of -->\n\n\
         The diagnosis names a sleep by these functions, or by those that begin like that. A kernel without one shows another function, \
         which\nis printed as it is: no cause is said.\n\n\
         A dash stands for a function that none of the modules has that were looked at: btrfs, ext4, f2fs, fuse, jbd2, lockd, nfs, \
         nfsd, sunrpc,\nxfs, and those of OpenZFS on 6.1 and 6.12. Functions of the kernel itself are in no module.\n\n\
         | function | stands for | 5.10 | 6.1 | 6.12 | 6.18 | 7.2 |\n| --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for (begin, stands_for) in functions() {
        let found = texts
            .iter()
            .map(|all| match all.iter().any(|t| has(t, begin)) {
                true => "yes",
                false => "-",
            });
        let cells: Vec<_> = found.collect();
        table += &format!("| `{begin}` | {stands_for} | {} |\n", cells.join(" | "));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/develop/functions.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &table)?;
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    ensure!(
        golden == table,
        "docs/develop/functions.md differs from what the kernels have; UPDATE_GOLDEN=1 rewrites it:\n{table}"
    );
    Ok(())
}
