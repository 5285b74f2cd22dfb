//! Common parts of these tests: an agent with given programs for `dtrace` and `kstat`, and the D compiler of the lab.

use crate::fixture::serve::{HANG, get};
use nfscope_model::Snapshot;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// Temporary directory, which is removed when it is dropped.
pub struct Dir(pub PathBuf);

impl Dir {
    pub fn new() -> Dir {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("nfscope-dtrace-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir_all(&dir).unwrap();
        Dir(dir)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Writes an executable script of this text, and returns its path.
    pub fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        // Temporary name first: a program that is open for writing cannot be executed.
        let new = self.path(&format!(".{name}"));
        fs::write(&new, text).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(&new, &path).unwrap();
        path
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Command of nfscope with these programs in place of illumos's own.
pub fn nfscope(dtrace: &Path, kstat: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nfscope"));
    command.env("NFSCOPE_DTRACE", dtrace);
    command.env("NFSCOPE_KSTAT", kstat);
    command
}

/// Agent on a free port; ends with SIGTERM when it is dropped.
pub struct Agent {
    pub process: Child,
    pub address: SocketAddr,
}

impl Agent {
    pub fn start(dtrace: &Path, kstat: &Path) -> Agent {
        Agent::with(nfscope(dtrace, kstat))
    }

    pub fn with(mut command: Command) -> Agent {
        let mut process = command
            .args(["agent", "--web.listen-address", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap());
        let line = said
            .by_ref()
            .lines()
            .map_while(Result::ok)
            .find(|line| line.contains("serving http://"))
            .expect("an agent that serves");
        let address = line.split("http://").nth(1).unwrap();
        let address = address.trim().trim_end_matches("/metrics").parse().unwrap();
        // Later lines of the agent go to standard error of the test.
        std::thread::spawn(move || {
            said.lines()
                .map_while(Result::ok)
                .for_each(|l| eprintln!("{l}"))
        });
        Agent { process, address }
    }

    pub fn get(&self, path: &str) -> String {
        let answer = get(self.address, path, "");
        answer
            .split_once("\r\n\r\n")
            .map_or_else(String::new, |(_, body)| body.to_owned())
    }

    pub fn snapshot(&self) -> Snapshot {
        let text = self.get("/snapshot");
        serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
    }

    /// Returns the first snapshot that meets a condition. Fails with the states of the probes if none does in time.
    pub fn until(&self, what: &str, holds: impl Fn(&Snapshot) -> bool) -> Snapshot {
        let begun = Instant::now();
        loop {
            let s = self.snapshot();
            if holds(&s) {
                return s;
            }
            assert!(begun.elapsed() < 3 * HANG, "not {what}: {:#?}", s.probes);
        }
    }

    /// Runs another command of the program against this agent.
    pub fn ask(&self, words: &[&str]) -> Output {
        let url = format!("http://{}", self.address);
        let mut command = Command::new(env!("CARGO_BIN_EXE_nfscope"));
        command.args(words).args(["--url", &url]).output().unwrap()
    }

    /// Ends the agent with SIGTERM, and returns its exit status.
    pub fn end(&mut self) -> Option<i32> {
        let id = rustix::process::Pid::from_raw(self.process.id() as i32).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        self.process.wait().unwrap().code()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            self.end();
        }
    }
}

/// D compiler that `tests/setup/setup.sh dtrace` unpacks. A lock keeps other tests out meanwhile, because the system has one place for the
/// probes of programs. `None` without root; the caller then returns.
pub struct Compiler {
    pub path: PathBuf,
    _alone: fs::File,
}

impl Compiler {
    pub fn find() -> Option<Compiler> {
        if !rustix::process::geteuid().is_root() {
            crate::fixture::skip("a D compiler traces the kernel as root only");
            return None;
        }
        let var = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let cache = var("NFSCOPE_CACHE")
            .or_else(|| Some(var("XDG_CACHE_HOME")?.join("nfscope")))
            .or_else(|| Some(var("HOME")?.join(".cache/nfscope")))
            .unwrap();
        let path = cache.join("lab/dtrace/dtrace");
        assert!(
            path.exists(),
            "there is no D compiler at {}: run tests/setup/setup.sh dtrace",
            path.display()
        );
        let release = fs::read_to_string(cache.join("lab/dtrace/release")).unwrap();
        assert!(
            release.starts_with("2.0.7"),
            "emulator/publish.py knows the files of DTrace 2.0.7, and this is {release}"
        );
        let alone = fs::File::create("/run/nfscope-dtrace-test.lock").unwrap();
        rustix::fs::flock(&alone, rustix::fs::FlockOperation::LockExclusive).unwrap();
        Some(Compiler {
            path,
            _alone: alone,
        })
    }
}

/// Runs a command that must succeed, and returns its standard output.
pub fn run(command: &mut Command) -> String {
    let out = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, error) = (text(&out.stdout), text(&out.stderr));
    assert!(
        out.status.success(),
        "{command:?}: {}\n{said}{error}",
        out.status
    );
    said
}

/// Directory of these tests.
pub fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/main/dtrace")
}
