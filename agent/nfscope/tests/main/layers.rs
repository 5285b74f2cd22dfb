//! Layers: dependencies run one way, between crates, between folders and between files. An edge that is not listed here fails.
//!
//! cargo keeps crates free of circles; which crate may use which, and which libraries, is listed here. Files are read as text: what
//! a file names by `crate::`, `self::`, `super::` or by a child's name, outside of comments and tests. Re-exports are followed to
//! the file that defines the item, so that a `lib.rs` that only declares and re-exports is in nobody's way.

use crate::fixture::root;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use toml::Table;

/// Crates by folder, lowest layer first, each with those of ours that it may use.
const CRATES: [(&str, &[&str]); 10] = [
    ("probes", &[]),
    ("agent/model", &[]),
    ("agent/text", &["nfscope-model"]),
    ("agent/stats", &["nfscope-model"]),
    ("agent/source", &["nfscope-model", "nfscope-probes"]),
    (
        "agent/whatif",
        &["nfscope-model", "nfscope-stats", "nfscope-text"],
    ),
    ("agent/diagnose", &["nfscope-model", "nfscope-text"]),
    (
        "agent/baseline",
        &["nfscope-model", "nfscope-stats", "nfscope-text"],
    ),
    (
        "agent/nfscope",
        &[
            "nfscope-baseline",
            "nfscope-diagnose",
            "nfscope-model",
            "nfscope-source",
            "nfscope-stats",
            "nfscope-text",
            "nfscope-whatif",
        ],
    ),
    // The program is run, not linked. Of the probes, measurements give it some without a feature.
    (
        "tests",
        &[
            "nfscope-diagnose",
            "nfscope-model",
            "nfscope-probes",
            "nfscope-whatif",
        ],
    ),
];

/// Libraries that only these crates may use: what meets the kernel, the database, the command line, HTTP and the terminal.
const LIBRARIES: [(&str, &[&str]); 21] = [
    ("libbpf-rs", &["agent/source", "probes"]),
    ("landlock", &["agent/source"]),
    ("seccompiler", &["agent/source"]),
    ("caps", &["agent/source"]),
    ("libc", &["agent/source"]),
    ("rusqlite", &["agent/baseline"]),
    ("postcard", &["agent/baseline"]),
    ("flate2", &["agent/baseline", "agent/nfscope", "tests"]),
    ("maud", &["agent/baseline", "agent/nfscope"]),
    ("statrs", &["agent/stats"]),
    ("clap", &["agent/nfscope", "tests"]),
    ("tokio", &["agent/nfscope"]),
    ("hyper", &["agent/nfscope"]),
    ("ratatui", &["agent/nfscope"]),
    ("rustls", &["agent/nfscope"]),
    ("ring", &["agent/nfscope", "tests"]),
    ("bcrypt", &["agent/nfscope"]),
    ("rmcp", &["agent/nfscope"]),
    ("saphyr", &["agent/nfscope"]),
    ("listenfd", &["agent/nfscope"]),
    ("prometheus-client", &["agent/nfscope"]),
];

/// Crates with unsafe code: system calls of BPF and perf, bytes of maps as values, and C that the tests call.
const UNSAFE: [&str; 2] = ["agent/source", "probes"];

/// Folders of a crate, each with those that it may use.
type Folders = &'static [(&'static str, &'static [&'static str])];

/// Folders of the program, lowest first. `main.rs` and `lib.rs` are the folder "".
const PROGRAM: Folders = &[
    ("api", &[]),
    ("exposition", &["api"]),
    ("workload", &[]),
    ("client", &["api"]),
    ("versions", &["client", "workload"]),
    ("names", &[]),
    ("doctor", &[]),
    ("mcp", &["api", "client"]),
    ("service", &["api", "exposition", "names"]),
    ("tui", &["api", "client"]),
    ("endpoints", &["api", "exposition", "service"]),
    ("http", &["api", "endpoints", "exposition", "service"]),
    ("cli", &["api", "endpoints", "versions", "workload"]),
    (
        "commands",
        &[
            "api",
            "cli",
            "client",
            "doctor",
            "endpoints",
            "exposition",
            "http",
            "mcp",
            "names",
            "service",
            "tui",
            "versions",
            "workload",
        ],
    ),
    ("", &["api", "cli", "client", "commands", "http"]),
];

/// Folders of the Linux source.
const LINUX: Folders = &[
    ("host", &[]),
    ("load", &["host"]),
    ("read", &["host", "load"]),
    ("", &["host", "load", "read"]),
];

/// Names in the tables of dependencies of a crate, of every target; without those of its tests.
fn dependencies(folder: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
    let manifest: Table = text.parse().unwrap();
    let mut tables = vec![&manifest];
    if let Some(targets) = manifest.get("target").and_then(|t| t.as_table()) {
        tables.extend(targets.values().filter_map(|t| t.as_table()));
    }
    let names = tables
        .into_iter()
        .filter_map(|t| t.get("dependencies")?.as_table())
        .flat_map(|t| t.keys().cloned());
    names.collect()
}

#[test]
fn crates_use_only_what_is_below_them() {
    let ours: BTreeSet<_> = CRATES.iter().flat_map(|(_, below)| below.iter()).collect();
    for (folder, allowed) in CRATES {
        for name in dependencies(folder) {
            let ours = ours.contains(&name.as_str()) || name == "nfscope";
            assert!(
                !ours || allowed.contains(&name.as_str()),
                "{folder} uses {name}, which is not below it"
            );
            let only = LIBRARIES.iter().find(|(library, _)| *library == name);
            assert!(
                only.is_none_or(|(_, crates)| crates.contains(&folder)),
                "{folder} uses {name}, which is for {only:?} alone"
            );
        }
    }
}

#[test]
fn every_crate_is_listed() {
    let text = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: Table = text.parse().unwrap();
    let members = manifest["workspace"]["members"].as_array().unwrap();
    let members: BTreeSet<_> = members.iter().filter_map(|m| m.as_str()).collect();
    assert_eq!(members, CRATES.iter().map(|(folder, _)| *folder).collect());
}

#[test]
fn unsafe_code_is_where_it_is_needed() {
    for (folder, _) in CRATES.iter().filter(|(f, _)| !UNSAFE.contains(f)) {
        for start in ["src/lib.rs", "src/main.rs"] {
            let Ok(text) = fs::read_to_string(root().join(folder).join(start)) else {
                continue;
            };
            assert!(
                text.contains("#![forbid(unsafe_code)]"),
                "{folder}/{start} does not forbid unsafe code"
            );
        }
    }
}

/// One crate's files and what they name of each other.
struct Files {
    /// Text by module path: `["linux", "host", "mounts"]`; the crate's root is empty.
    texts: BTreeMap<Vec<String>, String>,
    /// What a module re-exports: name and the path, from the crate's root, that it stands for.
    exports: BTreeMap<(Vec<String>, String), Vec<String>>,
}

impl Files {
    fn read(src: &Path) -> Files {
        let mut files = Files {
            texts: BTreeMap::new(),
            exports: BTreeMap::new(),
        };
        files.read_folder(src, &[]);
        let modules: Vec<_> = files.texts.keys().cloned().collect();
        for module in modules {
            for (path, alias, public) in files.uses(&module) {
                let name = alias.or_else(|| path.last().cloned());
                if let (true, Some(name)) = (public, name) {
                    files.exports.insert((module.clone(), name), path);
                }
            }
        }
        files
    }

    fn read_folder(&mut self, folder: &Path, module: &[String]) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
            let mut inner = module.to_vec();
            if path.is_dir() {
                inner.push(stem);
                self.read_folder(&path, &inner);
            } else if path.extension().is_some_and(|e| e == "rs") && stem != "tests" {
                if !matches!(&*stem, "lib" | "main" | "mod") {
                    inner.push(stem);
                }
                let text = code(&fs::read_to_string(&path).unwrap());
                *self.texts.entry(inner).or_default() += &text;
            }
        }
    }

    /// Paths of `use` declarations from the crate's root, with their aliases, and whether they are re-exports.
    fn uses(&self, module: &[String]) -> Vec<(Vec<String>, Option<String>, bool)> {
        let mut out = Vec::new();
        for declaration in self.texts[module].split(';') {
            let Some(at) = find_use(declaration) else {
                continue;
            };
            let public = declaration[..at].trim_end().ends_with(['b', ')']);
            let mut leaves = Vec::new();
            use_tree(&declaration[at + 4..], &[], &mut leaves);
            for (path, alias) in leaves {
                if let Some(path) = self.absolute(module, &path) {
                    out.push((path, alias, public));
                }
            }
        }
        out
    }

    /// A path as written in a module, from the crate's root; `None` for another crate's.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<Vec<String>> {
        let mut base = module.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &path[1..];
            }
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|s| s == "super") {
                    base.pop()?;
                    rest = &rest[1..];
                }
            }
            child => {
                base.push(child.to_owned());
                self.texts.get(&base)?;
                base.pop();
            }
        }
        base.extend(rest.iter().cloned());
        Some(base)
    }

    /// The module that defines what a path from the root names.
    fn home(&self, path: &[String]) -> Vec<String> {
        let mut n = path.len();
        while n > 0 && !self.texts.contains_key(&path[..n]) {
            n -= 1;
        }
        let module = path[..n].to_vec();
        if let Some(item) = path.get(n)
            && let Some(target) = self.exports.get(&(module.clone(), item.clone()))
            && target != path
        {
            return self.home(target);
        }
        module
    }

    /// For each module those that it names.
    fn edges(&self) -> BTreeMap<Vec<String>, BTreeSet<Vec<String>>> {
        let mut out = BTreeMap::new();
        for (module, text) in &self.texts {
            let used = self
                .uses(module)
                .into_iter()
                .filter(|(_, _, public)| !public);
            let mut named: Vec<_> = used.map(|(path, _, _)| path).collect();
            let rest = text.split(';').filter(|d| find_use(d).is_none());
            let rest: Vec<_> = rest.flat_map(paths).collect();
            named.extend(rest.iter().filter_map(|path| self.absolute(module, path)));
            let mut homes: BTreeSet<_> = named.iter().map(|path| self.home(path)).collect();
            homes.remove(module);
            out.insert(module.clone(), homes);
        }
        out
    }
}

/// A file without comments and without the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or("");
    let lines = text.lines().filter(|l| !l.trim_start().starts_with("//"));
    lines.flat_map(|l| [l, "\n"]).collect()
}

/// Where `use ` begins in a declaration.
fn find_use(declaration: &str) -> Option<usize> {
    let line = declaration.rfind("\n\n").map_or(0, |i| i + 2);
    let tail = &declaration[line..];
    let at = tail
        .match_indices("use ")
        .map(|(i, _)| i)
        .find(|&i| i == 0 || tail[..i].ends_with(['\n', ' ']))?;
    let before = tail[..at].trim_start_matches(|c| c != '\n').trim();
    (before.is_empty() || before.starts_with("pub") || before.ends_with(['{', '}', ']']))
        .then_some(line + at)
}

/// Leaves of `a::{b, c::d as e}`.
fn use_tree(tree: &str, prefix: &[String], out: &mut Vec<(Vec<String>, Option<String>)>) {
    let tree = tree.trim();
    let Some(brace) = tree.find('{') else {
        if !tree.is_empty() {
            let (path, alias) = match tree.split_once(" as ") {
                Some((path, alias)) => (path, Some(alias.trim().to_owned())),
                None => (tree, None),
            };
            let mut all = prefix.to_vec();
            all.extend(path.split("::").map(|s| s.trim().to_owned()));
            if all.last().is_some_and(|l| l == "self" && all.len() > 1) {
                all.pop();
            }
            out.push((all, alias));
        }
        return;
    };
    let mut all = prefix.to_vec();
    let head = tree[..brace].trim().trim_end_matches("::");
    all.extend(
        head.split("::")
            .filter(|s| !s.is_empty())
            .map(str::to_owned),
    );
    let body = &tree[brace + 1..tree.rfind('}').unwrap_or(tree.len())];
    let (mut depth, mut from) = (0, 0);
    for (i, c) in body.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                use_tree(&body[from..i], &all, out);
                from = i + 1;
            }
            _ => {}
        }
    }
    use_tree(&body[from..], &all, out);
}

/// Paths in a text that have at least two parts: `crate::a::b`, `child::f`.
fn paths(text: &str) -> Vec<Vec<String>> {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = Vec::new();
    for (at, _) in text.match_indices("::") {
        let from = text[..at].rfind(|c| !word(c)).map_or(0, |i| {
            i + text[i..].chars().next().map_or(1, char::len_utf8)
        });
        // Only where a path begins.
        if from == at || text[..from].ends_with("::") {
            continue;
        }
        let end = text[from..]
            .find(|c| !word(c) && c != ':')
            .map_or(text.len(), |i| from + i);
        let parts = text[from..end].split("::").filter(|s| !s.is_empty());
        out.push(parts.map(str::to_owned).collect());
    }
    out
}

fn sources() -> Vec<(&'static str, Files)> {
    let crates = CRATES.iter().map(|(folder, _)| *folder);
    let read = |folder: &'static str| (folder, Files::read(&root().join(folder).join("src")));
    crates.map(read).collect()
}

/// Modules that reach each other, where there are any.
fn circle(edges: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>) -> Vec<String> {
    let reach = |from: &Vec<String>| {
        let (mut seen, mut next) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(at) = next.pop() {
            for to in edges.get(&at).into_iter().flatten() {
                if seen.insert(to.clone()) {
                    next.push(to.clone());
                }
            }
        }
        seen
    };
    let within: BTreeSet<_> = edges.keys().filter(|m| reach(m).contains(*m)).collect();
    let mut out = Vec::new();
    for from in &within {
        for to in edges[*from].iter().filter(|to| within.contains(to)) {
            if reach(to).contains(*from) {
                out.push(format!("{} uses {}", from.join("::"), to.join("::")));
            }
        }
    }
    out
}

#[test]
fn no_files_use_each_other_in_a_circle() {
    for (folder, files) in sources() {
        let circle = circle(&files.edges());
        assert!(circle.is_empty(), "{folder}:\n  {}", circle.join("\n  "));
    }
}

/// `within`: the module whose folders these are; what lies beside it is not looked at.
fn folders_keep_their_order(src: &str, within: &[&str], allowed: Folders) {
    let files = Files::read(&root().join(src));
    let path: PathBuf = within.iter().collect();
    let path = root().join(src).join(path);
    let folder = |module: &Vec<String>| {
        let inside = module.len() >= within.len() && module.iter().zip(within).all(|(m, w)| m == w);
        let inner = inside.then(|| &module[within.len()..])?;
        let first = inner.first().filter(|name| path.join(name).is_dir());
        Some(first.cloned().unwrap_or_default())
    };
    for (module, used) in files.edges() {
        let Some(from) = folder(&module) else {
            continue;
        };
        let listed = allowed.iter().find(|(name, _)| *name == from);
        let (_, below) = listed.unwrap_or_else(|| panic!("{src}: {from} is not listed"));
        for to in used {
            let Some(folder) = folder(&to) else { continue };
            assert!(
                folder == from || below.contains(&folder.as_str()),
                "{src}: {} uses {}; {from:?} may only use {below:?}",
                module.join("::"),
                to.join("::")
            );
        }
    }
}

#[test]
fn folders_of_the_program_use_only_what_is_below_them() {
    folders_keep_their_order("agent/nfscope/src", &[], PROGRAM);
}

#[test]
fn folders_of_the_linux_source_use_only_what_is_below_them() {
    folders_keep_their_order("agent/source/src", &["linux"], LINUX);
}

#[test]
fn names_are_found_as_rust_finds_them() {
    let mut leaves = Vec::new();
    use_tree("crate::{a, b::{self, C as D}}", &[], &mut leaves);
    let leaves: Vec<_> = leaves
        .iter()
        .map(|(p, a)| (p.join("::"), a.clone()))
        .collect();
    assert_eq!(
        leaves,
        [
            ("crate::a".to_owned(), None),
            ("crate::b".to_owned(), None),
            ("crate::b::C".to_owned(), Some("D".to_owned()))
        ]
    );
    let found = paths("let x = super::f(y::g(), <T as Z>::h, crate::m::N::new());");
    let found: Vec<_> = found.iter().map(|p| p.join("::")).collect();
    assert_eq!(found, ["super::f", "y::g", "crate::m::N::new"]);
    let edges = |pairs: &[(&str, &str)]| {
        let mut out: BTreeMap<Vec<String>, BTreeSet<Vec<String>>> = BTreeMap::new();
        for (from, to) in pairs {
            let to = vec![(*to).to_owned()];
            out.entry(to.clone()).or_default();
            out.entry(vec![(*from).to_owned()]).or_default().insert(to);
        }
        out
    };
    assert!(circle(&edges(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    let found = circle(&edges(&[("a", "b"), ("b", "c"), ("c", "b")]));
    assert_eq!(found, ["b uses c", "c uses b"]);
}
