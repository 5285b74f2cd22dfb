//! Clients of NFSv4, as the kernel describes them.

use crate::doctor::answer::Answer;
use crate::doctor::host::{Host, Missing};
use crate::doctor::rule::Rule;
use crate::doctor::rules::connections::established;
use nfscope_text::units::many;
use std::collections::BTreeMap;

const CLIENTS: &str = "/proc/fs/nfsd/clients";
/// Number of clients whose files are read.
const MOST: usize = 2000;
/// Number of clients that an answer names.
const MOST_NAMED: usize = 5;

/// Fields of each client's file `info`, by name.
fn all(host: &Host) -> Result<Vec<BTreeMap<String, String>>, Missing> {
    let mut found = Vec::new();
    for id in host.names(CLIENTS)?.into_iter().take(MOST) {
        match host.text(&format!("{CLIENTS}/{id}/info")) {
            Ok(info) => found.push(fields(&info)),
            // Clients come and go.
            Err(Missing::Absent(_)) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(found)
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

/// With clients of NFSv4, or the answer that stands for them.
fn with(host: &Host, look: fn(&[BTreeMap<String, String>]) -> Vec<Answer>) -> Vec<Answer> {
    match all(host) {
        // Kernels before 5.3 do not tell.
        Err(e) => vec![e.answer()],
        Ok(clients) if clients.is_empty() => Vec::new(),
        Ok(clients) => look(&clients),
    }
}

/// Callbacks that do not arrive.
pub const CALLBACKS: Rule = Rule {
    name: "callbacks",
    why: "The server cannot ask these clients to give delegations back. Others that want their files wait until the lease is over, and \
          no further delegations are granted.",
    source: "RFC 8881, section 10.2; fs/nfsd/nfs4state.c, client_info_show()",
    look: |host| {
        with(host, |clients| {
            let broken = |c: &&BTreeMap<String, String>| {
                matches!(field(c, "callback state"), "DOWN" | "FAULT")
            };
            let broken: Vec<_> = clients.iter().filter(broken).collect();
            if broken.is_empty() {
                let all = many(clients.len() as f64, "client");
                return vec![Answer::good(format!("no broken path to {all} of NFSv4"))];
            }
            let mut named: Vec<_> = (broken.iter().take(MOST_NAMED))
                .map(|c| {
                    let (address, state) = (field(c, "address"), field(c, "callback state"));
                    format!("{address} ({state}, NFSv4.{})", field(c, "minor version"))
                })
                .collect();
            if broken.len() > MOST_NAMED {
                named.push(format!("{} more", broken.len() - MOST_NAMED));
            }
            vec![Answer::change(
                format!("callbacks do not reach {}", named.join(", ")),
                "with NFSv4.0 let the server connect to the client (firewall, NAT), or mount with vers=4.2, which uses the client's own \
                 connection",
            )]
        })
    },
};

/// Options of mounts, as far as a server sees them.
pub const MOUNTS: Rule = Rule {
    name: "mounts",
    why: "NFSv4.0 has no sessions: a request that is sent again may be executed twice, and callbacks need a connection of their own.",
    source: "RFC 8881, section 2.10; nfs(5), nfsvers and nconnect",
    look: |host| {
        let mut answers = Vec::new();
        if let Ok(clients) = all(host) {
            let mut versions: BTreeMap<&str, u64> = BTreeMap::new();
            for c in &clients {
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

/// Slots of sessions.
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
                (Some(1), Some(most)) => vec![Answer::consider(
                    format!(
                        "{} of {} with a single slot, the others with up to {most}",
                        many(slots.iter().filter(|n| **n == 1).count() as f64, "session"),
                        slots.len()
                    ),
                    "a slot alone means one request at a time: give the server more memory, or see whether the client asks for one",
                )],
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
