//! Reference configuration file: every key with its help and its built-in value, all commented out.

use super::table::{SETTINGS, Settings};
use crate::cli::Cli;
use clap::CommandFactory;
use nfscope_text::wrap::wrap;
use std::fmt::Write;

const HEAD: &str = "\
# Settings of `nfscope agent`. Each line that begins with `#` and a key shows the built-in value.
# A variable of the environment overrides this file, and a flag overrides both. A flag without a
# value, such as `--probe-stats`, cannot undo what this file or a variable sets.
# `kill -HUP` of the agent applies the keys that say so. All others apply at the next start.

";

/// Example value of a key that has no built-in value.
fn example(section: &str, key: &str) -> &'static str {
    match key {
        "file" if section == "names" => "\"/etc/nfscope/names.toml\"",
        "directory" => "\"/var/lib/nfscope\"",
        _ => "\"/etc/nfscope/web.yml\"",
    }
}

/// Columns of a line.
const WIDTH: usize = 100;

/// Text of the reference file.
pub fn reference() -> String {
    let cli = Cli::command();
    let agent = cli.find_subcommand("agent");
    let built_in = Settings::default();
    let mut out = HEAD.to_owned();
    let mut section = "";
    for s in SETTINGS {
        if section != s.section {
            section = s.section;
            let _ = writeln!(out, "[{section}]");
        }
        let flag = agent.and_then(|a| a.get_arguments().find(|a| a.get_long() == Some(s.flag)));
        let help = flag.and_then(|f| f.get_help()).map(ToString::to_string);
        let mut text = s.about.map_or(help.unwrap_or_default(), str::to_owned);
        if let Some((before, _)) = text.split_once(" [default:") {
            text.truncate(before.len());
        }
        let mut paragraph = String::new();
        wrap(&mut paragraph, WIDTH - 2, "", &format!("{text}."));
        for line in paragraph.lines() {
            let _ = writeln!(out, "# {line}");
        }
        let reload = if s.reloads { " Reloads." } else { "" };
        let _ = writeln!(out, "# --{}, {}.{reload}", s.flag, s.variable);
        let mut value = (s.get)(&built_in);
        if value.is_empty() {
            let _ = writeln!(out, "# There is no built-in value. This is an example.");
            example(s.section, s.key).clone_into(&mut value);
        }
        let _ = writeln!(out, "#{} = {value}\n", s.key);
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::config::file;
    use std::path::Path;

    /// All commented-out keys of the reference, with the comment sign removed, are a valid file.
    #[test]
    fn the_reference_is_a_file_that_changes_nothing() {
        let lines = reference();
        let active: Vec<_> = lines
            .lines()
            .map(|l| match l.strip_prefix('#') {
                Some(key) if !key.starts_with(' ') => key,
                _ => l,
            })
            .collect();
        let mut settings = Settings::default();
        file::apply(&mut settings, Path::new("reference"), &active.join("\n")).unwrap();
        for s in SETTINGS {
            let built_in = match (s.get)(&Settings::default()) {
                none if none.is_empty() => example(s.section, s.key).to_owned(),
                value => value,
            };
            assert_eq!((s.get)(&settings), built_in, "{}", s.key);
            let set = format!("{} = ", s.key);
            assert_eq!(active.iter().filter(|l| l.starts_with(&set)).count(), 1);
        }
        let mut as_it_is = Settings::default();
        file::apply(&mut as_it_is, Path::new("reference"), &lines).unwrap();
    }
}
