//! Notices of Redis to all processes that use a store.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use redis::RedisResult;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::time::{sleep, timeout};

use super::{RESPONSE_TIMEOUT, RedisClient};

/// Time between two checks of a subscription without notices: a connection can break silently.
const PING_INTERVAL: Duration = Duration::from_secs(10);

/// Time before the first new attempt to subscribe; each attempt doubles the time.
const MIN_BACKOFF: Duration = Duration::from_millis(50);

/// Maximum time between two attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Passes the notices of a channel to `on_notice` until the future is dropped. Passes `None` after a
/// break of the subscription, and after its end: notices between the two are lost.
pub(crate) async fn deliver_notices(
    redis: Arc<RedisClient>,
    channel: &'static str,
    on_notice: impl Fn(Option<&str>) + Send + 'static,
) {
    let mut backoff = MIN_BACKOFF;
    loop {
        if let Ok(Ok((sink, stream))) = timeout(RESPONSE_TIMEOUT, subscribe(&redis, channel)).await
        {
            backoff = MIN_BACKOFF;
            on_notice(None);
            forward(sink, stream, &on_notice).await;
            tracing::warn!(address = redis.address(), "lost the subscription to Redis");
            redis.disconnect_current();
            on_notice(None);
        }
        sleep(backoff).await;
        backoff = (backoff * 2).min(MAX_BACKOFF);
    }
}

async fn subscribe(redis: &RedisClient, channel: &str) -> RedisResult<(PubSubSink, PubSubStream)> {
    let (mut sink, stream) = redis.client().get_async_pubsub().await?.split();
    sink.subscribe(channel).await?;
    Ok((sink, stream))
}

/// Passes notices until the subscription breaks.
async fn forward(
    mut sink: PubSubSink,
    mut stream: PubSubStream,
    on_notice: &(impl Fn(Option<&str>) + Send + 'static),
) {
    loop {
        match timeout(PING_INTERVAL, stream.next()).await {
            Ok(Some(notice)) => {
                if let Ok(text) = std::str::from_utf8(notice.get_payload_bytes()) {
                    on_notice(Some(text));
                }
            }
            Ok(None) => return,
            Err(_) => {
                let response = timeout(RESPONSE_TIMEOUT, sink.ping::<redis::Value>()).await;
                if !matches!(response, Ok(Ok(_))) {
                    return;
                }
            }
        }
    }
}
