//! The site's own file: names, racks and tenants of addresses and of ranges, and names of users.

use anyhow::{Context, bail, ensure};
use nfscope_source::bounded;
use serde::Deserialize;
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;

/// Most bytes of the file.
const MOST: u64 = 4 << 20;
/// Most entries of the file.
const MOST_ENTRIES: usize = 100_000;
/// Most ranges of the file, because each one is compared with an address.
const MOST_RANGES: usize = 1000;

/// Names that a site gives its clients.
#[derive(Debug, Clone, Default)]
pub struct Site {
    single: HashMap<IpAddr, Entry>,
    /// Ranges, the smallest one first.
    ranges: Vec<Range>,
    /// Names of users by their numbers.
    users: HashMap<String, String>,
}

#[derive(Debug, Clone)]
struct Range {
    first: IpAddr,
    last: IpAddr,
    entry: Entry,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    #[serde(default)]
    client: Vec<Entry>,
    #[serde(default)]
    user: Vec<User>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct User {
    id: u32,
    name: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// `10.9.0.7`, `10.9.0.0/24` or `10.9.0.10-10.9.0.20`
    address: String,
    name: Option<String>,
    rack: Option<String>,
    tenant: Option<String>,
}

impl Site {
    /// Reads this file.
    ///
    /// # Errors
    /// When the file cannot be read or has an error, which is named.
    pub fn read(path: &Path) -> anyhow::Result<Site> {
        let because = || format!("[names] file {}", path.display());
        let text = bounded::read_text(path, MOST).with_context(because)?;
        Site::parse(&text).with_context(because)
    }

    /// Names by the text of a file.
    ///
    /// # Errors
    /// When the text has an error, which is named.
    pub fn parse(text: &str) -> anyhow::Result<Site> {
        let text: Text = toml::from_str(text)?;
        ensure!(
            text.client.len().max(text.user.len()) <= MOST_ENTRIES,
            "it has more than {MOST_ENTRIES} entries; name ranges"
        );
        let all = text.client.into_iter().map(|entry| {
            let (first, last) = range(&entry.address)?;
            let texts = [&entry.name, &entry.rack, &entry.tenant];
            let mut texts = texts.into_iter().flatten().peekable();
            ensure!(
                texts.peek().is_some(),
                "`{}` has neither name, rack nor tenant",
                entry.address
            );
            for text in texts {
                ensure!(is_name(text), "`{}`: {text:?} is no name", entry.address);
            }
            Ok(Range { first, last, entry })
        });
        let mut single = HashMap::new();
        let mut ranges = Vec::new();
        for range in all.collect::<anyhow::Result<Vec<_>>>()? {
            if range.first != range.last {
                ranges.push(range);
            } else if let Some(before) = single.insert(range.first, range.entry) {
                bail!("`{}` stands there twice", before.address);
            }
        }
        ensure!(
            ranges.len() <= MOST_RANGES,
            "it has more than {MOST_RANGES} ranges; put together those that have the same name"
        );
        ranges.sort_by_key(|r| number(r.last) - number(r.first));
        let mut users = HashMap::new();
        for User { id, name } in text.user {
            ensure!(is_name(&name), "user {id}: {name:?} is no name");
            users.insert(id.to_string(), name);
        }
        Ok(Site {
            single,
            ranges,
            users,
        })
    }

    /// Name of an address, and its rack and tenant, each from the smallest range that has it.
    pub(super) fn of(&self, address: IpAddr) -> (Option<&str>, Option<String>) {
        let inside = |r: &&Range| {
            r.first.is_ipv4() == address.is_ipv4() && r.first <= address && address <= r.last
        };
        let ranges = self.ranges.iter().filter(inside).map(|r| &r.entry);
        let of: Vec<_> = self
            .single
            .get(&address)
            .into_iter()
            .chain(ranges)
            .collect();
        let first =
            |field: fn(&Entry) -> &Option<String>| of.iter().find_map(|e| field(e).as_deref());
        let place = [first(|e| &e.rack), first(|e| &e.tenant)];
        let place: Vec<_> = place.into_iter().flatten().collect();
        let place = (!place.is_empty()).then(|| place.join(", "));
        (first(|e| &e.name), place)
    }

    /// Names of users by their numbers.
    pub(super) fn users(&self) -> &HashMap<String, String> {
        &self.users
    }

    /// Addresses that are entries by themselves.
    pub(super) fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.single.keys().copied()
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_control)
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(a) => u128::from(u32::from(a)),
        IpAddr::V6(a) => u128::from(a),
    }
}

/// Parses a range: first and last address.
fn range(text: &str) -> anyhow::Result<(IpAddr, IpAddr)> {
    let wrong =
        || format!("`{text}` is no address; write 10.9.0.7, 10.9.0.0/24 or 10.9.0.10-10.9.0.20");
    let address = |text: &str| text.trim().parse::<IpAddr>().with_context(wrong);
    let (first, last) = match (text.split_once('/'), text.split_once('-')) {
        (Some((network, bits)), _) => {
            let first = address(network)?;
            let whole = if first.is_ipv4() { 32 } else { 128 };
            let bits: u32 = bits
                .parse()
                .ok()
                .filter(|b| *b <= whole)
                .with_context(wrong)?;
            let rest = match whole - bits {
                128 => u128::MAX,
                rest => (1 << rest) - 1,
            };
            let (low, high) = (number(first) & !rest, number(first) | rest);
            match first {
                IpAddr::V4(_) => (of_v4(low), of_v4(high)),
                IpAddr::V6(_) => (IpAddr::V6(low.into()), IpAddr::V6(high.into())),
            }
        }
        (None, Some((first, last))) => (address(first)?, address(last)?),
        (None, None) => (address(text)?.to_canonical(), address(text)?.to_canonical()),
    };
    ensure!(
        first.is_ipv4() == last.is_ipv4() && first <= last,
        "`{text}` ends before it begins"
    );
    Ok((first, last))
}

fn of_v4(number: u128) -> IpAddr {
    IpAddr::V4((number as u32).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(site: &Site, address: &str) -> (Option<String>, Option<String>) {
        let (name, place) = site.of(address.parse().unwrap());
        (name.map(str::to_owned), place)
    }

    #[test]
    fn the_smallest_range_counts_for_each_field() {
        let site = Site::parse(
            r#"
[[client]]
address = "10.9.0.0/16"
tenant = "films"
name = "somebody"
[[client]]
address = "10.9.1.10-10.9.1.20"
rack = "r12"
[[client]]
address = "10.9.1.12"
name = "render7"
[[client]]
address = "2001:db8::/32"
name = "six"
[[client]]
address = "::/0"
rack = "else"
"#,
        )
        .unwrap();
        assert!(site.users().is_empty());
        let users = Site::parse("[[user]]\nid = 1000\nname = \"alice\"\n").unwrap();
        assert_eq!(users.users()["1000"], "alice");
        let some = |name: &str, place: &str| (Some(name.to_owned()), Some(place.to_owned()));
        assert_eq!(of(&site, "10.9.1.12"), some("render7", "r12, films"));
        assert_eq!(of(&site, "10.9.1.20"), some("somebody", "r12, films"));
        assert_eq!(of(&site, "10.9.1.21"), some("somebody", "films"));
        assert_eq!(of(&site, "10.10.0.1"), (None, None));
        assert_eq!(of(&site, "2001:db8:1::1"), some("six", "else"));
    }

    #[test]
    fn mistakes_are_named() {
        let wrong = |text: &str| format!("{:#}", Site::parse(text).unwrap_err());
        let entry = |address: &str| format!("[[client]]\naddress = \"{address}\"\nname = \"a\"\n");
        for address in ["db", "10.0.0.0/33", "10.0.0.300", "10.0.0.0/x", ""] {
            assert!(wrong(&entry(address)).contains("is no address; write 10.9.0.7"));
        }
        let twice = entry("10.0.0.7") + &entry("10.0.0.7-10.0.0.7");
        assert!(wrong(&twice).contains("`10.0.0.7` stands there twice"));
        assert!(wrong(&entry("10.0.0.9-10.0.0.1")).contains("ends before it begins"));
        assert!(wrong(&entry("10.0.0.9-::1")).contains("ends before it begins"));
        assert!(wrong("[[client]]\naddress = \"10.0.0.1\"\n").contains("neither name, rack nor"));
        assert!(wrong("[[client]]\naddress = \"10.0.0.1\"\nrak = \"1\"\n").contains("`rak`"));
        assert!(
            wrong("[[client]]\naddress = \"10.0.0.1\"\nname = \"\\u001b\"\n")
                .contains("is no name")
        );
        assert!(wrong("[[user]]\nid = 7\nname = \"\"\n").contains("user 7: \"\" is no name"));
        assert!(wrong("[[user]]\nid = -7\nname = \"a\"\n").contains("-7"));
        assert!(Site::read(Path::new("/nonexistent/names.toml")).is_err());
    }
}
