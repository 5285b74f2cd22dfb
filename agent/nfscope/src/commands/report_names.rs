//! Pseudonyms for `nfscope report --anonymise`: the same name has the same one in the whole report.

use crate::commands::report_data::windows;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// What each name is called instead.
pub(super) struct Pseudonyms {
    /// Longest first: a path may begin with another one.
    names: Vec<(String, String)>,
    addresses: BTreeMap<IpAddr, String>,
}

/// Members whose text is a name of a place or a person wherever they stand.
const NAMES: [(&str, &str); 9] = [
    ("export", "/export-"),
    ("path", "/path-"),
    ("called", "name-"),
    ("client_name", "name-"),
    ("user_name", "user-"),
    ("user", "user-"),
    ("mount", "mount-"),
    ("host", "host-"),
    ("file", "file-"),
];

impl Pseudonyms {
    /// For all names in this data.
    pub(super) fn of(data: &Value) -> Pseudonyms {
        let mut found: BTreeMap<String, &str> = BTreeMap::new();
        let mut addresses = BTreeMap::new();
        for w in windows(data) {
            for (kind, prefix) in [("clients", "client-"), ("exports", "/export-")] {
                for row in w[kind].as_array().into_iter().flatten() {
                    // The row of all others.
                    if let Some(name) = row["name"].as_str().filter(|n| *n != "other") {
                        found.entry(name.to_owned()).or_insert(prefix);
                    }
                }
            }
        }
        visit(data, &mut |member, text| {
            let named = NAMES.iter().find(|(m, _)| *m == member);
            if let Some((_, prefix)) = named.filter(|_| !text.is_empty()) {
                found.entry(text.to_owned()).or_insert(prefix);
            }
            for address in words(text).filter_map(|(_, w)| w.parse().ok()) {
                addresses.insert(address, String::new());
            }
        });
        found.retain(|name, _| match name.parse() {
            Ok(address) => {
                addresses.insert(address, String::new());
                false
            }
            Err(_) => true,
        });
        for (n, name) in addresses.values_mut().enumerate() {
            *name = format!("client-{}", n + 1);
        }
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        let mut names = Vec::new();
        for (name, prefix) in found {
            let n = counts.entry(prefix).or_default();
            *n += 1;
            names.push((name, format!("{prefix}{n}")));
        }
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Pseudonyms { names, addresses }
    }

    /// Puts them in place of the names, in every text.
    pub(super) fn replace(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(all) => all.iter_mut().for_each(|v| self.replace(v)),
            Value::Object(all) => {
                let old = std::mem::take(all);
                for (key, mut v) in old {
                    self.replace(&mut v);
                    all.insert(self.text(&key), v);
                }
            }
            _ => {}
        }
    }

    fn text(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        'all: while let Some(c) = rest.chars().next() {
            let begins = !out.ends_with(|c: char| c.is_alphanumeric());
            for (name, pseudonym) in self.names.iter().filter(|_| begins) {
                if let Some(behind) = rest.strip_prefix(name.as_str())
                    && !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_')
                {
                    out += pseudonym;
                    rest = behind;
                    continue 'all;
                }
            }
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
        let mut done = String::with_capacity(out.len());
        let mut at = 0;
        for (start, word) in words(&out) {
            let Ok(address) = word.parse::<IpAddr>() else {
                continue;
            };
            let Some(name) = self.addresses.get(&address) else {
                continue;
            };
            done += &out[at..start];
            done += name;
            at = start + word.len();
        }
        done + &out[at..]
    }
}

/// Words that may be addresses, with where they begin.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let part = |c: char| c.is_ascii_hexdigit() || c == '.' || c == ':';
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text[at..].find(part)?;
        let end = text[start..]
            .find(|c| !part(c))
            .map_or(text.len(), |n| start + n);
        at = end;
        Some((start, text[start..end].trim_end_matches(['.', ':'])))
    })
}

/// Each text with the member that has it.
fn visit<'a>(value: &'a Value, take: &mut impl FnMut(&'a str, &'a str)) {
    fn of<'a>(member: &'a str, value: &'a Value, take: &mut impl FnMut(&'a str, &'a str)) {
        match value {
            Value::String(text) => take(member, text),
            Value::Array(all) => all.iter().for_each(|v| of(member, v, take)),
            Value::Object(all) => {
                for (key, v) in all {
                    take("", key);
                    of(key, v, take);
                }
            }
            _ => {}
        }
    }
    of("", value, take);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_are_replaced_everywhere_and_numbers_and_devices_stay() {
        let mut data = json!({
            "windows": {"host": "nfs1", "kernel": "6.12.0", "windows": [{
                "at": 1.5, "seconds": 1.0,
                "clients": [
                    {"name": "192.0.2.7", "called": "db1.example", "ops": 3},
                    {"name": "2001:db8::7", "ops": 3}, {"name": "other", "ops": 1}
                ],
                "exports": [{"name": "/srv/home"}, {"name": "/srv/home/alice"}],
                "disks": [{"device": "sda1"}],
            }]},
            "findings": {"active": [{"finding": {
                "summary": "clients 192.0.2.7 (db1.example) and [2001:db8::7]:700 of nfs1 write to /srv/home/alice on sda1.",
                "advice": ["look at 192.0.2.9", "/srv/homes is another path", "nfs10 is another host"]
            }}]},
        });
        let before = data.clone();
        let names = Pseudonyms::of(&data);
        names.replace(&mut data);
        let finding = &data["findings"]["active"][0]["finding"];
        assert_eq!(
            finding["summary"],
            "clients client-1 (name-1) and [client-3]:700 of host-1 write to /export-2 on sda1."
        );
        assert_eq!(
            finding["advice"],
            json!([
                "look at client-2",
                "/srv/homes is another path",
                "nfs10 is another host"
            ])
        );
        let window = &data["windows"]["windows"][0];
        assert_eq!(window["clients"][0]["name"], "client-1");
        assert_eq!(window["clients"][2]["name"], "other");
        assert_eq!(window["exports"][1]["name"], "/export-2");
        assert_eq!(window["disks"], before["windows"]["windows"][0]["disks"]);
        assert_eq!(data["windows"]["kernel"], "6.12.0");
        // The same names give the same pseudonyms.
        let mut again = before.clone();
        Pseudonyms::of(&before).replace(&mut again);
        assert_eq!(again, data);
    }
}
