//! The settings of the connection service: variables of the environment, and options.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_gateway::connections::store::{
    ConnectionStore, MemoryStore, RedisStore, StoreOptions,
};
use innkeeper_gateway::connections::{
    CapabilityRegistry, ConnectionOptions, ConnectionService, ConnectionServiceBuilder,
    CookieSecure, PathPrefix,
};
use innkeeper_gateway::pending_questions::store::{
    MemoryQuestionStore, QuestionStore, RedisQuestionStore,
};
use innkeeper_gateway::pending_questions::{PendingQuestions, QuestionOptions};
use innkeeper_gateway::{RedisClient, StoreError};
use innkeeper_host::Environment;
use innkeeper_host::config::{ApprovalConfig, redact_url};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

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

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueSource {
    Option(&'static str),
    Variable(&'static str),
    Default,
}

impl ValueSource {
    fn name(self) -> &'static str {
        match self {
            Self::Option(name) | Self::Variable(name) => name,
            Self::Default => "default",
        }
    }
}

/// A value with its source.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Setting<T> {
    value: T,
    source: ValueSource,
}

impl<T> Setting<T> {
    fn json(&self, show: impl FnOnce(&T) -> Value) -> Value {
        json!({ "value": show(&self.value), "source": self.source.name() })
    }
}

/// Where connections are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StoreChoice {
    Memory,
    Redis(String),
}

impl StoreChoice {
    fn describe(&self) -> String {
        match self {
            Self::Memory => "memory".to_owned(),
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
            _ => Err("the store must be `memory` or a URL that starts with `redis://` or \
                      `rediss://`"
                .to_owned()),
        }
    }
}

/// The settings of the connection service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConnectionSettings {
    enabled: Setting<bool>,
    store: Setting<StoreChoice>,
    redis_url: Setting<String>,
    server_name: Setting<String>,
    server_version: Setting<String>,
    prefix: Setting<PathPrefix>,
    expiry: Setting<Duration>,
    cookie_secure: Setting<CookieSecure>,
    store_timeout: Setting<Duration>,
}

impl ConnectionSettings {
    /// Returns the settings. `store` is the value of `--store`.
    pub(super) fn new(environment: &Environment, store: Option<&str>) -> Result<Self, CliError> {
        let defaults = ConnectionOptions::default();
        let text = |text: &str| Ok::<_, String>(text.to_owned());
        let redis_url = variable(environment, "MCP_REDIS_URL", check_redis_url)?
            .unwrap_or_else(|| default(DEFAULT_REDIS_URL.to_owned()));
        let parse_store = |text: &str| text.parse::<StoreChoice>();
        let store = match store {
            Some(store) => {
                let value = parse_store(store)
                    .map_err(|problem| CliError::usage(format!("`--store`: {problem}")))?;
                Setting { value, source: ValueSource::Option("--store") }
            }
            None => match variable(environment, "MCP_STORE", parse_store)? {
                Some(store) => store,
                None if redis_url.source == ValueSource::Default => default(StoreChoice::Memory),
                None => Setting {
                    value: StoreChoice::Redis(redis_url.value.clone()),
                    source: redis_url.source,
                },
            },
        };
        let or_default = |setting: Option<Setting<String>>, value: String| {
            setting.unwrap_or_else(|| default(value))
        };
        Ok(Self {
            enabled: variable(environment, "MCP_ENABLED", parse_bool)?.unwrap_or(default(true)),
            store,
            redis_url,
            server_name: or_default(
                variable(environment, "MCP_SERVER_NAME", text)?,
                defaults.server_name,
            ),
            server_version: or_default(
                variable(environment, "MCP_SERVER_VERSION", text)?,
                defaults.server_version,
            ),
            prefix: variable(environment, "MCP_PREFIX", PathPrefix::from_str)?
                .unwrap_or(default(defaults.prefix)),
            expiry: variable(environment, "MCP_CONNECTION_EXPIRY", parse_seconds)?
                .unwrap_or(default(defaults.expiry)),
            cookie_secure: variable(environment, "MCP_COOKIE_SECURE", parse_cookie_secure)?
                .unwrap_or(default(defaults.cookie_secure)),
            store_timeout: variable(environment, "MCP_STORE_TIMEOUT", parse_seconds)?
                .unwrap_or(default(DEFAULT_STORE_TIMEOUT)),
        })
    }

    /// Returns the settings with their sources. A password in a URL is not shown.
    pub(super) fn json(&self) -> Value {
        json!({
            "enabled": self.enabled.json(|value| json!(value)),
            "store": self.store.json(|store| store.describe().into()),
            "redisUrl": self.redis_url.json(|url| redact_url(url).into()),
            "serverName": self.server_name.json(|name| json!(name)),
            "serverVersion": self.server_version.json(|version| json!(version)),
            "prefix": self.prefix.json(|prefix| prefix.as_str().into()),
            "connectionExpiry": self.expiry.json(|expiry| expiry.as_secs().into()),
            "cookieSecure": self.cookie_secure.json(|secure| show_cookie_secure(*secure).into()),
            "storeTimeout": self.store_timeout.json(|timeout| timeout.as_secs().into()),
        })
    }

    /// Creates the service; `None` if it is disabled. Waits for a store that is not available.
    pub(super) async fn service(
        &self,
        max_connections: usize,
        output: &mut Output,
    ) -> Result<Option<ConnectionService>, CliError> {
        if !self.enabled.value {
            return Ok(None);
        }
        let options = ConnectionOptions {
            prefix: self.prefix.value.clone(),
            server_name: self.server_name.value.clone(),
            server_version: self.server_version.value.clone(),
            expiry: self.expiry.value,
            cookie_secure: self.cookie_secure.value,
        };
        let store_options = StoreOptions { expiry: self.expiry.value, max_connections };
        let store: Arc<dyn ConnectionStore> = match &self.store.value {
            StoreChoice::Memory => Arc::new(MemoryStore::new(store_options)),
            StoreChoice::Redis(url) => {
                let connect = async || RedisStore::connect(url, store_options).await;
                Arc::new(self.connect(url, connect, output).await?)
            }
        };
        let registry = CapabilityRegistry::with_core_features();
        Ok(Some(ConnectionServiceBuilder::new(options, registry, store).build()))
    }

    /// Returns the questions of operators, in the store of the connections; `None` if nothing waits for
    /// an operator. Waits for a store that is not available.
    pub(super) async fn questions(
        &self,
        approval: &ApprovalConfig,
        output: &mut Output,
    ) -> Result<Option<PendingQuestions>, CliError> {
        if !approval.is_configured() {
            return Ok(None);
        }
        let store: Arc<dyn QuestionStore> = match &self.store.value {
            StoreChoice::Memory => Arc::new(MemoryQuestionStore::default()),
            StoreChoice::Redis(url) => {
                let connect = async || {
                    let client = Arc::new(RedisClient::new(url)?);
                    RedisQuestionStore::connect(client).await
                };
                Arc::new(self.connect(url, connect, output).await?)
            }
        };
        Ok(Some(PendingQuestions::new(store, QuestionOptions::from(approval))))
    }

    /// Connects to Redis, again and again until the time is over.
    async fn connect<S>(
        &self,
        url: &str,
        connect: impl AsyncFn() -> Result<S, StoreError>,
        output: &mut Output,
    ) -> Result<S, CliError> {
        let (shown, timeout) = (redact_url(url), self.store_timeout.value);
        let started = Instant::now();
        let mut delay = FIRST_RETRY_DELAY;
        loop {
            let error = match connect().await {
                Ok(store) => return Ok(store),
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

fn default<T>(value: T) -> Setting<T> {
    Setting { value, source: ValueSource::Default }
}

/// Returns the value of a variable; an empty variable counts as absent.
fn variable<T, E: Display>(
    environment: &Environment,
    name: &'static str,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<Option<Setting<T>>, CliError> {
    let Some(text) = environment.get(name).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    match parse(text) {
        Ok(value) => Ok(Some(Setting { value, source: ValueSource::Variable(name) })),
        Err(problem) => Err(CliError::usage(format!("variable `{name}`: {problem}"))
            .with_hint("correct the variable, or remove it")),
    }
}

fn parse_bool(text: &str) -> Result<bool, &'static str> {
    match &*text.to_ascii_lowercase() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err("the value must be `true`, `1`, `yes` or `on`, or `false`, `0`, `no` or `off`"),
    }
}

fn parse_cookie_secure(text: &str) -> Result<CookieSecure, &'static str> {
    if text.eq_ignore_ascii_case("auto") {
        return Ok(CookieSecure::Auto);
    }
    match parse_bool(text) {
        Ok(true) => Ok(CookieSecure::Always),
        Ok(false) => Ok(CookieSecure::Never),
        Err(_) => Err("the value must be `auto`, `true` or `false`"),
    }
}

fn show_cookie_secure(secure: CookieSecure) -> &'static str {
    match secure {
        CookieSecure::Auto => "auto",
        CookieSecure::Always => "true",
        CookieSecure::Never => "false",
    }
}

/// Maximum time in a variable: a year.
const MAX_SECONDS: u64 = 365 * 24 * 60 * 60;

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().filter(|seconds| (1..=MAX_SECONDS).contains(seconds));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| format!("the value must be a number of seconds from 1 to {MAX_SECONDS}"))
}

fn check_redis_url(text: &str) -> Result<String, String> {
    match text.parse()? {
        StoreChoice::Redis(url) => Ok(url),
        StoreChoice::Memory => {
            Err("the value must be a URL that starts with `redis://` or `rediss://`".to_owned())
        }
    }
}

#[cfg(test)]
mod tests;
