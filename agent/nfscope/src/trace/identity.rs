//! Identity of the recorded server in a trace, from which its addresses cannot be read, so that a replay knows the server again.

use anyhow::Context;
use nfscope_trace::header::Recorded;
use ring::pbkdf2;
use ring::rand::{SecureRandom, SystemRandom};
use std::collections::BTreeSet;
use std::fs;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;

/// Rounds of each digest, which make it slow to try all addresses.
const ROUNDS: NonZeroU32 = match NonZeroU32::new(20_000) {
    Some(rounds) => rounds,
    None => NonZeroU32::MIN,
};
const SALT_BYTES: usize = 16;
const DIGEST_BYTES: usize = 16;
/// Names of a host that are kept: addresses, and the id of the machine.
const MOST_NAMES: usize = 64;

/// Names of this host.
fn own_names() -> BTreeSet<String> {
    let mut names: BTreeSet<String> = own_addresses().iter().map(address_name).collect();
    names.extend(machine());
    names
}

fn machine() -> Option<String> {
    let id = fs::read_to_string("/etc/machine-id").ok()?;
    Some(id.trim())
        .filter(|id| !id.is_empty())
        .map(|id| format!("machine {id}"))
}

fn address_name(address: &IpAddr) -> String {
    format!("address {}", address.to_canonical())
}

/// Addresses of this host but for the loopback's.
fn own_addresses() -> BTreeSet<IpAddr> {
    let mut addresses = BTreeSet::new();
    // Lines of `|-- ADDRESS`, each with lines of its kind behind it (net/ipv4/fib_trie.c).
    let table = fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let mut last = None;
    for line in table.lines() {
        let line = line.trim();
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<IpAddr>().ok();
        } else if line == "/32 host LOCAL" {
            addresses.extend(last);
        }
    }
    let table = fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    for line in table.lines() {
        let address = line
            .get(..32)
            .and_then(|d| u128::from_str_radix(d, 16).ok());
        addresses.extend(address.map(|a| IpAddr::from(Ipv6Addr::from(a))));
    }
    addresses.retain(|a| !a.is_loopback());
    addresses
}

/// Names of a host with these addresses: this host's own names, too, if it is this host.
fn names(addresses: &[IpAddr]) -> BTreeSet<String> {
    let own = own_addresses();
    let mut names: BTreeSet<String> = addresses
        .iter()
        .filter(|a| !a.is_loopback())
        .map(address_name)
        .collect();
    if (addresses.iter()).any(|a| a.is_loopback() || own.contains(&a.to_canonical())) {
        names.extend(own_names());
    }
    names
}

fn digest(salt: &[u8], name: &str) -> String {
    let mut out = [0; DIGEST_BYTES];
    pbkdf2::derive(
        pbkdf2::PBKDF2_HMAC_SHA256,
        ROUNDS,
        salt,
        name.as_bytes(),
        &mut out,
    );
    hex(&out)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Identity of the host with these addresses; of this host without one.
///
/// # Errors
/// When the system has no random numbers.
pub(super) fn recorded(addresses: Option<&[IpAddr]>) -> anyhow::Result<Recorded> {
    let mut salt = [0; SALT_BYTES];
    let filled = SystemRandom::new().fill(&mut salt);
    filled.ok().context("the system has no random numbers")?;
    let names = addresses.map_or_else(own_names, names);
    let salt = hex(&salt);
    let digests = names
        .iter()
        .take(MOST_NAMES)
        .map(|name| digest(salt.as_bytes(), name));
    Ok(Recorded {
        digests: digests.collect(),
        salt,
    })
}

/// True if a host with these addresses is the recorded one.
pub(super) fn is_recorded(recorded: &Recorded, addresses: &[IpAddr]) -> bool {
    names(addresses).iter().any(|name| {
        recorded
            .digests
            .contains(&digest(recorded.salt.as_bytes(), name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_known_again_by_each_of_its_addresses_and_no_other() {
        let of = |text: &str| text.parse::<IpAddr>().unwrap();
        let server = recorded(Some(&[of("192.0.2.1"), of("2001:db8::1")])).unwrap();
        assert!(is_recorded(&server, &[of("2001:db8::1")]));
        assert!(is_recorded(&server, &[of("::ffff:192.0.2.1")]));
        assert!(!is_recorded(&server, &[of("192.0.2.2")]));
        assert!(!format!("{server:?}").contains("192.0.2.1"));
    }

    #[test]
    fn this_host_is_known_again_over_its_loopback() {
        let own = recorded(None).unwrap();
        let known = is_recorded(&own, &["127.0.0.1".parse().unwrap()]);
        assert_eq!(known, !own.digests.is_empty());
    }
}
