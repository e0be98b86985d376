//! Writer of messages into a response body, with faults.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::mpsc::Sender;

use super::fault::FaultAction;
use super::gzip::GzipEncoder;
use super::listener::{ConnectionFault, ConnectionFaultSender};

/// Time for the connection to transmit half a response before its reset.
const FLUSH_DELAY: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BodyFormat {
    /// One event per message.
    Events,
    /// One message without framing.
    Json,
}

#[derive(Debug)]
pub(super) struct BodyWriter {
    body: Sender<Bytes>,
    connection_faults: ConnectionFaultSender,
    format: BodyFormat,
    gzip: Option<GzipEncoder>,
}

impl BodyWriter {
    pub(super) fn new(
        body: Sender<Bytes>,
        connection_faults: ConnectionFaultSender,
        format: BodyFormat,
        gzip: bool,
    ) -> Self {
        Self { body, connection_faults, format, gzip: gzip.then(GzipEncoder::default) }
    }

    /// Waits until the client stops reading.
    pub(super) async fn closed(&self) {
        self.body.closed().await;
    }

    /// Whether the client has stopped reading.
    pub(super) fn is_closed(&self) -> bool {
        self.body.is_closed()
    }

    /// Writes a message; returns false if the client has stopped reading or the fault ends the
    /// body.
    pub(super) async fn write_message(
        &mut self,
        text: &[u8],
        id: Option<&str>,
        action: Option<&FaultAction>,
    ) -> bool {
        let message = match action {
            Some(FaultAction::PrettyPrint) => self.frame_message(&pretty_print(text), id),
            _ => self.frame_message(text, id),
        };
        let (head, tail) = message.split_at(message.len() / 2);
        match action {
            Some(FaultAction::Stall(delay)) => {
                if !self.write_bytes(head).await {
                    return false;
                }
                tokio::select! {
                    () = pause_or_hang(*delay) => self.write_bytes(tail).await,
                    () = self.closed() => false,
                }
            }
            Some(FaultAction::ResetMidBody) => {
                self.write_bytes(head).await;
                tokio::time::sleep(FLUSH_DELAY).await;
                self.connection_faults.inject(ConnectionFault::Reset).await;
                self.closed().await;
                false
            }
            Some(FaultAction::Duplicate) => {
                self.write_bytes(&message).await && self.write_bytes(&message).await
            }
            Some(FaultAction::PrependMessage(bytes)) => {
                let first = match self.format {
                    BodyFormat::Events => {
                        self.frame_message(filler_message(*bytes).as_bytes(), None)
                    }
                    BodyFormat::Json => vec![b' '; *bytes],
                };
                self.write_bytes(&first).await && self.write_bytes(&message).await
            }
            _ => self.write_bytes(&message).await,
        }
    }

    /// Writes an event without a message, with this name and data.
    pub(super) async fn write_event(&mut self, name: &str, data: &str) -> bool {
        self.write_bytes(format!("event: {name}\ndata: {data}\n\n").as_bytes()).await
    }

    /// Writes an empty event with an id, from which a client can resume the stream.
    pub(super) async fn write_priming_event(&mut self, id: &str, retry: Option<Duration>) -> bool {
        let retry = retry.map(|delay| format!("retry: {}\n", delay.as_millis()));
        let event = format!("id: {id}\n{}data: \n\n", retry.unwrap_or_default());
        self.write_bytes(event.as_bytes()).await
    }

    pub(super) async fn finish(mut self) {
        if let Some(gzip) = self.gzip.take() {
            // The client may have stopped reading.
            let _ = self.body.send(Bytes::from(gzip.finish())).await;
        }
    }

    async fn write_bytes(&mut self, bytes: &[u8]) -> bool {
        let chunk = match &mut self.gzip {
            Some(gzip) => Bytes::from(gzip.encode_chunk(bytes)),
            None => Bytes::copy_from_slice(bytes),
        };
        self.body.send(chunk).await.is_ok()
    }

    fn frame_message(&self, text: &[u8], id: Option<&str>) -> Vec<u8> {
        if self.format == BodyFormat::Json {
            return text.to_vec();
        }
        let mut event = id.map_or_else(Vec::new, |id| format!("id: {id}\n").into_bytes());
        event.extend(b"event: message\n");
        for line in text.split(|&byte| byte == b'\n') {
            event.extend(b"data: ");
            event.extend(line);
            event.push(b'\n');
        }
        event.push(b'\n');
        event
    }
}

/// Waits for the delay, or forever.
pub(super) async fn pause_or_hang(delay: Option<Duration>) {
    match delay {
        Some(delay) => tokio::time::sleep(delay).await,
        None => std::future::pending().await,
    }
}

/// A notification of exactly `bytes` bytes, or the minimum length of a notification.
pub(super) fn filler_message(bytes: usize) -> String {
    let around = |data: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"debug","data":"{data}"}}}}"#
        )
    };
    around(&"x".repeat(bytes.saturating_sub(around("").len())))
}

/// Formats JSON over several lines; other text stays unchanged.
pub(super) fn pretty_print(text: &[u8]) -> Vec<u8> {
    let parsed = serde_json::from_slice::<Value>(text);
    parsed.map_or_else(|_| text.to_vec(), |value| format!("{value:#}").into_bytes())
}
