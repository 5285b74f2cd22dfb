//! Loads that versions are compared under.

use crate::workload::catalog::{self, Workload};

/// Levels of directories above the files that are opened by default.
pub const DEPTHS: [u32; 3] = [0, 4, 8];

/// Most levels of directories.
const MOST_DEPTH: u32 = 8;

/// A load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads of 4 KiB past the client's cache.
    Reads,
    /// Durable writes of 4 KiB.
    Writes,
    /// Calls that make, use and remove a directory with a file.
    Metadata,
    /// A single open() of a file this many levels deep, of which the client knows nothing yet.
    Open(u32),
    /// A workload of fio.
    Workload(Workload),
}

/// The loads that a word on the command line stands for.
///
/// # Errors
/// When there are none, with the nearest workload.
pub fn named(word: &str) -> Result<Vec<Kind>, String> {
    Ok(match word {
        "reads" => vec![Kind::Reads],
        "writes" => vec![Kind::Writes],
        "metadata" => vec![Kind::Metadata],
        "opens" => DEPTHS.map(Kind::Open).to_vec(),
        name if depth(name).is_some() => depth(name).map(Kind::Open).into_iter().collect(),
        name => {
            let known =
                "reads, writes, metadata, opens and open-0 to open-8 are loads of this command";
            let workload = catalog::named(name).map_err(|why| format!("{why}; {known}"))?;
            vec![Kind::Workload(workload)]
        }
    })
}

/// The depth of `open-4`.
fn depth(word: &str) -> Option<u32> {
    let depth = word.strip_prefix("open-")?.parse().ok()?;
    (depth <= MOST_DEPTH).then_some(depth)
}

impl Kind {
    /// Name of the load in tables.
    pub fn name(self) -> String {
        match self {
            Kind::Reads => "reads".to_owned(),
            Kind::Writes => "writes".to_owned(),
            Kind::Metadata => "metadata".to_owned(),
            Kind::Open(depth) => format!("open-{depth}"),
            Kind::Workload(w) => w.name.to_owned(),
        }
    }

    /// Sentence that defines an operation of the load.
    pub fn operation(self) -> String {
        match self {
            Kind::Reads => "an operation is a read of 4 KiB, past the client's cache (O_DIRECT)".into(),
            Kind::Writes => "an operation is a durable write of 4 KiB (O_SYNC)".into(),
            Kind::Metadata => {
                "an operation is a call: mkdir, create, write, close, open, read, close, stat, rename, unlink or rmdir".into()
            }
            Kind::Open(0) => "an operation is open() and close() of a file in the root of a new mount; the time is that of open() alone".into(),
            Kind::Open(depth) => format!(
                "an operation is open() and close() of a file {depth} directories below the root of a new mount; the time is that of open() alone"
            ),
            Kind::Workload(w) => format!("an operation is an I/O of fio; {}", w.purpose()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_loads() {
        assert_eq!(named("reads"), Ok(vec![Kind::Reads]));
        let opens: Vec<_> = named("opens")
            .unwrap()
            .into_iter()
            .map(Kind::name)
            .collect();
        assert_eq!(opens, ["open-0", "open-4", "open-8"]);
        assert_eq!(named("mail").unwrap()[0].name(), "mail");
        assert_eq!(named("open-3"), Ok(vec![Kind::Open(3)]));
        assert!(named("open-9").is_err());
        // A word names the load of this command before the workload of the same name.
        assert_eq!(named("metadata"), Ok(vec![Kind::Metadata]));
        let why = named("mial").unwrap_err();
        assert!(
            why.contains("did you mean `mail`?") && why.contains("opens"),
            "{why}"
        );
    }
}
