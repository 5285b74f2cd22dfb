//! A client holds a delegation and is cut off. Another client wants to write to that file: the server answers NFS4ERR_DELAY until it
//! has revoked the delegation.

use anyhow::{Context, Result, ensure};
use lab::{Agent, Server};
use nfscope_model::family;
use nfscope_model::finding::Kind;

pub fn a_client_is_told(server: &Server, agent: &Agent) -> Result<()> {
    let [holder, writer] = [0, 1].map(|n| server.client(n));
    let (held, wanted) = (holder.mount_v4_2()?, writer.mount_v4_2()?);
    // The server grants delegations only of files that have not been written to for a moment.
    server.sh("echo hello >/run/exp/held; sleep 2")?;
    let reader = holder.spawn(&format!("exec 3<{held}/held; cat <&3; exec sleep 600"))?;
    let delegations = "cat /proc/fs/nfsd/clients/*/states | grep -c 'type: deleg' || true";
    let mut tries = 0;
    while server.sh(delegations)?.stdout.trim() == "0" {
        tries += 1;
        ensure!(tries < 20, "the server gives no delegation");
        server.sh("sleep 0.5")?;
    }
    server.sh("ip link set s0 down")?;
    let before = agent.snapshot()?;
    // The server gives the holder a moment before it answers a change of the file's attributes.
    let change = writer.spawn(&format!("chmod 600 {wanted}/held"))?;
    server.sh("sleep 1")?;
    let write = writer.spawn(&format!("echo again >{wanted}/held"))?;
    server.sh("sleep 4")?;
    let after = agent.snapshot()?;
    // The write would go on until the holder's lease has ended.
    write.kill()?;
    change.kill()?;
    server.sh("ip link set s0 up")?;
    reader.kill()?;
    let diagnosis = nfscope_diagnose::evaluate(&after.since(&before), &[]);
    let finding = diagnosis.finding(Kind::RetryLater);
    let finding = finding.with_context(|| format!("{diagnosis:#?}"))?;
    println!("{}; {:?}", finding.summary, finding.evidence);
    ensure!(
        finding.evidence[0].text.contains("NFS4ERR_DELAY"),
        "{finding:#?}"
    );
    ensure!(finding.share > 0.5, "{finding:#?}");
    let waits =
        lab::reconcile::by_last_label(&after.since(&before).delta, &family::OP_PHASE.info, |_| {
            true
        });
    let recall = waits.get("recall").copied().unwrap_or(0.0);
    // NFSD_DELEGRETURN_TIMEOUT is a thirty-fourth of a second.
    ensure!(recall > 0.02, "nobody waited for the delegation: {waits:?}");
    Ok(())
}
