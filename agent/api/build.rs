//! Records the commit that the program is built from.

use std::path::PathBuf;
use std::process::Command;

fn git(args: &[&str]) -> Option<String> {
    let out = Command::new("git").args(args).output().ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    let text = text.trim();
    (out.status.success() && !text.is_empty()).then(|| text.to_owned())
}

fn main() {
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
    // HEAD moves by commit (its reflog grows) and by switching branches. Outside git neither file exists, and a missing file that is named
    // here would rebuild every time.
    for name in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", name]).map(PathBuf::from)
            && path.exists()
        {
            println!("cargo:rerun-if-changed={}", path.display());
        }
    }
}
