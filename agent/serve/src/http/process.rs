//! The process that serves HTTP: it takes its sockets and its configuration from the agent, gives up everything else, and serves.

use super::agent_link::AgentLink;
use super::configuration::{Configuration, Sandbox};
use super::server::Server;
use crate::endpoints;
use crate::service::http_process::NAME;
use anyhow::Context;
use nfscope_api::handover;
use nfscope_source::privileges;
use nfscope_text::console::{Level, log, say};
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};

/// Returns true if an agent has started this program to serve HTTP.
pub fn is_this() -> bool {
    std::env::args_os().next().is_some_and(|name| name == NAME)
}

/// Serves until the agent ends.
pub fn run() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            log(
                Level::Error,
                &format!("the process that serves HTTP: {e:#}"),
            );
            ExitCode::FAILURE
        }
    }
}

fn serve() -> anyhow::Result<()> {
    // Memory is hidden before the keys arrive.
    privileges::hide_memory()?;
    let socket = std::io::stdin().as_fd().try_clone_to_owned()?;
    let socket = StdUnixStream::from(socket);
    let (counts, descriptors, configuration) = match handover::receive(&socket) {
        // The agent has ended before there was anything to serve, and has reported why.
        Err(e) if has_ended(&e) && socket.local_addr().is_ok() => return Ok(()),
        received => received.context("only an agent starts this program by this name")?,
    };
    let configuration = Configuration::of(&configuration)?;
    configuration.apply_to_log();
    // `top`, `ps` and `kill` show this name.
    #[cfg(target_os = "linux")]
    rustix::thread::set_name(c"nfscope-http")?;

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // The thread that checks passwords stays once it has been started.
        .thread_keep_alive(Duration::MAX)
        .build()?;
    let _inside = runtime.enter();
    // Signals are ignored here, because the agent handles them: a terminal, and systemd, send them to both processes.
    let ignored = [
        SignalKind::terminate(),
        SignalKind::interrupt(),
        SignalKind::hangup(),
    ];
    let _ignored: Vec<_> = ignored.into_iter().map(signal).collect::<Result<_, _>>()?;
    socket.set_nonblocking(true)?;
    let socket = UnixStream::from_std(socket)?;

    let confined = privileges::confine_stranger()?;
    let refused = confined.refused().join(" and ");
    match configuration.sandbox {
        _ if refused.is_empty() => {}
        Sandbox::Require => anyhow::bail!(
            "it must be confined, and lacks {refused}; allow what is missing, or serve without it by --sandbox try"
        ),
        Sandbox::Try => log(
            Level::Error,
            &format!(
                "the process that serves HTTP lacks {refused}; --sandbox require does not serve then"
            ),
        ),
    }
    say(&format!(
        "process {} serves HTTP {}, {confined}",
        std::process::id(),
        configuration.who,
    ));
    let taken = handover::taken(confined.bits());
    let mut rest = descriptors.into_iter();
    let mut some = |count: u16| -> Vec<OwnedFd> { rest.by_ref().take(count.into()).collect() };
    let listeners: Vec<_> = some(counts.listeners)
        .into_iter()
        .map(TcpListener::from)
        .collect();
    let mut lanes = |count| some(count).into_iter().map(StdUnixStream::from).collect();
    let link = AgentLink::new(lanes(counts.lanes), lanes(counts.streams), &endpoints::ALL)?;
    let server = Server::new(Arc::new(link), configuration.web()?);
    // Checks that a thread can be started: without one the pool would end the process at the first password.
    std::thread::Builder::new()
        .spawn(|| ())
        .context("no thread for passwords can be started; raise the limit of threads (TasksMax=, --pids-limit), or allow clone")?
        .join()
        .ok();
    drop(runtime.spawn_blocking(|| ()));
    runtime.block_on(async {
        tokio::select! {
            end = server.serve(listeners) => match end? {},
            end = follow(socket, taken, &server) => end,
        }
    })
}

/// Returns true if the agent has closed its end of the socket, before or during a message.
fn has_ended(e: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
    matches!(e.kind(), UnexpectedEof | BrokenPipe | ConnectionReset)
}

/// Applies each configuration that the agent sends, until the agent ends. An empty one asks whether this process is alive.
async fn follow(mut socket: UnixStream, taken: u8, server: &Server) -> anyhow::Result<()> {
    loop {
        let text = match next_configuration(&mut socket, taken).await {
            Err(e) if has_ended(&e) => return Ok(()),
            text => text?,
        };
        if text.is_empty() {
            continue;
        }
        let configuration = Configuration::of(&text)?;
        server.configure(configuration.web()?);
        configuration.apply_to_log();
    }
}

/// Reports that the last configuration is in effect, and waits for the next one.
async fn next_configuration(socket: &mut UnixStream, taken: u8) -> io::Result<Vec<u8>> {
    socket.write_all(&[taken]).await?;
    let mut head = [0; 4];
    socket.read_exact(&mut head).await?;
    let mut text = vec![0; handover::length(head)?];
    socket.read_exact(&mut text).await?;
    Ok(text)
}
