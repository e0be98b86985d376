//! Where `serve` keeps what outlives a request: in memory, in files, or in Redis.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_gateway::{RedisClient, StoreError};
use innkeeper_host::Environment;
use innkeeper_host::config::redact_url;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep};

use super::setting::{Setting, ValueSource, default, parse_seconds, variable};
use crate::exit::CliError;
use crate::output::{Output, Style};

/// The URL of Redis that the specification names. It is in effect only if a variable or the option
/// chooses Redis.
const DEFAULT_REDIS_URL: &str = "redis://localhost:6379/0";

/// Time to wait for Redis at the start.
const DEFAULT_STORE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time between the first two attempts to connect.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Maximum time between two attempts to connect.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(2);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StoreChoice {
    Memory,
    /// A directory for connections. Everything else is in memory.
    Files(PathBuf),
    Redis(String),
}

impl StoreChoice {
    fn describe(&self) -> String {
        match self {
            Self::Memory => "memory".to_owned(),
            Self::Files(directory) => format!("file:{}", directory.display()),
            Self::Redis(url) => redact_url(url),
        }
    }
}

impl FromStr for StoreChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_redis = ["redis://", "rediss://"].iter().any(|scheme| text.starts_with(scheme));
        match text {
            "memory" => Ok(Self::Memory),
            // Only in a valid URL, the password is where `redact_url` looks for it.
            url if is_redis => match RedisClient::new(url) {
                Ok(_) => Ok(Self::Redis(url.to_owned())),
                Err(error) => Err(format!(
                    "{}; write special characters of a user or a password as `%XX`",
                    error.reason
                )),
            },
            text => match text.strip_prefix("file:") {
                Some(directory) if !directory.is_empty() => Ok(Self::Files(directory.into())),
                _ => Err("the store must be `memory`, `file:` with a directory, or a URL that \
                          starts with `redis://` or `rediss://`"
                    .to_owned()),
            },
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoreSettings {
    store: Setting<StoreChoice>,
    redis_url: Setting<String>,
    timeout: Setting<Duration>,
}

impl StoreSettings {
    /// Returns the settings. `store` is the value of `--store`.
    pub(super) fn new(environment: &Environment, store: Option<&str>) -> Result<Self, CliError> {
        let redis_url = variable(environment, "MCP_REDIS_URL", check_redis_url)?
            .unwrap_or_else(|| default(DEFAULT_REDIS_URL.to_owned()));
        let store = match store {
            Some(store) => {
                let value = store
                    .parse()
                    .map_err(|problem| CliError::usage(format!("`--store`: {problem}")))?;
                Setting { value, source: ValueSource::Option("--store") }
            }
            None => match variable(environment, "MCP_STORE", StoreChoice::from_str)? {
                Some(store) => store,
                None if redis_url.source == ValueSource::Default => default(StoreChoice::Memory),
                None => Setting {
                    value: StoreChoice::Redis(redis_url.value.clone()),
                    source: redis_url.source,
                },
            },
        };
        let timeout = variable(environment, "MCP_STORE_TIMEOUT", parse_seconds)?
            .unwrap_or(default(DEFAULT_STORE_TIMEOUT));
        Ok(Self { store, redis_url, timeout })
    }

    /// Returns the settings with their sources. A password in a URL is not shown.
    pub(super) fn json(&self) -> Map<String, Value> {
        [
            ("store", self.store.json(|store| store.describe().into())),
            ("redisUrl", self.redis_url.json(|url| redact_url(url).into())),
            ("storeTimeout", self.timeout.json(|timeout| timeout.as_secs().into())),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect()
    }

    /// Returns the directory of connections, if they are in files.
    pub(super) fn directory(&self) -> Option<&Path> {
        match &self.store.value {
            StoreChoice::Files(directory) => Some(directory),
            StoreChoice::Memory | StoreChoice::Redis(_) => None,
        }
    }

    /// Returns the client of Redis, if the store is Redis. Connects when it is used.
    pub(super) fn redis(&self) -> Result<Option<Arc<RedisClient>>, CliError> {
        let StoreChoice::Redis(url) = &self.store.value else { return Ok(None) };
        let client = RedisClient::new(url);
        let client = client.map_err(|error| CliError::usage("no store").with_source(error))?;
        Ok(Some(Arc::new(client)))
    }

    /// Tries something that needs Redis again and again until it succeeds or the time is over.
    pub(super) async fn retry<T>(
        &self,
        output: &mut Output,
        attempt: impl AsyncFn() -> Result<T, StoreError>,
    ) -> Result<T, CliError> {
        let shown = self.store.value.describe();
        let timeout = self.timeout.value;
        let started = Instant::now();
        let mut delay = FIRST_RETRY_DELAY;
        loop {
            let error = match attempt().await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            let left = timeout.saturating_sub(started.elapsed());
            if left.is_zero() {
                let seconds = timeout.as_secs();
                let message = format!("no connection to `{shown}` within {seconds} s");
                return Err(CliError::failure(message).with_source(error).with_hint(
                    "start Redis, correct the URL, or pass `--store memory`; \
                     `MCP_STORE_TIMEOUT` is the time to wait",
                ));
            }
            if delay == FIRST_RETRY_DELAY {
                let text = format!("waiting for `{shown}`: {}", error.reason);
                output.labelled_status(Style::Note, "note", &text)?;
            }
            sleep(delay.min(left)).await;
            delay = MAX_RETRY_DELAY.min(2 * delay);
        }
    }
}

fn check_redis_url(text: &str) -> Result<String, String> {
    match text.parse()? {
        StoreChoice::Redis(url) => Ok(url),
        StoreChoice::Memory | StoreChoice::Files(_) => {
            Err("the value must be a URL that starts with `redis://` or `rediss://`".to_owned())
        }
    }
}
