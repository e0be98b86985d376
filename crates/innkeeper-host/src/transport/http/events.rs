//! Reads an SSE stream and tracks the position for resumption.

use std::collections::VecDeque;
use std::time::Duration;

use innkeeper_protocol::skim;
use innkeeper_protocol::sse::{SseDecoder, SseEvent};
use reqwest::Response;
use tokio::time::timeout;

use super::response_error::describe_error;
use super::session_fate::{ExchangeFailure, refused_session};
use crate::backoff::{self, INITIAL_BACKOFF, MAX_BACKOFF};
use crate::session::{CoopBudget, InboundSink};
use crate::text::display_safe;

/// Time to wait for the end of the stream after the response, so that the connection is reusable.
const STREAM_END_GRACE: Duration = Duration::from_millis(250);

/// Maximum number of characters shown of the reason that a server gives.
const MAX_WORDS_CHARS: usize = 200;

/// Number of remembered event ids: more than a server is likely to repeat.
const MAX_SEEN_EVENT_IDS: usize = 256;

/// Minimum delay before a request's stream is resumed, whatever the server sends. The delay doubles
/// up to [`INITIAL_BACKOFF`], the default, for each consecutive stream without a message: polling an
/// idle server ten times a second is useless.
const MIN_BACKOFF: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(super) enum StreamEnd {
    /// The request has its response.
    Responded,
    /// The first message says that the server does not know the session.
    SessionRefused(Box<ExchangeFailure>),
    /// The server closed the stream.
    Closed,
    /// The connection failed.
    Broken(Box<str>),
}

/// The position at which a stream can be resumed.
#[derive(Debug, Default)]
pub(super) struct ResumeState {
    pub(super) last_event_id: Option<String>,
    pub(super) retry: Option<Duration>,
    /// Whether the last stream contained data.
    pub(super) had_data: bool,
    /// The number of consecutive streams without a message.
    empty_streams: u32,
    /// What the server said about the end of the stream.
    pub(super) last_words: Option<Box<str>>,
    /// Whether the current stream resumes another stream.
    is_resumed: bool,
    seen_event_ids: VecDeque<Box<str>>,
}

impl ResumeState {
    /// Returns the delay before the stream of a request is resumed.
    pub(super) fn backoff(&self) -> Duration {
        let least =
            backoff::doubled(MIN_BACKOFF, self.empty_streams.saturating_sub(1), INITIAL_BACKOFF);
        self.retry.unwrap_or(INITIAL_BACKOFF).clamp(least, MAX_BACKOFF)
    }

    /// Returns whether an event is new. Only a resumed stream repeats events.
    fn is_new(&mut self, id: Option<&str>) -> bool {
        let Some(id) = id.filter(|id| !id.is_empty()) else { return true };
        let is_known = self.seen_event_ids.iter().any(|seen_id| &**seen_id == id);
        if !is_known {
            if self.seen_event_ids.len() == MAX_SEEN_EVENT_IDS {
                self.seen_event_ids.pop_front();
            }
            self.seen_event_ids.push_back(id.into());
        }
        !(is_known && self.is_resumed)
    }
}

/// Passes every message of a stream to the session, until the stream ends or the request has its
/// response.
pub(super) async fn read_events(
    inbound: &InboundSink,
    mut response: Response,
    request_id: Option<u64>,
    resume: &mut ResumeState,
) -> StreamEnd {
    let mut decoder = SseDecoder::new(inbound.max_message_bytes());
    let mut budget = CoopBudget::default();
    let is_answered = || request_id.is_some_and(|id| !inbound.is_awaited(id));
    resume.had_data = false;
    resume.empty_streams = resume.empty_streams.saturating_add(1);
    resume.is_resumed = resume.last_event_id.is_some();
    let mut may_refuse = !resume.is_resumed;
    loop {
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => {
                return if is_answered() { StreamEnd::Responded } else { StreamEnd::Closed };
            }
            Err(error) => {
                return if is_answered() {
                    StreamEnd::Responded
                } else {
                    StreamEnd::Broken(describe_error(&error))
                };
            }
        };
        resume.had_data = true;
        decoder.feed(&chunk);
        while let Some(event) = decoder.next_event() {
            match event {
                SseEvent::Message { name: "message", data, id }
                    if !data.trim_ascii().is_empty() && resume.is_new(id) =>
                {
                    resume.empty_streams = 0;
                    match error_text(data) {
                        Some(words) => resume.last_words = Some(words),
                        None => inbound.receive_http_message(data, request_id).await,
                    }
                    let is_first = std::mem::take(&mut may_refuse);
                    if is_first
                        && request_id.is_some_and(|id| inbound.is_awaited(id))
                        && let Some(failure) = refused_session(data, request_id)
                    {
                        return StreamEnd::SessionRefused(Box::new(failure));
                    }
                }
                SseEvent::Message { name: "error", data, .. } => {
                    resume.last_words = last_words(data);
                }
                SseEvent::Message { .. } => {}
                SseEvent::TooLong { head } => inbound.receive_too_long(head).await,
            }
        }
        if let Some(last) = decoder.last_event_id() {
            resume.last_event_id = Some(last.to_owned());
        }
        resume.retry = decoder.retry().map(Duration::from_millis).or(resume.retry);
        if is_answered() {
            let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
            let _ = timeout(STREAM_END_GRACE, rest).await;
            return StreamEnd::Responded;
        }
        if decoder.is_discarding() {
            inbound.count_discarded(chunk.len() as u64).await;
        }
        budget.consume(chunk.len()).await;
    }
}

/// Returns the text of a message that is an error, but not a message of JSON-RPC: a gateway tells
/// in this way why the stream ends.
fn error_text(data: &[u8]) -> Option<Box<str>> {
    let text = std::str::from_utf8(data).ok()?.trim();
    // Nearly every message begins with a member of JSON-RPC, and is not read to its end here.
    let (first, _) = skim::members(text).next()?;
    if ["jsonrpc", "id"].contains(&&*skim::decode_key(first)) {
        return None;
    }
    let has = |key| skim::member(text, key).is_some();
    (has("error") && !has("jsonrpc") && !has("id")).then(|| last_words(data)).flatten()
}

/// Returns the reason that a server gives, for display: the message in a JSON object, or the text.
pub(in crate::transport) fn last_words(data: &[u8]) -> Option<Box<str>> {
    let text = String::from_utf8_lossy(data);
    let text = text.trim();
    let message = ["message", "error", "detail"].iter().find_map(|key| {
        let value = skim::member(text, key)?;
        skim::decode_string(skim::member(value, "message").unwrap_or(value))
    });
    let shown: String = message.as_deref().unwrap_or(text).chars().take(MAX_WORDS_CHARS).collect();
    (!shown.is_empty()).then(|| display_safe(&shown).replace('\n', " ").into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_resumed_when_the_server_says_but_not_without_a_pause() {
        let backoff_millis = |retry: Option<u64>, empty_streams| {
            let retry = retry.map(Duration::from_millis);
            ResumeState { retry, empty_streams, ..ResumeState::default() }.backoff().as_millis()
        };
        assert_eq!(
            [
                backoff_millis(None, 0),
                backoff_millis(Some(500), 0),
                backoff_millis(Some(u64::MAX), 0)
            ],
            [1000, 500, 30_000]
        );
        let in_a_row =
            |retry| (0..7).map(|empty| backoff_millis(Some(retry), empty)).collect::<Vec<_>>();
        assert_eq!(in_a_row(0), [100, 100, 200, 400, 800, 1000, 1000]);
        assert_eq!(in_a_row(500), [500, 500, 500, 500, 800, 1000, 1000]);
        assert_eq!(in_a_row(5000), [5000; 7]);
        assert_eq!(backoff_millis(Some(0), u32::MAX), 1000);
    }

    #[test]
    fn the_reason_of_a_server_is_found_in_its_event() {
        let words = |text: &str| last_words(text.as_bytes()).map(String::from);
        assert_eq!(words(r#"{"message":"gone"}"#).as_deref(), Some("gone"));
        assert_eq!(words(r#"{"error":{"code":1,"message":"gone"}}"#).as_deref(), Some("gone"));
        assert_eq!(words("gone\nfor good ").as_deref(), Some("gone for good"));
        assert_eq!(words(" "), None);
        assert_eq!(words(&"x".repeat(1000)).unwrap().len(), MAX_WORDS_CHARS);
        assert_eq!(error_text(br#"{"error":"boom"}"#).as_deref(), Some("boom"));
        for message in [r#"{"jsonrpc":"2.0","error":{}}"#, r#"{"id":1,"error":{}}"#, r#"{"a":1}"#] {
            assert_eq!(error_text(message.as_bytes()), None, "{message}");
        }
    }

    #[test]
    fn an_event_is_repeated_if_a_resumed_stream_has_one_of_the_last_ids_again() {
        let mut resume = ResumeState::default();
        let ids: Vec<String> = (0..=MAX_SEEN_EVENT_IDS).map(|id| id.to_string()).collect();
        for id in &ids[1..] {
            assert!(resume.is_new(Some(id)) && resume.is_new(Some(id)), "the stream is the first");
        }
        resume.is_resumed = true;
        assert!(!resume.is_new(Some(&ids[1])) && !resume.is_new(ids.last().map(String::as_str)));
        assert!(resume.is_new(Some(&ids[0])), "an id that is not remembered");
        assert_eq!(resume.seen_event_ids.len(), MAX_SEEN_EVENT_IDS);
        assert!(resume.is_new(Some(&ids[1])), "the oldest id is forgotten");
        for unnamed in [None, Some("")] {
            assert!(resume.is_new(unnamed) && resume.is_new(unnamed));
        }
    }
}
