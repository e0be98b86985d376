//! Writing messages into the body of a response, with the faults asked for.

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::mpsc::Sender;

use super::fault::Act;
use super::gzip::Gzip;
use super::listen::{Trick, Tricks};

/// How long a connection gets to pass on half an answer before it is reset.
const FLUSH: Duration = Duration::from_millis(50);

/// Form of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One event for each message.
    Events,
    /// One message as it is.
    Json,
}

/// A body being written.
#[derive(Debug)]
pub(super) struct Pen {
    body: Sender<Bytes>,
    tricks: Tricks,
    form: Form,
    gzip: Option<Gzip>,
}

impl Pen {
    pub(super) fn new(body: Sender<Bytes>, tricks: Tricks, form: Form, gzip: bool) -> Self {
        Self { body, tricks, form, gzip: gzip.then(Gzip::default) }
    }

    /// Waits until the client reads no more.
    pub(super) async fn closed(&self) {
        self.body.closed().await;
    }

    /// Whether the client reads no more.
    pub(super) fn is_closed(&self) -> bool {
        self.body.is_closed()
    }

    /// Writes a message; false when the client reads no more, or is not to.
    pub(super) async fn put(&mut self, text: &[u8], id: Option<&str>, act: Option<&Act>) -> bool {
        let message = match act {
            Some(Act::Pretty) => self.framed(&pretty(text), id),
            _ => self.framed(text, id),
        };
        let (head, tail) = message.split_at(message.len() / 2);
        match act {
            Some(Act::Stall(pause)) => {
                if !self.write(head).await {
                    return false;
                }
                tokio::select! {
                    () = rest(*pause) => self.write(tail).await,
                    () = self.closed() => false,
                }
            }
            Some(Act::Reset) => {
                self.write(head).await;
                tokio::time::sleep(FLUSH).await;
                self.tricks.play(Trick::Reset).await;
                self.closed().await;
                false
            }
            Some(Act::Twice) => self.write(&message).await && self.write(&message).await,
            Some(Act::Long(bytes)) => {
                let first = match self.form {
                    Form::Events => self.framed(filler(*bytes).as_bytes(), None),
                    Form::Json => vec![b' '; *bytes],
                };
                self.write(&first).await && self.write(&message).await
            }
            _ => self.write(&message).await,
        }
    }

    /// Writes an event that is no message: of this name, with this data.
    pub(super) async fn event(&mut self, name: &str, data: &str) -> bool {
        self.write(format!("event: {name}\ndata: {data}\n\n").as_bytes()).await
    }

    /// Writes an event without a message, which gives the stream an id to be taken up from.
    pub(super) async fn prime(&mut self, id: &str, retry: Option<Duration>) -> bool {
        let retry = retry.map(|delay| format!("retry: {}\n", delay.as_millis()));
        let event = format!("id: {id}\n{}data: \n\n", retry.unwrap_or_default());
        self.write(event.as_bytes()).await
    }

    /// Ends the body as it should end.
    pub(super) async fn end(mut self) {
        if let Some(gzip) = self.gzip.take() {
            // Who reads no more misses the end too.
            drop(self.body.send(Bytes::from(gzip.end())).await);
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> bool {
        let piece = match &mut self.gzip {
            Some(gzip) => Bytes::from(gzip.piece(bytes)),
            None => Bytes::copy_from_slice(bytes),
        };
        self.body.send(piece).await.is_ok()
    }

    fn framed(&self, text: &[u8], id: Option<&str>) -> Vec<u8> {
        if self.form == Form::Json {
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

/// Waits so long, or for ever.
pub(super) async fn rest(pause: Option<Duration>) {
    match pause {
        Some(pause) => tokio::time::sleep(pause).await,
        None => std::future::pending().await,
    }
}

/// A notification of exactly so many bytes, unless that is less than one has.
pub(super) fn filler(bytes: usize) -> String {
    let around = |data: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"debug","data":"{data}"}}}}"#
        )
    };
    around(&"x".repeat(bytes.saturating_sub(around("").len())))
}

/// The same JSON over several lines; what is no JSON as it is.
pub(super) fn pretty(text: &[u8]) -> Vec<u8> {
    let parsed = serde_json::from_slice::<Value>(text);
    parsed.map_or_else(|_| text.to_vec(), |value| format!("{value:#}").into_bytes())
}
