//! NFS client beside the server: a network namespace, a host name, and mounts.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::control::{Output, Running};
use crate::load::{Load, LoadReport};
use crate::server::Server;

/// NFS client of a [`Server`]. Its mounts are at `/run/c<n>/`, visible to every process of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Client<'a> {
    server: &'a Server,
    n: usize,
}

impl Client<'_> {
    /// Mounts the export over NFSv3 if it is not yet, and returns the mount point.
    pub fn mount_v3(&self) -> Result<String> {
        self.mount("v3", "vers=3,nolock,proto=tcp,hard", "/run/exp")
    }

    /// Mounts the export over NFSv4.2 if it is not yet, and returns the mount point.
    pub fn mount_v4_2(&self) -> Result<String> {
        self.mount("v4.2", "vers=4.2,proto=tcp,hard", "/")
    }

    /// Mounts the export over NFSv4.1 if it is not yet, and returns the mount point.
    pub fn mount_v4_1(&self) -> Result<String> {
        self.mount("v4.1", "vers=4.1,proto=tcp,hard", "/")
    }

    /// Mounts the export over NFSv4.0 if it is not yet, and returns the mount point.
    pub fn mount_v4_0(&self) -> Result<String> {
        self.mount("v4.0", "vers=4.0,proto=tcp,hard", "/")
    }

    /// Mounts the export over this version (3, 4.0, 4.1 or 4.2) if it is not yet, and returns the mount point.
    pub fn mount_version(&self, version: &str) -> Result<String> {
        match version {
            "3" => self.mount_v3(),
            "4.0" => self.mount_v4_0(),
            "4.1" => self.mount_v4_1(),
            "4.2" => self.mount_v4_2(),
            other => bail!("no NFS version is called '{other}'; there are 3, 4.0, 4.1 and 4.2"),
        }
    }

    /// Address of the client, as the server sees it.
    pub fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 9, self.n as u8, 2)
    }

    /// Runs a load to its end, over mounts of this client alone.
    pub fn load(&self, load: &Load) -> Result<LoadReport> {
        self.server.load_over(load, &self.mounts_for(load)?)
    }

    /// Mounts what the load needs on this client.
    pub(crate) fn mounts_for(&self, load: &Load) -> Result<Vec<String>> {
        let versions = load.mount_versions().iter();
        versions.map(|v| self.mount_version(v)).collect()
    }

    /// Mounts `path` of the server at `/run/c<n>/<name>` with these options, unless something is mounted there.
    pub fn mount(&self, name: &str, options: &str, path: &str) -> Result<String> {
        let n = self.n;
        // The timeout begins after `mount.nfs` is in memory: the clock of an icount machine leaps while a program is read from the
        // host.
        let at = format!("/run/c{n}/{name}");
        self.sh(&format!(
            "mountpoint -q {at} && exit
             modprobe -a nfs nfsv3 nfsv4; mkdir -p {at}
             mount.nfs -V >/dev/null
             timeout 300 mount -t nfs -o {options},timeo=600 10.9.{n}.1:{path} {at}"
        ))?;
        Ok(at)
    }

    /// Unmounts everything that the client has mounted.
    pub fn unmount_all(&self) -> Result<()> {
        self.sh(&format!(
            "for m in /run/c{}/*; do if mountpoint -q $m; then umount $m || exit; fi; done",
            self.n
        ))?;
        Ok(())
    }

    /// Runs a shell script with the client's network and host name; fails unless it exits with 0.
    pub fn sh(&self, script: &str) -> Result<Output> {
        self.server
            .run(Some(self.n), script, Duration::from_secs(120))
    }

    /// Starts a shell script with the client's network and host name, and lets it run.
    pub fn spawn(&self, script: &str) -> Result<Running> {
        self.server.spawn_as(self.n, script)
    }
}

/// Clients of a server, and loads over their mounts.
impl Server {
    /// The n-th client, counted from 0.
    pub fn client(&self, n: usize) -> Client<'_> {
        assert!(
            n < self.client_count(),
            "client({n}): the server was built with .clients({})",
            self.client_count()
        );
        Client { server: self, n }
    }

    /// Every client.
    pub fn clients(&self) -> impl Iterator<Item = Client<'_>> {
        (0..self.client_count()).map(|n| Client { server: self, n })
    }

    /// Runs a load to its end, over mounts of every client.
    pub fn load(&self, load: Load) -> Result<LoadReport> {
        self.load_over(&load, &self.mounts(&load)?)
    }

    fn load_over(&self, load: &Load, mounts: &[String]) -> Result<LoadReport> {
        let mut running = self.spawn(&self.lab_command(&load.command(mounts)))?;
        let output = running
            .wait(load.patience())
            .and_then(|o| o.ok("lab load"))
            .inspect_err(|_| self.keep_logs())
            .with_context(|| format!("the machine's logs are kept in {}", self.logs().display()))?;
        serde_json::from_str(&output.stdout)
            .with_context(|| format!("lab load printed {:?}", output.stdout))
    }

    /// Starts a load and lets it run.
    pub fn start_load(&self, load: Load) -> Result<Running> {
        self.spawn(&self.lab_command(&load.command(&self.mounts(&load)?)))
    }

    fn mounts(&self, load: &Load) -> Result<Vec<String>> {
        ensure!(
            self.client_count() > 0,
            "a load needs clients: build the server with .clients(3)"
        );
        let mounts = self.clients().map(|client| client.mounts_for(load));
        Ok(mounts.collect::<Result<Vec<_>>>()?.concat())
    }
}
