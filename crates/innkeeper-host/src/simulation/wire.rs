//! What lies between host and server: pipes as those of a process, or a transport's queue.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::server::session::{Fault, Inlet, Order, Orders};

/// Bytes read at a time.
const READ: usize = 8 << 10;

/// The server's end.
pub(super) enum Wire {
    Pipes { input: DuplexStream, buffer: Vec<u8>, output: Option<DuplexStream> },
    Carried { inlet: Inlet, orders: Orders },
}

/// What comes from the host.
pub(super) enum Heard {
    Message(Value),
    /// Nobody waits for this answer any more.
    Forgotten(u64),
    End,
}

impl Wire {
    pub(super) fn is_carried(&self) -> bool {
        matches!(self, Self::Carried { .. })
    }

    /// The next that the host says. One that is `deaf` reads nothing; a transport sees all the same
    /// that there is nothing to carry any more. Cancel-safe.
    pub(super) async fn next(&mut self, deaf: bool) -> Heard {
        match self {
            Self::Pipes { .. } if deaf => std::future::pending().await,
            Self::Carried { orders, .. } if deaf => {
                orders.closed().await;
                Heard::End
            }
            Self::Carried { orders, .. } => match orders.next().await {
                None => Heard::End,
                Some(Order::Forget { id, .. }) => Heard::Forgotten(id),
                Some(Order::Send(parcel)) => {
                    let (_, body) = parcel.take();
                    Heard::Message(serde_json::from_slice(&body).unwrap())
                }
            },
            Self::Pipes { input, buffer, .. } => loop {
                if let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = buffer.drain(..=end).collect();
                    return Heard::Message(serde_json::from_slice(&line).unwrap());
                }
                let mut bytes = [0; READ];
                match input.read(&mut bytes).await {
                    Ok(0) | Err(_) => return Heard::End,
                    Ok(read) => buffer.extend_from_slice(&bytes[..read]),
                }
            },
        }
    }

    /// Says these bytes, whole lines.
    pub(super) async fn say(&mut self, bytes: &[u8]) {
        match self {
            Self::Pipes { output, .. } => {
                if let Some(open) = output
                    && open.write_all(bytes).await.is_err()
                {
                    *output = None;
                }
            }
            Self::Carried { inlet, .. } => {
                for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    if line.len() > inlet.limit() {
                        inlet.too_long(&line[..line.len().min(1024)]).await;
                    } else {
                        inlet.message(line).await;
                    }
                }
            }
        }
    }

    /// Says bytes a few at a time.
    pub(super) async fn say_in_pieces(&mut self, bytes: &[u8], size: usize) {
        if self.is_carried() {
            return self.say(bytes).await;
        }
        for piece in bytes.chunks(size) {
            self.say(piece).await;
            tokio::task::yield_now().await;
        }
    }

    /// Ends one request as a transport does that knows what became of it.
    pub(super) fn fail(&self, id: u64, fault: Fault) {
        if let Self::Carried { inlet, .. } = self {
            inlet.fail(id, fault);
        }
    }

    /// Says nothing more; false where that is the end of the connection.
    pub(super) fn close_output(&mut self) -> bool {
        match self {
            Self::Pipes { output, .. } => {
                *output = None;
                true
            }
            Self::Carried { .. } => false,
        }
    }
}
