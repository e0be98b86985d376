//! The routing of a fixture server's output lines to streams.

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::mpsc::Sender;

use super::fault::FaultAction;

/// Maximum number of messages queued for a stream that is not open yet; the oldest are removed
/// first.
const MAX_WAITING_MESSAGES: usize = 64;

/// Maximum number of open requests; the oldest requests are removed first.
const MAX_OPEN_REQUESTS: usize = 4096;

/// The `_meta` key of a notification's subscription.
const SUBSCRIPTION_KEY: &str = "io.modelcontextprotocol/subscriptionId";

#[derive(Clone, Debug)]
pub(super) struct OutboundMessage {
    /// The line of the fixture server without its line end.
    pub(super) text: Bytes,
    pub(super) fault: Option<FaultAction>,
    /// Whether the message ends its stream.
    pub(super) is_last: bool,
}

/// A request without a response.
#[derive(Debug)]
pub(super) struct RequestRoute {
    pub(super) serial: u64,
    pub(super) id: Value,
    pub(super) progress_token: Option<Value>,
    /// Whether the stream takes only messages with its subscription id.
    pub(super) is_subscription: bool,
    /// Whether the stream takes a single message, the response.
    pub(super) single_message: bool,
    /// The request's own stream; without it, the response goes to the general stream.
    pub(super) sender: Option<Sender<OutboundMessage>>,
    pub(super) fault: Option<FaultAction>,
}

/// The streams of one session.
#[derive(Debug, Default)]
pub(super) struct Routes {
    open_requests: Vec<RequestRoute>,
    general_stream: Option<Sender<OutboundMessage>>,
    waiting_messages: VecDeque<OutboundMessage>,
    abandoned_ids: VecDeque<Value>,
    ended: bool,
}

impl Routes {
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn add(&mut self, entry: RequestRoute) {
        // After the end no message follows: the drop of the sender ends the stream.
        if !self.ended {
            self.abandoned_ids.retain(|id| *id != entry.id);
            if self.open_requests.len() == MAX_OPEN_REQUESTS {
                self.open_requests.remove(0);
            }
            self.open_requests.push(entry);
        }
    }

    /// Removes a request; returns whether it was open. A later response is discarded.
    pub(super) fn remove(&mut self, serial: u64) -> bool {
        let index = self.open_requests.iter().position(|entry| entry.serial == serial);
        index.is_some_and(|index| {
            if self.abandoned_ids.len() == MAX_WAITING_MESSAGES {
                self.abandoned_ids.pop_front();
            }
            self.abandoned_ids.push_back(self.open_requests.remove(index).id);
            true
        })
    }

    /// Opens the stream for messages that belong to no request; returns the queued messages.
    pub(super) fn open_general_stream(
        &mut self,
        to: Sender<OutboundMessage>,
    ) -> Vec<OutboundMessage> {
        if !self.ended {
            self.general_stream = Some(to);
        }
        self.waiting_messages.drain(..).collect()
    }

    /// Ends every stream after the exit of the fixture server.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.open_requests.clear();
        self.general_stream = None;
    }

    /// Returns the stream of a line; none if the message is queued.
    pub(super) fn route(
        &mut self,
        text: Bytes,
    ) -> Option<(Sender<OutboundMessage>, OutboundMessage)> {
        let message = serde_json::from_slice(&text).unwrap_or(Value::Null);
        if message.get("method").is_none() && self.is_abandoned(&message) {
            return None;
        }
        let mut out = OutboundMessage { text, fault: None, is_last: false };
        let named_request = match message.get("method") {
            Some(_) => self.request_for_notification(&message["params"]),
            None => self.request_for_response(&message),
        };
        if message.get("method").is_none()
            && let Some(index) = named_request.or_else(|| {
                self.latest_request(true).filter(|&at| self.open_requests[at].single_message)
            })
        {
            let entry = self.open_requests.remove(index);
            (out.fault, out.is_last) = (entry.fault, true);
            return self.deliver_or_store(entry.sender, out);
        }
        let index = named_request.or_else(|| self.latest_request(false));
        let to = index.and_then(|index| self.open_requests[index].sender.clone());
        self.deliver_or_store(to, out)
    }

    fn deliver_or_store(
        &mut self,
        to: Option<Sender<OutboundMessage>>,
        out: OutboundMessage,
    ) -> Option<(Sender<OutboundMessage>, OutboundMessage)> {
        let open = self.general_stream.as_ref().filter(|general| !general.is_closed());
        if let Some(to) = to.or_else(|| open.cloned()) {
            return Some((to, out));
        }
        if self.waiting_messages.len() == MAX_WAITING_MESSAGES {
            self.waiting_messages.pop_front();
        }
        self.waiting_messages.push_back(out);
        None
    }

    /// Whether the message is the response to a cancelled request.
    fn is_abandoned(&mut self, message: &Value) -> bool {
        let index = self.abandoned_ids.iter().position(|id| message.get("id") == Some(id));
        index.is_some_and(|index| self.abandoned_ids.remove(index).is_some())
    }

    fn position_of(&self, fits: impl Fn(&RequestRoute) -> bool) -> Option<usize> {
        self.open_requests.iter().rposition(fits)
    }

    /// Returns the request of a response, or of an array that contains a response.
    fn request_for_response(&self, message: &Value) -> Option<usize> {
        let ids = message.as_array().map_or(std::slice::from_ref(message), Vec::as_slice);
        ids.iter().find_map(|id| self.position_of(|entry| id.get("id") == Some(&entry.id)))
    }

    fn request_for_notification(&self, params: &Value) -> Option<usize> {
        let subscription = params.get("_meta").and_then(|meta| meta.get(SUBSCRIPTION_KEY));
        let token = params.get("progressToken");
        let cancelled = params.get("requestId");
        self.position_of(|entry| {
            !entry.single_message
                && (subscription == Some(&entry.id)
                    || cancelled == Some(&entry.id)
                    || token.is_some() && token == entry.progress_token.as_ref())
        })
    }

    /// Returns the most recent request whose stream takes unrelated messages.
    fn latest_request(&self, single: bool) -> Option<usize> {
        self.position_of(|entry| !entry.is_subscription && (single || !entry.single_message))
    }
}
