//! Emulator of an NFS server of illumos, and programs in place of the system's `dtrace` and `kstat`.

use super::tools::{Compiler, Dir, here, run};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Program in place of illumos's dtrace. Functions of the kernel become probes of the emulator, and types are those of its library. Output
/// of the script for operations is kept.
const DTRACE: &str = r#"#!/bin/bash
script=$(cat)
kept=/dev/null
case $script in *'@hello\tnfs'*) kept=KEPT ;; esac
# It becomes dtrace, whose pipe ends when it does.
exec COMPILER -L LIB "$@" > >(exec tee -a "$kept") < <(sed -E 's/fbt:[a-z]*:([a-z0-9_]+):(entry|return)/kernelx*:::\1-\2/g; s/sdt:zfs::/kernelx*:::/g' <<<"$script")
"#;

/// Program in place of kstat: prints the file `counts` each second. Two CPUs are idle for 60 % of the time.
const KSTAT: &str = r#"#!/bin/bash
while :; do
  date +%s
  read -r up _ </proc/uptime
  sed "s/IDLE/$((10#${up/./} * 6000000))/" COUNTS
  echo
  sleep 1
done
"#;

pub struct Emulator {
    process: Child,
    out: BufReader<std::process::ChildStdout>,
}

impl Emulator {
    pub fn start(compiler: &Compiler, dir: &Dir) -> Emulator {
        let emulator = here().join("emulator");
        run(Command::new(emulator.join("build.sh"))
            .arg(&compiler.path)
            .arg(env!("CARGO_BIN_EXE_nfscope"))
            .arg(&dir.0));
        let mut process = Command::new(dir.path("emulator"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Probes of programs of earlier tests.
        let _ = fs::remove_dir_all("/run/dtrace");
        run(Command::new(emulator.join("publish.py"))
            .arg(dir.path("emulator"))
            .arg(process.id().to_string()));
        let out = BufReader::new(process.stdout.take().unwrap());
        Emulator { process, out }
    }

    /// Sends a command, and returns the emulator's own counts for it: one line of words each.
    pub fn told(&mut self, command: &str) -> Truth {
        let stdin = self.process.stdin.as_mut().unwrap();
        writeln!(stdin, "{command}").unwrap();
        let lines = (&mut self.out).lines().map(Result::unwrap);
        let lines = lines.take_while(|line| line != "end");
        let words = lines.map(|line| line.split('\t').map(str::to_owned).collect());
        Truth(words.collect())
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all("/run/dtrace");
    }
}

/// Counts that the emulator reports, by the first word of a line.
pub struct Truth(Vec<Vec<String>>);

impl Truth {
    /// Lines of this kind: their names and their numbers.
    pub fn of<const N: usize>(&self, kind: &str) -> Vec<([&str; N], Vec<f64>)> {
        let lines = self.0.iter().filter(|line| line[0] == kind);
        lines
            .map(|line| {
                let names: Vec<&str> = line[1..=N].iter().map(String::as_str).collect();
                let numbers = line[1 + N..].iter().map(|n| n.parse().unwrap());
                (names.try_into().unwrap(), numbers.collect())
            })
            .collect()
    }
}

/// Programs in place of the system's, and their files.
pub struct System {
    pub dtrace: PathBuf,
    pub kstat: PathBuf,
    /// Output of `kstat`; `IDLE` stands for the idle time of the CPUs.
    pub counts: PathBuf,
    /// Output of the script for operations so far.
    pub kept: PathBuf,
}

impl System {
    pub fn new(compiler: &Compiler, dir: &Dir) -> System {
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let kept = dir.path("kept");
        let counts = dir.path("counts");
        let dtrace = DTRACE
            .replace("COMPILER", &text(compiler.path.clone()))
            .replace("LIB", &text(dir.path("lib")))
            .replace("KEPT", &text(kept.clone()));
        System {
            dtrace: dir.program("dtrace", &dtrace),
            kstat: dir.program("kstat", &KSTAT.replace("COUNTS", &text(counts.clone()))),
            counts,
            kept,
        }
    }
}
