//! A frozen file system: three clients change it, and three threads keep their requests in hand. The report of nfscope on each equals
//! the clients' calls, the threads in procfs, and the kernel's own report over netlink if it has one.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use lab::rpc_status::RpcStatuses;
use lab::{Agent, Kernel, OP4, PROC3, Running, Server};
use nfscope_model::{HeldRequest, HeldRequests};

/// Script that waits until a request is 1.5 s old, by the machine's clock.
const AGED: &str = "sleep 1.5";

pub fn requests_are_told(server: &Server, agent: &Agent) -> Result<()> {
    let changes = changes(server)?;
    server.sh("fsfreeze -f /run/exp")?;
    let told = begin(server, &changes).map(|running| {
        let told = told(server, agent, &changes);
        (running, told)
    });
    server.sh("fsfreeze -u /run/exp")?;
    let (running, told) = told?;
    for mut client in running {
        client.wait(Duration::from_secs(120))?.ok("a client")?;
    }
    told?;
    // The agent repeats an answer for a quarter of a second.
    server.sh("sleep 0.5")?;
    let after = held(agent)?;
    ensure!(after.requests.is_empty(), "{after:?}");
    let none = program(server, agent, "")?;
    ensure!(none.starts_with("0\n"), "{none}");
    Ok(())
}

/// Script of a client, and its request that does not end.
struct Change {
    script: String,
    version: &'static str,
    op: &'static str,
    client: String,
    inode: u64,
}

fn changes(server: &Server) -> Result<[Change; 3]> {
    let [v3, v4_2, v4_1] = [
        server.client(0).mount_v3()?,
        server.client(1).mount_v4_2()?,
        server.client(2).mount_v4_1()?,
    ];
    let inodes = "cd /run/exp && echo hello >frozen && mkdir -p in && rm -rf in/* && mkdir in/gone && sync . && stat -c %i frozen in";
    let inodes = server.sh(inodes)?.stdout;
    let inodes: Vec<u64> = (inodes.split_whitespace())
        .map(|i| i.parse().with_context(|| format!("inode {i}")))
        .collect::<Result<_>>()?;
    let [file, directory] = inodes[..] else {
        bail!("two inodes expected: {inodes:?}");
    };
    let address = |n| server.client(n).address().to_string();
    Ok([
        Change {
            script: format!(
                "dd if=/dev/zero of={v3}/frozen bs=4096 count=1 conv=nocreat,notrunc,fsync status=none"
            ),
            version: "3",
            op: "write",
            client: address(0),
            inode: file,
        },
        Change {
            script: format!("mkdir {v4_2}/in/new"),
            version: "4.2",
            op: "create",
            client: address(1),
            inode: directory,
        },
        Change {
            script: format!("rmdir {v4_1}/in/gone"),
            version: "4.1",
            op: "remove",
            client: address(2),
            inode: directory,
        },
    ])
}

/// Starts each change when a thread has the one before in hand, so that the order of their ages is known.
fn begin(server: &Server, changes: &[Change]) -> Result<Vec<Running>> {
    let mut all = Vec::new();
    for (n, change) in changes.iter().enumerate() {
        all.push(server.client(n).spawn(&change.script)?);
        let mut tries = 0;
        while asleep(server)?.len() <= n {
            tries += 1;
            ensure!(tries < 60, "no thread took `{}`", change.script);
            server.sh("sleep 0.2")?;
        }
    }
    Ok(all)
}

/// nfsd threads in uninterruptible sleep, each with the functions of its stack.
pub fn asleep(server: &Server) -> Result<BTreeSet<(u32, Vec<String>)>> {
    let script = r#"for t in $(pgrep -x nfsd); do
        read -r stat </proc/$t/stat; stat=${stat##*) }
        [ "${stat%% *}" = D ] && echo "$t $(sed 's/^[^ ]* //; s/[+ ].*//' /proc/$t/stack | tr '\n' ' ')"
    done; true"#;
    let line = |line: &str| -> Result<(u32, Vec<String>)> {
        let mut words = line.split_whitespace();
        let thread = words.next().context("an empty line")?.parse()?;
        Ok((thread, words.map(str::to_owned).collect()))
    };
    server.sh(script)?.stdout.lines().map(line).collect()
}

fn held(agent: &Agent) -> Result<HeldRequests> {
    let body = agent.get("/stuck?over=1s")?;
    serde_json::from_str(&body).with_context(|| format!("/stuck answered {body}"))
}

/// Exit code and output of `nfscope stuck`, run by root on the server.
fn program(server: &Server, agent: &Agent, flags: &str) -> Result<String> {
    let url = format!("http://127.0.0.1:{}", agent.port());
    let program = server.nfscope_path()?;
    let program = program.display();
    let script = format!("o=$({program} stuck --url {url} {flags}); echo $?; echo \"$o\"");
    Ok(server.sh(&script)?.stdout)
}

fn told(server: &Server, agent: &Agent, changes: &[Change]) -> Result<()> {
    server.sh(AGED)?;
    let answer = program(server, agent, "--json")?;
    let json = answer.strip_prefix("2\n").context("another exit code")?;
    let answer: HeldRequests = serde_json::from_str(json).context(answer.clone())?;
    ensure!(
        answer.unknown.is_none() && answer.left_out == 0,
        "{answer:?}"
    );
    let told = &answer.requests;
    ensure!(told.len() == changes.len(), "{answer:#?}");
    for (request, change) in told.iter().zip(changes) {
        let expected = HeldRequest {
            version: change.version.to_owned(),
            op: change.op.to_owned(),
            wait: "lock".to_owned(),
            client: Some(change.client.clone()),
            export: Some("/run/exp".to_owned()),
            inode: Some(change.inode),
            ..request.clone()
        };
        ensure!(
            *request == expected,
            "{request:#?} instead of {expected:#?}"
        );
        ensure!(request.seconds > 1.0, "{request:?}");
    }
    ensure!(
        told.windows(2)
            .all(|pair| pair[0].seconds > pair[1].seconds),
        "not the oldest first: {told:#?}"
    );
    let threads: BTreeSet<_> = told.iter().map(|r| (r.thread, r.stack.clone())).collect();
    let seen = asleep(server)?;
    ensure!(threads == seen, "{threads:#?} instead of {seen:#?}");
    // Answers of the agent have no stacks: it lacks the privilege to read them.
    let bare = held(agent)?.requests;
    ensure!(bare.iter().all(|r| r.stack.is_empty()), "{bare:#?}");
    let bare: BTreeSet<_> = bare.iter().map(|r| (r.thread, &r.op, r.inode)).collect();
    let same = told.iter().map(|r| (r.thread, &r.op, r.inode)).collect();
    ensure!(bare == same, "{bare:#?} instead of {same:#?}");
    // 6.1 does not report requests over netlink.
    if !matches!(server.kernel(), Kernel::V5_10 | Kernel::V6_1) {
        as_the_kernel_tells(server, told)?;
    }
    let page = program(server, agent, "")?;
    ensure!(page.starts_with("2\n"), "{page}");
    for request in told {
        let line = page
            .lines()
            .find(|line| line.ends_with(&format!(" {}", request.thread)));
        let line = line.with_context(|| format!("no line of thread {}: {page}", request.thread))?;
        let words = [request.op.as_str(), "/run/exp", "lock"];
        ensure!(words.iter().all(|w| line.contains(w)), "{line}");
        ensure!(page.contains(&request.stack.join(" < ")), "{page}");
    }
    println!("{page}");
    Ok(())
}

/// Compares the requests with the kernel's own report.
fn as_the_kernel_tells(server: &Server, told: &[HeldRequest]) -> Result<()> {
    let output = server.lab("rpc-status")?;
    let kernel: RpcStatuses = serde_json::from_str(&output.stdout)?;
    ensure!(
        kernel.requests.len() == told.len(),
        "{kernel:#?} for {told:#?}"
    );
    for (theirs, ours) in kernel.requests.iter().zip(told) {
        let number = |names: &[&str]| names.iter().position(|n| *n == ours.op);
        let major = ours.version.split('.').next();
        let same = match theirs.version {
            3 => number(&PROC3) == Some(theirs.procedure as usize),
            _ => number(&OP4).is_some_and(|n| theirs.ops.contains(&(n as u32))),
        };
        let client = theirs.client.map(|c| c.to_string());
        ensure!(
            same && Some(theirs.xid) == ours.xid
                && client == ours.client
                && major == Some(&*theirs.version.to_string()),
            "{theirs:?} is not {ours:?}"
        );
        // The agent was asked first, so that a request is older by the kernel.
        let age = (kernel.at_us - theirs.since_us) as f64 / 1e6;
        ensure!(age > ours.seconds, "{age} s by the kernel: {ours:?}");
    }
    Ok(())
}
