//! The kernel functions by which the diagnosis names a sleep, and which of the lab's kernels have them in their modules.
//!
//! Names come from the modules' symbol tables (ELF, .symtab). Their string tables alone do not do: linkers merge tails, and `lock_rename` is
//! then a part of `unlock_rename` (bfd/elf-strtab.c of binutils).
//!
//! The table is compared whole: a kernel that calls a function otherwise changes it, and the test fails. Until then a sleep there is of
//! unknown kind, because stacks are compared by name alone.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
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

/// Names of functions of a kernel's modules.
#[derive(Debug, Default)]
struct Names {
    /// Functions of the modules themselves.
    defined: BTreeSet<String>,
    /// Functions that a module calls or refers to, of another module or of the kernel itself.
    imported: BTreeSet<String>,
    /// Modules that this kernel does not have as files.
    missing: Vec<&'static str>,
}

/// Little-endian number of up to eight bytes at an offset.
fn number(file: &[u8], at: usize, bytes: usize) -> Result<usize> {
    let part = at.checked_add(bytes).and_then(|end| file.get(at..end));
    let part = part.with_context(|| format!("{bytes} bytes at {at} are behind the file's end"))?;
    let value = part
        .iter()
        .rev()
        .fold(0_u64, |n, b| (n << 8) | u64::from(*b));
    Ok(usize::try_from(value)?)
}

impl Names {
    /// Adds the names of a module: an ELF file of 64 bits, little endian (elf(5)).
    fn add(&mut self, file: &[u8]) -> Result<()> {
        ensure!(
            file.starts_with(b"\x7fELF\x02\x01"),
            "it is no ELF file of 64 bits, little endian"
        );
        let (headers, size) = (number(file, 0x28, 8)?, number(file, 0x3a, 2)?);
        // A file with 0xff00 sections or more has their number in the first one.
        let count = match number(file, 0x3c, 2)? {
            0 => number(file, headers + 0x20, 8)?,
            n => n,
        };
        let header = |n: usize| headers + n * size;
        const SHT_SYMTAB: usize = 2;
        for section in (0..count).map(header) {
            if number(file, section + 4, 4)? == SHT_SYMTAB {
                let (at, length) = (
                    number(file, section + 24, 8)?,
                    number(file, section + 32, 8)?,
                );
                let strings = header(number(file, section + 40, 4)?);
                return self.add_symbols(file, (at, length), number(file, strings + 24, 8)?);
            }
        }
        bail!("it has no symbol table: was it stripped?")
    }

    fn add_symbols(&mut self, file: &[u8], table: (usize, usize), strings: usize) -> Result<()> {
        const SYMBOL: usize = 24;
        const STT_FUNC: usize = 2;
        const SHN_UNDEF: usize = 0;
        let (at, length) = table;
        for symbol in (0..length / SYMBOL).map(|n| at + n * SYMBOL) {
            let begin = strings + number(file, symbol, 4)?;
            let name = file
                .get(begin..)
                .and_then(|rest| rest.split(|b| *b == 0).next());
            let name =
                name.with_context(|| format!("a name at {begin} is behind the file's end"))?;
            let name = String::from_utf8_lossy(name).into_owned();
            let is_function = number(file, symbol + 4, 1)? & 0xf == STT_FUNC;
            // The type of an undefined symbol is not known: it is one of data, too.
            if number(file, symbol + 6, 2)? == SHN_UNDEF {
                self.imported.insert(name);
            } else if is_function {
                self.defined.insert(name);
            }
        }
        Ok(())
    }

    /// Cell of the table for functions whose names begin like that.
    fn cell(&self, begin: &str) -> &'static str {
        let has = |names: &BTreeSet<String>| {
            let first = names.range(begin.to_owned()..).next();
            first.is_some_and(|name| name.starts_with(begin))
        };
        match (has(&self.defined), has(&self.imported)) {
            (true, _) => "yes",
            (false, true) => "imported",
            (false, false) => "-",
        }
    }
}

fn names(kernel: Kernel) -> Result<Names> {
    let mut all = BTreeMap::new();
    modules(&kernel.modules()?.join("kernel"), &mut all)?;
    let mut found = Names::default();
    let mut wanted = Vec::new();
    for module in MODULES {
        match all.remove(module) {
            Some(path) => wanted.push(path),
            None => found.missing.push(module),
        }
    }
    if Kernel::ZFS.contains(&kernel) {
        let mut zfs = BTreeMap::new();
        modules(&kernel.zfs()?.join("modules"), &mut zfs)?;
        wanted.extend(zfs.into_values());
    }
    for path in wanted {
        let file = fs::read(&path).with_context(|| format!("{}", path.display()))?;
        let added = found.add(&file);
        added.with_context(|| format!("{}", path.display()))?;
    }
    Ok(found)
}

/// Module with three symbols: function `unlock_rename`, object `lock_table`, and the undefined `lock_rename`, whose name is the tail of
/// the first one's.
fn module_with_merged_tails() -> Vec<u8> {
    let strings = b"\0unlock_rename\0lock_table\0";
    // Name, type, section.
    let symbols = [(0, 0, 0), (1, 2, 1), (15, 1, 1), (3, 0, 0)];
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(64, 0);
    let strings_at = file.len();
    file.extend(strings);
    let symbols_at = file.len();
    for (name, kind, section) in symbols {
        file.extend(u32::to_le_bytes(name));
        file.extend([kind, 0]);
        file.extend(u16::to_le_bytes(section));
        file.extend([0; 16]);
    }
    let headers_at = file.len();
    // Type, offset, size and linked section: none, the symbols, the strings.
    for (kind, at, length, link) in [
        (0, 0, 0, 0),
        (2, symbols_at, 24 * symbols.len(), 2),
        (3, strings_at, strings.len(), 0),
    ] {
        let mut header = [0; 64];
        header[4..8].copy_from_slice(&u32::to_le_bytes(kind));
        header[24..32].copy_from_slice(&(at as u64).to_le_bytes());
        header[32..40].copy_from_slice(&(length as u64).to_le_bytes());
        header[40..44].copy_from_slice(&u32::to_le_bytes(link));
        file.extend(header);
    }
    file[0x28..0x30].copy_from_slice(&(headers_at as u64).to_le_bytes());
    file[0x3a] = 64;
    file[0x3c] = 3;
    file
}

#[test]
fn names_are_those_of_the_symbol_table() -> Result<()> {
    let file = module_with_merged_tails();
    let mut names = Names::default();
    names.add(&file)?;
    for (begin, cell) in [
        ("unlock_rename", "yes"),
        ("unlock_", "yes"),
        ("lock_rename", "imported"),
        ("lock_table", "-"),
        ("rename", "-"),
        ("unlock_rename_", "-"),
    ] {
        ensure!(names.cell(begin) == cell, "{begin}: {}", names.cell(begin));
    }
    ensure!(Names::default().add(&file[..100]).is_err());
    ensure!(Names::default().add(b"text").is_err());
    Ok(())
}

#[test]
fn functions_of_stacks_are_those_of_the_kernels() -> Result<()> {
    let all: Vec<_> = KERNELS.into_iter().map(names).collect::<Result<_>>()?;
    let missing: Vec<_> = MODULES
        .iter()
        .filter_map(|module| {
            let without = KERNELS.iter().zip(&all);
            let without = without.filter(|(_, names)| names.missing.contains(module));
            let without: Vec<_> = without.map(|(kernel, _)| kernel.name()).collect();
            (!without.is_empty()).then(|| format!("{module} of {}", without.join(", ")))
        })
        .collect();
    let mut table = format!(
        "# Functions in kernel stacks\n\n\
         <!-- written by UPDATE_GOLDEN=1 cargo test -p lab --test suites functions_of -->\n\n\
         The diagnosis names a sleep by these functions, or by those that begin like that. A kernel without one shows another function, \
         which\nis printed as it is: no cause is said.\n\n\
         These modules were looked at: {},\nand those of OpenZFS on {}. Not there as files: {}.\n\n\
         - yes: a module has the function\n\
         - imported: a module refers to it, and another module or the kernel itself has it\n\
         - a dash: no module has it or refers to it; the kernel itself may have it\n\n\
         | function | stands for | 5.10 | 6.1 | 6.12 | 6.18 | 7.2 |\n| --- | --- | --- | --- | --- | --- | --- |\n",
        MODULES.join(", "),
        Kernel::ZFS.map(Kernel::name).join(" and "),
        match missing.is_empty() {
            true => "none".to_owned(),
            false => missing.join("; "),
        },
    );
    for (begin, stands_for) in functions() {
        let cells: Vec<_> = all.iter().map(|names| names.cell(begin)).collect();
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
