//! Finds the name of an address by the name servers of `/etc/resolv.conf`: one question over UDP for each, with a time limit.
//!
//! The C library's own functions have no such limit, and ask all sources of the host's switch (nsswitch.conf).

use anyhow::{Context, bail, ensure};
use nfscope_source::host_table;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::time::{Duration, Instant};

/// Most servers that are asked, one after the other.
const MOST_SERVERS: usize = 2;
/// Time for one server to answer.
const PATIENCE: Duration = match cfg!(test) {
    false => Duration::from_millis(1500),
    // A slow answer on a busy host must not fail the tests.
    true => Duration::from_secs(60),
};
/// Type PTR, and class IN.
const PTR: [u8; 4] = [0, 12, 0, 1];
/// Most labels of a name, pointers included: a name of 255 bytes has at most 127.
const MOST_LABELS: usize = 200;

/// Name of an address; `None` if the servers know none.
///
/// # Errors
/// When no server answers.
pub(super) fn name_of(address: IpAddr) -> anyhow::Result<Option<String>> {
    let table = host_table::read("/etc/resolv.conf").unwrap_or_default();
    let mut outcome = Err(anyhow::anyhow!("/etc/resolv.conf names no server"));
    for server in servers(&table) {
        outcome = ask(server, 53, address);
        if outcome.is_ok() {
            break;
        }
    }
    outcome
}

fn servers(table: &str) -> Vec<IpAddr> {
    let named = table.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next()? == "nameserver").then(|| words.next())?
    });
    let parsed = named.filter_map(|server| server.parse().ok());
    parsed.take(MOST_SERVERS).collect()
}

fn ask(server: IpAddr, port: u16, address: IpAddr) -> anyhow::Result<Option<String>> {
    let any: IpAddr = match server {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // A connected socket does not receive answers of other addresses.
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((server, port))?;
    let mut random = RandomState::new().build_hasher();
    random.write_u8(0);
    let id = (random.finish() as u16).to_be_bytes();
    let question = question(address);
    let mut query = id.to_vec();
    // Flag "recursion desired", and one question.
    query.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    query.extend(&question);
    socket.send(&query)?;
    let until = Instant::now() + PATIENCE;
    let mut answer = [0; 1500];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        ensure!(!left.is_zero(), "{server} does not answer");
        socket.set_read_timeout(Some(left))?;
        let length = socket.recv(&mut answer)?;
        let answer = answer.get(..length).unwrap_or_default();
        // An answer with another id or question belongs to an earlier question.
        if answer.starts_with(&id) && answer.get(12..12 + question.len()) == Some(&question[..]) {
            return name_in(answer, 12 + question.len());
        }
    }
}

/// Question for an address: `7.0.0.10.in-addr.arpa`, its type and its class.
fn question(address: IpAddr) -> Vec<u8> {
    let labels: Vec<String> = match address {
        IpAddr::V4(a) => {
            let bytes = a.octets().into_iter().rev().map(|b| b.to_string());
            bytes.chain(["in-addr".to_owned()]).collect()
        }
        IpAddr::V6(a) => {
            let halves = a.octets().into_iter().rev().flat_map(|b| [b & 15, b >> 4]);
            let halves = halves.map(|half| format!("{half:x}"));
            halves.chain(["ip6".to_owned()]).collect()
        }
    };
    let mut all = Vec::new();
    for label in labels.iter().map(String::as_str).chain(["arpa"]) {
        all.push(label.len() as u8);
        all.extend(label.as_bytes());
    }
    all.push(0);
    all.extend(PTR);
    all
}

/// First name after the question of an answer; `None` if the server says that there is none.
fn name_in(answer: &[u8], mut at: usize) -> anyhow::Result<Option<String>> {
    let byte = |at: usize| answer.get(at).copied().context("an answer is too short");
    let two = |at: usize| Ok::<_, anyhow::Error>(u16::from_be_bytes([byte(at)?, byte(at + 1)?]));
    match byte(3)? & 15 {
        0 => {}
        // The name does not exist, or the zone is broken (SERVFAIL) or refused.
        2 | 3 | 5 => return Ok(None),
        code => bail!("the name server answers with code {code}"),
    }
    for _ in 0..two(6)? {
        // The owner name may have characters that a host's name may not (RFC 2317, section 4).
        at = name(answer, at)?.1;
        let (kind, length) = (two(at)?, usize::from(two(at + 8)?));
        if kind == 12 {
            return Ok(name(answer, at + 10)?.0.filter(|name| !name.is_empty()));
        }
        at += 10 + length;
    }
    Ok(None)
}

/// Reads the name at this offset. Returns no name if it has characters that a host's name may not, and the offset after it.
fn name(answer: &[u8], start: usize) -> anyhow::Result<(Option<String>, usize)> {
    let (mut at, mut behind, mut text, mut is_host) = (start, None, String::new(), true);
    for _ in 0..MOST_LABELS {
        let length = *answer.get(at).context("a name has no end")?;
        match length {
            0 => return Ok((is_host.then_some(text), behind.unwrap_or(at + 1))),
            // A pointer: the rest of the name is at another offset.
            192.. => {
                let low = *answer.get(at + 1).context("a name has no end")?;
                behind = behind.or(Some(at + 2));
                at = usize::from(length & 63) << 8 | usize::from(low);
            }
            1..64 => {
                let end = at + 1 + usize::from(length);
                let label = answer.get(at + 1..end).context("a name has no end")?;
                if !text.is_empty() {
                    text.push('.');
                }
                // The owner of the zone chooses the characters, so they are checked.
                let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
                is_host &= label.iter().all(plain);
                text.extend(label.iter().map(|b| char::from(*b)));
                at = end;
            }
            _ => bail!("a name has a label of an unknown type"),
        }
    }
    bail!("a name has no end")
}

/// Parser for any bytes that a server may send.
#[cfg(test)]
pub fn fuzzed(answer: &[u8]) {
    let _ = name_in(answer, 12);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Server that answers one question with the results of `answer`.
    fn server(answer: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> u16 {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = socket.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let mut asked = [0; 512];
            let (length, from) = socket.recv_from(&mut asked).unwrap();
            for answer in answer(&asked[..length]) {
                socket.send_to(&answer, from).unwrap();
            }
        });
        port
    }

    /// An answer with a record of type PTR, whose name ends in a pointer.
    fn named(asked: &[u8], code: u8) -> Vec<u8> {
        let mut all = asked.to_vec();
        all[2..8].copy_from_slice(&[0x81, 0x80 | code, 0, 1, 0, 1]);
        all.extend([
            192, 12, 0, 12, 0, 1, 0, 0, 0, 9, 0, 5, 2, b'd', b'b', 192, 12,
        ]);
        all
    }

    const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn an_answer_has_the_name_and_others_are_none() {
        let other = |asked: &[u8]| {
            let mut wrong = named(asked, 0);
            wrong[0] ^= 1;
            vec![wrong, vec![1], named(asked, 0)]
        };
        let address = "10.1.2.3".parse().unwrap();
        let told = ask(HOST, server(other), address).unwrap();
        assert_eq!(told.as_deref(), Some("db.3.2.1.10.in-addr.arpa"));
        let none = server(|asked| vec![named(asked, 3)]);
        assert_eq!(ask(HOST, none, address).unwrap(), None);
        // A broken zone counts as one without names, and not as a server that does not answer.
        let refused = server(|asked| vec![named(asked, 5)]);
        assert_eq!(ask(HOST, refused, address).unwrap(), None);
    }

    /// RFC 2317, section 4: the record of 192.0.2.7 has the owner `7.0/25.2.0.192.in-addr.arpa`.
    #[test]
    fn owners_may_have_characters_that_a_host_may_not() {
        let delegated = |asked: &[u8], label: &[u8]| {
            let mut all = asked.to_vec();
            all[2..8].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 1]);
            all.extend([4, b'0', b'/', b'2', b'5', 192, 12]);
            all.extend([0, 12, 0, 1, 0, 0, 0, 9, 0, label.len() as u8 + 3]);
            all.push(label.len() as u8);
            all.extend(label);
            all.extend([192, 12]);
            all
        };
        let address = "192.0.2.7".parse().unwrap();
        let good = server(move |asked| vec![delegated(asked, b"db")]);
        let told = ask(HOST, good, address).unwrap();
        assert_eq!(told.as_deref(), Some("db.7.2.0.192.in-addr.arpa"));
        let hostile = server(move |asked| vec![delegated(asked, b"\x1b]0")]);
        assert_eq!(ask(HOST, hostile, address).unwrap(), None);
    }

    #[test]
    fn questions_are_those_of_the_standard() {
        let of = |a: &str| {
            let question = question(a.parse().unwrap());
            let name = name(&question, 0).unwrap();
            (name.0, question.len() - name.1)
        };
        assert_eq!(
            of("10.1.2.3"),
            (Some("3.2.1.10.in-addr.arpa".to_owned()), 4)
        );
        assert_eq!(
            of("2001:db8::7").0.unwrap(),
            "7.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2.ip6.arpa"
        );
        let table = "# nameserver 1.1.1.1\nsearch x\nnameserver 10.0.0.1\nnameserver fe80::1%eth0\nnameserver ::1\nnameserver 10.0.0.2\n";
        let named: Vec<_> = servers(table).iter().map(ToString::to_string).collect();
        assert_eq!(named, ["10.0.0.1", "::1"]);
    }

    #[test]
    fn what_is_no_answer_is_an_error_and_ends() {
        let mut circle = vec![0; 12];
        circle[7] = 1;
        circle.extend([192, 12]);
        assert!(name_in(&circle, 12).is_err());
        let mut random = 7_u64;
        for _ in 0..200_000 {
            let mut bytes: Vec<u8> = Vec::new();
            for _ in 0..48 {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                bytes.push((random >> 56) as u8);
            }
            (bytes[3], bytes[6], bytes[7]) = (0, 0, 3);
            fuzzed(&bytes);
        }
    }
}
