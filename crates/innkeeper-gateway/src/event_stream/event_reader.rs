//! Reads the events of a stream.

use std::any::Any;
use std::sync::Arc;

use super::{EventStream, StreamEvent};

#[derive(Debug)]
pub(crate) struct EventReader {
    pub(super) stream: Arc<EventStream>,
    pub(super) position: u64,
    pub(super) number: u64,
    pub(super) _activity: Option<Box<dyn Any + Send + Sync>>,
}

impl EventReader {
    /// Drops a value at the end of the reader.
    pub(crate) fn with_activity(self, activity: impl Any + Send + Sync) -> Self {
        Self { _activity: Some(Box::new(activity)), ..self }
    }

    /// Returns the next message. Returns `None` at the end of the stream, if another reader took
    /// over, and if the reader was so slow that the log lost a message. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            let changed = self.stream.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut log = self.stream.log();
                if log.reader != self.number {
                    return None;
                }
                let (last_readable, is_closed) = self.stream.readable(&log);
                if last_readable > self.position {
                    let ahead = log.last_position - self.position;
                    let index = usize::try_from(ahead)
                        .ok()
                        .and_then(|ahead| log.events.len().checked_sub(ahead))?;
                    let event = log.events.get(index)?.clone();
                    self.position = event.position;
                    log.read_position = log.read_position.max(event.position);
                    return Some(event);
                }
                if is_closed {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// Waits until the store of the replicas knows the stream, if there is one.
    pub(crate) async fn wait_known(&self) {
        self.stream.wait_known().await;
    }

    pub(crate) fn stream_number(&self) -> u64 {
        self.stream.number
    }
}
