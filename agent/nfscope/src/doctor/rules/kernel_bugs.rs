//! Bugs of the kernel's NFS server that have a number, a fix, and a list of releases with that fix.
//!
//! Distributions bring fixes to older kernels without changing the release, so that a release proves nothing: the answer says "may".

use crate::doctor::answer::Answer;
use crate::doctor::host::Host;
use crate::doctor::rule::Rule;

/// A bug.
#[derive(Debug)]
struct Bug {
    cve: &'static str,
    does: &'static str,
    /// The first release of each series that has the fix, oldest first; series after the last one have it.
    fixed: &'static [[u32; 3]],
    /// Version of NFS that it needs, as `/proc/fs/nfsd/versions` has it, and what takes it away there.
    needs: [&'static str; 2],
}

/// Releases as the kernel's own records of these numbers have them.
const BUGS: [Bug; 3] = [
    Bug {
        cve: "CVE-2026-31402",
        does: "a client of NFSv4.0 can write beyond a buffer of the server by a LOCK that is denied",
        fixed: &[
            [5, 10, 253],
            [5, 15, 210],
            [6, 1, 167],
            [6, 6, 130],
            [6, 12, 78],
            [6, 18, 20],
            [6, 19, 10],
        ],
        needs: ["+4", "-4.0"],
    },
    Bug {
        cve: "CVE-2025-21795",
        does: "ending the state of a client that went away can hang for some 15 minutes, and others behind it",
        fixed: &[
            [5, 10, 235],
            [5, 15, 179],
            [6, 1, 129],
            [6, 6, 79],
            [6, 12, 16],
            [6, 13, 4],
        ],
        needs: ["+4", "-4"],
    },
    Bug {
        cve: "CVE-2024-53217",
        does: "a session without a connection for callbacks can end the server by a null pointer",
        fixed: &[
            [4, 19, 325],
            [5, 4, 287],
            [5, 10, 231],
            [5, 15, 174],
            [6, 1, 120],
            [6, 6, 64],
            [6, 11, 11],
            [6, 12, 2],
        ],
        needs: ["+4", "-4"],
    },
];

/// Bugs by release.
pub const KERNEL_BUGS: Rule = Rule {
    name: "kernel bugs",
    why: "The release is older than the one in which the fix came. A distribution may have brought the fix to it.",
    source: "records of the numbers at cve.org (assigned by the kernel's own authority), with the releases that have the fix",
    look,
};

fn look(host: &Host) -> Vec<Answer> {
    let text = match host.text("/proc/version") {
        Ok(text) => text,
        Err(e) => return vec![e.answer()],
    };
    let ubuntu = host.text("/proc/version_signature").ok();
    let Some(release) = release(&text, ubuntu.as_deref()) else {
        let name = text.split_ascii_whitespace().nth(2).unwrap_or("?");
        return vec![Answer::unknown(
            format!(
                "{name} is a distribution's own number: which fixes of the kernel it has is not known"
            ),
            format!(
                "ask the distribution's list of errata for {}",
                BUGS.map(|b| b.cve).join(", ")
            ),
        )];
    };
    let versions = host.text("/proc/fs/nfsd/versions").unwrap_or_default();
    let words: Vec<_> = versions.split_ascii_whitespace().collect();
    let [a, b, c] = release;
    let mut answers = Vec::new();
    for bug in BUGS {
        let served =
            words.is_empty() || (words.contains(&bug.needs[0]) && !words.contains(&bug.needs[1]));
        if served && lacks(bug.fixed, release) {
            answers.push(Answer::consider(
                format!("Linux {a}.{b}.{c} may have {}: {}", bug.cve, bug.does),
                format!(
                    "look for {} in the list of fixes of the kernel's package, and take a kernel with it",
                    bug.cve
                ),
            ));
        }
    }
    if answers.is_empty() {
        answers.push(Answer::good(format!(
            "Linux {a}.{b}.{c} has the fixes of the {} bugs that nfscope knows",
            BUGS.len()
        )));
    }
    answers
}

/// Returns true if a release of the kernel lacks a fix.
fn lacks(fixed: &[[u32; 3]], release: [u32; 3]) -> bool {
    match fixed.iter().find(|f| f[..2] == release[..2]) {
        Some(first) => release < *first,
        // A series that ended before, or was none of those that are kept.
        None => fixed.last().is_some_and(|newest| release < *newest),
    }
}

/// The kernel's own release, by `/proc/version`, or by Ubuntu's file beside it. `None` where a distribution has made its own number of
/// it: `5.14.0-503.el9`, where the last number stays 0 for ever.
fn release(version: &str, ubuntu: Option<&str>) -> Option<[u32; 3]> {
    if let Some(own) = ubuntu {
        return three(own.split_ascii_whitespace().nth(2)?);
    }
    // `6.12.0-1-amd64 (…) #1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1 (2026-10-01)`
    if let Some((_, debian)) = version.split_once(" Debian ") {
        return three(debian.split(['-', ' ']).next()?);
    }
    let name = version.split_ascii_whitespace().nth(2)?;
    let release = three(name.split('-').next()?)?;
    // A release without a suffix is the kernel's own.
    (!name.contains('-') || release[2] > 0).then_some(release)
}

fn three(text: &str) -> Option<[u32; 3]> {
    let mut numbers = text.split('.').map(|n| n.parse().ok());
    let numbers = [
        numbers.next()??,
        numbers.next()??,
        numbers.next().unwrap_or(Some(0))?,
    ];
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_where_a_distribution_shows_it() {
        let debian = "Linux version 6.12.0+deb13-amd64 (a@b) (gcc) #1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1 (2026-10-01)";
        assert_eq!(release(debian, None), Some([6, 12, 117]));
        let ubuntu = "Linux version 6.8.0-45-generic (a@b) (gcc) #45-Ubuntu SMP";
        assert_eq!(
            release(ubuntu, Some("Ubuntu 6.8.0-45.45-generic 6.8.12\n")),
            Some([6, 8, 12])
        );
        let red_hat = "Linux version 5.14.0-503.el9.x86_64 (a@b) (gcc) #1 SMP";
        assert_eq!(release(red_hat, None), None);
        assert_eq!(
            release("Linux version 7.0.3 (a@b) #1", None),
            Some([7, 0, 3])
        );
        assert_eq!(
            release("Linux version 6.6.31-1.fc40 (a@b) #1", None),
            Some([6, 6, 31])
        );
        assert_eq!(release("nonsense", None), None);
    }

    #[test]
    fn a_series_has_a_fix_from_its_own_release_on() {
        let fixed = &[[5, 10, 235], [6, 1, 129], [6, 13, 4]];
        let lacking = [
            [4, 19, 300],
            [5, 10, 234],
            [6, 1, 128],
            [6, 5, 99],
            [6, 13, 3],
        ];
        assert!(lacking.into_iter().all(|r| lacks(fixed, r)));
        let has = [[5, 10, 235], [6, 1, 140], [6, 13, 4], [6, 14, 0], [7, 0, 0]];
        assert!(!has.into_iter().any(|r| lacks(fixed, r)));
    }

    /// The last entry decides for series without one.
    #[test]
    fn releases_with_a_fix_stand_in_order() {
        for bug in BUGS {
            assert!(bug.fixed.is_sorted(), "{}", bug.cve);
        }
    }
}
