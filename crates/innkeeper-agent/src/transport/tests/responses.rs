//! Deadlines, limits and retry hints of responses.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use tokio::time::Instant;

use super::bodies::text_body;
use super::{KEY, error_chain, provider, request};
use crate::provider::codec::MAX_RESPONSE_BYTES;
use crate::provider::{LlmError, LlmErrorKind, LlmProvider as _, ProviderApi, StreamChunk};
use crate::transport::DEFAULT_RESPONSE_TIMEOUT;
use crate::transport::client::HttpError;
use crate::transport::in_memory::{InMemoryClient, InMemoryReply, InMemoryResponse};
use crate::transport::provider::MAX_ERROR_BODY_BYTES;
use crate::transport::response_body::{ResponseBody, read_prefix};

const API: ProviderApi = ProviderApi::OpenAiChat;

fn lost() -> HttpError {
    HttpError::Disconnected { source: "connection reset".into() }
}

/// Returns a streamed response without its end.
fn stream_start() -> InMemoryResponse {
    InMemoryResponse::new(
        200,
        "data: {\"choices\": [{\"index\": 0, \"delta\": {\"content\": \"Whole.\"}}]}\n\n",
    )
}

async fn stream_text(client: &Arc<InMemoryClient>) -> Result<String, LlmError> {
    let provider = provider(API, client);
    let mut chunks = provider.stream(request("Hi"));
    let mut text = String::new();
    while let Some(chunk) = chunks.next().await {
        if let StreamChunk::Text(chunk) = chunk? {
            text.push_str(&chunk);
        }
    }
    Ok(text)
}

#[tokio::test(start_paused = true)]
async fn the_deadline_covers_the_head_and_the_body_of_a_response() {
    let stalled_error = InMemoryResponse::new(500, "").stalled();
    for reply in [InMemoryReply::Never, stream_start().stalled().into(), stalled_error.into()] {
        let client = InMemoryClient::new([reply]);
        let start = Instant::now();
        let error = stream_text(&client).await.unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::TimedOut, "{error}");
        assert_eq!(start.elapsed(), DEFAULT_RESPONSE_TIMEOUT);
        assert_eq!(client.open_bodies(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_that_is_whole_counts_however_its_connection_ends() {
    let end = "data: {\"choices\": [{\"index\": 0, \"delta\": {}, \"finish_reason\": \"stop\"}]}\n\ndata: [DONE]\n\n";
    let whole = || stream_start().with_chunk(end);
    for (reply, grace) in [(whole(), 0), (whole().with_error(lost()), 0), (whole().stalled(), 2)] {
        let client = InMemoryClient::new([reply]);
        let start = Instant::now();
        assert_eq!(stream_text(&client).await.unwrap(), "Whole.");
        assert_eq!(start.elapsed(), Duration::from_secs(grace));
    }
    let client = InMemoryClient::new([stream_start().with_error(lost())]);
    let error = stream_text(&client).await.unwrap_err();
    assert_eq!(
        (error.kind, error.partial_output.as_deref()),
        (LlmErrorKind::Connection, Some("Whole."))
    );
}

#[tokio::test]
async fn a_key_in_the_partial_output_of_a_lost_response_is_masked() {
    let chunk = format!(
        "data: {{\"choices\": [{{\"index\": 0, \"delta\": {{\"content\": \"It is {KEY}.\"}}}}]}}\n\n"
    );
    let client = InMemoryClient::new([InMemoryResponse::new(200, chunk).with_error(lost())]);
    let error = stream_text(&client).await.unwrap_err();
    assert!(error.partial_output.as_deref().is_some_and(|output| output.starts_with("It is ")));
    assert!(!error_chain(&error).contains(KEY), "{error:?}");
}

#[tokio::test]
async fn dropping_a_response_drops_its_body() {
    let client = InMemoryClient::new([stream_start().stalled()]);
    let provider = provider(API, &client);
    let mut chunks = provider.stream(request("Hi"));
    assert!(matches!(chunks.next().await, Some(Ok(StreamChunk::Text(_)))));
    assert!(chunks.next().now_or_never().is_none());
    assert_eq!(client.open_bodies(), 1);
    drop(chunks);
    assert_eq!(client.open_bodies(), 0);
}

/// Proves: G55
#[tokio::test]
async fn retry_hints_are_read_from_headers_in_any_case() {
    for (header, value, after) in [
        ("Retry-After", "7", Some(Duration::from_secs(7))),
        ("retry-after-ms", "7", Some(Duration::from_millis(7))),
        ("RETRY-AFTER", "soon", None),
    ] {
        let reply = InMemoryResponse::new(429, "{}").with_header(header, value);
        let client = InMemoryClient::new([reply]);
        let error = provider(API, &client).generate(request("Hi")).await.unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::RetryLater { after }, "{header}: {value}");
        assert_eq!(error.status, Some(429));
    }
}

/// A JSON object that is complete exactly at the limit still counts.
#[tokio::test]
async fn an_error_body_is_read_up_to_its_limit() {
    let object = r#"{"error": {"message": "busy"}}"#;
    let padding = " ".repeat(MAX_ERROR_BODY_BYTES - object.len());
    for (body, is_read) in
        [(format!("{padding}{object}"), true), (format!("{padding} {object}"), false)]
    {
        let client = InMemoryClient::new([InMemoryResponse::new(400, body)]);
        let error = provider(API, &client).generate(request("Hi")).await.unwrap_err();
        assert_eq!(&*error.message == "busy", is_read, "{}", error.message.len());
    }
}

#[tokio::test]
async fn a_response_is_read_up_to_its_limit() {
    const CHUNK_BYTES: usize = 1 << 20;
    let body = text_body(API, "Whole.").to_string();
    let spaces = Bytes::from(vec![b' '; CHUNK_BYTES]);
    let fitting = CHUNK_BYTES - body.len();
    for (last_spaces, is_read) in [(fitting, true), (fitting + 1, false)] {
        let mut reply = InMemoryResponse::new(200, body.clone());
        for _ in 1..MAX_RESPONSE_BYTES / CHUNK_BYTES {
            reply = reply.with_chunk(spaces.clone());
        }
        let client = InMemoryClient::new([reply.with_chunk(spaces.slice(..last_spaces))]);
        match provider(API, &client).generate(request("Hi")).await {
            Ok(response) => {
                assert!(is_read);
                assert_eq!(response.message.visible_text(), "Whole.");
            }
            Err(error) => {
                assert!(!is_read, "{error}");
                assert_eq!(error.kind, LlmErrorKind::InvalidResponse);
                let expected = format!("the response is longer than {MAX_RESPONSE_BYTES} bytes");
                assert_eq!(&*error.message, expected);
            }
        }
    }
}

#[tokio::test]
async fn a_body_ends_with_an_error_one_byte_above_its_limit() {
    let chunks = || stream::iter(["abc", "d"].map(|text| Ok(text.into()))).boxed();
    let mut body = ResponseBody::new(chunks(), 4);
    assert_eq!(body.next_chunk().await.unwrap().unwrap(), "abc");
    assert_eq!(body.next_chunk().await.unwrap().unwrap(), "d");
    assert!(body.next_chunk().await.unwrap().is_none());
    let mut body = ResponseBody::new(chunks(), 3);
    assert_eq!(body.next_chunk().await.unwrap().unwrap(), "abc");
    assert!(matches!(body.next_chunk().await, Err(HttpError::TooLarge { max_bytes: 3 })));
    assert_eq!(read_prefix(chunks(), 4).await.unwrap(), b"abcd");
    assert_eq!(read_prefix(chunks(), 2).await.unwrap(), b"ab");
}
