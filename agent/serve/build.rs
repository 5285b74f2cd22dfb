//! Removes comments and indentation from the files of the page, which only their authors need.

use std::fs;
use std::path::{Path, PathBuf};

/// Text without indentation, and without comments on lines of their own. The rest has the same meaning, and is a sixth smaller.
fn without_comments(name: &str, text: &str) -> String {
    let is_script = name.ends_with(".js");
    let (mut out, mut inside) = (String::new(), false);
    for (i, line) in text.lines().enumerate() {
        // A string of several lines could have text that looks like a comment.
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
}
