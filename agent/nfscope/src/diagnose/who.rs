//! Clients, exports and files behind the findings of `nfscope diagnose`: by breakdowns that were counted meanwhile, else by a sample.

use nfscope_agent_client::counting::Told;
use nfscope_agent_client::windows::WindowStream;
use nfscope_diagnose::breakdown::Breakdown;
use nfscope_diagnose::counted::{self, Of};
use nfscope_diagnose::{Counted, Place, client_sample};
use nfscope_model::Window;
use nfscope_model::finding::{Diagnosis, Evidence, Finding, Kind};
use nfscope_source::{file_path, lossless};
use std::time::Duration;

/// Time limit for finding the path of an inode in an export, which may lie on the slow disk.
const PATIENCE: Duration = Duration::from_secs(2);

/// Returns true if there is a finding whose operations can be counted by client, export or file.
pub(super) fn needs_who(d: &Diagnosis, b: &Breakdown) -> bool {
    d.findings.iter().any(|f| counted::ops(f.kind, b).is_some())
}

/// Adds counted clients, exports and files to the findings. Returns sentences about what is not known, and why.
pub(super) fn name_who(
    findings: &mut [Finding],
    (window, b): (&Window, &Breakdown),
    told: Option<&Told>,
    windows: &mut WindowStream,
) -> Vec<String> {
    let of: Vec<_> = findings.iter().map(|f| counted::ops(f.kind, b)).collect();
    let Some(told) = told else {
        return Vec::new();
    };
    // Inode numbers of another host mean other files here.
    let here = window.delta.host == Some(nfscope_source::hostname::own_name());
    let mut not_known = Vec::new();
    let mut say = |sentence: String| {
        if !not_known.contains(&sentence) {
            not_known.push(sentence);
        }
    };
    for (f, of) in findings.iter_mut().zip(of) {
        let Some(of) = of else { continue };
        match &told.who {
            Ok(counted) => f.evidence.extend(counted::who(&of, counted)),
            Err(why) => {
                let sampled = sample(f.kind, windows);
                say(match &sampled {
                    Some(_) => {
                        format!("who and what, but for a sample of single operations: {why}")
                    }
                    None => format!("who and what: {why}"),
                });
                f.evidence.extend(sampled);
            }
        }
        if !counted::is_of_a_file(f.kind) {
            continue;
        }
        match &told.files {
            Ok(counted) => f.evidence.extend(file(&of, counted, here)),
            Err(why) => say(format!("which file or directory: {why}")),
        }
    }
    not_known
}

fn sample(kind: Kind, windows: &mut WindowStream) -> Option<Evidence> {
    let want = client_sample::filter(kind)?;
    client_sample::evidence(&windows.sample_slow_ops(&want, client_sample::SAMPLE_DURATION))
}

fn file(of: &Of, counted: &Counted, here: bool) -> Option<Evidence> {
    counted::file(of, counted, |export, inode| {
        let inode = inode.parse().ok().filter(|_| here)?;
        let (path, is_directory) = file_path::find(export, inode, PATIENCE)?;
        Some(Place {
            path: lossless::of_path(&path),
            is_directory,
        })
    })
}
