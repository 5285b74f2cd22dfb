//! NFSv4 clients, by /proc/fs/nfsd/clients.

use crate::doctor::answer::Answer;
use crate::doctor::host::{Host, Missing};
use crate::doctor::rule::Rule;
use crate::doctor::rules::connections::established;
use nfscope_text::units::many;
use std::collections::BTreeMap;

const CLIENTS: &str = "/proc/fs/nfsd/clients";
/// Most clients whose files are read.
const MOST: usize = 2000;
/// Most clients that an answer names.
const MOST_NAMED: usize = 5;

/// Clients with state on the server.
struct Clients {
    /// Fields of each client's file `info`, by name.
    read: Vec<BTreeMap<String, String>>,
    /// Clients beyond [`MOST`], whose files are not read.
    left: usize,
}

impl Clients {
    fn read(host: &Host) -> Result<Clients, Missing> {
        let ids = host.names(CLIENTS)?;
        let mut read = Vec::new();
        for id in ids.iter().take(MOST) {
            match host.text(&format!("{CLIENTS}/{id}/info")) {
                Ok(info) => read.push(fields(&info)),
                // The client left after its directory was listed.
                Err(Missing::Absent(_)) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Clients {
            read,
            left: ids.len().saturating_sub(MOST),
        })
    }

    /// Unknown answer for the clients that were not read.
    fn beyond(&self) -> Option<Answer> {
        (self.left > 0).then(|| {
            Answer::unknown(
                format!(
                    "{} beyond the first {MOST}, which alone were looked at",
                    many(self.left as f64, "client")
                ),
                format!("see the files `info` below {CLIENTS}"),
            )
        })
    }
}

fn fields(info: &str) -> BTreeMap<String, String> {
    let lines = info.lines().filter_map(|l| l.split_once(':'));
    lines
        .map(|(name, value)| (name.to_owned(), value.trim().trim_matches('"').to_owned()))
        .collect()
}

fn field<'a>(client: &'a BTreeMap<String, String>, name: &str) -> &'a str {
    client.get(name).map_or("?", String::as_str)
}

/// Applies `look` to the NFSv4 clients. If they are not known, the only answer says why. Without clients there is no answer.
fn with(host: &Host, look: fn(&[BTreeMap<String, String>]) -> Vec<Answer>) -> Vec<Answer> {
    match Clients::read(host) {
        // Kernels before 5.3 have no such directory.
        Err(e) => vec![e.answer()],
        Ok(clients) if clients.read.is_empty() => clients.beyond().into_iter().collect(),
        Ok(clients) => {
            let mut answers = look(&clients.read);
            answers.extend(clients.beyond());
            answers
        }
    }
}

/// Clients that the server's callbacks do not reach.
pub const CALLBACKS: Rule = Rule {
    name: "callbacks",
    why: "The server cannot ask these clients to give delegations back. Others that want their files wait until the lease is over, and \
          no further delegations are granted.",
    source: "RFC 8881, section 10.2; fs/nfsd/nfs4state.c, client_info_show()",
    look: |host| with(host, callbacks),
};

fn callbacks(clients: &[BTreeMap<String, String>]) -> Vec<Answer> {
    let (mut broken, mut up, mut unknown) = (Vec::new(), 0_usize, 0_usize);
    // No callbacks are sent to courtesy and expirable clients, which went away. Older kernels print no status.
    let here = |c: &&BTreeMap<String, String>| c.get("status").is_none_or(|s| s == "confirmed");
    for c in clients.iter().filter(here) {
        match field(c, "callback state") {
            "DOWN" | "FAULT" => broken.push(c),
            "UP" => up += 1,
            _ => unknown += 1,
        }
    }
    let mut answers = Vec::new();
    if !broken.is_empty() {
        let mut named: Vec<_> = (broken.iter().take(MOST_NAMED))
            .map(|c| {
                let (address, state) = (field(c, "address"), field(c, "callback state"));
                format!("{address} ({state}, NFSv4.{})", field(c, "minor version"))
            })
            .collect();
        if broken.len() > MOST_NAMED {
            named.push(format!("{} more", broken.len() - MOST_NAMED));
        }
        answers.push(Answer::change(
            format!("callbacks do not reach {}", named.join(", ")),
            "with NFSv4.0 let the server connect to the client (firewall, NAT), or mount with vers=4.2, which uses the client's own \
             connection",
        ));
    }
    if unknown > 0 {
        answers.push(Answer::unknown(
            format!(
                "whether callbacks reach {} of {} is not known",
                many(unknown as f64, "client"),
                broken.len() + up + unknown
            ),
            "older kernels, such as 5.10, do not list it; for UNKNOWN and UNDEFINED look again after the server has called the client",
        ));
    }
    if up > 0 {
        let up = many(up as f64, "client");
        answers.push(Answer::good(format!("no broken path to {up} of NFSv4")));
    }
    answers
}

/// Mount options, as far as the server can see them.
pub const MOUNTS: Rule = Rule {
    name: "mounts",
    why: "NFSv4.0 has no sessions: a request that is sent again may be executed twice, and callbacks need a connection of their own.",
    source: "RFC 8881, section 2.10; nfs(5), nfsvers and nconnect",
    look: |host| {
        let mut answers = Vec::new();
        if let Ok(clients) = Clients::read(host) {
            let mut versions: BTreeMap<&str, u64> = BTreeMap::new();
            for c in &clients.read {
                *versions.entry(field(c, "minor version")).or_default() += 1;
            }
            let seen: Vec<_> = (versions.iter())
                .map(|(minor, n)| format!("{} of NFSv4.{minor}", many(*n as f64, "client")))
                .collect();
            match versions.get("0") {
                Some(_) => answers.push(Answer::consider(
                    seen.join(", "),
                    "mount with vers=4.2 on the clients of NFSv4.0",
                )),
                None if !seen.is_empty() => answers.push(Answer::good(seen.join(", "))),
                None => {}
            }
            answers.extend(clients.beyond());
        }
        match established(host) {
            Ok(clients) if !clients.is_empty() => {
                let most = clients.values().max().copied().unwrap_or_default();
                let says = format!(
                    "{} with {} to port 2049, at most {most} of one client (nconnect)",
                    many(clients.len() as f64, "address"),
                    many(clients.values().sum::<u64>() as f64, "connection"),
                );
                answers.push(Answer::good(says.replace("addresss", "addresses")));
            }
            _ => {}
        }
        answers.push(Answer::unknown(
            "rsize, wsize, hard or soft, actimeo: clients do not tell a server",
            "on a client: `nfsstat -m`, or an agent with --client",
        ));
        answers
    },
};

/// Session slots of the clients.
pub const SLOTS: Rule = Rule {
    name: "slots",
    why: "A client of NFSv4.1 or later has no more requests under way in a session than it has slots.",
    source: "RFC 8881, section 2.10.6.1; fs/nfsd/nfs4state.c, client_info_show()",
    look: |host| {
        with(host, |clients| {
            let slots: Vec<u64> = (clients.iter())
                .filter_map(|c| c.get("session slots"))
                .flat_map(|s| s.split_ascii_whitespace())
                .filter_map(|n| n.parse().ok())
                .collect();
            match (slots.iter().min(), slots.iter().max()) {
                (Some(1), Some(most)) => {
                    let single = slots.iter().filter(|n| **n == 1).count();
                    let mut says = format!(
                        "{} of {} with a single slot",
                        many(single as f64, "session"),
                        slots.len()
                    );
                    if *most > 1 {
                        says += &format!(", the others with up to {most}");
                    }
                    vec![Answer::consider(
                        says,
                        "a slot alone means one request at a time: give the server more memory, or see whether the client asks for one",
                    )]
                }
                (Some(least), Some(most)) => vec![Answer::good(format!(
                    "{} with {least} to {most} slots",
                    many(slots.len() as f64, "session")
                ))],
                _ if clients.iter().all(|c| field(c, "minor version") == "0") => Vec::new(),
                _ => vec![Answer::unknown(
                    "this kernel does not list the slots of sessions",
                    "an agent with --client on a client shows RPCs that wait for a slot: `nfscope path`",
                )],
            }
        })
    },
};
