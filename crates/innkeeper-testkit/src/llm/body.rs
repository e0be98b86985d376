//! Response bodies in chunks, with scripted disconnects.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::script::BodyEnding;
use crate::remote::tasks::ServerTasks;

/// Time for the connection to transmit the body before it closes.
const FLUSH_DELAY: Duration = Duration::from_millis(50);

pub(super) type HttpResponse = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// A response before its conversion to HTTP.
pub(super) struct OutgoingResponse {
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) chunks: Vec<Bytes>,
    /// Whether the body has no content length.
    pub(super) streams: bool,
}

impl OutgoingResponse {
    pub(super) fn json(status: u16, text: impl Into<Bytes>) -> Self {
        let content_type = "application/json".to_owned();
        Self { status, content_type, chunks: vec![text.into()], streams: false }
    }

    /// Splits the body into chunks of `bytes` bytes.
    pub(super) fn rechunk(mut self, bytes: usize) -> Self {
        let all_bytes = self.chunks.concat();
        self.chunks = all_bytes.chunks(bytes).map(Bytes::copy_from_slice).collect();
        self
    }

    /// Converts the response to HTTP; the body ends as `ending` says.
    pub(super) fn into_http(
        self,
        headers: &[(String, String)],
        ending: BodyEnding,
        tasks: &ServerTasks,
    ) -> HttpResponse {
        let limit = match ending {
            BodyEnding::Complete => None,
            BodyEnding::Disconnect(bytes) | BodyEnding::StallAfter(bytes) => Some(bytes),
            BodyEnding::NeverRespond => Some(0),
        };
        let mut reply = if limit.is_none() && !self.streams {
            let all_bytes: Bytes = self.chunks.concat().into();
            Response::new(Full::new(all_bytes).map_err(|never| match never {}).boxed_unsync())
        } else {
            let (sender, receiver) = channel(1);
            let chunks = truncate_chunks(self.chunks, limit);
            tasks.spawn(send_chunks(sender, chunks, ending));
            Response::new(StreamBody::new(frames(receiver)).boxed_unsync())
        };
        *reply.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        set_header(&mut reply, CONTENT_TYPE.as_str(), &self.content_type);
        for (name, value) in headers {
            set_header(&mut reply, name, value);
        }
        reply
    }
}

fn set_header(reply: &mut HttpResponse, name: &str, value: &str) {
    let parsed = (HeaderName::try_from(name), HeaderValue::try_from(value));
    let (Ok(name), Ok(value)) = parsed else { panic!("invalid header `{name}: {value}`") };
    reply.headers_mut().insert(name, value);
}

/// Truncates the chunks to a total of `limit` bytes.
fn truncate_chunks(chunks: Vec<Bytes>, limit: Option<usize>) -> Vec<Bytes> {
    let Some(mut remaining) = limit else { return chunks };
    let truncated = chunks.into_iter().map(|chunk| {
        let chunk = chunk.slice(..chunk.len().min(remaining));
        remaining -= chunk.len();
        chunk
    });
    truncated.filter(|chunk| !chunk.is_empty()).collect()
}

fn frames(
    receiver: Receiver<io::Result<Bytes>>,
) -> impl futures_util::Stream<Item = io::Result<Frame<Bytes>>> {
    stream::unfold(receiver, |mut receiver| async move {
        let chunk = receiver.recv().await?;
        Some((chunk.map(Frame::data), receiver))
    })
}

async fn send_chunks(sender: Sender<io::Result<Bytes>>, chunks: Vec<Bytes>, ending: BodyEnding) {
    for chunk in chunks {
        if sender.send(Ok(chunk)).await.is_err() {
            return;
        }
        // The connection writes its buffered data when no further data is ready.
        tokio::task::yield_now().await;
    }
    match ending {
        BodyEnding::Complete => {}
        BodyEnding::Disconnect(_) => {
            tokio::time::sleep(FLUSH_DELAY).await;
            let error = io::Error::other("scripted disconnect");
            // The client may have closed the connection already.
            let _ = sender.send(Err(error)).await;
        }
        BodyEnding::StallAfter(_) | BodyEnding::NeverRespond => sender.closed().await,
    }
}
