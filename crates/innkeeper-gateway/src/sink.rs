//! Where the messages for one client go: a connection, or the event stream of a request.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::event_stream::EventStream;

/// The receiver of the messages that belong to a request or to a client. A message is one JSON text
/// without line breaks, with a newline at its end.
#[derive(Clone, Debug)]
pub(crate) enum MessageSink {
    /// The outgoing queue of a connection.
    Queue(mpsc::Sender<Bytes>),
    /// A stream of events with a log for resumption.
    Stream(Arc<EventStream>),
    /// A client that cannot receive messages before the response.
    None,
}

impl MessageSink {
    /// Sends a message that the client must receive. Returns whether the client can receive it.
    pub(crate) async fn send(&self, message: Bytes) -> bool {
        match self {
            Self::Queue(queue) => queue.send(message).await.is_ok(),
            Self::Stream(stream) => stream.push(message),
            Self::None => false,
        }
    }

    /// Sends a notification, or drops it if the client does not read fast enough. Returns whether
    /// the client can receive it.
    pub(crate) fn notify(&self, message: Bytes) -> bool {
        match self {
            Self::Queue(queue) => queue.try_send(message).is_ok(),
            Self::Stream(stream) => stream.push_droppable(message),
            Self::None => false,
        }
    }

    /// Returns whether a message before the response can reach the client.
    pub(crate) fn is_some(&self) -> bool {
        !matches!(self, Self::None)
    }
}
