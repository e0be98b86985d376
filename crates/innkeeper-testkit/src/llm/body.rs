//! Responses, sent piece by piece and broken off where a script says so.

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

use super::script::Ending;
use crate::remote::tasks::Tasks;

/// How long a connection gets to pass on what was sent before it is closed.
const FLUSH: Duration = Duration::from_millis(50);

/// Any response.
pub(super) type Reply = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// What is to be sent.
pub(super) struct Outgoing {
    pub(super) status: u16,
    pub(super) content_type: String,
    pub(super) pieces: Vec<Bytes>,
    /// Whether the body is sent as it comes, without its length.
    pub(super) streams: bool,
}

impl Outgoing {
    pub(super) fn json(status: u16, text: impl Into<Bytes>) -> Self {
        let content_type = "application/json".to_owned();
        Self { status, content_type, pieces: vec![text.into()], streams: false }
    }

    /// The same bytes in pieces of this size.
    pub(super) fn cut(mut self, bytes: usize) -> Self {
        let whole = self.pieces.concat();
        self.pieces = whole.chunks(bytes).map(Bytes::copy_from_slice).collect();
        self
    }

    /// The response, whose body goes on as `ending` says.
    pub(super) fn reply(self, headers: &[(String, String)], end: Ending, tasks: &Tasks) -> Reply {
        let limit = match end {
            Ending::Whole => None,
            Ending::BreaksOff(bytes) | Ending::HangsAfter(bytes) => Some(bytes),
            Ending::Hangs => Some(0),
        };
        let mut reply = if limit.is_none() && !self.streams {
            let whole: Bytes = self.pieces.concat().into();
            Response::new(Full::new(whole).map_err(|never| match never {}).boxed_unsync())
        } else {
            let (sender, receiver) = channel(1);
            let pieces = up_to(self.pieces, limit);
            tasks.spawn(send(sender, pieces, end));
            Response::new(StreamBody::new(frames(receiver)).boxed_unsync())
        };
        *reply.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        set(&mut reply, CONTENT_TYPE.as_str(), &self.content_type);
        for (name, value) in headers {
            set(&mut reply, name, value);
        }
        reply
    }
}

fn set(reply: &mut Reply, name: &str, value: &str) {
    let parsed = (HeaderName::try_from(name), HeaderValue::try_from(value));
    let (Ok(name), Ok(value)) = parsed else { panic!("`{name}: {value}` is no header") };
    reply.headers_mut().insert(name, value);
}

/// The first so many bytes, in the pieces they were in.
fn up_to(pieces: Vec<Bytes>, limit: Option<usize>) -> Vec<Bytes> {
    let Some(mut left) = limit else { return pieces };
    let taken = pieces.into_iter().map(|piece| {
        let piece = piece.slice(..piece.len().min(left));
        left -= piece.len();
        piece
    });
    taken.filter(|piece| !piece.is_empty()).collect()
}

fn frames(
    receiver: Receiver<io::Result<Bytes>>,
) -> impl futures_util::Stream<Item = io::Result<Frame<Bytes>>> {
    stream::unfold(receiver, |mut receiver| async move {
        let piece = receiver.recv().await?;
        Some((piece.map(Frame::data), receiver))
    })
}

async fn send(sender: Sender<io::Result<Bytes>>, pieces: Vec<Bytes>, ending: Ending) {
    for piece in pieces {
        if sender.send(Ok(piece)).await.is_err() {
            return;
        }
        // The connection writes what it has as soon as there is no more.
        tokio::task::yield_now().await;
    }
    match ending {
        Ending::Whole => {}
        Ending::BreaksOff(_) => {
            tokio::time::sleep(FLUSH).await;
            let end = io::Error::other("the script breaks off here");
            // A client that is gone needs no end.
            drop(sender.send(Err(end)).await);
        }
        Ending::HangsAfter(_) | Ending::Hangs => sender.closed().await,
    }
}
