//! Limits the rate of the requests of each client, and of its calls of each tool.

mod bucket;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http::StatusCode;
use innkeeper_host::config::{Rate, RateConfig, ServeConfig};
use tokio::time::Instant;

use crate::item_names::ItemNames;
use crate::{Principal, Rejection};
use bucket::{Bucket, token_time};

/// Maximum number of clients whose requests are counted at one time. A client whose buckets are full
/// again needs no entry.
const MAX_CLIENTS: usize = 10_000;

/// Maximum number of tools that are counted for one client at one time; further tools share one
/// bucket.
const MAX_TOOLS_PER_CLIENT: usize = 1_000;

/// Maximum number of buckets whose tokens wait until other replicas know of them.
const MAX_PENDING_BUCKETS: usize = 100_000;

/// Time after which a client that cannot be counted may try again.
const FULL_TABLE_DELAY: Duration = Duration::from_secs(1);

/// A request above a maximum rate. The request has no effect on the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateExceeded {
    /// The client sent more requests than `serve.rate` permits.
    #[error("more than {} requests per minute (`serve.rate`)", rate.per_minute)]
    Requests {
        /// The maximum rate.
        rate: Rate,
        /// Time until a request is permitted.
        retry_after: Duration,
    },
    /// The client called a tool more often than `serve.rate.tools` permits.
    #[error("more than {} calls of this tool per minute (`serve.rate.tools`)", rate.per_minute)]
    Calls {
        /// The maximum rate.
        rate: Rate,
        /// Time until a call is permitted.
        retry_after: Duration,
    },
    /// So many clients are active that the requests of this client cannot be counted.
    #[error("too many clients are active; try again later")]
    Clients {
        /// Time until the client should try again.
        retry_after: Duration,
    },
}

impl RateExceeded {
    /// Returns the time until the request is permitted.
    pub fn retry_after(self) -> Duration {
        match self {
            Self::Requests { retry_after, .. }
            | Self::Calls { retry_after, .. }
            | Self::Clients { retry_after } => retry_after,
        }
    }
}

impl From<RateExceeded> for Rejection {
    fn from(exceeded: RateExceeded) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, exceeded.to_string())
            .with_retry_after(exceeded.retry_after())
    }
}

/// Counts the requests of all clients.
#[derive(Debug)]
pub struct RateLimits {
    /// Rates of clients without an entry in `own`.
    common: RateConfig,
    own: HashMap<Arc<str>, RateConfig>,
    clients: Mutex<HashMap<Arc<str>, ClientBuckets>>,
    /// The tokens that other replicas do not know of; `None` without replicas.
    pending: OnceLock<Mutex<HashMap<BucketName, TakenTokens>>>,
}

/// The bucket of a client for its requests, or for its calls of a tool by the name with its server: calls
/// at all endpoints share it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BucketName {
    pub(crate) client: Arc<str>,
    pub(crate) tool: Option<Box<str>>,
}

/// Tokens that were taken from a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TakenTokens {
    /// The time in which the bucket gets the tokens again.
    pub(crate) time: Duration,
    /// When the first of them was taken.
    pub(crate) since: Instant,
}

#[derive(Debug, Default)]
struct ClientBuckets {
    requests: Bucket,
    tools: HashMap<Box<str>, Bucket>,
    further_tools: Bucket,
}

impl RateLimits {
    /// Creates the limits with the rates of all clients, and the rates of single clients in their
    /// place.
    pub fn new(common: RateConfig, own: impl IntoIterator<Item = (Principal, RateConfig)>) -> Self {
        let own = own.into_iter().map(|(client, rates)| (Arc::clone(client.id()), rates));
        let own = own.collect();
        Self { common, own, clients: Mutex::default(), pending: OnceLock::new() }
    }

    /// Creates the limits of the configuration. The local user has the rates of all clients.
    pub fn from_config(config: &ServeConfig) -> Self {
        let or_common = |rate: &Option<RateConfig>| rate.as_ref().unwrap_or(&config.rate).clone();
        let keys = config.auth.api_keys.iter();
        let keys = keys.map(|key| (Principal::new(key.principal.as_str()), or_common(&key.rate)));
        let local = (Principal::local_user(), config.rate.clone());
        let tokens = config.auth.oauth.as_ref().and_then(|oauth| oauth.rate.clone());
        Self::new(or_common(&tokens), keys.chain([local]))
    }

    /// Counts a request of the client.
    ///
    /// # Errors
    ///
    /// The request is above the maximum rate of the client.
    pub fn count_request(&self, client: &Principal) -> Result<(), RateExceeded> {
        let Some(rate) = self.settings(client).requests else { return Ok(()) };
        self.with_buckets(client, |buckets, now| {
            let taken = buckets.requests.take(rate, now);
            taken.map_err(|retry_after| RateExceeded::Requests { rate, retry_after })
        })?;
        self.count_token(client, None, rate);
        Ok(())
    }

    /// Counts a call of a tool by the client, in addition to the request. The rate is that of the first
    /// pattern that matches one of the names. A tool whose own name looks like one of another server
    /// doesn't get the rate of that server if its own server has a lower one.
    ///
    /// # Errors
    ///
    /// The call is above the maximum rate of the client for the tool.
    pub fn count_call(&self, client: &Principal, tool: &ItemNames) -> Result<(), RateExceeded> {
        let tools = &self.settings(client).tools;
        let first = |is_meant: &dyn Fn(&str) -> bool| {
            tools.iter().find(|(pattern, _)| is_meant(pattern)).map(|(_, rate)| *rate)
        };
        let any_name = first(&|pattern| tool.match_pattern(pattern));
        let disguised = first(&|pattern| tool.match_disguised(pattern));
        let lower =
            any_name.into_iter().chain(disguised).min_by_key(|rate| (rate.per_minute, rate.burst));
        let Some(rate) = lower else { return Ok(()) };
        let tool = tool.prefixed();
        self.with_buckets(client, |buckets, now| {
            let taken = buckets.tool(tool, now).take(rate, now);
            taken.map_err(|retry_after| RateExceeded::Calls { rate, retry_after })
        })?;
        self.count_token(client, Some(tool), rate);
        Ok(())
    }

    /// Counts the tokens for other replicas from now on.
    pub(crate) fn share(&self) {
        self.pending.get_or_init(Mutex::default);
    }

    fn count_token(&self, client: &Principal, tool: Option<&str>, rate: Rate) {
        let Some(pending) = self.pending.get() else { return };
        let name = BucketName { client: client.id().clone(), tool: tool.map(Into::into) };
        let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
        if pending.len() < MAX_PENDING_BUCKETS || pending.contains_key(&name) {
            let none = TakenTokens { time: Duration::ZERO, since: Instant::now() };
            let taken = pending.entry(name).or_insert(none);
            taken.time = taken.time.saturating_add(token_time(rate));
        }
    }

    /// Returns the tokens that were taken since the last call.
    pub(crate) fn take_pending(&self) -> HashMap<BucketName, TakenTokens> {
        let Some(pending) = self.pending.get() else { return HashMap::new() };
        std::mem::take(&mut *pending.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Restores tokens that other replicas did not learn of. Those that the bucket has got again in the
    /// meantime do not count any more.
    pub(crate) fn restore_pending(&self, tokens: HashMap<BucketName, TakenTokens>) {
        let Some(pending) = self.pending.get() else { return };
        let now = Instant::now();
        for (name, restored) in tokens {
            let missing = self.full_in(&name, now);
            let mut pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
            let known =
                pending.remove(&name).unwrap_or(TakenTokens { time: Duration::ZERO, since: now });
            let time = known.time.saturating_add(restored.time);
            let taken = match time <= missing {
                true => TakenTokens { time, since: known.since.min(restored.since) },
                false => TakenTokens { time: missing, since: now },
            };
            if !taken.time.is_zero() {
                pending.insert(name, taken);
            }
        }
    }

    /// Returns the time until a bucket is full.
    fn full_in(&self, name: &BucketName, now: Instant) -> Duration {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(buckets) = clients.get(&name.client) else { return Duration::ZERO };
        let bucket = match &name.tool {
            None => Some(&buckets.requests),
            Some(tool) => buckets.tools.get(tool),
        };
        bucket.map_or(Duration::ZERO, |bucket| bucket.full_in(now))
    }

    /// Sets the time until the bucket of all replicas is full, apart from the tokens that were taken
    /// here in the meantime.
    pub(crate) fn set_full_in(&self, name: &BucketName, time: Duration) {
        let pending = self.pending.get().and_then(|pending| {
            let pending = pending.lock().unwrap_or_else(PoisonError::into_inner);
            pending.get(name).copied()
        });
        let time = time.saturating_add(pending.map_or(Duration::ZERO, |taken| taken.time));
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(buckets) = clients.get_mut(&name.client) else { return };
        let bucket = match &name.tool {
            None => Some(&mut buckets.requests),
            Some(tool) => buckets.tools.get_mut(tool),
        };
        if let Some(bucket) = bucket {
            bucket.set_full_in(time, Instant::now());
        }
    }

    fn settings(&self, client: &Principal) -> &RateConfig {
        self.own.get(client.id()).unwrap_or(&self.common)
    }

    fn with_buckets(
        &self,
        client: &Principal,
        count: impl FnOnce(&mut ClientBuckets, Instant) -> Result<(), RateExceeded>,
    ) -> Result<(), RateExceeded> {
        let now = Instant::now();
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if !clients.contains_key(client.id()) {
            if clients.len() >= MAX_CLIENTS {
                clients.retain(|_, buckets| !buckets.are_full(now));
            }
            if clients.len() >= MAX_CLIENTS {
                return Err(RateExceeded::Clients { retry_after: FULL_TABLE_DELAY });
            }
        }
        count(clients.entry(Arc::clone(client.id())).or_default(), now)
    }
}

impl ClientBuckets {
    fn are_full(&self, now: Instant) -> bool {
        self.requests.is_full(now)
            && self.further_tools.is_full(now)
            && self.tools.values().all(|bucket| bucket.is_full(now))
    }

    fn tool(&mut self, tool: &str, now: Instant) -> &mut Bucket {
        if !self.tools.contains_key(tool) {
            if self.tools.len() >= MAX_TOOLS_PER_CLIENT {
                self.tools.retain(|_, bucket| !bucket.is_full(now));
            }
            if self.tools.len() >= MAX_TOOLS_PER_CLIENT {
                return &mut self.further_tools;
            }
        }
        self.tools.entry(tool.into()).or_default()
    }
}

#[cfg(test)]
mod tests;
