//! `nfscope what-if`: predicts the effect of a change.

pub mod cli;

use crate::cli::WhatIfArgs;
use crate::diagnose::watch;
use nfscope_agent_client::windows::WindowStream;
use nfscope_api::address;
use nfscope_baseline::store::Store;
use nfscope_baseline::window;
use nfscope_model::{Window, family};
use nfscope_text::console;
use nfscope_whatif::{Change, FAMILIES, plausible, predict, render, render_list};

/// Returns the output.
///
/// # Errors
/// When there is no window, or when the window has too little for a prediction; the error says why.
pub fn run(args: &WhatIfArgs) -> anyhow::Result<String> {
    let (window, source) = window(args)?;
    let change = Change {
        threads: args.threads,
        log_seconds: args.log.map(|t| t.as_secs_f64()),
        disk_seconds: args.disk.map(|t| t.as_secs_f64()),
        cpus: args.cpus,
        clients_factor: args.clients,
        write_bytes: args.write_size,
    };
    let refused = |why| anyhow::anyhow!("no prediction: {why}");
    if change == Change::default() {
        let all = plausible(&window).map_err(refused)?;
        return Ok(match args.json {
            true => console::json(&all)?,
            false => render_list(&all, &source),
        });
    }
    let prediction = predict(&window, &change).map_err(refused)?;
    Ok(match args.json {
        true => console::json(&prediction)?,
        false => render(&prediction, &source),
    })
}

fn window(args: &WhatIfArgs) -> anyhow::Result<(Window, String)> {
    if let Some(name) = &args.name {
        let store = Store::read(&args.store.path)?;
        let entry = store.entry(name)?;
        let window = window::read(&store, &entry, FAMILIES, &family::THREADS_LIMIT.info)?;
        let host = console::one_line(&entry.metadata.host);
        return Ok((window, format!("{name} on {host}")));
    }
    let host = address::host(args.url.as_deref());
    let mut windows = WindowStream::open(args.url.as_deref(), args.length)?;
    Ok((watch(&mut windows, args.length)?, host))
}
