//! Stores of baselines that machines have recorded, kept in `tests/recordings/<name>/`, so that comparisons and experiments are judged
//! without a machine.
//!
//! Each file is gzip. Its header's comment is a digest of every input that could change the recording. `make test` records anew where
//! the digest differs, and judges that, too; `lab recordings` records anew and keeps it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::kernel::Kernel;
use crate::server::Server;
use crate::{baselines, campaign, digest, experiment, paths, stamped};

/// The store in a machine. A file system of the machine holds it: the folder that is shared with the host has no locks for a database.
pub(crate) const STORE: &str = "/run/baselines.db";

/// Command that makes a missing recording.
const MADE_BY: &str = "lab recordings";

/// The kernel of all recordings.
pub const KERNEL: Kernel = Kernel::V6_12;

/// Records anew and keeps every recording that is not fresh, and returns the names of those.
///
/// # Errors
/// When a machine, an agent or a load fails.
pub fn write_stale() -> Result<Vec<&'static str>> {
    type Record = fn() -> Result<()>;
    let all: [(&Recording, Record); 3] = [
        (&BASELINES, || {
            baselines::run(&baselines::in_every_run(true)).map(drop)
        }),
        (&EXPERIMENT, || {
            experiment::run(&experiment::in_every_run(true)).map(drop)
        }),
        (&LOG_DEVICE, || campaign::log_device(true).map(drop)),
    ];
    let mut written = Vec::new();
    for (recording, record) in all {
        if !recording.is_fresh()? {
            record().context(recording.name)?;
            written.push(recording.name);
        }
    }
    Ok(written)
}

/// A store of baselines on this host.
pub(crate) struct Store {
    file: PathBuf,
    /// Page that a command writes.
    pub page: PathBuf,
}

impl Store {
    pub(crate) fn of(folder: &Path) -> Store {
        Store {
            file: folder.join("baselines.db"),
            page: folder.join("page.html"),
        }
    }

    /// Runs a command of nfscope on the store, and returns what it prints.
    pub(crate) fn nfscope(&self, arguments: &str) -> Result<String> {
        let mut command = Command::new(paths::host_nfscope()?);
        command
            .args(arguments.split(' '))
            .arg("--store")
            .arg(&self.file);
        let output = command.output().context("running nfscope")?;
        ensure!(
            output.status.success(),
            "nfscope {arguments}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).context("nfscope wrote no text")
    }
}

/// A kept store: its name, and what its contents depend on.
#[derive(Debug)]
pub struct Recording {
    /// Folder in `tests/recordings`.
    pub name: &'static str,
    /// Files of the store: the database, and the plans of experiments beside it.
    files: &'static [&'static str],
    /// Sources that can change it, beside [`INPUTS`] and those of recorded windows.
    inputs: &'static [&'static str],
}

/// Sources of every recording: the recorder, the form of the store, and the machine, the agent and the bench of all three.
const INPUTS: [&str; 5] = [
    "agent/baseline/src/codec",
    "agent/baseline/src/store",
    "agent/baseline/src/window.rs",
    "agent/nfscope/src/baseline/record",
    "tests/src/baselines.rs",
];

/// Recordings of `lab baselines`.
pub const BASELINES: Recording = Recording {
    name: "baselines",
    files: &["baselines.db"],
    inputs: &[],
};

/// Runs of `lab experiment`.
pub const EXPERIMENT: Recording = Recording {
    name: "experiment",
    files: &["baselines.db", "experiments/slog.json"],
    inputs: &[
        "agent/nfscope/src/experiment/run.rs",
        "agent/nfscope/src/experiment/rounds.rs",
        "tests/src/experiment.rs",
    ],
};

/// Runs of the campaign of a log device.
pub const LOG_DEVICE: Recording = Recording {
    name: "log-device",
    files: &["baselines.db", "experiments/log-device.json"],
    inputs: &[
        "agent/nfscope/src/experiment/run.rs",
        "agent/nfscope/src/experiment/rounds.rs",
        "tests/src/campaign.rs",
        "tests/campaigns/log-device.toml",
    ],
};

impl Recording {
    fn folder(&self) -> PathBuf {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
        tests.join("recordings").join(self.name)
    }

    fn path(&self, file: &str) -> PathBuf {
        let name = file.rsplit('/').next().unwrap_or(file);
        self.folder().join(format!("{name}.gz"))
    }

    fn digest(&self) -> Result<String> {
        let inputs = digest::of_files(&[&INPUTS, self.inputs].concat())?;
        Ok(digest::sha256(&[
            digest::sources()?,
            &inputs,
            &KERNEL.release()?,
        ]))
    }

    /// True if a machine would record the same: no input has changed since.
    ///
    /// # Errors
    /// When the kernel is not unpacked, or when a source cannot be read.
    pub fn is_fresh(&self) -> Result<bool> {
        let digest = self.digest()?;
        for file in self.files {
            if !stamped::has(&self.path(file), &digest, MADE_BY)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Keeps the store below this folder as the recording.
    ///
    /// # Errors
    /// When the kernel is not unpacked, or when a file cannot be read or written.
    pub fn keep(&self, from: &Path) -> Result<()> {
        for file in self.files {
            let source = from.join(file);
            let mut source =
                File::open(&source).with_context(|| format!("opening {}", source.display()))?;
            let mut gzip = stamped::create(&self.path(file), self.digest()?)?;
            io::copy(&mut source, &mut gzip)?;
            gzip.finish()?;
        }
        Ok(())
    }

    /// Unpacks the kept store into a folder for the time of `read`, and returns the result of that.
    ///
    /// # Errors
    /// When there is no kept store, when a file cannot be written, or when `read` fails.
    pub fn unpacked<T>(&self, read: impl FnOnce(&Path) -> Result<T>) -> Result<T> {
        let folder = paths::machine_dir(self.name)?;
        let unpack = || -> Result<T> {
            for file in self.files {
                let path = folder.join(file);
                fs::create_dir_all(path.parent().context("a file without a folder")?)?;
                let mut out = File::create(&path)?;
                io::copy(&mut stamped::open(&self.path(file), MADE_BY)?, &mut out)?;
            }
            read(&folder)
        };
        let done = unpack();
        fs::remove_dir_all(&folder)?;
        done
    }

    /// Copies the store of a machine into its folder that is shared with this host, and returns that folder.
    pub(crate) fn copied(&self, server: &Server) -> Result<PathBuf> {
        let copy = server.dir().join("store");
        let mut script = "set -e\n".to_owned();
        for file in self.files {
            let to = copy.join(file);
            let folder = to.parent().context("a file without a folder")?;
            script += &format!(
                "mkdir -p {}; cp /run/{file} {}\n",
                folder.display(),
                to.display()
            );
        }
        server.sh(&script)?;
        ensure!(copy.join(self.files[0]).exists(), "nothing was copied");
        Ok(copy)
    }
}

/// Tables of the runs of `tests/campaigns/log-device.toml` in a store in this folder.
///
/// # Errors
/// When a run is missing, or when nfscope fails.
pub fn tables_of_log_device(folder: &Path) -> Result<String> {
    let responses = "--response write:rate --response write:mean";
    Store::of(folder).nfscope(&format!(
        "experiment table log-device --columns clients {responses}"
    ))
}
