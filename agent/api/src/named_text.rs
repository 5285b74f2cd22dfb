//! Sentences with the names of clients behind their addresses: `10.9.0.2 (db1)`.

use nfscope_model::finding::{Diagnosis, Finding};
use serde_json::Value;
use std::net::IpAddr;

/// Members of JSON whose values are sentences.
const SENTENCES: [&str; 7] = [
    "text", "summary", "advice", "reason", "outside", "warnings", "unseen",
];

/// Adds the client's name behind each address in a text.
pub fn with_names(text: &str, name: impl Fn(&str) -> Option<String>) -> String {
    let part = |c: char| c.is_ascii_hexdigit() || c == '.' || c == ':';
    let mut all = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(part) {
        let (before, from) = rest.split_at(start);
        all += before;
        let end = from.find(|c| !part(c)).unwrap_or(from.len());
        let (word, behind) = from.split_at(end);
        let address = word.trim_end_matches(['.', ':']);
        all += address;
        // An address must stand alone: a part of a longer word is a path, a network or a name.
        let alone = !before.ends_with(|c: char| c.is_alphanumeric() || "/-_[(".contains(c))
            && !behind.starts_with(|c: char| c.is_alphanumeric() || "/-_]".contains(c));
        if alone
            && address.parse::<IpAddr>().is_ok()
            && let Some(name) = name(address)
        {
            all += &format!(" ({name})");
        }
        all += &word[address.len()..];
        rest = behind;
    }
    all + rest
}

fn in_finding(finding: &mut Finding, name: &impl Fn(&str) -> Option<String>) {
    let texts = finding.evidence.iter_mut().map(|e| &mut e.text);
    let texts = texts.chain(&mut finding.advice);
    for text in texts.chain([&mut finding.summary]) {
        *text = with_names(text, name);
    }
}

/// Adds names of clients to the sentences of a diagnosis.
pub fn in_diagnosis(diagnosis: &mut Diagnosis, name: impl Fn(&str) -> Option<String>) {
    for finding in &mut diagnosis.findings {
        in_finding(finding, &name);
    }
    let lists = [
        &mut diagnosis.outside,
        &mut diagnosis.warnings,
        &mut diagnosis.unseen,
    ];
    for text in (lists.into_iter().flatten()).chain([&mut diagnosis.reason]) {
        *text = with_names(text, &name);
    }
}

/// Adds names of clients to the sentences in JSON.
pub fn in_json(value: &mut Value, name: &impl Fn(&str) -> Option<String>) {
    fn walk(value: &mut Value, sentence: bool, name: &impl Fn(&str) -> Option<String>) {
        match value {
            Value::String(text) if sentence => *text = with_names(text, name),
            Value::Array(all) => all.iter_mut().for_each(|v| walk(v, sentence, name)),
            Value::Object(all) => {
                for (key, v) in all.iter_mut() {
                    walk(v, SENTENCES.contains(&key.as_str()), name);
                }
            }
            _ => {}
        }
    }
    walk(value, false, name);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(address: &str) -> Option<String> {
        match address {
            "10.9.0.2" => Some("db1".to_owned()),
            "2001:db8::7" => Some("six".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn names_stand_behind_whole_addresses() {
        for (text, named) in [
            ("client 10.9.0.2 waits", "client 10.9.0.2 (db1) waits"),
            ("10.9.0.2, 10.9.0.3", "10.9.0.2 (db1), 10.9.0.3"),
            ("of 10.9.0.2.", "of 10.9.0.2 (db1)."),
            ("from 10.9.0.2: 3 ms", "from 10.9.0.2 (db1): 3 ms"),
            ("2001:db8::7 and é", "2001:db8::7 (six) and é"),
            (
                "10.9.0.20 10.9.0.2/24 x10.9.0.2",
                "10.9.0.20 10.9.0.2/24 x10.9.0.2",
            ),
            ("bad cafe 1.5 s ::", "bad cafe 1.5 s ::"),
            ("", ""),
        ] {
            assert_eq!(with_names(text, name), named);
        }
    }

    #[test]
    fn sentences_of_json_are_named_and_nothing_else() {
        let mut value = serde_json::json!({
            "client": "10.9.0.2",
            "active": [{"finding": {"summary": "10.9.0.2 waits", "evidence": [{"text": "by 10.9.0.2", "metric": "10.9.0.2"}],
                "advice": ["ask 10.9.0.2"]}}],
        });
        in_json(&mut value, &name);
        let finding = &value["active"][0]["finding"];
        assert_eq!(value["client"], "10.9.0.2");
        assert_eq!(finding["summary"], "10.9.0.2 (db1) waits");
        assert_eq!(finding["evidence"][0]["text"], "by 10.9.0.2 (db1)");
        assert_eq!(finding["evidence"][0]["metric"], "10.9.0.2");
        assert_eq!(finding["advice"][0], "ask 10.9.0.2 (db1)");
    }
}
