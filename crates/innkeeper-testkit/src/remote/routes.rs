//! Which stream each line of a fixture server belongs on.

use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::mpsc::Sender;

use super::fault::Act;

/// Messages kept for a stream that has not been opened yet; the oldest are lost first.
const KEPT: usize = 64;

/// Requests without an answer that are known; the oldest are forgotten first.
const OPEN: usize = 4096;

/// Key of `_meta` that names the stream of changes a notification belongs to.
const SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

/// A message on its way to the client.
#[derive(Clone, Debug)]
pub(super) struct Out {
    /// The line as the fixture server wrote it, without its end.
    pub(super) text: Bytes,
    /// What goes wrong with it.
    pub(super) act: Option<Act>,
    /// Whether it ends the stream it is on.
    pub(super) last: bool,
}

/// A request that has not been answered.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) serial: u64,
    pub(super) id: Value,
    pub(super) token: Option<Value>,
    /// Whether its stream takes only what names it.
    pub(super) listens: bool,
    /// Whether it takes one message, the answer.
    pub(super) single: bool,
    /// The stream of its own; without one the answer goes where everything goes.
    pub(super) to: Option<Sender<Out>>,
    pub(super) act: Option<Act>,
}

/// The streams of one conversation.
#[derive(Debug, Default)]
pub(super) struct Routes {
    open: Vec<Entry>,
    general: Option<Sender<Out>>,
    waiting: VecDeque<Out>,
    abandoned: VecDeque<Value>,
    ended: bool,
}

impl Routes {
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn add(&mut self, entry: Entry) {
        // After the end nothing comes any more: the stream ends by being dropped here.
        if !self.ended {
            self.abandoned.retain(|id| *id != entry.id);
            if self.open.len() == OPEN {
                self.open.remove(0);
            }
            self.open.push(entry);
        }
    }

    /// Whether a request was still waiting for its answer; should one come yet, it is lost.
    pub(super) fn remove(&mut self, serial: u64) -> bool {
        let place = self.open.iter().position(|entry| entry.serial == serial);
        place.is_some_and(|place| {
            if self.abandoned.len() == KEPT {
                self.abandoned.pop_front();
            }
            self.abandoned.push_back(self.open.remove(place).id);
            true
        })
    }

    /// Opens the stream for what belongs to no request; returns what has waited for it.
    pub(super) fn open_general(&mut self, to: Sender<Out>) -> Vec<Out> {
        if !self.ended {
            self.general = Some(to);
        }
        self.waiting.drain(..).collect()
    }

    /// Ends every stream: the fixture server says nothing more.
    pub(super) fn end(&mut self) {
        self.ended = true;
        self.open.clear();
        self.general = None;
    }

    /// Where a line goes; none when it waits for a stream.
    pub(super) fn route(&mut self, text: Bytes) -> Option<(Sender<Out>, Out)> {
        let message = serde_json::from_slice(&text).unwrap_or(Value::Null);
        if message.get("method").is_none() && self.is_abandoned(&message) {
            return None;
        }
        let mut out = Out { text, act: None, last: false };
        let named = match message.get("method") {
            Some(_) => self.named_by(&message["params"]),
            None => self.answered_by(&message),
        };
        if message.get("method").is_none()
            && let Some(place) =
                named.or_else(|| self.latest(true).filter(|&at| self.open[at].single))
        {
            let entry = self.open.remove(place);
            (out.act, out.last) = (entry.act, true);
            return self.hand_over(entry.to, out);
        }
        let place = named.or_else(|| self.latest(false));
        let to = place.and_then(|place| self.open[place].to.clone());
        self.hand_over(to, out)
    }

    fn hand_over(&mut self, to: Option<Sender<Out>>, out: Out) -> Option<(Sender<Out>, Out)> {
        let open = self.general.as_ref().filter(|general| !general.is_closed());
        if let Some(to) = to.or_else(|| open.cloned()) {
            return Some((to, out));
        }
        if self.waiting.len() == KEPT {
            self.waiting.pop_front();
        }
        self.waiting.push_back(out);
        None
    }

    /// Whether this answers a request nobody waits for any more.
    fn is_abandoned(&mut self, message: &Value) -> bool {
        let place = self.abandoned.iter().position(|id| message.get("id") == Some(id));
        place.is_some_and(|place| self.abandoned.remove(place).is_some())
    }

    fn place(&self, fits: impl Fn(&Entry) -> bool) -> Option<usize> {
        self.open.iter().rposition(fits)
    }

    /// The request an answer, or an array with an answer, is for.
    fn answered_by(&self, message: &Value) -> Option<usize> {
        let ids = message.as_array().map_or(std::slice::from_ref(message), Vec::as_slice);
        ids.iter().find_map(|one| self.place(|entry| one.get("id") == Some(&entry.id)))
    }

    /// The request a notification speaks of.
    fn named_by(&self, params: &Value) -> Option<usize> {
        let subscription = params.get("_meta").and_then(|meta| meta.get(SUBSCRIPTION));
        let token = params.get("progressToken");
        let cancelled = params.get("requestId");
        self.place(|entry| {
            !entry.single
                && (subscription == Some(&entry.id)
                    || cancelled == Some(&entry.id)
                    || token.is_some() && token == entry.token.as_ref())
        })
    }

    /// The request last opened that takes what names nobody.
    fn latest(&self, single: bool) -> Option<usize> {
        self.place(|entry| !entry.listens && (single || !entry.single))
    }
}
