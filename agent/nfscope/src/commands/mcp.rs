//! `nfscope mcp`: answers for assistants, over standard input and output.

use crate::api::address;
use crate::cli::McpArgs;
use crate::mcp::{Server, serve};
use std::io;

/// Serves until the input ends.
///
/// # Errors
/// Where the input cannot be read.
pub fn run(args: &McpArgs) -> anyhow::Result<()> {
    let server = Server {
        url: args.url.clone().unwrap_or_else(address::default_url),
        access: args.access.words(),
        store: args.store.path.clone().into_os_string(),
    };
    Ok(serve(io::stdin().lock(), io::stdout(), &server)?)
}
