//! The catalog of workloads: job files for fio, which describe themselves in their opening comments.

use nfscope_text::suggest::nearest;
use std::fmt::Write;
use std::io::Read;

const FILES: [(&str, &str); 9] = [
    ("fileserver", include_str!("../../workloads/fileserver.fio")),
    ("webhosting", include_str!("../../workloads/webhosting.fio")),
    ("mail", include_str!("../../workloads/mail.fio")),
    ("database", include_str!("../../workloads/database.fio")),
    ("streams", include_str!("../../workloads/streams.fio")),
    ("metadata", include_str!("../../workloads/metadata.fio")),
    ("postmark", include_str!("../../workloads/postmark.fio")),
    ("iozone", include_str!("../../workloads/iozone.fio")),
    ("ramp", include_str!("../../workloads/ramp.fio")),
];

/// A reproducible load: a job file for fio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workload {
    /// Name of the workload.
    pub name: &'static str,
    /// Text of the job file.
    pub job_file: &'static str,
}

/// Amount of data of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SizeName {
    /// Enough to try whether the workload runs.
    Small,
    /// More than is in flight, less than caches hold.
    Medium,
    /// More than the caches of many servers hold.
    Large,
}

/// Variables and needs of a workload at one size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Size {
    /// Variables of the job file and their values.
    pub variables: Vec<(&'static str, &'static str)>,
    /// Bytes that have to be free.
    pub needs: u64,
}

/// An operation of users that consists of many I/Os of fio, made by one process one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Name, for example `page`.
    pub name: &'static str,
    /// I/Os in one unit.
    pub count: u32,
    /// Job that makes them.
    pub job: &'static str,
    /// Variable with the number of its processes.
    pub by: &'static str,
}

/// A job whose requests may arrive at a rate of their own.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenLoop {
    /// Name of the job.
    pub job: &'static str,
    /// Variables, and the part of the rate that each one has.
    pub shares: Vec<(&'static str, f64)>,
    /// Variable with the number of its processes.
    pub by: &'static str,
}

/// All workloads.
pub fn all() -> impl Iterator<Item = Workload> {
    FILES
        .into_iter()
        .map(|(name, job_file)| Workload { name, job_file })
}

/// The workload of that name, or of the job file whose path ends with `.fio`: one that `nfscope trace fit` wrote.
///
/// # Errors
/// When there is none, with the nearest.
pub fn named(name: &str) -> Result<Workload, String> {
    if name.ends_with(".fio") {
        return of_file(name);
    }
    all().find(|w| w.name == name).ok_or_else(|| {
        let known = all().map(|w| w.name);
        format!(
            "no workload has that name{}",
            nearest(name, known, |w| format!("`{w}`"))
        )
    })
}

/// Largest job file, in bytes.
const LARGEST_FILE: u64 = 1 << 20;

/// The workload of a job file that describes itself as the built-in ones do. Its text stays until the process ends.
fn of_file(path: &str) -> Result<Workload, String> {
    let file = std::fs::File::open(path).map_err(|e| format!("{path}: {e}"))?;
    let mut text = String::new();
    let read = file.take(LARGEST_FILE).read_to_string(&mut text);
    read.map_err(|e| format!("{path}: {e}"))?;
    let name = path.rsplit('/').next().unwrap_or(path);
    let name = name.strip_suffix(".fio").unwrap_or(name);
    // The name becomes that of a directory, and of a label.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!(
            "{path}: the name may have letters, digits, - and _ before .fio"
        ));
    }
    let workload = Workload {
        name: String::leak(name.to_owned()),
        job_file: String::leak(text),
    };
    match SizeName::ALL.iter().all(|s| workload.size(*s).is_some()) {
        true => Ok(workload),
        false => Err(format!(
            "{path}: no lines `# Size:` for small, medium and large; fix: write the file by `nfscope trace fit`"
        )),
    }
}

impl SizeName {
    /// Sizes from the smallest to the largest.
    pub const ALL: [SizeName; 3] = [SizeName::Small, SizeName::Medium, SizeName::Large];

    /// Name of the size on the command line.
    pub fn word(self) -> &'static str {
        match self {
            SizeName::Small => "small",
            SizeName::Medium => "medium",
            SizeName::Large => "large",
        }
    }
}

impl Workload {
    /// Purpose of the workload, in a line.
    pub fn purpose(self) -> &'static str {
        self.said("Purpose").next().unwrap_or_default()
    }

    /// Operations of the workload and their parts.
    pub fn mix(self) -> &'static str {
        self.said("Mix").next().unwrap_or_default()
    }

    /// Names of the parameters: the variables of the job file but for the directory and the length.
    pub fn parameters(self) -> Vec<&'static str> {
        let of_sizes = self.said("Size").flat_map(|l| l.split_whitespace());
        let mut names: Vec<&str> = of_sizes
            .filter_map(|w| Some(w.split_once('=')?.0))
            .collect();
        names.extend(self.settings().map(|(name, _)| name));
        let mut seen = Vec::new();
        names.retain(|n| {
            !seen.contains(n) && {
                seen.push(*n);
                true
            }
        });
        names
    }

    /// Parameters beside the size, each with its default: a word, or a multiple of another parameter (`2*THREADS`).
    pub fn settings(self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.said("Set")
            .filter_map(|l| l.split_whitespace().next()?.split_once('='))
    }

    /// Operation of users, if it consists of more than one operation of a job.
    pub fn unit(self) -> Option<Unit> {
        // Format of the line: page = 100 of page, by THREADS
        let line = self.said("Unit").next()?;
        let (name, rest) = line.split_once(" = ")?;
        let (count, rest) = rest.split_once(" of ")?;
        let (job, by) = rest.split_once(", by ")?;
        Some(Unit {
            name,
            count: count.parse().ok()?,
            job,
            by,
        })
    }

    /// The job that can be an open loop, if there is one.
    pub fn open_loop(self) -> Option<OpenLoop> {
        // Format of the line: pages RATE_READS=0.7 RATE_WRITES=0.3 by THREADS
        let line = self.said("Rate").next()?;
        let (what, by) = line.split_once(" by ")?;
        let mut words = what.split_whitespace();
        let job = words.next()?;
        let share = |w: &'static str| {
            let (name, part) = w.split_once('=')?;
            Some((name, part.parse::<f64>().ok()?))
        };
        Some(OpenLoop {
            job,
            shares: words.filter_map(share).collect(),
            by,
        })
    }

    /// Reason why the requests cannot arrive at a rate of their own, if they cannot.
    pub fn closed(self) -> Option<&'static str> {
        self.said("Closed").next()
    }

    /// Returns true if a run ends after a time, and false if it ends with its work.
    pub fn is_timed(self) -> bool {
        self.job_file.contains("=${RUNTIME}")
    }

    /// Returns true if jobs run one after the other or end with their work: then only a whole repeat has all phases.
    pub fn has_phases(self) -> bool {
        self.job_file.contains("\nstonewall") || !self.is_timed()
    }

    /// Variables and needs of a size; `None` where the job file has no such size.
    pub fn size(self, size: SizeName) -> Option<Size> {
        let line = |l: &'static str| {
            let (variables, needs) = l.split_once(" needs ")?;
            let mut words = variables.split_whitespace();
            (words.next()? == size.word()).then_some(())?;
            Some(Size {
                variables: words.filter_map(|w| w.split_once('=')).collect(),
                needs: bytes(needs)?,
            })
        };
        self.said("Size").find_map(line)
    }

    /// Lines of the opening comments that begin with `word:`, without the word.
    pub(super) fn said(self, word: &'static str) -> impl Iterator<Item = &'static str> {
        self.job_file.lines().filter_map(move |line| {
            let text = line.strip_prefix("# ")?.strip_prefix(word)?;
            Some(text.strip_prefix(':')?.trim())
        })
    }
}

/// `64 MiB` as bytes.
fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = text.trim().split_once(' ')?;
    let shift = match unit {
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    Some(number.parse::<u64>().ok()? << shift)
}

/// List of workloads as text.
pub fn list() -> String {
    let mut out = String::new();
    for w in all() {
        let _ = writeln!(out, "{}\n  {}\n  {}", w.name, w.purpose(), w.mix());
        let names = w.parameters();
        let _ = writeln!(out, "  --set {}", names.join(", "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_file_outside_of_the_catalog_must_describe_its_sizes() {
        let directory = std::env::temp_dir().join(format!("nfscope-jobs-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("like.fio");
        let mail = named("mail").unwrap();
        std::fs::write(&path, mail.job_file).unwrap();
        let like = named(path.to_str().unwrap()).unwrap();
        assert_eq!((like.name, like.job_file), ("like", mail.job_file));
        std::fs::write(&path, "[global]\n").unwrap();
        assert!(
            named(path.to_str().unwrap())
                .unwrap_err()
                .contains("# Size:")
        );
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(
            named("/none/such.fio")
                .unwrap_err()
                .contains("/none/such.fio")
        );
        assert!(named("a b.fio").is_err());
    }

    #[test]
    fn every_job_file_says_what_it_is() {
        for w in all() {
            assert!(!w.purpose().is_empty() && !w.mix().is_empty(), "{}", w.name);
            let sizes: Vec<_> = SizeName::ALL
                .iter()
                .map(|s| w.size(*s).expect(w.name))
                .collect();
            assert!(sizes.is_sorted_by_key(|s| s.needs), "{}", w.name);
            for (variable, _) in sizes.iter().flat_map(|s| &s.variables) {
                let used = format!("=${{{variable}}}");
                assert!(w.job_file.contains(&used), "{}: {variable}", w.name);
            }
        }
        assert_eq!(bytes("5 GiB"), Some(5 << 30));
        assert_eq!(bytes("5 GB"), None);
    }

    #[test]
    fn a_mistyped_name() {
        assert_eq!(named("mail").unwrap().name, "mail");
        assert_eq!(
            named("webhostin").unwrap_err(),
            "no workload has that name; did you mean `webhosting`?"
        );
    }
}
