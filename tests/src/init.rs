//! `lab pid1`: the machine's first process. It sets the file systems up and reaps orphans.
//!
//! virtme-ng's own init waits for udev to find all the hardware of a PC, which under emulation takes twice as long as everything
//! else. The lab needs only a network card and a disk, and knows their names.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, mount_move, unmount};
use rustix::process::{Pid, WaitOptions, pivot_root, wait};
use rustix::system::{RebootCommand, reboot, sethostname, uname};

/// 9p tag of a second export of the host's root, for the sake of `cache=loose`: its files do not change while a machine runs, and
/// reading shared libraries again for every program would be most of a boot's time.
const ROOT_TAG: &str = "labroot";
/// 9p tag that virtme-ng gives to the machine's own directory.
const DIR_TAG: &str = "virtme.initmount0";
const OVER_9P: &str = "trans=virtio,version=9p2000.L,access=any,msize=512000";

/// Sets the machine up, runs `lab guest` in it, and switches it off afterwards. `host` is empty, or the path of the host's root, if
/// the machine's is another one, followed by directories of it besides these two.
pub fn run(dir: &Path, modules: &Path, host: &[PathBuf]) -> Result<()> {
    let lived = set_up(dir, modules, host).and_then(|()| live());
    if let Err(e) = &lived {
        eprintln!("lab pid1: {e:#}");
    }
    rustix::fs::sync();
    reboot(RebootCommand::PowerOff).context("switching the machine off")?;
    lived
}

fn set_up(dir: &Path, modules: &Path, host: &[PathBuf]) -> Result<()> {
    // The root is an overlay of the read-only host below and the machine's memory above: every file can be written, and none on the
    // host changes.
    mount_at("tmpfs", "run", "/run", "")?;
    for dir in ["/run/lower", "/run/upper", "/run/work", "/run/root"] {
        make(dir)?;
    }
    let lower = format!("{OVER_9P},cache=loose");
    mount_with("9p", ROOT_TAG, "/run/lower", &lower, MountFlags::RDONLY)?;
    let layers = "lowerdir=/run/lower,upperdir=/run/upper,workdir=/run/work";
    mount_at("overlay", "root", "/run/root", layers)?;
    if let Some((host, others)) = host.split_first() {
        let mut dirs = vec![dir.parent().unwrap_or(dir), modules];
        dirs.extend(others.iter().map(PathBuf::as_path));
        move_host(host, &dirs)?;
    }
    make("/run/root/run/old")?;
    std::env::set_current_dir("/run/root").context("entering /run/root")?;
    pivot_root(".", "run/old").context("making the overlay the root")?;
    std::env::set_current_dir("/").context("entering /")?;
    unmount("/run/old", UnmountFlags::DETACH).context("leaving the old root")?;

    mount_at("proc", "proc", "/proc", "")?;
    mount_at("sysfs", "sys", "/sys", "")?;
    mount_at("devtmpfs", "dev", "/dev", "mode=755")?;
    make("/dev/pts")?;
    make("/dev/shm")?;
    mount_at("devpts", "pts", "/dev/pts", "ptmxmode=666")?;
    mount_at("tmpfs", "shm", "/dev/shm", "")?;
    mount_at("tmpfs", "run", "/run", "mode=755")?;
    mount_at("debugfs", "debug", "/sys/kernel/debug", "")?;
    mount_at("tracefs", "tracing", "/sys/kernel/tracing", "")?;
    mount_at("bpf", "bpf", "/sys/fs/bpf", "")?;
    mount_at("cgroup2", "cgroup", "/sys/fs/cgroup", "")?;
    if !Path::new("/dev/fd").exists() {
        symlink("/proc/self/fd", "/dev/fd").context("linking /dev/fd")?;
    }

    make("/lib/modules")?;
    let release = uname().release().to_string_lossy().into_owned();
    let link = Path::new("/lib/modules").join(release);
    // A host that has this kernel installed has a directory of its own there.
    if link.is_dir() {
        mount_bind(modules, &link)
            .with_context(|| format!("binding {} to {}", modules.display(), link.display()))?;
    } else {
        symlink(modules, &link).with_context(|| format!("linking {}", link.display()))?;
    }

    let dir = dir.to_str().context("the machine's directory")?;
    make(dir)?;
    mount_at("9p", DIR_TAG, dir, OVER_9P)?;
    sethostname(b"server").context("setting the host name")?;
    Ok(())
}

/// Moves the host's root and directories of it into the root to come; the directories are then at the same paths as on the host.
fn move_host(host: &Path, dirs: &[&Path]) -> Result<()> {
    let under = |root: &Path, path: &Path| root.join(path.strip_prefix("/").unwrap_or(path));
    let root = Path::new("/run/root");
    let stays = under(root, host);
    mount_move(host, &stays).context("moving the host's root")?;
    for dir in dirs {
        let (from, to) = (under(&stays, dir), under(root, dir));
        fs::create_dir_all(&to).with_context(|| format!("creating {}", to.display()))?;
        mount_bind(&from, &to)
            .with_context(|| format!("binding {} to {}", from.display(), to.display()))?;
    }
    Ok(())
}

/// Runs the guest and reaps every orphaned daemon: a zombie would still be found by tests that check which processes are gone.
fn live() -> Result<()> {
    let program = std::env::current_exe().context("finding the running program")?;
    // The program's path may still be that of the old root; it is the same in the new one.
    let guest = Command::new(&program)
        .arg("guest")
        .env_clear()
        .envs([("HOME", "/root"), ("TERM", "linux"), ("LANG", "C.UTF-8")])
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .spawn()
        .with_context(|| format!("starting {} guest", program.display()))?;
    let guest = i32::try_from(guest.id()).ok().and_then(Pid::from_raw);
    loop {
        match wait(WaitOptions::empty()).context("waiting for children")? {
            Some((child, _)) if Some(child) == guest => return Ok(()),
            _ => {}
        }
    }
}

fn make(dir: &str) -> Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("creating {dir}"))
}

fn mount_at(fs: &str, source: &str, target: &str, options: &str) -> Result<()> {
    mount_with(fs, source, target, options, MountFlags::empty())
}

fn mount_with(
    fs: &str,
    source: &str,
    target: &str,
    options: &str,
    flags: MountFlags,
) -> Result<()> {
    let options = std::ffi::CString::new(options)?;
    mount(source, target, fs, flags, options.as_c_str())
        .with_context(|| format!("mounting {fs} at {target}"))
}
