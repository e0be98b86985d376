//! The connection between host and server: pipes or a transport queue.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::session::{InboundSink, OutboundCommand, OutboundReceiver, RequestError};

/// Size of the read buffer in bytes.
const READ_BUFFER_BYTES: usize = 8 << 10;

/// The server's end of the connection.
pub(super) enum ServerIo {
    Pipes { input: DuplexStream, buffer: Vec<u8>, output: Option<DuplexStream> },
    Transport { inbound: InboundSink, outbound: OutboundReceiver },
}

pub(super) enum HostInput {
    Message(Value),
    /// No caller waits for this response any more.
    Cancelled(u64),
    Closed,
}

impl ServerIo {
    pub(super) fn is_transport(&self) -> bool {
        matches!(self, Self::Transport { .. })
    }

    /// Returns the next input from the host. A server that is `deaf` reads nothing, but a transport
    /// still reports the end of the connection. Cancel-safe.
    pub(super) async fn next(&mut self, deaf: bool) -> HostInput {
        match self {
            Self::Pipes { .. } if deaf => std::future::pending().await,
            Self::Transport { outbound, .. } if deaf => {
                outbound.closed().await;
                HostInput::Closed
            }
            Self::Transport { outbound, .. } => match outbound.next().await {
                None => HostInput::Closed,
                Some(OutboundCommand::Forget { id, .. }) => HostInput::Cancelled(id),
                Some(OutboundCommand::Send(message)) => {
                    let (_, body) = message.into_parts();
                    HostInput::Message(serde_json::from_slice(&body).unwrap())
                }
            },
            Self::Pipes { input, buffer, .. } => loop {
                if let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = buffer.drain(..=end).collect();
                    return HostInput::Message(serde_json::from_slice(&line).unwrap());
                }
                let mut bytes = [0; READ_BUFFER_BYTES];
                match input.read(&mut bytes).await {
                    Ok(0) | Err(_) => return HostInput::Closed,
                    Ok(read) => buffer.extend_from_slice(&bytes[..read]),
                }
            },
        }
    }

    /// Writes whole lines.
    pub(super) async fn write(&mut self, bytes: &[u8]) {
        match self {
            Self::Pipes { output, .. } => {
                if let Some(open) = output
                    && open.write_all(bytes).await.is_err()
                {
                    *output = None;
                }
            }
            Self::Transport { inbound, .. } => {
                for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    if line.len() > inbound.max_message_bytes() {
                        inbound.receive_too_long(&line[..line.len().min(1024)]).await;
                    } else {
                        inbound.receive_message(line).await;
                    }
                }
            }
        }
    }

    /// Writes the bytes in chunks of `size`.
    pub(super) async fn write_chunked(&mut self, bytes: &[u8], size: usize) {
        if self.is_transport() {
            return self.write(bytes).await;
        }
        for chunk in bytes.chunks(size) {
            self.write(chunk).await;
            tokio::task::yield_now().await;
        }
    }

    /// Fails one request, like a transport that knows whether the server received the request.
    pub(super) fn fail_request(&self, id: u64, error: RequestError) {
        if let Self::Transport { inbound, .. } = self {
            inbound.fail_request(id, error);
        }
    }

    /// Closes the output. Returns `false` if that ends the connection.
    pub(super) fn close_output(&mut self) -> bool {
        match self {
            Self::Pipes { output, .. } => {
                *output = None;
                true
            }
            Self::Transport { .. } => false,
        }
    }
}
