//! Tells the program which commit it was built from, and takes from the page what only its authors read.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn git(args: &[&str]) -> Option<String> {
    let out = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    let text = text.trim();
    (out.status.success() && !text.is_empty()).then(|| text.to_owned())
}

/// Without indentation, and without comments that have whole lines: what is left means the same, and is a sixth smaller.
fn without_comments(name: &str, text: &str) -> String {
    let is_script = name.ends_with(".js");
    let (mut out, mut inside) = (String::new(), false);
    for (i, line) in text.lines().enumerate() {
        // A text of several lines might have what looks like a comment.
        assert!(
            !is_script || line.matches('`').count() % 2 == 0,
            "{name}:{}: a template that goes on in the next line",
            i + 1
        );
        let line = line.trim();
        inside |= is_script && line.starts_with("/*");
        let is_comment = inside || is_script && line.starts_with("//");
        inside &= !line.ends_with("*/");
        if !is_comment && !line.is_empty() {
            out += line;
            out.push('\n');
        }
    }
    out
}

fn page() -> std::io::Result<()> {
    let from = Path::new("src/http/page");
    let to = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default()).join("page");
    println!("cargo:rerun-if-changed={}", from.display());
    fs::create_dir_all(&to)?;
    for file in fs::read_dir(from)? {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        let text = fs::read_to_string(file.path())?;
        fs::write(to.join(&name), without_comments(&name, &text))?;
    }
    Ok(())
}

fn main() {
    if let Err(why) = page() {
        panic!("the files of the page: {why}");
    }
    println!("cargo:rerun-if-changed=build.rs");
    // Packages are built outside git and may name the commit themselves.
    println!("cargo:rerun-if-env-changed=NFSCOPE_REVISION");
    let revision = std::env::var("NFSCOPE_REVISION")
        .ok()
        .filter(|r| !r.is_empty())
        .or_else(|| git(&["rev-parse", "--short=12", "HEAD"]));
    println!(
        "cargo:rustc-env=NFSCOPE_REVISION={}",
        revision.as_deref().unwrap_or("unknown")
    );
    // HEAD moves by commit (its reflog grows) and by switching branches. Outside git neither file exists, and
    // naming a missing file would rebuild every time.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).map(PathBuf::from)
            && path.exists()
        {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
}
