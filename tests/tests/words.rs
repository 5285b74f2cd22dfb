//! Rules of `docs/develop/words.md`, as `tests/words.py` applies them to the added lines of a diff.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// Lines that the program prints about a diff.
fn problems(diff: &str) -> Result<Vec<String>> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("words.py");
    let mut child = Command::new(&program)
        .args(["--diff", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| program.display().to_string())?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    stdin.write_all(diff.as_bytes())?;
    drop(stdin);
    let output = child.wait_with_output()?;
    let printed: Vec<_> = String::from_utf8(output.stdout)?
        .lines()
        .map(str::to_owned)
        .collect();
    ensure!(
        output.status.code() == Some(i32::from(!printed.is_empty())),
        "exit status {}",
        output.status
    );
    Ok(printed)
}

/// A diff that adds lines to `agent/model/src/x.rs` after its line 10.
fn added(lines: &[&str]) -> String {
    let lines: String = lines.iter().map(|l| format!("+{l}\n")).collect();
    format!(
        "--- a/agent/model/src/x.rs\n+++ b/agent/model/src/x.rs\n@@ -10,1 +10,9 @@\n fn x() {{}}\n{lines}"
    )
}

#[test]
fn private_words_and_comments_without_a_noun_are_refused() -> Result<()> {
    for (lines, at) in [
        (&["fn f() {}", "/// What comes is of the client."][..], "12"),
        (&["fn f() {}", "// It is the newest one."], "12"),
        (&["fn f() {}", "// Of two, the newer one."], "12"),
        (&["fn f() {}", "/// One of several rows."], "12"),
        (
            &["/// Reads a row.", "/// # Errors", "/// Those of the map."],
            "13",
        ),
        (
            &["/// Reads a row.", "///", "/// Whether it is free."],
            "13",
        ),
        (&["// The rows that whoever asks has seen."], "11"),
        (&[concat!("pub fn ", "of(x: u8) -> u8 { x }")], "11"),
    ] {
        let found = problems(&added(lines))?;
        ensure!(
            matches!(&found[..], [one] if one.starts_with(&format!("agent/model/src/x.rs:{at}: "))),
            "{lines:?}: {found:?}"
        );
    }
    Ok(())
}

/// The line before an added one may be an unchanged one.
#[test]
fn unchanged_lines_count_as_the_line_before() -> Result<()> {
    let after = |unchanged: &str, line: &str| {
        let file = "agent/model/src/x.rs";
        problems(&format!(
            "--- a/{file}\n+++ b/{file}\n@@ -10,1 +10,2 @@\n {unchanged}\n+{line}\n"
        ))
    };
    let line = "// What comes is of the client.";
    for unchanged in ["fn x() {}", ""] {
        let found = after(unchanged, line)?;
        ensure!(
            matches!(&found[..], [one] if one.starts_with("agent/model/src/x.rs:11: ")),
            "{unchanged:?}: {found:?}"
        );
    }
    // A file may begin with a comment.
    let first = problems("--- /dev/null\n+++ b/x.rs\n@@ -0,0 +1,1 @@\n+//! What it is.\n")?;
    ensure!(
        matches!(&first[..], [one] if one.starts_with("x.rs:1: ")),
        "{first:?}"
    );
    // An added line goes on with the sentence of an unchanged comment.
    let found = after("// The rows say", line)?;
    ensure!(found.is_empty(), "{found:?}");
    // Lines that replace others follow the unchanged line before these.
    let replaced =
        "--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,2 @@\n fn f() {}\n-// Rows.\n+// What it was.\n";
    let found = problems(replaced)?;
    ensure!(
        matches!(&found[..], [one] if one.starts_with("x.rs:2: ")),
        "{found:?}"
    );
    Ok(())
}

/// Program and page in a repository of their own, whose user has another form of diffs.
#[test]
fn configuration_of_git_hides_no_line() -> Result<()> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let repository = Path::new(env!("CARGO_TARGET_TMPDIR")).join("words");
    if repository.exists() {
        fs::remove_dir_all(&repository)?;
    }
    for file in ["tests/words.py", "docs/develop/words.md"] {
        let copy = repository.join(file);
        fs::create_dir_all(copy.parent().context("no folder")?)?;
        fs::copy(tests.join("..").join(file), copy)?;
    }
    let lines = repository.join("x.rs");
    fs::write(&lines, "fn f() {}\n")?;
    for arguments in [
        &["init", "-q"][..],
        &["add", "."],
        &[
            "-c",
            "user.name=lab",
            "-c",
            "user.email=lab@localhost",
            "commit",
            "-q",
            "-m",
            "x",
        ],
    ] {
        let ended = Command::new("git")
            .arg("-C")
            .arg(&repository)
            .args(arguments)
            .status()?;
        ensure!(ended.success(), "git {arguments:?}: {ended}");
    }
    fs::write(&lines, "fn f() {}\n// What comes is of the client.\n")?;
    for (key, value) in [
        ("core.editor", "true"),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.external", "true"),
        ("color.ui", "always"),
    ] {
        let ended = Command::new(repository.join("tests/words.py"))
            .args(["--base", "HEAD"])
            .envs([
                ("GIT_CONFIG_COUNT", "1"),
                ("GIT_CONFIG_KEY_0", key),
                ("GIT_CONFIG_VALUE_0", value),
            ])
            .output()?;
        let printed = String::from_utf8(ended.stdout)?;
        ensure!(
            printed.starts_with("x.rs:2: ") && printed.lines().count() == 1,
            "{key}: {printed}"
        );
    }
    Ok(())
}

#[test]
fn other_lines_are_accepted() -> Result<()> {
    for lines in [
        // A line that goes on with the sentence of the one before.
        &[
            "// Rows that are free, and the time",
            "// of the last row that was used.",
        ][..],
        &["let whoever = 1;"],
        &[
            "fn f() {}",
            "/// As soon as a row is free, its number is reused.",
        ],
        &["pub fn of_window(x: u8) -> u8 { x }"],
    ] {
        let found = problems(&added(lines))?;
        ensure!(found.is_empty(), "{lines:?}: {found:?}");
    }
    // A removed line breaks no rule.
    let removed = "--- a/x.rs\n+++ b/x.rs\n@@ -1,2 +1,1 @@\n fn f() {}\n-// What it was.\n";
    ensure!(problems(removed)?.is_empty(), "a removed line was judged");
    Ok(())
}
