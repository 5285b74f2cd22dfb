//! `nfscope mcp`: read-only server of the Model Context Protocol over standard input and output.
//!
//! The protocol's own library reads and writes messages. [`begin`] drops messages before a session, [`session`] answers requests, [`tools`]
//! has the tools, [`program`] runs this program for an answer, and [`documents`] has pages of the documentation.
//!
//! Lines are limited in size, and calls in time and size. A call that fails affects neither other calls nor the session.

mod begin;
mod documents;
mod program;
mod session;
mod tools;

use crate::cli::McpArgs;
use nfscope_api::address;
use session::{Server, serve};
use std::time::Duration;

/// Time for the processes of calls to end.
const END: Duration = Duration::from_secs(1);

/// Serves until standard input ends.
///
/// # Errors
/// When a message asks for a session that this server does not support, or the output cannot be written.
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
