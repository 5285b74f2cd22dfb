//! `nfscope mcp`, answers for assistants: a server of the Model Context Protocol over standard input and output, which only reads.
//!
//! The protocol's own library reads and writes the messages. [`begin`] leaves out messages before the session, [`session`] answers,
//! [`tools`] names what can be asked, [`program`] runs this program for an answer, and [`documents`] are pages of the documentation.
//!
//! A line is bounded, a call is bounded in time and size, and a call that fails ends neither the others nor the session.

mod begin;
mod documents;
mod program;
mod session;
mod tools;

use crate::cli::McpArgs;
use nfscope_api::address;
use session::{Server, serve};
use std::time::Duration;

/// For processes of calls to end.
const END: Duration = Duration::from_secs(1);

/// Serves until the input ends.
///
/// # Errors
/// Where a message begins a session that this server cannot have, or the output cannot be written.
pub fn run(args: &McpArgs) -> anyhow::Result<()> {
    let server = Server {
        url: args.url.clone().unwrap_or_else(address::default_url),
        access: args.access.words(),
        store: args.store.path.clone().into_os_string(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let ended = runtime.block_on(serve(server));
    runtime.shutdown_timeout(END);
    ended
}
