//! Filter of messages before a session. There, a notification or a response would end the protocol's library, and the server with it.

use rmcp::model::{ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// Transport that drops everything but requests until a request has begun the session.
pub struct Begin<T> {
    transport: T,
    begun: bool,
}

impl<T> Begin<T> {
    /// Wraps a transport whose session has not begun.
    pub fn new(transport: T) -> Begin<T> {
        Begin {
            transport,
            begun: false,
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Begin<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.transport.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let message = self.transport.receive().await?;
            match &message {
                // The library answers every request, and those that cannot begin a session with an error.
                JsonRpcMessage::Request(request) => self.begun |= begins(&request.request),
                _ if !self.begun => continue,
                _ => {}
            }
            return Some(message);
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}

/// Returns true for `initialize`, and for a request that has all session metadata itself, as protocols from 2026-07-28 on allow.
fn begins(request: &ClientRequest) -> bool {
    match request {
        ClientRequest::InitializeRequest(_) => true,
        ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => false,
        other => {
            let meta = other.get_meta();
            let version = meta.protocol_version();
            version.is_some_and(|v| ProtocolVersion::KNOWN_VERSIONS.contains(&v))
                && meta
                    .missing_required_keys(&ProtocolVersion::V_2026_07_28)
                    .is_empty()
        }
    }
}
