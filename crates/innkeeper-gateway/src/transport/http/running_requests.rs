//! The requests of one POST of a session. They go on without the connection of their client: a lost
//! connection is no cancellation (2025-11-25, Streamable HTTP, Sending Messages to the Server).

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;

use super::HttpTransport;
use super::session::Activity;
use crate::event_stream::EventStream;
use crate::owned_calls::OwnedCalls;

/// Returns the message with the responses; `None` if the client cancelled all requests.
pub(super) type Responding = Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>;

/// The requests of one POST until their responses. Dropping the value before lets them run on in a
/// task, and the responses go to the stream.
pub(super) struct RunningRequests {
    pub(super) responding: Option<Responding>,
    pub(super) transport: Arc<HttpTransport>,
    pub(super) stream: Arc<EventStream>,
    pub(super) calls: Option<Arc<OwnedCalls>>,
    /// Kept until the responses; `None` afterwards.
    pub(super) activity: Option<Activity>,
}

impl RunningRequests {
    /// Waits for the responses. Dropping the future does not end the requests.
    pub(super) async fn responses(&mut self) -> Option<Bytes> {
        let line = self.responding.as_mut()?.await;
        self.responding = None;
        line
    }
}

impl Drop for RunningRequests {
    fn drop(&mut self) {
        let Some(responding) = self.responding.take() else { return };
        let stream = self.stream.clone();
        let calls = self.calls.take();
        let finished_streams = self.transport.finished_streams.clone();
        let activity = self.activity.take();
        self.transport.gateway.tasks.spawn(async move {
            finish(&stream, responding.await);
            if let Some(activity) = &activity {
                finished_streams.add(activity.principal(), &stream);
            }
            end_calls(&stream, calls).await;
            drop(activity);
        });
    }
}

/// Adds the responses to a stream and ends it.
pub(super) fn finish(stream: &EventStream, line: Option<Bytes>) {
    if let Some(line) = line {
        stream.push(line);
    }
    stream.close();
}

/// Removes the records of calls when their responses are stored: the next owner must find the record
/// or the response.
pub(super) async fn end_calls(stream: &EventStream, calls: Option<Arc<OwnedCalls>>) {
    if !stream.wait_stored().await
        && let Some(calls) = &calls
    {
        calls.keep_records();
    }
}
