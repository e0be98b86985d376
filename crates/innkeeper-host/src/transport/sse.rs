//! The older HTTP transport: one stream of events from the server, and an address to post to.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use innkeeper_protocol::method;
use innkeeper_protocol::sse::{SseDecoder, SseEvent};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use reqwest::{Response, Url};
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

use super::Place;
use super::http::{cancelled, refused, words};
use crate::audit::Fact;
use crate::error::Lost;
use crate::server::session::{Fault, Inlet, Order, Orders, Turns, What};
use crate::tasks::Group;

/// Messages on their way at once that are no requests: each needs a connection of its own, and others
/// wait in their queue. Requests are as many as the server may have at once.
const AT_ONCE: usize = 64;

/// How long a server may take to say that it has a message that is no request; for a request it may
/// take as long as somebody waits for the answer, which comes on the stream.
const TAKEN: Duration = Duration::from_secs(30);

/// Carries messages until the session closes or the stream ends.
pub(super) async fn carry(
    place: Arc<Place>,
    inlet: Inlet,
    orders: Orders,
    alive: oneshot::Sender<()>,
) {
    let (found, endpoint) = watch::channel(None);
    let inlet = Arc::new(inlet);
    let lost = {
        let receiving = receive(&place, &inlet, &found);
        let sending = send(&place, &inlet, &orders, endpoint);
        tokio::select! {
            biased;
            lost = receiving => Some(lost),
            () = sending => None,
        }
    };
    if let Some(lost) = lost {
        inlet.close(lost);
    }
    drop(alive);
}

/// Reads the stream to its end; returns why there is no more.
async fn receive(place: &Place, inlet: &Inlet, found: &watch::Sender<Option<Url>>) -> Lost {
    let events = HeaderValue::from_static("text/event-stream");
    let mut headers = place.headers.clone();
    headers.insert(ACCEPT, events);
    let opened = place.send(place.client.get(place.url.clone()).headers(headers)).await;
    let response = match opened {
        Ok(response) => response,
        Err(fault) => return lost(fault),
    };
    if !response.status().is_success() {
        return lost(refused(response).await);
    }
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    if !kind.starts_with(b"text/event-stream") {
        return Lost::Refused("its address gives no stream of events".into());
    }
    match read(place, inlet, response, found).await {
        Ok(()) => Lost::Broken("its stream of events ended".into()),
        Err(lost) => lost,
    }
}

async fn read(
    place: &Place,
    inlet: &Inlet,
    mut response: Response,
    found: &watch::Sender<Option<Url>>,
) -> Result<(), Lost> {
    let mut decoder = SseDecoder::new(inlet.limit());
    let mut turns = Turns::default();
    while let Some(chunk) = response.chunk().await.map_err(|error| Lost::Broken(words(&error)))? {
        decoder.feed(&chunk);
        while let Some(event) = decoder.next_event() {
            match event {
                SseEvent::Message { name: "endpoint", data, .. } => {
                    let endpoint = endpoint(&place.url, data)
                        .inspect_err(|why| Fact::AddressRefused { why }.tell(inlet.server()))
                        .map_err(Lost::Refused)?;
                    found.send_replace(Some(endpoint));
                }
                SseEvent::Message { name: "message", data, .. } => inlet.message(data).await,
                SseEvent::Message { .. } => {}
                SseEvent::TooLong { head } => inlet.too_long(head).await,
            }
        }
        if decoder.is_dropping() {
            inlet.dropped(chunk.len() as u64).await;
        }
        turns.took(chunk.len()).await;
    }
    Ok(())
}

/// Where to post to. Another origin would get the headers that are meant for this one.
fn endpoint(base: &Url, data: &[u8]) -> Result<Url, Box<str>> {
    let text = std::str::from_utf8(data).unwrap_or_default().trim();
    let Ok(url) = base.join(text) else { return Err("its endpoint is no address".into()) };
    if url.origin() == base.origin() {
        Ok(url)
    } else {
        Err("its endpoint lies on another origin".into())
    }
}

/// Posts every message once the server has said where to; ends with the session.
async fn send(
    place: &Arc<Place>,
    inlet: &Arc<Inlet>,
    orders: &Orders,
    mut endpoint: watch::Receiver<Option<Url>>,
) {
    let url = tokio::select! {
        found = endpoint.wait_for(Option::is_some) => found.ok().and_then(|url| url.clone()),
        () = orders.closed() => None,
    };
    let Some(url) = url else { return };
    let (mut asked, mut told) = (Group::new(), Group::new());
    loop {
        let order = tokio::select! {
            biased;
            Some(()) = asked.next() => continue,
            Some(()) = told.next() => continue,
            order = orders.next(), if told.len() < AT_ONCE => order,
            () = orders.closed(), if told.len() >= AT_ONCE => None,
        };
        let (what, body) = match order {
            None => return,
            Some(Order::Forget { tell: false, .. }) => continue,
            Some(Order::Forget { id, .. }) => {
                (What::Notification { method: method::CANCELLED.into() }, cancelled(id))
            }
            Some(Order::Send(parcel)) => parcel.take(),
        };
        let first =
            matches!(&what, What::Notification { method } if &**method == method::INITIALIZED);
        let id = if let What::Request { id, .. } = what { Some(id) } else { None };
        let (place, inlet, url) = (place.clone(), inlet.clone(), url.clone());
        let post = async move {
            let posting = post(&place, url, body);
            match id {
                Some(id) => request(&inlet, id, posting).await,
                None if matches!(timeout(TAKEN, posting).await, Ok(Ok(()))) => {}
                None => tracing::debug!(server = inlet.server(), "not taken by the server"),
            }
        };
        if first {
            // Nothing may be asked before the server knows.
            post.await;
        } else {
            let group = if id.is_some() { &mut asked } else { &mut told };
            group.spawn(post);
        }
    }
}

/// Fails a request that the server does not take.
async fn request(inlet: &Inlet, id: u64, posting: impl Future<Output = Result<(), Fault>>) {
    tokio::select! {
        taken = posting => {
            if let Err(fault) = taken {
                inlet.fail(id, fault);
            }
        }
        () = inlet.until_unawaited(id) => {}
    }
}

async fn post(place: &Place, url: Url, body: Bytes) -> Result<(), Fault> {
    let json = HeaderValue::from_static("application/json");
    let headers = place.headers.clone();
    let post = place.client.post(url).headers(headers).header(CONTENT_TYPE, json).body(body);
    let response = place.send(post).await?;
    if response.status().is_success() { Ok(()) } else { Err(refused(response).await) }
}

/// Why there is no stream, in the words for a connection that is lost.
fn lost(fault: Fault) -> Lost {
    match fault {
        Fault::Lost { reason, .. } => reason,
        Fault::Protocol(fault) => Lost::Refused(fault.to_string().into()),
        Fault::Answer(error) => Lost::Refused(error.message.into()),
        Fault::Late => Lost::Broken("no answer in time".into()),
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use futures_util::FutureExt;
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::callback::Callbacks;
    use crate::event::Events;
    use crate::server::session::{Limits, Outgoing, Owner, Session};
    use crate::tasks::Tasks;

    /// Some servers answer a post only when its tool is done.
    #[tokio::test(start_paused = true)]
    async fn a_post_that_is_held_lasts_as_long_as_somebody_waits_for_the_answer() {
        let owner = Owner {
            server: "holds".into(),
            callbacks: Callbacks::default(),
            events: Events::new(),
            tasks: Tasks::default(),
        };
        let (session, inlet, _orders) = Session::carried(owner, Limits::default());
        let deadline = Instant::now() + Duration::from_hours(1);
        let outgoing = Outgoing::new(1, method::TOOLS_CALL, &(), deadline);
        let mut asking = Box::pin(session.request(outgoing));
        assert!(asking.as_mut().now_or_never().is_none());
        let long = TAKEN * 10;
        request(&inlet, 1, sleep(long).map(Ok)).await;
        assert!(asking.as_mut().now_or_never().is_none(), "the post is taken, the answer to come");
        drop(asking);
        let gone = Instant::now();
        request(&inlet, 1, pending()).await;
        assert!(gone.elapsed() <= TAKEN, "nobody waits any more");
    }
}
