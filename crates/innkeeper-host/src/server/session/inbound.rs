//! What a server sends: answers to their callers, progress in order, changes coalesced, the rest counted.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use innkeeper_protocol::envelope::{Incoming, Message};
use innkeeper_protocol::modern::META_SUBSCRIPTION_ID;
use innkeeper_protocol::view::{LogMessage, ProgressNotification};
use innkeeper_protocol::{
    ErrorObject, Frame, Malformed, MalformedKind, RequestId, envelope, method, skim,
};
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::changes::{PROMPTS, RESOURCES, TOOLS};
use super::{Fault, Progress, Shared, asked};
use crate::error::{Lost, ProtocolFault};
use crate::event::Event;
use crate::text::shown;

/// How much of a name that is not known is shown in the log, in characters.
const SHOWN: usize = 64;

/// Useless lines in a row that are put up with: no banner or log of a start is as long.
pub(super) const USELESS: u32 = 1000;

/// How long after an answer over many lines the same one may follow in a single line.
const PRINTED: Duration = Duration::from_millis(100);

/// The longest log message that is handed on, in bytes.
const LONGEST_MESSAGE: usize = 64 << 10;

/// Whether somebody waits for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Awaited,
    Unasked,
    Request,
}

impl Shared {
    /// Waits, bounded, until more may be read.
    pub(super) async fn settle(&self) {
        if self.budget.is_full() {
            self.budget.settle().await;
        }
        if self.pace.is_over() {
            if self.pace.is_news() {
                tracing::warn!(
                    server = &*self.server,
                    "sends so much unasked that it is read at a limited pace"
                );
            }
            self.pace.rest().await;
        }
    }

    /// Takes one line.
    pub(super) fn receive(this: &Arc<Self>, frame: Frame<'_>) {
        match frame {
            Frame::Line(line) => Self::message(this, line),
            Frame::TooLong { head } => this.too_long(head),
        }
    }

    /// Takes one message, or several in an array.
    pub(super) fn message(this: &Arc<Self>, text: &[u8]) {
        match envelope::parse(text) {
            Ok(Message::One(incoming)) => this.paid(Self::take(this, incoming), text.len()),
            Ok(Message::Batch(items)) => {
                let mut awaited = false;
                for item in items {
                    let sort = match item {
                        Ok(incoming) => Self::take(this, incoming),
                        Err(malformed) => {
                            this.malformed(malformed);
                            Sort::Unasked
                        }
                    };
                    this.paid(sort, 0);
                    awaited |= sort == Sort::Awaited;
                }
                if !awaited {
                    this.pace.count(text.len() as u64);
                }
            }
            Err(malformed) => {
                this.pace.count(text.len() as u64);
                this.malformed(malformed);
                Self::spread(this, text);
            }
        }
    }

    /// Counts a message of this length that is of no use to anybody who waits.
    fn paid(&self, sort: Sort, length: usize) {
        match sort {
            Sort::Awaited => {}
            Sort::Unasked => self.pace.count(length as u64),
            Sort::Request => self.pace.count_request(length as u64),
        }
    }

    fn take(this: &Arc<Self>, incoming: Incoming<'_>) -> Sort {
        if this.useless.load(Ordering::Relaxed) != 0 {
            this.useless.store(0, Ordering::Relaxed);
        }
        if !this.heard.initialized() {
            // Only the reader sets it.
            drop(this.heard.set(()));
        }
        match incoming {
            Incoming::Response { id, outcome } => this.answer(&id, outcome),
            Incoming::Request { id, method, params } => {
                Self::request(this, id, &method, params);
                Sort::Request
            }
            Incoming::Notification { method, params } => {
                this.notification(&method, params);
                Sort::Unasked
            }
        }
    }

    fn answer(&self, id: &RequestId, outcome: Result<&RawValue, ErrorObject>) -> Sort {
        let Some(waiter) = id.as_ours().and_then(|ours| self.pending.take(ours)) else {
            // Most come after a deadline or a cancellation, which the log has told already.
            self.noise.fetch_add(1, Ordering::Relaxed);
            let id = id.to_string();
            let id = &*shown(&id, SHOWN);
            tracing::debug!(server = &*self.server, id, "answer nobody waits for");
            return Sort::Unasked;
        };
        let answer = match outcome {
            Ok(result) => self
                .budget
                .hold(result.get().len(), || result.to_owned())
                .ok_or(Fault::Lost { reason: Lost::ResultsNotTaken, sent: true }),
            Err(error) => Err(Fault::Answer(error)),
        };
        // The caller may have gone in this moment; then the answer is late and dropped.
        drop(waiter.send(answer));
        Sort::Awaited
    }

    fn request(this: &Arc<Self>, id: RequestId, method: &str, params: Option<&RawValue>) {
        if this.is_modern() {
            this.noise("request from a server of the modern era", None);
        } else if method == method::PING {
            this.outlet.answer(&id, &serde_json::json!({}));
        } else {
            asked::ask(this, id, method, params);
        }
    }

    fn notification(&self, method: &str, params: Option<&RawValue>) {
        match method {
            method::PROGRESS => self.progress(params),
            method::TOOLS_LIST_CHANGED => self.changes.tell(TOOLS),
            method::PROMPTS_LIST_CHANGED => self.changes.tell(PROMPTS),
            method::RESOURCES_LIST_CHANGED => self.changes.tell(RESOURCES),
            method::RESOURCES_UPDATED => self.updated(params),
            method::SUBSCRIPTIONS_ACKNOWLEDGED => self.acknowledged(params),
            method::MESSAGE => self.log(params),
            // Whoever polls looks at once; what it says is not believed unasked.
            method::TASKS_STATUS | method::TASKS_CHANGED => self.task_told.notify_waiters(),
            _ => {
                let method = &*shown(method, SHOWN);
                tracing::debug!(server = &*self.server, method, "notification");
            }
        }
    }

    fn updated(&self, params: Option<&RawValue>) {
        let uri = params.and_then(|params| skim::member(params.get(), "uri"));
        match uri.and_then(|uri| serde_json::from_str(uri).ok()) {
            Some(uri) => self.changes.update(uri),
            None => self.noise("update of a resource without its URI", None),
        }
    }

    fn acknowledged(&self, params: Option<&RawValue>) {
        let meta = params.and_then(|params| skim::member(params.get(), "_meta"));
        let id = meta.and_then(|meta| skim::member(meta, META_SUBSCRIPTION_ID));
        match id.and_then(RequestId::from_raw).as_ref().and_then(RequestId::as_ours) {
            Some(id) => self.changes.acknowledge(id),
            None => self.noise("acknowledgement of no request", None),
        }
    }

    /// Hands a log message on, if anybody listens.
    fn log(&self, params: Option<&RawValue>) {
        if !self.events.wanted() {
            return;
        }
        let short = params.filter(|params| params.get().len() <= LONGEST_MESSAGE);
        match short.and_then(|params| LogMessage::read(params).ok()) {
            Some(LogMessage { level, logger, data }) => {
                let server = self.server.clone();
                self.events.publish(Event::Message { server, level, logger, data });
            }
            None => self.noise("log message that is too long or cannot be read", None),
        }
    }

    fn progress(&self, params: Option<&RawValue>) {
        let read = params.and_then(|params| ProgressNotification::read(params).ok());
        let Some(told) = read else {
            self.noise("progress that cannot be read", None);
            return;
        };
        let id = told.progress_token.as_ours();
        let Some(listener) = id.and_then(|id| self.pending.progress(id, told.progress)) else {
            self.noise("progress that goes back, or that nobody waits for", None);
            return;
        };
        let Some(listener) = listener else { return };
        let progress =
            Progress { progress: told.progress, total: told.total, message: told.message };
        if listener.try_send(progress).is_err() {
            self.noise("progress that its listener did not take in time", None);
        }
    }

    fn malformed(&self, malformed: Malformed) {
        let response =
            malformed.looks_like_response || malformed.kind == MalformedKind::NeitherResultNorError;
        let waiter = response
            .then_some(malformed.id.as_ref())
            .flatten()
            .and_then(RequestId::as_ours)
            .and_then(|id| self.pending.take(id));
        self.noise("malformed message", Some(&malformed));
        if waiter.is_none() && self.useless.fetch_add(1, Ordering::Relaxed) >= USELESS {
            self.close(Lost::Noise);
        }
        if let Some(waiter) = waiter {
            let fault = Fault::Protocol(ProtocolFault::Malformed(malformed));
            drop(waiter.send(Err(fault)));
        }
    }

    /// A line that may be part of an answer over many: its caller need not wait for the deadline,
    /// only as long as the answer itself may take to come after it was printed for people to read.
    fn spread(this: &Arc<Self>, line: &[u8]) {
        let id = this.spread.lock().unwrap_or_else(PoisonError::into_inner).line(line);
        let Some(number) = id.as_ref().and_then(RequestId::as_ours) else { return };
        let shared = Arc::clone(this);
        this.asked.tasks().spawn(async move {
            sleep(PRINTED).await;
            let Some(waiter) = shared.pending.take(number) else { return };
            let kind = MalformedKind::MultiLineJson;
            let malformed =
                Malformed { id, looks_like_response: true, kind, detail: String::new() };
            let fault = Fault::Protocol(ProtocolFault::Malformed(malformed));
            drop(waiter.send(Err(fault)));
        });
    }

    pub(super) fn too_long(&self, head: &[u8]) {
        let (id, _) = innkeeper_protocol::skim::top_level_id(head);
        self.noise("line over the limit", None);
        let waiter = id.as_ref().and_then(RequestId::as_ours).and_then(|id| self.pending.take(id));
        if let Some(waiter) = waiter {
            let fault = ProtocolFault::TooLarge { limit: self.limits.line };
            drop(waiter.send(Err(Fault::Protocol(fault))));
        }
    }

    fn noise(&self, what: &'static str, detail: Option<&Malformed>) {
        let count = self.noise.fetch_add(1, Ordering::Relaxed) + 1;
        // Every one at first, then each power of two: a flood cannot flood the log.
        if count <= 16 || count.is_power_of_two() {
            let detail = detail.map(ToString::to_string);
            tracing::warn!(server = &*self.server, what, detail, count, "unusable message");
        }
    }
}
