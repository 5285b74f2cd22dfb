//! The process that serves HTTP, as the agent sees it: the agent starts it, gives it sockets, answers it, and starts it again when it ends.
//!
//! The code that speaks with strangers (TLS, headers, passwords, compression) has an address space and a user of its own. It has no
//! capability, opens no file and reaches no other process; its sockets come from the agent. The probes and their counts go on when it
//! fails.
//!
//! The process is this same program, executed again: a fork of the agent would have a copy of its memory, and only the thread that forks.

use super::answers::{self, Answers, LANES, STREAM_LANES};
use super::http_state::{self, End};
use anyhow::{Context, bail};
use nfscope_api::handover::{self, Counts};
use nfscope_source::{own_process, privileges};
use nfscope_text::console::warn;
use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Name of the process on the host, by which it also recognizes its role.
pub const NAME: &str = "nfscope-http";
/// Time for the process to apply a configuration, on a slow machine.
const TAKE_TIMEOUT: Duration = Duration::from_secs(20);
/// Interval at which the process is asked for a sign of life, and its time to answer: a stopped process is noticed within ten seconds.
const ASK_INTERVAL: Duration = Duration::from_secs(2);
const ANSWER_TIME: Duration = Duration::from_secs(7);
/// First and longest pause before the process is started again; each pause is twice the one before.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(10)];
/// Time for a process that has closed its socket to end by itself.
const END_TIME: Duration = Duration::from_secs(2);
/// Life time from which on the end of a process counts as a new failure, with the first pause again.
const LONG: Duration = Duration::from_secs(60);

const KEEPER_ENDED: &str = "the thread that starts the process that serves HTTP has ended";

/// Orders to the thread that starts the process.
enum Order {
    /// Start the process with this end of a socket.
    Start(StdUnixStream, oneshot::Sender<io::Result<u32>>),
    /// End the process, if it has not ended. A process that has closed its socket gets this time to end by itself, so that its exit status
    /// is known.
    End(Duration, oneshot::Sender<io::Result<ExitStatus>>),
}

/// Message that there is another configuration; the sender is told when it is in effect.
type Sent = oneshot::Sender<()>;

/// The process that serves HTTP.
#[derive(Debug)]
pub struct HttpProcess {
    listeners: Vec<TcpListener>,
    orders: mpsc::Sender<Order>,
    /// User of the process.
    who: String,
    /// Configuration for the next process.
    configuration: std::sync::Mutex<Vec<u8>>,
    news: tokio::sync::mpsc::Sender<Sent>,
    arrived: Mutex<tokio::sync::mpsc::Receiver<Sent>>,
}

impl HttpProcess {
    /// Prepares a process that serves on these sockets. Call it while this process may still change users, because the thread that will
    /// start the other process changes its user now.
    ///
    /// # Errors
    /// When there is no thread, or it cannot give up its capabilities.
    pub fn prepare(listeners: Vec<TcpListener>) -> anyhow::Result<HttpProcess> {
        let (orders, given) = mpsc::channel();
        let (tell, told) = mpsc::channel();
        std::thread::Builder::new()
            .name("http-keeper".to_owned())
            .spawn(move || {
                let who = privileges::leave_user();
                let ready = who.is_ok();
                if tell.send(who).is_ok() && ready {
                    keep(&given);
                }
            })?;
        let who = told.recv().context(KEEPER_ENDED)?;
        let (news, arrived) = tokio::sync::mpsc::channel(1);
        Ok(HttpProcess {
            listeners,
            orders,
            who: who.context("cannot drop the privileges of the thread that starts processes")?,
            configuration: std::sync::Mutex::default(),
            news,
            arrived: Mutex::new(arrived),
        })
    }

    /// User of the process.
    pub fn who(&self) -> &str {
        &self.who
    }

    /// Sets the configuration that the process is started with.
    pub fn set(&self, configuration: Vec<u8>) {
        *self.lock() = configuration;
    }

    /// Gives a configuration to the running process, and to each later one. Returns true when it is in effect, and `false` if the process
    /// does not confirm it in time. A process that is just being started has it from the beginning.
    pub async fn configure(&self, configuration: Vec<u8>) -> bool {
        self.set(configuration);
        let (tell, told) = oneshot::channel();
        let sent = async {
            self.news.send(tell).await.ok()?;
            told.await.ok()
        };
        matches!(timeout(TAKE_TIMEOUT, sent).await, Ok(Some(())))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        (self.configuration.lock()).unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Runs the process, and answers it, until dropped. If the process ends, it is started again.
    ///
    /// # Errors
    /// When it fails before it has served at all.
    pub async fn serve(&self, answers: &Arc<Answers>) -> anyhow::Result<Infallible> {
        let [mut pause, most] = PAUSES;
        let mut served = false;
        loop {
            let began = Instant::now();
            let why = match self.once(answers, &mut served).await {
                Ok(never) => match never {},
                Err(why) => why,
            };
            http_state::ended(match &why {
                e if e.is::<Gone>() => End::Ended,
                e if e.is::<Silent>() => End::NoAnswer,
                _ => End::Misbehaved,
            });
            if !served && why.is::<Told>() {
                return Err(why);
            }
            if !served {
                return Err(why.context("cannot start the process that serves HTTP"));
            }
            if began.elapsed() >= LONG {
                pause = PAUSES[0];
            }
            warn(&format!(
                "the process that serves HTTP {why:#}; starting it again in {} ms, probes and counts go on",
                pause.as_millis()
            ));
            sleep(pause).await;
            pause = (2 * pause).min(most);
        }
    }

    /// Runs one process to its end, and returns the reason of the end.
    async fn once(&self, answers: &Arc<Answers>, served: &mut bool) -> anyhow::Result<Infallible> {
        let (ours, theirs) = StdUnixStream::pair().context("a pair of sockets cannot be made")?;
        let (tell, told) = oneshot::channel();
        self.order(Order::Start(theirs, tell))?;
        let number = told.await.context(KEEPER_ENDED)?.context(
            "cannot be executed; its user must be allowed to execute this program's file",
        )?;
        own_process::accompany(number);
        http_state::heard();
        let why = match self.session(ours, answers, served).await {
            Ok(never) => match never {},
            Err(why) => why,
        };
        let (tell, told) = oneshot::channel();
        let ends_itself = match why.is::<Gone>() {
            true => END_TIME,
            false => Duration::ZERO,
        };
        self.order(Order::End(ends_itself, tell))?;
        let status = told.await.context(KEEPER_ENDED)??;
        Err(match why.is::<Gone>() {
            // A process that never served has reported the reason before it ended, so nothing is added.
            true if !*served && status.code() == Some(1) => Told.into(),
            true => anyhow::Error::from(Gone).context(format!("ended with {status}")),
            false => why.context("was ended"),
        })
    }

    fn order(&self, order: Order) -> anyhow::Result<()> {
        self.orders.send(order).ok().context(KEEPER_ENDED)
    }

    async fn session(
        &self,
        socket: StdUnixStream,
        answers: &Arc<Answers>,
        served: &mut bool,
    ) -> anyhow::Result<Infallible> {
        let (ours, theirs) = answers::lanes(LANES + STREAM_LANES)?;
        let counts = Counts {
            listeners: self.listeners.len().try_into()?,
            lanes: LANES as u16,
            streams: STREAM_LANES as u16,
        };
        let listeners = self.listeners.iter().map(AsFd::as_fd);
        let descriptors: Vec<_> = listeners.chain(theirs.iter().map(AsFd::as_fd)).collect();
        socket.set_write_timeout(Some(TAKE_TIMEOUT))?;
        let configuration = self.lock().clone();
        match handover::send(&socket, counts, &descriptors, &configuration) {
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
                ) =>
            {
                return Err(Gone.into());
            }
            sent => sent.context("it cannot be given its sockets")?,
        }
        drop(theirs);
        socket.set_nonblocking(true)?;
        let mut socket = UnixStream::from_std(socket)?;

        let mut lanes = JoinSet::new();
        for lane in ours {
            lanes.spawn(answers.clone().serve(lane));
        }
        let answer = async {
            while let Some(end) = lanes.join_next().await {
                // A closed lane means that the process has gone, which its other socket reports, too.
                if let Err(e) = end? {
                    let gone = [io::ErrorKind::UnexpectedEof, io::ErrorKind::BrokenPipe];
                    if !gone.contains(&e.kind()) {
                        return Err(anyhow::Error::from(e));
                    }
                }
            }
            std::future::pending().await
        };
        let configure = async {
            let holds = taken(&mut socket, TAKE_TIMEOUT).await?;
            *served = true;
            http_state::holds(holds);
            let mut arrived = self.arrived.lock().await;
            loop {
                http_state::heard();
                let mut byte = [0];
                tokio::select! {
                    () = sleep(ASK_INTERVAL) => {
                        // A stopped process accepts connections, and answers none, so it is asked for a sign of life.
                        socket.write_all(&handover::framed(&[])?).await.map_err(|_| Gone)?;
                        taken(&mut socket, ANSWER_TIME).await?;
                    }
                    sent = arrived.recv() => {
                        let tell = sent.context("no more configurations")?;
                        // The newest configuration is sent: the one that waited here may be older than the one that the process was started
                        // with.
                        let configuration = self.lock().clone();
                        let framed = handover::framed(&configuration)?;
                        socket.write_all(&framed).await.map_err(|_| Gone)?;
                        taken(&mut socket, TAKE_TIMEOUT).await?;
                        // The caller may not wait any more.
                        let _ = tell.send(());
                    }
                    read = socket.read(&mut byte) => match read {
                        Ok(1..) => bail!("it speaks without being asked"),
                        _ => return Err(Gone.into()),
                    },
                }
            }
        };
        tokio::select! {
            end = answer => end,
            end = configure => end,
        }
    }
}

/// Error: the process has closed its socket.
#[derive(Debug, thiserror::Error)]
#[error("it has gone")]
struct Gone;

/// Error: the process could not serve, and has reported the reason.
#[derive(Debug, thiserror::Error)]
#[error("the process that serves HTTP could not start")]
pub struct Told;

/// Error: the process runs and does not answer.
#[derive(Debug, thiserror::Error)]
#[error("it does not answer the agent")]
struct Silent;

/// Waits until the process has applied a configuration, or answered. Returns its confinement.
async fn taken(socket: &mut UnixStream, time: Duration) -> anyhow::Result<u8> {
    let mut byte = [0];
    // The timeout has two halves: if the host stood still, the first half is over at once, and the process gets the second one.
    let mut read = timeout(time / 2, socket.read(&mut byte)).await;
    if read.is_err() {
        read = timeout(time / 2, socket.read(&mut byte)).await;
    }
    match read {
        Err(_) => Err(Silent.into()),
        Ok(Ok(1)) => {
            handover::holds(byte[0]).context("it says something else than that it is there")
        }
        Ok(_) => Err(Gone.into()),
    }
}

/// Starts and ends the process as ordered, on a thread that has the process's user.
fn keep(orders: &mpsc::Receiver<Order>) {
    let mut running: Option<Child> = None;
    for order in orders {
        match order {
            Order::Start(socket, tell) => {
                let started = start(socket);
                let number = match &started {
                    Ok(child) => Ok(child.id()),
                    Err(e) => Err(io::Error::new(e.kind(), e.to_string())),
                };
                running = started.ok();
                let _ = tell.send(number);
            }
            Order::End(ends_itself, tell) => {
                let ended = running.take().map_or_else(
                    || Err(io::ErrorKind::NotFound.into()),
                    |child| end(child, ends_itself),
                );
                let _ = tell.send(ended);
            }
        }
    }
}

/// Waits for the process, and kills it if it has not ended within this time.
fn end(mut child: Child, within: Duration) -> io::Result<ExitStatus> {
    let began = Instant::now();
    while began.elapsed() < within {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().and_then(|()| child.wait())
}

fn start(socket: StdUnixStream) -> io::Result<Child> {
    let mut command = privileges::own_program()?;
    command
        .arg0(NAME)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(socket)))
        .stdout(Stdio::null());
    command.spawn()
}
