//! Agents of servers that do not exist, for monitoring at the size of a fleet: each has an address of its own, the agent's own HTTP
//! server and the agent's own encoder.
//!
//! `fleet serve N [large]` serves N of them until its standard input ends. The first line of its output is JSON: the addresses,
//! and the operations a second of each. `fleet history N SECONDS STEP BEGIN` prints the counters of SECONDS seconds from BEGIN on
//! (seconds since 1970) as OpenMetrics with times, for `promtool tsdb create-blocks-from`.

#[allow(missing_docs)]
mod server;

use anyhow::{Context, Result, bail};
use nfscope_serve::endpoints;
use nfscope_serve::exposition::{self, Format};
use nfscope_serve::http::{self, AgentLink, Server, WebConfig};
use nfscope_serve::service::answers::{self, Answers};
use nfscope_serve::service::source_thread::SourceHandle;
use server::{LARGE, ORDINARY, Simulated};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

const USAGE: &str = "usage: fleet serve N [large] | fleet history N SECONDS STEP BEGIN";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve", n] => serve(n.parse()?, server::ORDINARY),
        ["serve", n, "large"] => serve(n.parse()?, LARGE),
        ["history", n, seconds, step, begin] => {
            history(n.parse()?, seconds.parse()?, step.parse()?, begin.parse()?)
        }
        _ => bail!(USAGE),
    }
}

fn serve(agents: usize, size: server::Size) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let inside = runtime.enter();
    let mut servers = Vec::new();
    let (mut addresses, mut operations) = (Vec::new(), Vec::new());
    for index in 0..agents {
        let simulated = Simulated::new(index, size);
        operations.push(simulated.operations());
        let listener = http::listen("127.0.0.1:0")?;
        addresses.push(listener.local_addr()?.to_string());
        let (source, _) = SourceHandle::spawn(move || Ok(Box::new(simulated)))?;
        let served = Answers::new(Arc::new(source), &endpoints::ALL);
        // One lane of each kind: hundreds of agents share this program's descriptors, and each has one scraper.
        let lane = || {
            let (ours, theirs) = answers::lanes(1)?;
            for lane in ours {
                tokio::spawn(served.clone().serve(lane));
            }
            std::io::Result::Ok(theirs)
        };
        let link = AgentLink::new(lane()?, lane()?, &endpoints::ALL)?;
        servers.push((Server::new(Arc::new(link), WebConfig::default()), listener));
    }
    drop(inside);
    let first = serde_json::json!({ "targets": addresses, "operations": operations });
    println!("{first}");
    std::io::stdout().flush()?;
    std::thread::spawn(|| {
        // However its owner ends, the pipe does.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        std::process::exit(0);
    });
    runtime.block_on(async {
        let mut all = tokio::task::JoinSet::new();
        for (server, listener) in servers {
            all.spawn(async move { server.serve(vec![listener]).await.map(drop) });
        }
        all.join_next().await.context("no server")??
    })
}

/// All samples of a series stand together, as OpenMetrics has it.
fn history(agents: usize, seconds: u64, step: u64, begin: u64) -> Result<()> {
    // By family, then by series.
    let mut types: BTreeMap<String, String> = BTreeMap::new();
    let mut series: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for index in 0..agents {
        let simulated = Simulated::new(index, ORDINARY);
        for t in (0..=seconds).step_by(step.max(1) as usize) {
            let mut s = simulated.after(t as f64);
            exposition::describe(&mut s, Duration::from_millis(2));
            let text = String::from_utf8(exposition::encode(&Arc::new(s), Format::OpenMetrics)?)?;
            let mut family = String::new();
            for line in text.lines() {
                if let Some(rest) = line.strip_prefix("# TYPE ") {
                    family = rest.split(' ').next().unwrap_or_default().to_owned();
                    types.insert(family.clone(), line.to_owned());
                }
                if line.starts_with('#') {
                    continue;
                }
                let (name, value) = line.rsplit_once(' ').context("a sample without a value")?;
                let labels = format!("job=\"nfscope\",instance=\"nfs{index}\"");
                let name = match name.split_once('{') {
                    Some((metric, rest)) => format!("{metric}{{{labels},{rest}"),
                    None => format!("{name}{{{labels}}}"),
                };
                let samples = series.entry(family.clone()).or_default();
                let samples = samples.entry(name.clone()).or_default();
                *samples += &format!("{name} {value} {}\n", begin + t);
            }
        }
    }
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for (family, series) in series {
        writeln!(out, "{}", types[&family])?;
        for samples in series.values() {
            out.write_all(samples.as_bytes())?;
        }
    }
    writeln!(out, "# EOF")?;
    out.flush().context("writing to standard output")
}
