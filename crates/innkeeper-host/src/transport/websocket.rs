//! MCP over a WebSocket: one text frame a message, opened by an ordinary HTTP request.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use reqwest::header::{
    CONNECTION, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use reqwest::{StatusCode, Upgraded};
use tokio::sync::oneshot;
use tokio::time::sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::Place;
use super::http::cancelled;
use crate::error::Lost;
use crate::server::session::{Fault, Inlet, Order, Orders, Turns};
use crate::text::display_safe;

/// How long a server may take to read that we leave.
const GOODBYE: Duration = Duration::from_secs(1);

/// The subprotocol of MCP.
const SUBPROTOCOL: &str = "mcp";

/// Carries messages until the session closes or the connection does.
pub(super) async fn carry(
    place: Arc<Place>,
    inlet: Inlet,
    orders: Orders,
    alive: oneshot::Sender<()>,
) {
    let opened = tokio::select! {
        opened = open(&place, inlet.limit()) => opened,
        () = orders.closed() => return,
    };
    let lost = match opened {
        Ok(socket) => talk(socket, &inlet, &orders).await,
        Err(lost) => Some(lost),
    };
    if let Some(lost) = lost {
        inlet.close(lost);
    }
    drop(alive);
}

async fn open(place: &Place, limit: usize) -> Result<WebSocketStream<Upgraded>, Lost> {
    let refuses = |why: String| Lost::Refused(why.into());
    let key = generate_key();
    let word = HeaderValue::from_static;
    let request = place
        .client
        .get(place.url.clone())
        .headers(place.headers.clone())
        .header(CONNECTION, word("Upgrade"))
        .header(UPGRADE, word("websocket"))
        .header(SEC_WEBSOCKET_VERSION, word("13"))
        .header(SEC_WEBSOCKET_PROTOCOL, word(SUBPROTOCOL))
        .header(SEC_WEBSOCKET_KEY, &key);
    let response = place.send(request).await.map_err(|fault| match fault {
        Fault::Lost { reason, .. } => reason,
        Fault::Answer(_) | Fault::Protocol(_) | Fault::Late => Lost::ClosedOutput,
    })?;
    let status = response.status();
    if status != StatusCode::SWITCHING_PROTOCOLS {
        return Err(refuses(format!("it answered with HTTP {} to a WebSocket", status.as_u16())));
    }
    let header = |name| response.headers().get(name).map(HeaderValue::as_bytes);
    if header(SEC_WEBSOCKET_ACCEPT) != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
        return Err(refuses("its answer does not open a WebSocket".to_owned()));
    }
    let spoken = header(SEC_WEBSOCKET_PROTOCOL);
    if spoken.is_some_and(|spoken| spoken != SUBPROTOCOL.as_bytes()) {
        return Err(refuses(format!("it does not speak the subprotocol `{SUBPROTOCOL}`")));
    }
    let upgraded = response.upgrade().await.map_err(|_| Lost::Broken("it hung up".into()))?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit))
        // What we write is bounded by the session's queue.
        .max_write_buffer_size(limit.saturating_mul(2));
    Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await)
}

/// Both directions at once; `None` once the session is closed.
async fn talk(socket: WebSocketStream<Upgraded>, inlet: &Inlet, orders: &Orders) -> Option<Lost> {
    let (mut sink, mut stream) = socket.split();
    let receiving = async {
        let mut turns = Turns::default();
        loop {
            let message = match stream.next().await {
                Some(Ok(Message::Close(_))) | None => {
                    return Lost::Broken("it closed the WebSocket".into());
                }
                Some(Err(error)) => return Lost::Broken(display_safe(&error.to_string()).into()),
                Some(Ok(message)) => message,
            };
            // Pings are answered by the library, and are work all the same.
            let bytes = message.len();
            if message.is_text() || message.is_binary() {
                inlet.message(&message.into_data()).await;
            } else {
                inlet.pinged(bytes as u64).await;
            }
            turns.took(bytes).await;
        }
    };
    let sending = async {
        while let Some(order) = orders.next().await {
            let body = match order {
                Order::Forget { tell: false, .. } => continue,
                Order::Forget { id, .. } => cancelled(id),
                Order::Send(parcel) => parcel.take().1,
            };
            // It is JSON of ours.
            let Ok(text) = Utf8Bytes::try_from(body) else { continue };
            if let Err(error) = sink.send(Message::Text(text)).await {
                return Some(Lost::Broken(display_safe(&error.to_string()).into()));
            }
        }
        drop(sink.send(Message::Close(None)).await);
        None
    };
    let leaving = async {
        orders.closed().await;
        sleep(GOODBYE).await;
    };
    tokio::select! {
        lost = receiving => Some(lost),
        ended = sending => ended,
        // It does not even read the farewell.
        () = leaving => None,
    }
}
