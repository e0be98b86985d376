//! Stores the messages of event streams for other replicas, in the order of each stream.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::mpsc;

use crate::event_stream::{EventStream, StreamStore, UnstoredPart};
use crate::replicas::Replicas;

/// Maximum number of streams whose messages are stored at one time.
const MAX_CONCURRENT: usize = 64;

/// Stores the messages of the streams in the queue until the future is dropped.
pub(crate) async fn store_streams(
    replicas: Replicas,
    mut queue: mpsc::UnboundedReceiver<Arc<EventStream>>,
) {
    let mut storing = FuturesUnordered::new();
    loop {
        tokio::select! {
            Some(stream) = queue.recv(), if storing.len() < MAX_CONCURRENT => {
                storing.push(store(&replicas, stream));
            }
            Some(()) = storing.next() => {}
            else => return,
        }
    }
}

/// Stores the messages of a stream until there are no more.
async fn store(replicas: &Replicas, stream: Arc<EventStream>) {
    let Some(StreamStore { ownership, session, requests, .. }) = stream.store() else { return };
    while let Some(part) = stream.unstored() {
        let requests = requests.as_deref().filter(|_| part.is_new);
        let UnstoredPart { oldest, entries, .. } = &part;
        let stored =
            replicas.append(ownership, session, stream.number, requests, *oldest, entries).await;
        match &stored {
            Ok(true) => {}
            // The next owner tells the client how its requests ended.
            Ok(false) => stream.discard(),
            // The client here gets the message, and cannot resume the stream elsewhere.
            Err(error) => tracing::warn!(%error, "messages of an event stream not stored"),
        }
        stream.mark_stored(&part, stored.is_ok_and(|is_owner| is_owner));
    }
}
