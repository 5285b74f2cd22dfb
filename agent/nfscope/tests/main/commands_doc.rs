//! Generated files: docs/commands.md is the `--help` of every command, and deploy/nfscope.toml has every setting. `UPDATE_GOLDEN=1`
//! rewrites them.

use crate::fixture::{golden, root};
use clap::{Command, CommandFactory};
use nfscope::cli::Cli;
use std::fmt::Write;

/// Columns of the help texts, which a page shows without scrolling.
const WIDTH: usize = 100;

const HEAD: &str = "\
# Commands

This page is the `--help` of every command, written by `UPDATE_GOLDEN=1 cargo test -p nfscope`.

Durations have a unit: `500us`, `10ms`, `2s`, `5m`, `24h`, `7d`. Only 0 needs none.

";

/// Appends the help of `command` and of all commands below it, in the order of `--help`.
fn sections(command: &Command, name: &str, out: &mut Vec<(String, String)>) {
    let mut own = command.clone().bin_name(name).term_width(WIDTH);
    let help = own.render_long_help().to_string();
    let lines = help.lines().map(|l| l.trim_end().to_owned() + "\n");
    out.push((name.to_owned(), lines.collect()));
    let shown = |c: &&Command| c.get_name() != "help" && !c.is_hide_set();
    for below in command.get_subcommands().filter(shown) {
        sections(below, &format!("{name} {}", below.get_name()), out);
    }
}

fn page() -> String {
    let mut all = Vec::new();
    sections(&Cli::command(), "nfscope", &mut all);
    let mut out = HEAD.to_owned();
    for (name, _) in &all {
        let _ = writeln!(out, "- [{name}](#{})", name.replace(' ', "-"));
    }
    for (name, help) in &all {
        let _ = write!(out, "\n## {name}\n\n```text\n{}\n```\n", help.trim_end());
    }
    out
}

#[test]
fn the_page_is_the_help_of_every_command() {
    let path = root().join("docs/commands.md");
    let page = page();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        page == there,
        "{} differs; UPDATE_GOLDEN=1 writes it anew",
        path.display()
    );
}

#[test]
fn the_reference_of_the_configuration_has_every_key() {
    golden(
        "../../../../deploy/nfscope.toml",
        &nfscope::agent::config::reference(),
    );
}
