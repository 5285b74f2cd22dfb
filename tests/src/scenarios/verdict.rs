//! Findings of a diagnosis of a scenario, compared with the known cause.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use nfscope_model::Window;
use nfscope_model::finding::Verdict as DiagnosisVerdict;
use serde::Serialize;

use super::scenario::Scenario;

/// Kind of a diagnosis without findings.
pub const HEALTHY: &str = "healthy";

/// Kind of a diagnosis that could not decide.
const UNKNOWN: &str = "unknown";

/// Findings of a window.
#[derive(Clone, Debug, Default)]
pub struct Diagnosed {
    /// Kinds of findings, the strongest first, with their shares of residence.
    pub found: Vec<(String, f64)>,
    /// The sentences of the findings, one a line.
    pub sentences: String,
}

/// Diagnoses a window.
pub fn diagnosed(window: &Window) -> Diagnosed {
    let diagnosis = nfscope_diagnose::evaluate(window, &[]);
    if diagnosis.verdict == DiagnosisVerdict::Unknown {
        return Diagnosed {
            found: vec![(UNKNOWN.to_owned(), 0.0)],
            ..Diagnosed::default()
        };
    }
    let mut diagnosed = Diagnosed::default();
    for finding in diagnosis.findings {
        let evidence = finding.evidence.iter().map(|e| &e.text);
        for sentence in evidence.chain(&finding.advice) {
            diagnosed.sentences += sentence;
            diagnosed.sentences.push('\n');
        }
        let kind = finding.kind.as_str().to_owned();
        diagnosed.found.push((kind, finding.share));
    }
    diagnosed
}

/// Outcome of one scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Name of the scenario.
    pub scenario: String,
    /// Kind that had to be found first.
    pub expected: String,
    /// Kinds that were found, with their shares.
    pub found: Vec<(String, f64)>,
    /// Errors of the diagnosis, in sentences; empty if it is right.
    pub wrong: Vec<String>,
}

impl Verdict {
    /// Verdict on a scenario that could not be played.
    pub fn not_played(scenario: &Scenario, why: &anyhow::Error) -> Verdict {
        Verdict {
            scenario: scenario.name.clone(),
            expected: scenario.expected().to_owned(),
            found: vec![("not played".to_owned(), 0.0)],
            wrong: vec![format!("{why:#}")],
        }
    }

    /// Compares the findings with the known cause.
    pub fn of(scenario: &Scenario, diagnosed: Diagnosed) -> Verdict {
        let mut verdict = Verdict {
            scenario: scenario.name.clone(),
            expected: scenario.expected().to_owned(),
            found: diagnosed.found,
            wrong: Vec::new(),
        };
        let (first, expected) = (verdict.first().to_owned(), verdict.expected.clone());
        if first != expected {
            verdict
                .wrong
                .push(format!("{first} is first, not {expected}"));
        }
        let place = |kind: &String| verdict.found.iter().position(|(k, _)| k == kind);
        let said = &scenario.diagnosis;
        let mut wrong = Vec::new();
        for pair in said.findings.windows(2) {
            match (place(&pair[0]), place(&pair[1])) {
                (_, None) => wrong.push(format!("{} is missing", pair[1])),
                (Some(a), Some(b)) if a > b => {
                    wrong.push(format!("{} is before {}", pair[1], pair[0]));
                }
                _ => {}
            }
        }
        for kind in said.must_not.iter().filter(|k| place(k).is_some()) {
            wrong.push(format!("{kind} is found"));
        }
        let says = |words: &&String| diagnosed.sentences.contains(words.as_str());
        for words in said.says.iter().filter(|words| !says(words)) {
            wrong.push(format!("nothing says \"{words}\""));
        }
        for words in said.must_not_say.iter().filter(says) {
            wrong.push(format!("something says \"{words}\""));
        }
        verdict.wrong.extend(wrong);
        verdict
    }

    /// Looks for the words of `nfscope diagnose`, whose lines are wrapped.
    pub fn hear(&mut self, scenario: &Scenario, page: &str) {
        let line: Vec<_> = page.split_whitespace().collect();
        let line = line.join(" ");
        let words = scenario.diagnosis.command_says.iter();
        let missing = words.filter(|words| !line.contains(words.as_str()));
        let missing = missing.map(|words| format!("the command does not say \"{words}\""));
        self.wrong.extend(missing);
    }

    /// Kind that was found first.
    pub fn first(&self) -> &str {
        self.found.first().map_or(HEALTHY, |(kind, _)| kind)
    }

    /// Verdict in one line.
    pub fn line(&self) -> String {
        let found: Vec<_> = self
            .found
            .iter()
            .map(|(kind, share)| format!("{kind} {:.0} %", share * 100.0))
            .collect();
        let found = match found.is_empty() {
            true => HEALTHY.to_owned(),
            false => found.join(", "),
        };
        let (mark, why) = match self.wrong.is_empty() {
            true => ("pass", String::new()),
            false => ("FAIL", format!("  <- {}", self.wrong.join("; "))),
        };
        format!("{mark}  {:28} {found}{why}", self.scenario)
    }
}

/// Confusion matrix: rows are the true causes, columns are the kinds that were found first.
pub fn matrix(verdicts: &[Verdict]) -> String {
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut names: Vec<&str> = Vec::new();
    for v in verdicts {
        for name in [v.expected.as_str(), v.first()] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        *counts.entry((&v.expected, v.first())).or_default() += 1;
    }
    names.sort_unstable();
    let mut out = format!("{:28}", "true \\ found first");
    for n in 0..names.len() {
        let _ = write!(out, " {:>3}", letter(n));
    }
    out.push('\n');
    for (n, expected) in names.iter().enumerate() {
        let _ = write!(out, "{} {expected:26}", letter(n));
        for found in &names {
            match counts.get(&(*expected, *found)) {
                Some(count) => {
                    let _ = write!(out, " {count:>3}");
                }
                None => out.push_str("   ."),
            }
        }
        out.push('\n');
    }
    let right = verdicts.iter().filter(|v| v.wrong.is_empty()).count();
    let _ = writeln!(out, "{right} of {} are right", verdicts.len());
    out
}

fn letter(n: usize) -> char {
    u8::try_from(n).map_or('?', |n| char::from(b'a'.saturating_add(n)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(findings: &[&str], must_not: &[&str], found: &[(&str, f64)]) -> Verdict {
        let list = |kinds: &[&str]| format!("{kinds:?}");
        let scenario: Scenario = toml::from_str(&format!(
            "title = 'a'\nload = []\n[server]\n[diagnosis]\nfindings = {}\nmust_not = {}",
            list(findings),
            list(must_not)
        ))
        .unwrap();
        let found = found.iter().map(|(k, s)| ((*k).to_owned(), *s)).collect();
        let sentences = String::new();
        Verdict::of(&scenario, Diagnosed { found, sentences })
    }

    #[test]
    fn words_are_looked_for() {
        let of = |key: &str, words: &str| {
            let scenario: Scenario = toml::from_str(&format!(
                "title = 'a'\nload = []\n[server]\n[diagnosis]\nfindings = []\n{key} = ['{words}']"
            ))
            .unwrap();
            let sentences = "nfsd reads 9 %\n".to_owned();
            let found = Vec::new();
            Verdict::of(&scenario, Diagnosed { found, sentences }).wrong
        };
        assert_eq!(of("says", "reads 9"), [""; 0]);
        assert_eq!(of("says", "writes"), ["nothing says \"writes\""]);
        assert_eq!(of("must_not_say", "writes"), [""; 0]);
        assert_eq!(
            of("must_not_say", "reads 9"),
            ["something says \"reads 9\""]
        );
    }

    #[test]
    fn words_of_the_command_are_looked_for_across_its_lines() {
        let scenario: Scenario = toml::from_str(
            "title = 'a'\nload = []\n[server]\n[diagnosis]\nfindings = []\ncommand_says = ['a b c', 'd']",
        )
        .unwrap();
        let mut verdict = Verdict::of(&scenario, Diagnosed::default());
        verdict.hear(&scenario, "x a b\n     c y");
        assert_eq!(verdict.wrong, ["the command does not say \"d\""]);
    }

    #[test]
    fn what_is_expected_must_be_first() {
        let found = [("slow_disk", 0.6), ("slow_reply", 0.3)];
        assert!(verdict(&["slow_disk"], &[], &found).wrong.is_empty());
        assert_eq!(
            verdict(&["slow_reply"], &[], &found).wrong,
            ["slow_disk is first, not slow_reply"]
        );
        assert_eq!(
            verdict(&["slow_disk"], &[], &[]).wrong,
            ["healthy is first, not slow_disk"]
        );
        assert_eq!(
            verdict(&[], &[], &found).wrong,
            ["slow_disk is first, not healthy"]
        );
    }

    #[test]
    fn two_have_an_order_and_what_is_wrong_is_named() {
        let expected = ["slow_disk", "slow_reply"];
        let found = [("slow_disk", 0.6), ("slow_reply", 0.3)];
        assert!(verdict(&expected, &[], &found).wrong.is_empty());
        assert_eq!(
            verdict(&expected, &[], &found[..1]).wrong,
            ["slow_reply is missing"]
        );
        assert_eq!(
            verdict(&["slow_disk"], &["slow_reply"], &found).wrong,
            ["slow_reply is found"]
        );
    }

    #[test]
    fn the_matrix_counts() {
        let all = [
            verdict(&["slow_disk"], &[], &[("slow_disk", 0.6)]),
            verdict(&["slow_disk"], &[], &[]),
            verdict(&[], &[], &[]),
        ];
        assert_eq!(
            matrix(&all),
            "true \\ found first             a   b\n\
             a healthy                      1   .\n\
             b slow_disk                    1   1\n\
             2 of 3 are right\n"
        );
    }
}
