//! Pages of the documentation: links, commands and paths in them exist, and sentences are short.

use crate::fixture::root;
use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use nfscope::cli::Cli;
use nfscope_model::family;
use nfscope_serve::http::PEER_STREAMS;
use nfscope_serve::service::breakdown_listeners::MAX_LISTENERS;
use nfscope_serve::service::slow_subscribers::MAX_SUBSCRIBERS;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Largest number of lines of the README: a page that an admin reads in a minute.
const README_LINES: usize = 130;
/// Largest number of words of a sentence. The rule is 25; a name or a number more is no reason to break a sentence.
const WORDS: usize = 32;
/// Folders of the repository. Paths that begin otherwise are those of another host.
const FOLDERS: [&str; 6] = ["agent", "probes", "dashboards", "deploy", "tests", "docs"];

/// Kind of a line of a page.
#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// Code in a block of this language.
    Code(String),
    Heading,
    Table,
    Text,
}

struct Page {
    /// Path from the root of the repository.
    path: PathBuf,
    lines: Vec<(Kind, String)>,
}

impl Page {
    fn read(path: &Path) -> Page {
        let text = fs::read_to_string(root().join(path)).unwrap();
        let mut block: Option<String> = None;
        // Generated parts stand between two comments; their sentences come from the program.
        let mut generated = false;
        let mut lines = Vec::new();
        for line in text.lines() {
            if let Some(language) = line.trim_start().strip_prefix("```") {
                block = match block {
                    Some(_) => None,
                    None => Some(language.trim().to_owned()),
                };
                continue;
            }
            if line.starts_with("<!--") {
                generated = !line.starts_with("<!-- end of");
            }
            let kind = match &block {
                Some(language) => Kind::Code(language.clone()),
                None if line.starts_with('#') => Kind::Heading,
                None if generated || line.starts_with(['|', '<']) => Kind::Table,
                None => Kind::Text,
            };
            lines.push((kind, line.to_owned()));
        }
        assert_eq!(
            block,
            None,
            "{}: a block of code has no end",
            path.display()
        );
        Page {
            path: path.to_owned(),
            lines,
        }
    }

    /// Lines outside code.
    fn prose(&self) -> impl Iterator<Item = &str> {
        let prose = self.lines.iter().filter(|l| !matches!(l.0, Kind::Code(_)));
        prose.map(|l| l.1.as_str())
    }

    /// Texts between backquotes.
    fn names(&self) -> Vec<String> {
        // Paragraphs as one text: a name may be broken over two lines.
        let text: String = self.prose().flat_map(|l| [l, "\n"]).collect();
        let pieces = text.split('`').skip(1).step_by(2);
        pieces
            .map(|p| p.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect()
    }

    /// Commands in blocks for a shell and in examples of help, without comments. Continued lines are joined.
    fn commands(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        let mut goes_on = false;
        for (kind, line) in &self.lines {
            let line = match kind {
                Kind::Code(l) if l == "sh" => line.as_str(),
                Kind::Code(l) if l == "console" => match line.strip_prefix("$ ") {
                    Some(command) => command,
                    None => continue,
                },
                // Examples of a help text: each has its explanation some columns further on.
                Kind::Code(l) if l == "text" => match line.strip_prefix("  ") {
                    Some(example) if goes_on || is_example(example) => {
                        example.trim_start().split("  ").next().unwrap()
                    }
                    _ => continue,
                },
                _ => continue,
            };
            let line = line.split(" #").next().unwrap().trim();
            let begin = line.trim_end_matches('\\').trim_end();
            match (goes_on, out.last_mut()) {
                (true, Some(last)) => *last += &format!(" {begin}"),
                _ => out.push(begin.to_owned()),
            }
            goes_on = line.ends_with('\\');
        }
        out.retain(|c| !c.is_empty() && !c.starts_with('#'));
        out
    }

    /// Anchors of headings, as the forge makes them.
    fn anchors(&self) -> BTreeSet<String> {
        let headings = self.lines.iter().filter(|l| l.0 == Kind::Heading);
        headings
            .map(|(_, line)| {
                let text = line.trim_start_matches('#').trim().to_lowercase();
                let kept = text
                    .chars()
                    .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
                kept.map(|c| if c == ' ' { '-' } else { c }).collect()
            })
            .collect()
    }
}

fn is_example(line: &str) -> bool {
    let line = line.strip_prefix("sudo ").unwrap_or(line);
    line.starts_with("nfscope ")
}

fn markdown(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(root().join(dir)).unwrap() {
        let entry = entry.unwrap();
        let path = dir.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            markdown(&path, out);
        } else if path.extension().is_some_and(|e| e == "md") {
            out.push(path);
        }
    }
}

fn pages() -> Vec<Page> {
    let mut paths: Vec<PathBuf> = ["README.md", "CONTRIBUTING.md", "dashboards/README.md"]
        .map(PathBuf::from)
        .into();
    markdown(Path::new("docs"), &mut paths);
    paths.sort();
    paths.iter().map(|p| Page::read(p)).collect()
}

/// Fails with all wrong items, not only with the first.
fn none(wrong: &[String]) {
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn links_in_pages_have_a_target() {
    let mut wrong = Vec::new();
    for page in pages() {
        for line in page.prose() {
            for target in line.split("](").skip(1).filter_map(|t| t.split(')').next()) {
                if target.contains("://") {
                    continue;
                }
                let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
                let from = page.path.parent().unwrap();
                let path = match file {
                    "" => page.path.clone(),
                    file => from.join(file),
                };
                let there = root().join(&path);
                let found = there.exists()
                    && (anchor.is_empty() || Page::read(&path).anchors().contains(anchor));
                if !found {
                    wrong.push(format!("{}: {target}", page.path.display()));
                }
            }
        }
    }
    none(&wrong);
}

#[test]
fn every_page_can_be_reached_from_the_readme() {
    let mut open = vec![PathBuf::from("README.md")];
    let mut seen = BTreeSet::new();
    while let Some(path) = open.pop() {
        if !seen.insert(path.clone()) {
            continue;
        }
        for line in Page::read(&path).prose() {
            for target in line.split("](").skip(1).filter_map(|t| t.split(')').next()) {
                let file = target.split('#').next().unwrap();
                let to = root().join(path.parent().unwrap()).join(file);
                let Ok(to) = to.canonicalize() else { continue };
                if to.extension().is_some_and(|e| e == "md") {
                    let to = to.strip_prefix(root().canonicalize().unwrap()).unwrap();
                    open.push(to.to_owned());
                }
            }
        }
    }
    let missed = pages().into_iter().filter(|p| !seen.contains(&p.path));
    let missed: Vec<_> = missed.map(|p| p.path.display().to_string()).collect();
    // Page that the forge shows with its folder.
    let missed: Vec<_> = missed
        .into_iter()
        .filter(|p| p != "dashboards/README.md")
        .collect();
    none(&missed);
}

/// Words of an `nfscope` command up to a pipe, a redirection or the next command. `None` for another program.
fn nfscope_words(command: &str) -> Option<Vec<&str>> {
    let mut words = command.split_whitespace().peekable();
    words.next_if_eq(&"sudo");
    let program = words.next()?;
    if program.rsplit('/').next() != Some("nfscope") {
        return None;
    }
    let ends = |w: &&str| !["|", ">", ">>", "&", "&&", ";", "||"].contains(w);
    Some(
        [program]
            .into_iter()
            .chain(words.take_while(ends))
            .collect(),
    )
}

/// True if a missing argument is a flag.
fn lacks_a_flag(error: &clap::Error) -> bool {
    let missing = error.get(ContextKind::InvalidArg);
    matches!(missing, Some(ContextValue::Strings(all)) if all.iter().any(|a| a.starts_with("--")))
}

#[test]
fn commands_in_pages_parse() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for page in pages() {
        let whole = page.commands().into_iter().map(|c| (c, true));
        // Commands in a text may lack their arguments. A flag must not lack another flag that it requires.
        let named = page.names().into_iter().map(|c| (c, false));
        for (command, whole) in whole.chain(named) {
            let Some(words) = nfscope_words(&command) else {
                continue;
            };
            seen += 1;
            let fine = match Cli::try_parse_from(&words) {
                Ok(_) => true,
                Err(e) => match e.kind() {
                    ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
                    ErrorKind::MissingRequiredArgument => !whole && !lacks_a_flag(&e),
                    ErrorKind::MissingSubcommand
                    | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => !whole,
                    _ => false,
                },
            };
            if !fine {
                wrong.push(format!("{}: {command}", page.path.display()));
            }
        }
    }
    none(&wrong);
    assert!(seen > 100, "only {seen} commands found");
}

#[test]
fn targets_of_make_exist() {
    let makefile = fs::read_to_string(root().join("Makefile")).unwrap();
    let targets: BTreeSet<_> = makefile
        .lines()
        .filter(|l| !l.starts_with(['\t', '#', '.']))
        .filter_map(|l| l.split_once(':'))
        .map(|(target, _)| target)
        .collect();
    let mut wrong = Vec::new();
    for page in pages() {
        for command in page.commands().into_iter().chain(page.names()) {
            let mut words = command.split_whitespace().skip_while(|w| *w == "sudo");
            if words.next() != Some("make") {
                continue;
            }
            if !words.next().is_some_and(|t| targets.contains(t)) {
                wrong.push(format!("{}: {command}", page.path.display()));
            }
        }
    }
    none(&wrong);
}

/// Names of the workspace's packages, and their folders.
fn packages() -> Vec<(String, PathBuf)> {
    let text = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let (_, members) = text.split_once("members = [").unwrap();
    let members = members.split(']').next().unwrap();
    let members = members.split('"').skip(1).step_by(2);
    members
        .map(|dir| {
            let dir = root().join(dir);
            let text = fs::read_to_string(dir.join("Cargo.toml")).unwrap();
            let (_, name) = text.split_once("name = \"").unwrap();
            (name.split('"').next().unwrap().to_owned(), dir)
        })
        .collect()
}

#[test]
fn packages_and_their_tests_exist() {
    let packages = packages();
    let mut wrong = Vec::new();
    for page in pages() {
        for command in page.commands().into_iter().chain(page.names()) {
            let words: Vec<_> = command.split_whitespace().collect();
            if !words.contains(&"cargo") {
                continue;
            }
            let values = |flag: &str| {
                let pairs = words.windows(2).filter(|w| w[0] == flag);
                pairs.map(|w| w[1]).collect::<Vec<_>>()
            };
            let named: Vec<_> = values("-p")
                .iter()
                .map(|name| packages.iter().find(|(n, _)| n == name))
                .collect();
            let tests_exist = values("--test").iter().all(|test| {
                named.iter().flatten().any(|(_, dir)| {
                    let tests = dir.join("tests");
                    let manifest = fs::read_to_string(dir.join("Cargo.toml")).unwrap();
                    tests.join(format!("{test}.rs")).exists()
                        || tests.join(test).join("main.rs").exists()
                        || manifest.contains(&format!("[[test]]\nname = \"{test}\"\n"))
                })
            });
            if named.contains(&None) || !tests_exist {
                wrong.push(format!("{}: {command}", page.path.display()));
            }
        }
    }
    none(&wrong);
}

#[test]
fn paths_in_pages_exist() {
    let mut wrong = Vec::new();
    for page in pages() {
        let names = page.names();
        let words: Vec<_> = names
            .iter()
            .filter(|n| !n.contains(' '))
            .cloned()
            .chain(page.commands().iter().flat_map(|c| {
                c.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<String>>()
            }))
            .collect();
        for word in words {
            let is_path = word.contains('/')
                && FOLDERS.contains(&word.split('/').next().unwrap())
                && !word.contains(['<', '*', '$', '{']);
            if is_path && !root().join(&word).exists() {
                wrong.push(format!("{}: {word}", page.path.display()));
            }
        }
    }
    none(&wrong);
}

/// Returns true for a family of the table, a series of a histogram, and the beginning of several names (`nfscope_nfs4_`).
fn is_metric(name: &str) -> bool {
    let find = |name: &str| family::ALL.iter().find(|f| f.name == name);
    let series = ["_bucket", "_count", "_sum"].iter().any(|part| {
        let family = name.strip_suffix(part).and_then(find);
        family.is_some_and(|f| matches!(f.kind, family::Kind::Histogram(_)))
    });
    series || find(name).is_some() || name.ends_with('_')
}

#[test]
fn metrics_exist() {
    let variables = "deploy/ansible/roles/nfscope/defaults/main.yml";
    let variables = fs::read_to_string(root().join(variables)).unwrap();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for page in pages() {
        for (_, line) in &page.lines {
            // Recorded series have colons; they are no names of the agent.
            let part = |c: char| !(c.is_ascii_alphanumeric() || "_:".contains(c));
            for name in line.split(part).filter(|n| n.starts_with("nfscope_")) {
                let file = name.starts_with("nfscope_0");
                if file || variables.contains(&format!("{name}:")) {
                    continue;
                }
                seen += 1;
                if !is_metric(name.trim_end_matches(':')) {
                    wrong.push(format!("{}: {name}", page.path.display()));
                }
            }
        }
    }
    none(&wrong);
    assert!(seen > 100, "only {seen} metrics found");
}

#[test]
fn limits_of_streams_are_those_of_the_agent() {
    let one = PEER_STREAMS;
    let mut wrong = Vec::new();
    for (page, said) in [
        (
            "docs/install.md",
            format!("at most {MAX_SUBSCRIBERS} listeners at once, {one} of them from one address"),
        ),
        (
            "docs/page.md",
            format!(
                "At most {MAX_SUBSCRIBERS} such streams run at once, and at most {one} of one address"
            ),
        ),
        (
            "docs/breakdown.md",
            format!("At most {MAX_LISTENERS} listen at once, and {one} from one address"),
        ),
        (
            "docs/commands.md",
            format!("at most {MAX_SUBSCRIBERS} clients, {one} of one address"),
        ),
    ] {
        if !fs::read_to_string(root().join(page))
            .unwrap()
            .contains(&said)
        {
            wrong.push(format!("{page} does not say: {said}"));
        }
    }
    none(&wrong);
}

/// Release of the workspace.
const RELEASE: &str = env!("CARGO_PKG_VERSION");

#[test]
fn every_file_names_the_same_release() {
    for (file, line) in [
        ("CHANGELOG.md", format!("\n## {RELEASE}, ")),
        (
            "deploy/helm/nfscope/Chart.yaml",
            format!("\nversion: {RELEASE}\nappVersion: \"{RELEASE}\"\n"),
        ),
        (
            "deploy/ansible/roles/nfscope/defaults/main.yml",
            format!("\nnfscope_version: {RELEASE}\n"),
        ),
        ("docs/install.md", format!("nfscope_{RELEASE}-1_amd64.deb")),
        ("README.md", format!("nfscope_{RELEASE}-1_amd64.deb")),
    ] {
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(&line), "{file} does not have {line:?}");
    }
}

/// Releases with a section of their own in CHANGELOG.md.
fn releases() -> Vec<String> {
    let changes = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let sections = changes.lines().filter_map(|l| l.strip_prefix("## "));
    sections
        .map(|s| s.split([',', ' ']).next().unwrap().to_owned())
        .collect()
}

#[test]
fn families_name_a_release_that_exists() {
    let releases = releases();
    let wrong: Vec<_> = family::ALL
        .iter()
        .filter(|f| !releases.iter().any(|r| r == f.since))
        .map(|f| format!("{} since {}", f.name, f.since))
        .collect();
    none(&wrong);
}

#[test]
fn the_readme_is_short() {
    let text = fs::read_to_string(root().join("README.md")).unwrap();
    let lines = text.lines().count();
    assert!(lines <= README_LINES, "{lines} lines");
}

/// Sentences outside code and tables. A name between backquotes is one word.
fn sentences(page: &Page) -> Vec<String> {
    let mut paragraphs = vec![String::new()];
    for (kind, line) in &page.lines {
        let text = line.trim_start();
        let item = text.starts_with("- ")
            || text
                .split_once(". ")
                .is_some_and(|(n, _)| n.parse::<u32>().is_ok());
        if *kind != Kind::Text || text.is_empty() || item {
            paragraphs.push(String::new());
        }
        if *kind == Kind::Text {
            let last = paragraphs.last_mut().unwrap();
            *last += text.trim_start_matches("- ");
            last.push(' ');
        }
    }
    let mut out = Vec::new();
    for paragraph in paragraphs {
        let mut plain = String::new();
        for (i, piece) in paragraph.split('`').enumerate() {
            plain += if i % 2 == 0 { piece } else { "NAME" };
        }
        let plain = plain.replace("? ", ". ").replace("! ", ". ");
        out.extend(plain.split(". ").map(|s| s.trim().to_owned()));
    }
    out
}

#[test]
fn sentences_in_pages_are_short() {
    let mut wrong = Vec::new();
    for page in pages() {
        for sentence in sentences(&page) {
            let words = sentence.split_whitespace().count();
            if words > WORDS {
                wrong.push(format!(
                    "{}: {words} words: {sentence}",
                    page.path.display()
                ));
            }
        }
    }
    none(&wrong);
}
