//! Boots and ends one virtual machine: QEMU by way of virtme-ng, on the host's own root file system, read-only, or on arm64's.
//!
//! Nothing is written outside the machine's directory: the kernel's modules are linked into the guest's `/lib/modules`
//! from where its package was unpacked, and changes to `/etc`, `/var` and the like stay in the guest's memory.

use std::env;
use std::ffi::OsString;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::accel::Accel;
use crate::arm64;
use crate::clock;
use crate::control::{self, Running};
use crate::kernel::cache;
use crate::protocol::AGENT_PORTS;
use crate::spec::Spec;
use crate::{machine_slots, paths, qemu, qmp, supervisor};

/// A running machine. Dropping it switches it off; its logs stay only if the thread is panicking or
/// [`Machine::keep_logs`] was called.
#[derive(Debug)]
pub(crate) struct Machine {
    dir: PathBuf,
    lab: PathBuf,
    shared: PathBuf,
    supervisor: Child,
    control: SocketAddr,
    agents: Vec<SocketAddr>,
    icount: bool,
}

impl Machine {
    pub fn boot(spec: &Spec) -> Result<Machine> {
        // Free ports are found by probing, and QEMU takes them later: another process may take one in between.
        let mut attempt = 0;
        let mut accel = Accel::choose(spec.icount || spec.arm64)?;
        loop {
            attempt += 1;
            match Machine::try_boot(spec, accel) {
                Err(e) if accel == (Accel::Kvm { trial: true }) && did_not_boot(&e) => {
                    eprintln!("lab: KVM does not boot a stock kernel here; machines are emulated");
                    accel.remember(false);
                    accel = Accel::Tcg;
                    attempt = 0;
                }
                Err(e) if attempt < 3 && boot_again(&format!("{e:#}")) => {}
                Ok(machine) => {
                    accel.remember(true);
                    return Ok(machine);
                }
                Err(e) => return Err(e),
            }
        }
    }

    fn try_boot(spec: &Spec, accel: Accel) -> Result<Machine> {
        let spec = &spec.on(accel);
        let image = spec.kernel.image()?;
        let vng = cache().join("venv/bin/vng");
        ensure!(
            vng.is_file(),
            "{} is missing; run: tests/setup/setup.sh lab",
            vng.display()
        );
        let dir = paths::machine_dir(spec.kernel.name())?;
        let shared = dir.join(SHARED);
        fs::create_dir_all(&shared).with_context(|| format!("creating {}", shared.display()))?;
        let supervisor = install(&dir, &paths::lab_program()?, "supervisor")?;
        let lab = match spec.arm64 {
            false => paths::lab_program()?,
            true => paths::arm64_program("lab")?,
        };
        let lab = install(&dir, &lab, "lab")?;
        if let Some(mkfs) = &spec.mkfs {
            make_disk(&dir.join("disk.img"), 4 << 30, mkfs)?;
        }
        if spec.log_disk {
            make_disk(&dir.join("log.img"), 256 << 20, &[])?;
        }
        let script = dir.join("qemu.sh");
        fs::write(&script, qemu::SCRIPT)
            .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)))
            .with_context(|| format!("writing {}", script.display()))?;
        let arguments = format!(
            "pid1 {dir} {modules}",
            dir = shared.display(),
            modules = spec.kernel.modules()?.display()
        );
        // The words behind `--` are arguments of the first process.
        let (root, init, foreign) = match spec.arm64 {
            false => (
                "/".into(),
                format!("{} -- {arguments}", lab.display()),
                Vec::new(),
            ),
            true => (
                arm64::root()?,
                arm64::init(&lab, &arguments)?,
                arm64::vng_options()?,
            ),
        };
        let slot = machine_slots::take(spec)?;
        let control = free_port(None)?;
        let mut agents = Vec::new();
        for (n, _) in AGENT_PORTS.iter().enumerate() {
            agents.push(free_port(spec.agent_port.filter(|_| n == 0))?);
        }
        let console = File::create(dir.join("console.log"))
            .with_context(|| format!("creating the console log in {}", dir.display()))?;
        let mut command = Command::new(&supervisor);
        command
            .env("PATH", venv_first(&vng))
            .env("LAB_INIT", init)
            .env("LAB_QEMU", qemu::emulator(spec))
            .env("LAB_ROOT", &root)
            .arg("supervisor")
            .arg(&dir)
            .arg(&vng)
            .arg("--run")
            .arg(&image)
            .arg("--rwdir")
            .arg(format!("{0}={0}", shared.display()))
            .args(foreign)
            .args(["--disable-kvm", "--force-9p", "--user", "root", "--verbose"])
            .args(["--memory", &spec.memory, "--cwd"])
            .arg(&root)
            .args(["--cpus", &spec.cpus.to_string()])
            .arg(format!(
                "--qemu-opts={}",
                qemu::options(spec, accel, &dir, control, &agents)
            ))
            .args(qemu::kernel_options(spec))
            .arg("--qemu")
            .arg(&script)
            .args(["--exec", "true"]) // batch mode; the machine runs LAB_INIT
            .stdin(Stdio::piped())
            .stdout(Stdio::from(slot))
            .stderr(console)
            // The supervisor must outlive the Ctrl-C that ends its owner: a process group of its own keeps the terminal's signals
            // away.
            .process_group(0);
        let supervisor = command
            .spawn()
            .with_context(|| format!("starting {}", supervisor.display()))?;
        let mut machine = Machine {
            dir,
            lab,
            shared,
            supervisor,
            control,
            agents,
            icount: spec.icount,
        };
        remember(&machine.dir);
        if let Err(e) = machine.wait_for_boot(accel.boot_timeout(spec.icount)) {
            if accel != (Accel::Kvm { trial: true }) {
                machine.keep_logs();
            }
            return Err(e.context(format!(
                "booting kernel {}; logs: {}",
                spec.kernel,
                machine.dir.display()
            )));
        }
        if spec.driven {
            clock::drive(
                machine.control,
                &machine.agents,
                &machine.dir.join(qemu::QMP_SOCKET),
            )?;
        }
        Ok(machine)
    }

    fn wait_for_boot(&mut self, timeout: Duration) -> Result<()> {
        let started = Instant::now();
        loop {
            let last = match control::connect(self.control, Duration::from_secs(1)) {
                Ok(_) => return Ok(()),
                Err(e) => e,
            };
            if self.has_ended() || self.supervisor.try_wait()?.is_some() {
                bail!(
                    "the machine ended while booting; the console's last words:\n{}",
                    self.console_tail()
                );
            }
            if started.elapsed() > timeout {
                bail!(
                    "the machine did not answer within {timeout:?} ({last:#}); the console's last words:\n{}",
                    self.console_tail()
                );
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    /// True if the machine has ended by itself.
    pub fn has_ended(&self) -> bool {
        self.dir.join(supervisor::ENDED).exists()
    }

    fn console_tail(&self) -> String {
        let console = fs::read(self.dir.join("console.log")).unwrap_or_default();
        let console = String::from_utf8_lossy(&console);
        let lines: Vec<&str> = console.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// Starts a command in the machine, as a client if one is given.
    pub fn run(&self, client: Option<usize>, script: &str) -> Result<Running> {
        // icount machines only have the CPU time that other processes leave.
        let slower = if self.icount { clock::SLOWER } else { 1 };
        Running::start(self.control, client, script, slower)
            .with_context(|| format!("running `{}` in the machine", control::abridged(script)))
    }

    /// Joins this process's terminal to a command in the machine.
    pub fn terminal(&self, script: &str) -> Result<i32> {
        control::terminal(self.control, script)
    }

    /// Executes a command of QEMU on the machine as a whole; only if the machine can be halted.
    pub fn qemu(&self, command: &str) -> Result<()> {
        qmp::execute(&self.dir.join(qemu::QMP_SOCKET), command)
    }

    /// Address at which the host reaches the machine's n-th agent port.
    pub fn agent(&self, n: usize) -> Option<SocketAddr> {
        self.agents.get(n).copied()
    }

    /// Directory of the machine's files. It is removed when the machine has ended well.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// A directory that is writable from both sides under the same path.
    pub fn shared(&self) -> &Path {
        &self.shared
    }

    /// True if the machine's clock counts instructions.
    pub fn icount(&self) -> bool {
        self.icount
    }

    /// The machine's own `lab`.
    pub fn lab(&self) -> &Path {
        &self.lab
    }

    /// Installs a program in the machine under a name of its own, and returns the path.
    pub fn install(&self, program: &Path, name: &str) -> Result<PathBuf> {
        install(&self.dir, program, name)
    }

    /// Leaves the logs behind when the machine ends.
    pub fn keep_logs(&self) {
        keep(&self.dir);
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        if thread::panicking() {
            self.keep_logs();
        }
        forget(&self.dir);
        clock::forget(self.control);
        // Closing the supervisor's standard input ends the machine.
        drop(self.supervisor.stdin.take());
        let _ = self.supervisor.wait();
    }
}

/// Directory that is writable from both sides.
const SHARED: &str = "shared";

/// Links or copies a program into the machine's directory, because a machine believes that the host's files do not change. A build
/// replaces the file at the program's own path, but not the link.
fn install(dir: &Path, program: &Path, name: &str) -> Result<PathBuf> {
    let programs = dir.join("programs");
    let link = programs.join(name);
    // A link with this name is the same program; a copy onto it would copy a file onto itself.
    if link.exists() {
        return Ok(link);
    }
    fs::create_dir_all(&programs)
        .and_then(|()| fs::hard_link(program, &link))
        .or_else(|_| fs::copy(program, &link).map(drop)) // another file system
        .with_context(|| format!("copying {} to {}", program.display(), link.display()))?;
    Ok(link)
}

/// PATH for vng, which looks there for its other half, virtme-run.
fn venv_first(vng: &Path) -> OsString {
    let mut path = vng.parent().unwrap_or(vng).as_os_str().to_owned();
    path.push(":");
    path.push(env::var_os("PATH").unwrap_or_else(|| "/usr/sbin:/usr/bin:/sbin:/bin".into()));
    path
}

/// True if QEMU ran, and the kernel in it did not boot.
fn did_not_boot(error: &anyhow::Error) -> bool {
    let error = format!("{error:#}");
    !error.contains("host forwarding rule")
        && (error.contains("ended while booting") || error.contains("did not answer"))
}

/// True for failures that another boot gets past: a port that another process took in between, and the kernels' own races under
/// emulation (text patched while another CPU runs it), which end one boot in some dozens.
fn boot_again(error: &str) -> bool {
    error.contains("host forwarding rule") || error.contains("ended while booting")
}

fn make_disk(path: &Path, size: u64, mkfs: &[String]) -> Result<()> {
    let disk = File::create(path).with_context(|| format!("creating {}", path.display()))?;
    disk.set_len(size)
        .with_context(|| format!("sizing {}", path.display()))?;
    let Some((program, arguments)) = mkfs.split_first() else {
        return Ok(());
    };
    let output = Command::new(program)
        .args(arguments)
        .arg(path)
        .output()
        .with_context(|| {
            format!("running {program}; is it set up? run: tests/setup/setup.sh lab")
        })?;
    ensure!(
        output.status.success(),
        "{program} {} failed: {}",
        path.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

pub(crate) fn free_port(wanted: Option<u16>) -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, wanted.unwrap_or(0)))
        .or_else(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .context("finding a free port on the loopback interface")?;
    Ok(listener.local_addr()?)
}

/// Directories of the machines that run now, for the panic hook.
static RUNNING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Adds the machine to the panic hook. A failed assertion may happen far from its machine (the tests of a file can share one): every
/// running machine keeps its logs, and the message says where.
fn remember(dir: &Path) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            before(panic);
            for dir in RUNNING
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .iter()
            {
                keep(dir);
                eprintln!("lab: the machine's logs are kept in {}", dir.display());
            }
        }));
    });
    RUNNING
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(dir.to_owned());
}

fn forget(dir: &Path) {
    RUNNING
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|d| d != dir);
}

fn keep(dir: &Path) {
    // A failed write loses the logs, and nothing worse.
    let _ = fs::write(dir.join(supervisor::KEEP), "");
}
