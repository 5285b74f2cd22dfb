//! Messages before a session begins. A notification or a response there would end the protocol's library, and with it the server.

use rmcp::model::{ClientRequest, GetMeta, JsonRpcMessage, ProtocolVersion};
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

/// A transport that leaves out what is no request until a request has begun the session.
pub struct Begin<T> {
    transport: T,
    begun: bool,
}

impl<T> Begin<T> {
    /// A transport whose session has not begun.
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
                // The library answers each request itself, one that begins nothing with an error.
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

/// True for `initialize`, and from protocol 2026-07-28 on for a request that says all about its session itself.
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
