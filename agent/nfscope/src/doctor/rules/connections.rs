//! TCP connections of clients, and their limit.

use crate::doctor::answer::Answer;
use crate::doctor::host::{Host, Missing};
use crate::doctor::rule::Rule;
use std::collections::BTreeMap;

/// Established connections to port 2049, by the remote address in the hexadecimal form of /proc/net/tcp.
pub fn established(host: &Host) -> Result<BTreeMap<String, u64>, Missing> {
    const PORT: &str = "0801";
    const ESTABLISHED: &str = "01";
    let mut clients = BTreeMap::new();
    let four = host.text("/proc/net/tcp")?;
    let six = host.text("/proc/net/tcp6").unwrap_or_default();
    for line in four.lines().chain(six.lines()) {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (Some(local), Some(remote), Some(state)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let (Some((_, port)), Some((client, _))) = (local.split_once(':'), remote.split_once(':'))
        else {
            continue;
        };
        if (port, state) == (PORT, ESTABLISHED) {
            *clients.entry(client.to_owned()).or_default() += 1;
        }
    }
    Ok(clients)
}

/// Number of connections near the limit.
pub const LIMIT: Rule = Rule {
    name: "connections",
    why: "Above the limit the server closes the oldest connection for each new one, although it is in use. Its client connects again, and \
          another one loses its own.",
    source: "net/sunrpc/svc_xprt.c, svc_check_conn_limits(); /proc/fs/nfsd/max_connections, 0: (threads + 3) * 20",
    look: |host| {
        let now = match established(host) {
            Ok(clients) => clients.values().sum::<u64>(),
            Err(e) => return vec![e.answer()],
        };
        let limit = match host.number("/proc/fs/nfsd/max_connections") {
            Ok(0) => match host.number("/proc/fs/nfsd/threads") {
                Ok(0) => return Vec::new(),
                Ok(threads) => threads.saturating_add(3).saturating_mul(20),
                Err(e) => return vec![e.answer()],
            },
            Ok(limit) => limit,
            // Newer kernels have no such limit.
            Err(Missing::Absent(_)) => return Vec::new(),
            Err(e) => return vec![e.answer()],
        };
        let says = format!("{now} of at most {limit} connections to port 2049");
        match now.saturating_mul(10) >= limit.saturating_mul(9) {
            true => vec![Answer::change(
                says,
                "raise the number of threads, or write a limit to /proc/fs/nfsd/max_connections before the server starts",
            )],
            false => vec![Answer::good(says)],
        }
    },
};
