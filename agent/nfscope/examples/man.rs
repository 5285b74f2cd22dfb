//! Writes a page for man of nfscope and of each of its commands: `cargo run -p nfscope --example man -- DIRECTORY`.

use clap::CommandFactory;
use nfscope::cli::Cli;
use std::error::Error;
use std::fs;

fn main() -> Result<(), Box<dyn Error>> {
    let to = std::env::args_os().nth(1);
    let to =
        to.ok_or("which directory is to get the pages? cargo run --example man -- DIRECTORY")?;
    fs::create_dir_all(&to)?;
    clap_mangen::generate_to(Cli::command(), &to)?;
    for page in fs::read_dir(&to)? {
        let page = page?.path();
        let text = fs::read_to_string(&page)?;
        fs::write(&page, as_it_stands(&text))?;
    }
    Ok(())
}

/// What follows the options of a command are tables and examples: man must not fill their lines.
fn as_it_stands(page: &str) -> String {
    let Some((before, extra)) = page.split_once(".SH EXTRA\n") else {
        return page.to_owned();
    };
    let (extra, after) = match extra.split_once("\n.SH ") {
        Some((extra, after)) => (extra, format!("\n.SH {after}")),
        None => (extra, String::new()),
    };
    format!("{before}.SH EXAMPLES AND DETAILS\n.nf\n{extra}\n.fi{after}")
}
