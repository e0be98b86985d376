//! The settings of the connection service: variables of the environment.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_gateway::RedisClient;
use innkeeper_gateway::connections::store::{
    ConnectionStore, FileStore, MemoryStore, RedisStore, StoreOptions,
};
use innkeeper_gateway::connections::{
    CapabilityRegistry, ConnectionOptions, ConnectionService, ConnectionServiceBuilder,
    CookieSecure, PathPrefix,
};
use innkeeper_host::Environment;
use serde_json::{Map, Value, json};

use super::setting::{Setting, default, parse_bool, parse_seconds, variable};
use super::store::StoreSettings;
use crate::exit::CliError;
use crate::output::Output;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConnectionSettings {
    enabled: Setting<bool>,
    server_name: Setting<String>,
    server_version: Setting<String>,
    prefix: Setting<PathPrefix>,
    expiry: Setting<Duration>,
    cookie_secure: Setting<CookieSecure>,
}

impl ConnectionSettings {
    pub(super) fn new(environment: &Environment) -> Result<Self, CliError> {
        let defaults = ConnectionOptions::default();
        Ok(Self {
            enabled: variable(environment, "MCP_ENABLED", parse_bool)?.unwrap_or(default(true)),
            server_name: variable(environment, "MCP_SERVER_NAME", String::from_str)?
                .unwrap_or(default(defaults.server_name)),
            server_version: variable(environment, "MCP_SERVER_VERSION", String::from_str)?
                .unwrap_or(default(defaults.server_version)),
            prefix: variable(environment, "MCP_PREFIX", PathPrefix::from_str)?
                .unwrap_or(default(defaults.prefix)),
            expiry: variable(environment, "MCP_CONNECTION_EXPIRY", parse_seconds)?
                .unwrap_or(default(defaults.expiry)),
            cookie_secure: variable(environment, "MCP_COOKIE_SECURE", parse_cookie_secure)?
                .unwrap_or(default(defaults.cookie_secure)),
        })
    }

    /// Returns the start of the paths of the service; `None` if it is disabled.
    pub(super) fn prefix(&self) -> Option<String> {
        self.enabled.value.then(|| self.prefix.value.as_str().to_owned())
    }

    /// Returns the settings with their sources.
    fn json(&self) -> Map<String, Value> {
        [
            ("enabled", self.enabled.json(|value| json!(value))),
            ("serverName", self.server_name.json(|name| json!(name))),
            ("serverVersion", self.server_version.json(|version| json!(version))),
            ("prefix", self.prefix.json(|prefix| prefix.as_str().into())),
            ("connectionExpiry", self.expiry.json(|expiry| expiry.as_secs().into())),
            ("cookieSecure", self.cookie_secure.json(|secure| show_cookie_secure(*secure).into())),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into_iter()
        .collect()
    }

    /// Creates the service; `None` if it is disabled. Waits for a store that is not available.
    pub(super) async fn service(
        &self,
        max_connections: usize,
        settings: &StoreSettings,
        redis: Option<&Arc<RedisClient>>,
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
        let store: Arc<dyn ConnectionStore> = match (redis, settings.directory()) {
            (None, None) => Arc::new(MemoryStore::new(store_options)),
            (None, Some(directory)) => {
                let store = FileStore::open(directory, store_options).await;
                Arc::new(store.map_err(|error| CliError::failure("no store").with_source(error))?)
            }
            (Some(redis), _) => Arc::new(
                settings
                    .retry(output, async || {
                        RedisStore::with_client(redis.clone(), store_options).await
                    })
                    .await?,
            ),
        };
        let registry = CapabilityRegistry::with_core_features();
        Ok(Some(ConnectionServiceBuilder::new(options, registry, store).build()))
    }
}

pub(super) fn shown_settings(service: &ConnectionSettings, store: &StoreSettings) -> Value {
    Value::Object(service.json().into_iter().chain(store.json()).collect())
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

#[cfg(test)]
mod tests;
