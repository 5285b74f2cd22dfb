//! `nfscope mcp`: answers for assistants, over standard input and output.

use crate::api::address;
use crate::cli::McpArgs;
use crate::mcp::{Server, serve};
use std::time::Duration;

/// For processes of calls to end.
const END: Duration = Duration::from_secs(1);

/// Serves until the input ends.
///
/// # Errors
/// Where the first message is none that begins a session.
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
