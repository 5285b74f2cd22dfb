//! The page in a browser on the host, of an agent in the machine: its numbers equal the counters.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, ensure};
use lab::{Agent, Server};

/// Address of the client that writes durably; two others only ask.
const SLOW: &str = "127.14.0.1";
const LOADS: [&str; 2] = [
    "write --clients 1 --from 127.14.0.1 --size 65536 --times 60",
    "getattr --clients 2 --from 127.14.0.2 --times 300 --every 5",
];

pub fn shows_what_the_counters_say(server: &Server, agent: &Agent) -> Result<()> {
    let python = lab::cache().join("browser/bin/python");
    if !python.exists() {
        lab::skip("there is no browser: tests/setup/setup.sh browser installs it");
        return Ok(());
    }
    server.clients().try_for_each(|c| c.unmount_all())?;
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/browser/live.py");
    let mut browser = Command::new(python)
        .args([program, &format!("http://{}/", agent.address()), SLOW])
        .args(std::env::var_os("NFSCOPE_SCREENSHOTS"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let said = BufReader::new(browser.stdout.take().context("its output")?);
    let input = browser.stdin.take().context("its input")?;
    let told = lab::beside_the_host(|| told_of_load(server, said, input))?;
    ensure!(
        browser.wait()?.success(),
        "the page is wrong; its errors are above"
    );
    print!("{told}");
    Ok(())
}

/// Makes the load once the browser is ready, and returns the last line that it prints.
fn told_of_load(server: &Server, mut said: impl BufRead, mut input: impl Write) -> Result<String> {
    let mut line = String::new();
    said.read_line(&mut line)?;
    if line.trim() == "ready" {
        thread::scope(|s| {
            let loads = LOADS.map(|load| s.spawn(move || server.run_clients(load)));
            let ended = loads.map(|load| load.join().ok().context("a load panicked")?);
            ended.into_iter().try_for_each(|load| load.map(drop))
        })?;
        writeln!(input, "loaded")?;
    }
    line.clear();
    said.read_line(&mut line)?;
    Ok(line)
}
