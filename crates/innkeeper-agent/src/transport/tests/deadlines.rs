//! Deadlines follow the clock of the provider.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{endpoint, request};
use crate::provider::{LlmErrorKind, LlmProvider as _, ProviderApi, StreamChunk};
use crate::timing::Timing;
use crate::transport::in_memory::{InMemoryClient, InMemoryReply, InMemoryResponse};
use crate::transport::{Endpoint, HttpProvider};

const API: ProviderApi = ProviderApi::OpenAiChat;

/// Returns a provider whose clock runs 60 times as fast as Tokio's.
fn fast_provider(reply: impl Into<InMemoryReply>, timeout: Duration) -> HttpProvider {
    let endpoint = Endpoint { timeout, ..endpoint(API) };
    let mut provider = HttpProvider::with_client(endpoint, InMemoryClient::new([reply]));
    let base = Instant::now();
    provider.timing = Timing {
        now: Arc::new(move || base + base.elapsed() * 60),
        sleep: Arc::new(|duration| sleep(duration / 60).boxed()),
        ..Timing::default()
    };
    provider
}

#[tokio::test(start_paused = true)]
async fn every_wait_for_a_response_ends_at_the_deadline_of_its_clock() {
    let partial = InMemoryResponse::new(200, r#"{"choices": ["#).stalled();
    let rejected = InMemoryResponse::new(500, "{").stalled();
    for reply in [InMemoryReply::Never, partial.into(), rejected.into()] {
        let case = format!("{reply:?}");
        let provider = fast_provider(reply, Duration::from_secs(120));
        let start = Instant::now();
        let error = provider.generate(request("Hi")).await.unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::TimedOut, "{case}");
        assert_eq!(start.elapsed().as_secs_f64().round(), 2.0, "{case}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_complete_response_on_an_open_connection_ends_after_a_grace_of_its_clock() {
    let event = json!({"choices": [
        {"index": 0, "delta": {"content": "Hi."}, "finish_reason": "stop"},
    ]});
    let events = format!("data: {event}\n\ndata: [DONE]\n\n");
    let reply = InMemoryResponse::new(200, events).stalled();
    let provider = fast_provider(reply, Duration::from_secs(120));
    let start = Instant::now();
    let chunks: Vec<_> = provider.stream(request("Hi")).collect().await;
    assert!(matches!(chunks.last(), Some(Ok(StreamChunk::Done(_)))), "{chunks:?}");
    // Two seconds of the clock.
    let milliseconds = start.elapsed().as_millis();
    assert!((33..40).contains(&milliseconds), "{milliseconds}");
}
