//! The WebSocket transport: one text frame per message.

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
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::HttpTarget;
use super::http::cancelled_notification;
use crate::error::UnavailableReason;
use crate::session::{CoopBudget, InboundSink, OutboundCommand, OutboundReceiver, RequestError};
use crate::text::display_safe;

/// Timeout for the close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The WebSocket subprotocol of MCP.
const SUBPROTOCOL: &str = "mcp";

/// Carries messages until the session or the connection closes.
pub(super) async fn run(
    target: Arc<HttpTarget>,
    inbound: InboundSink,
    outbound: OutboundReceiver,
    alive: oneshot::Sender<()>,
) {
    let opened = tokio::select! {
        opened = connect(&target, inbound.max_message_bytes()) => opened,
        () = outbound.closed() => return,
    };
    let reason = match opened {
        Ok(socket) => exchange_messages(socket, &inbound, &outbound).await,
        Err(reason) => Some(reason),
    };
    if let Some(reason) = reason {
        inbound.close(reason);
    }
    drop(alive);
}

async fn connect(
    target: &HttpTarget,
    limit: usize,
) -> Result<WebSocketStream<Upgraded>, UnavailableReason> {
    let rejected = |message: String| UnavailableReason::ConnectionRejected(message.into());
    let key = generate_key();
    let value = HeaderValue::from_static;
    let request = target
        .client
        .get(target.url.configured.clone())
        .headers(target.headers.clone())
        .header(CONNECTION, value("Upgrade"))
        .header(UPGRADE, value("websocket"))
        .header(SEC_WEBSOCKET_VERSION, value("13"))
        .header(SEC_WEBSOCKET_PROTOCOL, value(SUBPROTOCOL))
        .header(SEC_WEBSOCKET_KEY, &key);
    let response = target.send(request).await.map_err(|error| match error {
        RequestError::Unavailable { reason, .. } => reason,
        RequestError::ErrorResponse(_)
        | RequestError::Protocol(_)
        | RequestError::TooLarge { .. }
        | RequestError::Timeout => UnavailableReason::ClosedOutput,
    })?;
    let status = response.status();
    if status != StatusCode::SWITCHING_PROTOCOLS {
        return Err(rejected(format!("HTTP {} instead of a WebSocket upgrade", status.as_u16())));
    }
    let header = |name| response.headers().get(name).map(HeaderValue::as_bytes);
    if header(SEC_WEBSOCKET_ACCEPT) != Some(derive_accept_key(key.as_bytes()).as_bytes()) {
        return Err(rejected("invalid WebSocket handshake response".to_owned()));
    }
    let subprotocol = header(SEC_WEBSOCKET_PROTOCOL);
    if subprotocol.is_some_and(|subprotocol| subprotocol != SUBPROTOCOL.as_bytes()) {
        return Err(rejected(format!("subprotocol `{SUBPROTOCOL}` not supported")));
    }
    let upgraded = response.upgrade().await.map_err(|_| {
        UnavailableReason::ConnectionLost("connection closed during the upgrade".into())
    })?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(limit))
        .max_frame_size(Some(limit))
        // The session's queue limits the bytes to write.
        .max_write_buffer_size(limit.saturating_mul(2));
    Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config)).await)
}

/// Returns the reason with the words of the server's close frame, which has at most 123 bytes.
fn closed_by_server(frame: Option<&CloseFrame>) -> UnavailableReason {
    let reason = match frame {
        Some(CloseFrame { code, reason }) if !reason.is_empty() => format!(": {code} {reason}"),
        Some(CloseFrame { code, .. }) => format!(" with {code}"),
        None => String::new(),
    };
    let text = format!("WebSocket closed by the server{reason}");
    UnavailableReason::ConnectionLost(display_safe(&text).into())
}

/// Sends and receives concurrently. Returns `None` after the session closed.
async fn exchange_messages(
    socket: WebSocketStream<Upgraded>,
    inbound: &InboundSink,
    outbound: &OutboundReceiver,
) -> Option<UnavailableReason> {
    let (mut sink, mut stream) = socket.split();
    let receiving = async {
        let mut budget = CoopBudget::default();
        loop {
            let message = match stream.next().await {
                Some(Ok(Message::Close(frame))) => return closed_by_server(frame.as_ref()),
                None => return closed_by_server(None),
                Some(Err(error)) => {
                    return UnavailableReason::ConnectionLost(
                        display_safe(&error.to_string()).into(),
                    );
                }
                Some(Ok(message)) => message,
            };
            // The library responds to pings, but pings count as work.
            let bytes = message.len();
            if message.is_text() || message.is_binary() {
                inbound.receive_message(&message.into_data()).await;
            } else {
                inbound.count_ping(bytes as u64).await;
            }
            budget.consume(bytes).await;
        }
    };
    let sending = async {
        while let Some(command) = outbound.next().await {
            let body = match command {
                OutboundCommand::Forget { notify_server: false, .. } => continue,
                OutboundCommand::Forget { id, .. } => cancelled_notification(id),
                OutboundCommand::Send(outgoing) => outgoing.into_parts().1,
            };
            // The body is JSON of this host and therefore UTF-8.
            let Ok(text) = Utf8Bytes::try_from(body) else { continue };
            if let Err(error) = sink.send(Message::Text(text)).await {
                return Some(UnavailableReason::ConnectionLost(
                    display_safe(&error.to_string()).into(),
                ));
            }
        }
        let _ = sink.send(Message::Close(None)).await;
        None
    };
    let leaving = async {
        outbound.closed().await;
        sleep(CLOSE_TIMEOUT).await;
    };
    tokio::select! {
        lost = receiving => Some(lost),
        ended = sending => ended,
        // The server does not read the close frame.
        () = leaving => None,
    }
}
