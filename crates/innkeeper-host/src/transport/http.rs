//! Streamable HTTP: every message is a POST, and answers come as JSON or as a stream of events.

mod answer;
mod events;
#[cfg(any(test, fuzzing))]
pub(in crate::transport) mod fuzz;
mod listen;
mod post;
mod renew;
mod talk;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use innkeeper_protocol::{envelope, method};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use super::Place;
use crate::server::session::{Inlet, Order, Orders, What};
use crate::tasks::Group;
use events::End;
use talk::{Era, Talk};

pub(super) use answer::{refused, unsent, words};

/// Notifications and answers of ours that are on their way or wait to be. Nobody waits for them, so
/// a server that takes none loses further ones. Requests have `maxConcurrent`.
const ASIDE: usize = 1024;

/// How long the first requests wait for the server to open the stream of its own messages.
const OPENING: Duration = Duration::from_millis(500);

/// Carries messages until the session closes, then ends the server's session.
pub(super) async fn carry(
    place: Arc<Place>,
    inlet: Inlet,
    orders: Orders,
    alive: oneshot::Sender<()>,
) {
    let talk = Arc::new(Talk::new(place, inlet));
    let mut posts = Group::new();
    let mut requests: HashMap<u64, AbortHandle> = HashMap::new();
    loop {
        let order = tokio::select! {
            biased;
            Some(done) = posts.next() => {
                if let Some(id) = done {
                    requests.remove(&id);
                }
                continue;
            }
            order = orders.next() => order,
        };
        let room = posts.len().saturating_sub(requests.len()) < ASIDE;
        match order {
            None => break,
            Some(Order::Forget { id, tell }) => {
                if let Some(post) = requests.remove(&id) {
                    post.abort();
                }
                // In the modern era the end of the answer's stream says it.
                if tell && room && talk.era() == Era::Legacy {
                    let body = cancelled(id);
                    let (talk, method) = (talk.clone(), method::CANCELLED);
                    posts.spawn(async move { post::notify(&talk, method, body).await });
                }
            }
            Some(Order::Send(parcel)) => {
                let (what, body) = parcel.take();
                match what {
                    What::Request { id, method, name, params } => {
                        let request = post::Request { id, method, name, params, body };
                        let post = posts.spawn(post::request(talk.clone(), request));
                        requests.insert(id, post);
                    }
                    What::Notification { method } if &*method == method::INITIALIZED => {
                        // Nothing may be asked before the server knows.
                        tokio::select! {
                            _ = post::notify(&talk, &method, body) => {}
                            () = orders.closed() => break,
                        }
                        // Some servers lose what they say before they have a stream to say it on.
                        let (opened, open) = oneshot::channel();
                        posts.spawn(listen::listen(talk.clone(), opened));
                        tokio::select! {
                            _ = timeout(OPENING, open) => {}
                            () = orders.closed() => break,
                        }
                    }
                    What::Notification { .. } | What::Response if !room => {
                        let server = talk.inlet.server();
                        tracing::debug!(server, "it takes nothing, so it loses a message");
                    }
                    What::Notification { method } => {
                        let talk = talk.clone();
                        posts.spawn(async move { post::notify(&talk, &method, body).await });
                    }
                    What::Response => {
                        let talk = talk.clone();
                        posts.spawn(async move { post::notify(&talk, "", body).await });
                    }
                }
            }
        }
    }
    drop(posts);
    talk.leave().await;
    drop(alive);
}

/// The notification that a request is no longer wanted.
pub(super) fn cancelled(id: u64) -> Bytes {
    let mut body = Vec::new();
    let params = serde_json::json!({ "requestId": id });
    // Text and numbers can always be written.
    drop(envelope::write_notification(&mut body, method::CANCELLED, Some(&params)));
    body.truncate(body.trim_ascii_end().len());
    body.into()
}
