//! Where the messages for one client go: a connection, or the event stream of a request.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::event_stream::EventStream;
use crate::principal::Principal;
use crate::response_memory::ResponseMemory;

/// The receiver of the messages that belong to a request or to a client. A message is one JSON text
/// without line breaks, with a newline at its end.
#[derive(Clone, Debug)]
pub(crate) enum MessageSink {
    /// The outgoing queue of a connection.
    Queue(mpsc::Sender<Bytes>),
    /// A stream of events with a log for resumption.
    Stream(Arc<EventStream>),
    /// A sink whose large messages count as unread responses until they have left.
    Counted(Arc<CountedSink>),
    /// A client that cannot receive messages before the response.
    None,
}

/// A sink with the client for which its messages count.
#[derive(Debug)]
pub(crate) struct CountedSink {
    sink: MessageSink,
    memory: ResponseMemory,
    principal: Principal,
}

impl MessageSink {
    /// Counts large messages for a client. One without room is not sent.
    pub(crate) fn counted(self, memory: &ResponseMemory, principal: &Principal) -> Self {
        match self {
            Self::Queue(_) | Self::Stream(_) => {
                let memory = memory.clone();
                let principal = principal.clone();
                Self::Counted(Arc::new(CountedSink { sink: self, memory, principal }))
            }
            Self::Counted(_) | Self::None => self,
        }
    }

    /// Returns the sink that takes a message, and the message; `None` if the message has no room.
    fn target(&self, message: Bytes) -> Option<(&Self, Bytes)> {
        let Self::Counted(counted) = self else { return Some((self, message)) };
        let message = counted.memory.hold_message(&counted.principal, message)?;
        Some((&counted.sink, message))
    }

    /// Sends a message that the client must receive. Returns whether the client can receive it.
    pub(crate) async fn send(&self, message: Bytes) -> bool {
        match self.target(message) {
            Some((Self::Queue(queue), message)) => queue.send(message).await.is_ok(),
            Some((Self::Stream(stream), message)) => stream.push(message),
            // `counted` never nests.
            Some((Self::Counted(_) | Self::None, _)) | None => false,
        }
    }

    /// Sends a notification, or drops it if the client does not read fast enough. Returns whether
    /// the client can receive it.
    pub(crate) fn notify(&self, message: Bytes) -> bool {
        match self.target(message) {
            Some((Self::Queue(queue), message)) => queue.try_send(message).is_ok(),
            Some((Self::Stream(stream), message)) => stream.push_droppable(message),
            Some((Self::Counted(_) | Self::None, _)) | None => false,
        }
    }

    /// Returns whether a message before the response can reach the client.
    pub(crate) fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: remote | a client lets a server send large messages before its response, and reads none |
    /// messages above the share of the client are dropped | No unbounded memory
    #[tokio::test]
    async fn large_messages_count_until_they_are_read() {
        let (sender, mut messages) = mpsc::channel(64);
        let (memory, principal) = (ResponseMemory::new(32 << 10), Principal::new("ann"));
        let sink = MessageSink::Queue(sender).counted(&memory, &principal);
        let large = || Bytes::from(vec![b'x'; 10 << 10]);
        assert!(sink.notify(large()));
        assert!(!sink.notify(large()));
        assert!(!sink.send(large()).await);
        assert!(sink.notify(Bytes::from_static(b"{}")), "a small one has room");
        let _ = messages.recv().await;
        assert!(sink.send(large()).await);
    }
}
