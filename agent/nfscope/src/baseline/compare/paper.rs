//! Parts of a comparison's HTML page: digests of its recordings, its command line, and the capacity of both sides.

use crate::baseline::compare::part::Part;
use crate::cli::CompareArgs;
use nfscope_baseline::capacity::{self, Capacity};
use nfscope_baseline::compare::html::{Paper, Worth, WorthOf};
use nfscope_baseline::series;
use nfscope_baseline::store::Store;
use ring::digest::{Context, SHA256};

/// Options of the page, each with a value. They do not change the comparison.
const PAGE: [&str; 3] = ["--html", "--title", "--note"];

/// Parts of the page beside the comparison.
///
/// # Errors
/// When a recording cannot be read.
pub(super) fn paper(
    args: &CompareArgs,
    store: &Store,
    sides: [&[Part]; 2],
) -> anyhow::Result<Paper> {
    let [before, after] = sides.map(|side| digest(store, side));
    let [was, is] = sides.map(|side| worth(store, side));
    Ok(Paper {
        title: args.title.clone(),
        note: args.note.clone(),
        command: command(std::env::args_os().map(|w| w.to_string_lossy().into_owned())),
        digests: vec![before?, after?],
        worth: was?.zip(is?).map(|(was, is)| Worth { sides: [was, is] }),
    })
}

/// SHA-256 of all recordings of a side, in hexadecimal digits.
fn digest(store: &Store, side: &[Part]) -> anyhow::Result<String> {
    let mut sum = Context::new(&SHA256);
    for part in side {
        store.content(&part.entry, |bytes| sum.update(bytes))?;
    }
    let bytes = sum.finish();
    let digits = bytes.as_ref().iter().map(|b| format!("{b:02x}"));
    Ok(digits.collect())
}

/// Capacity of a side; `None` if a recording has none, or if only a part of a recording was compared.
fn worth(store: &Store, side: &[Part]) -> anyhow::Result<Option<WorthOf>> {
    let mut all: Vec<Capacity> = Vec::new();
    for part in side {
        let c = match part.slice {
            None => series::read(store, &part.entry, capacity::FAMILIES)?,
            Some(_) => return Ok(None),
        };
        match capacity::capacity(&c) {
            Some(found) => all.push(found),
            None => return Ok(None),
        }
    }
    Ok(WorthOf::of(&all))
}

/// Command line as it was typed, without the options of the page.
fn command(typed: impl Iterator<Item = String>) -> Vec<String> {
    let mut words = vec!["nfscope".to_owned()];
    let mut typed = typed.skip(1);
    while let Some(word) = typed.next() {
        let (name, value) = word
            .split_once('=')
            .map_or((&*word, None), |(n, v)| (n, Some(v)));
        match (PAGE.contains(&name), value) {
            (true, None) => {
                typed.next();
            }
            (true, Some(_)) => {}
            (false, _) => words.push(word),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn the_page_is_no_part_of_the_command() {
        let typed = "x baseline compare a b --html f --title=T --primary write:p99 --note n";
        let words = command(typed.split(' ').map(str::to_owned));
        assert_eq!(
            words.join(" "),
            "nfscope baseline compare a b --primary write:p99"
        );
    }
}
