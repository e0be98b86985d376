//! The rates of clients over all replicas: each replica counts by itself, and tells the others what it
//! counted.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use super::Replicas;
use super::scripts;
use crate::rate_limits::{BucketName, RateLimits};
use crate::redis_client::Reply;
use crate::store_error::StoreError;

/// Time between two exchanges: for this time, a client has its burst at each replica.
const INTERVAL: Duration = Duration::from_millis(200);

/// Maximum number of buckets in one script.
const MAX_BUCKETS: usize = 512;

impl Replicas {
    /// Exchanges the counts of the limits with the other replicas until the future is dropped.
    pub(crate) async fn share_rates(self, rates: Arc<RateLimits>) {
        rates.share();
        loop {
            sleep(INTERVAL).await;
            if let Err(error) = self.exchange_rates(&rates).await {
                tracing::debug!(%error, "rates not exchanged");
            }
        }
    }

    /// Adds what was counted here to the buckets of all replicas, and takes over their levels.
    pub(super) async fn exchange_rates(&self, rates: &RateLimits) -> Result<(), StoreError> {
        let mut pending = rates.take_pending();
        while !pending.is_empty() {
            let names: Vec<BucketName> = pending.keys().take(MAX_BUCKETS).cloned().collect();
            let exchanged: Vec<_> =
                names.into_iter().filter_map(|name| pending.remove_entry(&name)).collect();
            let mut call = scripts::ADD_RATES.prepare_invoke();
            for (name, taken) in &exchanged {
                call.key(key(name));
                call.arg(microseconds(taken.time)).arg(microseconds(taken.since.elapsed()));
            }
            match self.0.redis.run(&call).await {
                Ok(reply) => apply(rates, &exchanged, &reply)?,
                Err(error) => {
                    // A script whose response was lost counts twice.
                    pending.extend(exchanged);
                    rates.restore_pending(pending);
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

fn apply<T>(
    rates: &RateLimits,
    exchanged: &[(BucketName, T)],
    reply: &Reply,
) -> Result<(), StoreError> {
    for (index, (name, _)) in exchanged.iter().enumerate() {
        rates.set_full_in(name, Duration::from_micros(reply.number(index)?));
    }
    Ok(())
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Returns the name of a bucket in Redis. The length separates the client from the tool.
fn key(name: &BucketName) -> String {
    let BucketName { client, tool } = name;
    match tool {
        None => format!("mcp:rate:{}:{client}", client.len()),
        Some(tool) => format!("mcp:rate:{}:{client}:{tool}", client.len()),
    }
}
