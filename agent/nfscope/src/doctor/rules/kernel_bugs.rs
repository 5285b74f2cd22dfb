//! Bugs of the kernel's NFS server that have a CVE number, a fix, and a list of releases with the fix.
//!
//! Distributions backport fixes without a new release number, so that a release proves nothing: the answer says "may".

use crate::doctor::answer::Answer;
use crate::doctor::host::Host;
use crate::doctor::rule::Rule;

/// Bug with a CVE number.
#[derive(Debug)]
struct Bug {
    cve: &'static str,
    does: &'static str,
    /// First series with the bug. Earlier series may have got it by a backport.
    since: [u32; 2],
    /// First release with the fix in each series, the oldest series first. Series after the last one have the fix.
    fixed: &'static [[u32; 3]],
    /// NFS version that the bug needs, as /proc/fs/nfsd/versions names it, and the setting that disables this version.
    needs: [&'static str; 2],
}

/// Releases as the CVE records of kernel.org have them.
const BUGS: [Bug; 3] = [
    Bug {
        cve: "CVE-2026-31402",
        does: "a client of NFSv4.0 can write beyond a buffer of the server by a LOCK that is denied",
        since: [2, 6],
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
        since: [5, 19],
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
        since: [2, 6],
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

/// Kernel bugs by release.
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
                "{name} is a number of its builder: which fixes of the kernel it has is not known"
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
    let (mut answers, mut fixed, mut not_served, mut unknown) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for bug in BUGS {
        let served =
            words.is_empty() || (words.contains(&bug.needs[0]) && !words.contains(&bug.needs[1]));
        match bug.is_fixed(release, ubuntu.is_some()) {
            Some(true) => fixed.push(bug.cve),
            _ if !served => not_served.push(format!(
                "{} needs NFSv{}, which is not served",
                bug.cve,
                bug.needs[1].trim_start_matches('-')
            )),
            Some(false) => answers.push(Answer::consider(
                format!("Linux {a}.{b}.{c} may have {}: {}", bug.cve, bug.does),
                format!(
                    "look for {} in the list of fixes of the kernel's package, and take a kernel with it",
                    bug.cve
                ),
            )),
            None => unknown.push(bug.cve),
        }
    }
    if !unknown.is_empty() {
        let unknown = unknown.join(", ");
        answers.push(Answer::unknown(
            format!("it is not known whether Linux {a}.{b}.{c} has {unknown}"),
            format!("look for {unknown} in the list of fixes of the kernel's package"),
        ));
    }
    if !fixed.is_empty() {
        let fixed = fixed.join(", ");
        answers.push(Answer::good(format!(
            "Linux {a}.{b}.{c} has the fixes of {fixed}"
        )));
    }
    if !not_served.is_empty() {
        answers.push(Answer::good(not_served.join("; ")));
    }
    answers
}

impl Bug {
    /// Returns true for a release with the fix, false for one that has the bug, and `None` if the records do not say. Ubuntu maintains
    /// series after their end at kernel.org.
    fn is_fixed(&self, release: [u32; 3], of_ubuntu: bool) -> Option<bool> {
        let series = &release[..2];
        if let Some(first) = self.fixed.iter().find(|f| f[..2] == *series) {
            return Some(release >= *first);
        }
        match self.fixed.last().is_some_and(|newest| release > *newest) {
            true => Some(true),
            // The series ended before the fix, or kernel.org never maintained it.
            false => (*series >= self.since[..] && !of_ubuntu).then_some(false),
        }
    }
}

/// Upstream release by /proc/version, or by Ubuntu's /proc/version_signature. `None` for a vendor's kernel whose number does not imply the
/// fixes of the upstream release: `5.14.0-503.el9`, `5.14.21-150500.55-default`.
fn release(version: &str, ubuntu: Option<&str>) -> Option<[u32; 3]> {
    if let Some(own) = ubuntu {
        return three(own.split_ascii_whitespace().nth(2)?);
    }
    // `6.12.0-1-amd64 (…) #1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1 (2026-10-01)`
    if let Some((_, debian)) = version.split_once(" Debian ") {
        return three(debian.split(['-', ' ']).next()?);
    }
    let name = version.split_ascii_whitespace().nth(2)?;
    match name.split_once('-') {
        // Releases without a suffix are upstream releases.
        None => three(name),
        Some((release, suffix)) if follows_stable(suffix) => three(release),
        Some(_) => None,
    }
}

/// Returns true for suffixes of distributions that ship kernel.org's stable releases: Arch (`arch1-1`), Arch and Alpine (`1-lts`),
/// Fedora (`200.fc40.x86_64`).
fn follows_stable(suffix: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let arch = |text: &str| {
        let numbers = text.strip_prefix("arch").and_then(|n| n.split_once('-'));
        numbers.is_some_and(|(patches, package)| number(patches) && number(package))
    };
    let fedora = |text: &str| {
        let mut parts = text.split('.');
        let fc = |part: &str| part.strip_prefix("fc").is_some_and(number);
        parts.next().is_some_and(number) && parts.next().is_some_and(fc)
    };
    arch(suffix) || suffix.strip_suffix("-lts").is_some_and(number) || fedora(suffix)
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
    fn numbers_of_builders_that_do_not_follow_stable_are_no_release() {
        let named = |name: &str| release(&format!("Linux version {name} (a@b) (gcc) #1"), None);
        for (name, known) in [
            ("6.9.0-arch1-1", [6, 9, 0]),
            ("6.6.31-1-lts", [6, 6, 31]),
            ("6.9.7-200.fc40.x86_64", [6, 9, 7]),
            ("6.12", [6, 12, 0]),
        ] {
            assert_eq!(named(name), Some(known), "{name}");
        }
        for name in [
            "5.14.21-150500.55-default",
            "5.3.18-150300.59-default",
            "5.14.0-503.el9.x86_64",
            "6.1.94-99.176.amzn2023.x86_64",
            "6.8.12-4-pve",
            "6.10.0-0.rc3.30.fc41.x86_64",
            "7.0.0-rc5",
            "6.12.50-mine",
            "6.12.50+",
        ] {
            assert_eq!(named(name), None, "{name}");
        }
    }

    fn bug(since: [u32; 2], fixed: &'static [[u32; 3]]) -> Bug {
        Bug {
            cve: "CVE-0",
            does: "nothing",
            since,
            fixed,
            needs: ["+4", "-4"],
        }
    }

    #[test]
    fn a_series_has_a_fix_from_its_own_release_on() {
        let bug = bug([2, 6], &[[5, 10, 235], [6, 1, 129], [6, 13, 4]]);
        for lacking in [
            [4, 19, 300],
            [5, 10, 234],
            [6, 1, 128],
            [6, 5, 99],
            [6, 13, 3],
        ] {
            assert_eq!(bug.is_fixed(lacking, false), Some(false), "{lacking:?}");
        }
        for has in [[5, 10, 235], [6, 1, 140], [6, 13, 4], [6, 14, 0], [7, 0, 0]] {
            assert_eq!(bug.is_fixed(has, false), Some(true), "{has:?}");
        }
        let kept_by_ubuntu = bug.is_fixed([6, 8, 12], true);
        assert_eq!(kept_by_ubuntu, None, "its number stays where 6.8 ended");
    }

    #[test]
    fn a_series_before_the_bug_has_it_only_by_a_change_that_is_not_recorded() {
        let bug = bug([5, 19], &[[5, 10, 235], [6, 1, 129]]);
        assert_eq!(bug.is_fixed([4, 19, 300], false), None);
        assert_eq!(bug.is_fixed([5, 4, 10], false), None);
        assert_eq!(bug.is_fixed([5, 10, 234], false), Some(false));
        assert_eq!(bug.is_fixed([5, 19, 0], false), Some(false));
    }

    /// `is_fixed` uses the last entry for series that have none.
    #[test]
    fn releases_with_a_fix_stand_in_order() {
        for bug in BUGS {
            assert!(bug.fixed.is_sorted(), "{}", bug.cve);
        }
    }
}
