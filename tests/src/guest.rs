//! `lab guest`: the only service of the machine. It brings the network up and runs commands.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::protocol::{CONTROL_PORT, Frame, GREETING, Request};

/// Commands that make the machine reachable. Its network card is QEMU's user network, whose addresses are fixed.
const NETWORK: &str = "
set -e
modprobe -a virtio_net virtio_blk
ip link set lo up
for i in $(seq 50); do for card in /sys/class/net/e*; do [ -e $card ] && break 2; done; sleep 0.1; done
card=$(basename $card)
ip link set $card up
ip address add 10.0.2.15/24 dev $card
ip route add default via 10.0.2.2
";

/// Serves commands until the machine is switched off.
pub fn serve() -> Result<()> {
    let network = Command::new("bash").args(["-c", NETWORK]).status();
    if !network.context("running bash")?.success() {
        bail!("the machine's network did not come up; see the messages above");
    }
    let listener = TcpListener::bind(("0.0.0.0", CONTROL_PORT))
        .with_context(|| format!("listening on port {CONTROL_PORT}"))?;
    println!("lab guest: ready");
    for stream in listener.incoming() {
        let stream = stream.context("accepting a connection")?;
        thread::spawn(move || {
            if let Err(e) = answer(stream) {
                eprintln!("lab guest: {e:#}");
            }
        });
    }
    Ok(())
}

fn answer(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    stream.write_all(GREETING.as_bytes())?;
    let mut from_host = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    if from_host.read_line(&mut line)? == 0 {
        return Ok(()); // the host only tests whether the guest answers
    }
    let request: Request = serde_json::from_str(&line).context("reading a request")?;
    let to_host = Arc::new(Mutex::new(stream));
    if let Some(time) = request.pass {
        thread::sleep(time);
        return send(&to_host, &Frame::Exit(0));
    }

    let mut child = match shell(&request).spawn() {
        Ok(child) => child,
        Err(e) => {
            send(&to_host, &Frame::Err(format!("bash: {e}\n").into_bytes()))?;
            return send(&to_host, &Frame::Exit(127));
        }
    };
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let input = child.stdin.take();
    thread::spawn(move || obey(&mut from_host, group, input));

    // The command's own end counts: a daemon that it left behind may hold its pipes open for ever.
    let (done, all_done) = mpsc::channel::<()>();
    if let Some(out) = child.stdout.take() {
        forward(out, Frame::Out, &to_host, done.clone());
    }
    if let Some(err) = child.stderr.take() {
        forward(err, Frame::Err, &to_host, done.clone());
    }
    drop(done);
    let status = child.wait()?;
    let grace = Duration::from_millis(500);
    while all_done.recv_timeout(grace).is_ok() {}
    let code = status.code().unwrap_or(128 + status.signal().unwrap_or(0));
    send(&to_host, &Frame::Exit(code))
}

fn shell(request: &Request) -> Command {
    let mut command = match request.client {
        None => Command::new("bash"),
        Some(n) => {
            let mut enter = Command::new("nsenter");
            enter.args([
                &format!("--net=/run/netns/c{n}"),
                &format!("--uts=/run/uts/c{n}"),
                "bash",
            ]);
            enter
        }
    };
    if request.terminal {
        // script(1) makes the terminal.
        command = Command::new("script");
        command.args(["-qefc", &request.script, "/dev/null"]);
    } else {
        command.args(["-c", &request.script]);
    }
    command
        .current_dir("/run")
        .stdin(if request.terminal {
            Stdio::piped()
        } else {
            Stdio::null()
        })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0);
    command
}

/// Passes the host's signals and input on to the command.
fn obey(from_host: &mut impl Read, group: Option<Pid>, mut input: Option<ChildStdin>) {
    loop {
        let signal = match Frame::read(from_host) {
            Ok(Frame::In(data)) => {
                if data.is_empty() {
                    input = None;
                } else if let Some(input) = &mut input {
                    let _ = input.write_all(&data); // it may have ended
                }
                continue;
            }
            // Tests use only these signals; any other is a mistake in the test.
            Ok(Frame::Signal(2)) => Signal::INT,
            Ok(Frame::Signal(15)) => Signal::TERM,
            Ok(Frame::Signal(19)) => Signal::STOP,
            Ok(Frame::Signal(18)) => Signal::CONT,
            Ok(Frame::Signal(1)) => Signal::HUP,
            Ok(_) | Err(_) => Signal::KILL, // the host is gone, and with it the reason to run
        };
        if let Some(group) = group {
            let _ = kill_process_group(group, signal);
        }
        if signal == Signal::KILL {
            return;
        }
    }
}

fn forward(
    mut from: impl Read + Send + 'static,
    frame: fn(Vec<u8>) -> Frame,
    to_host: &Arc<Mutex<TcpStream>>,
    done: mpsc::Sender<()>,
) {
    let to_host = Arc::clone(to_host);
    thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(n) = from.read(&mut buffer) {
            if n == 0 || send(&to_host, &frame(buffer[..n].to_vec())).is_err() {
                break;
            }
        }
        drop(done);
    });
}

fn send(to_host: &Mutex<TcpStream>, frame: &Frame) -> Result<()> {
    let mut stream = to_host
        .lock()
        .map_err(|_| anyhow::anyhow!("a sender panicked"))?;
    frame.write(&mut *stream)?;
    Ok(())
}
