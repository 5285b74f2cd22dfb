//! The table of exports that exportfs(8) writes for the kernel's helpers, in the form of exports(5): a line for each path and client.

use crate::mounts::unescape;

/// Path of the table; the kernel's own list has only exports that were asked for.
pub const ETAB: &str = "/var/lib/nfs/etab";

/// Line of the table: a path, as one client, network or group of clients has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'a> {
    /// The path.
    pub path: String,
    /// Client that has it: `*`, `10.0.0.0/8`, `web03`.
    pub client: &'a str,
    /// Options. exportfs(8) writes either rw or ro, and either sync or async, for each security flavour that differs.
    pub options: Vec<&'a str>,
}

/// Lines of the table. Leaves out those that are not of its form.
pub fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let lines = text.lines().filter(|l| !l.starts_with('#'));
    lines.filter_map(|line| {
        let (path, rest) = line.split_once(['\t', ' '])?;
        let (client, options) = rest.split_once('(').unwrap_or((rest, ""));
        Some(Line {
            path: unescape(path),
            client,
            options: options.trim_end_matches(')').split(',').collect(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_path_a_client_and_options() {
        let table = "# a comment\n/a\\040b\t10.0.0.0/8(rw,sync,no_subtree_check)\n/cut\n/c\t*\n";
        let all: Vec<_> = lines(table).collect();
        assert_eq!(all.len(), 2);
        assert_eq!(
            (all[0].path.as_str(), all[0].client),
            ("/a b", "10.0.0.0/8")
        );
        assert_eq!(all[0].options, ["rw", "sync", "no_subtree_check"]);
        assert_eq!((all[1].client, &all[1].options[..]), ("*", &[""][..]));
    }
}
