//! The settings of several replicas of `serve` that share a Redis: variables of the environment.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_gateway::{RedisClient, ReplicaOptions, Replicas};
use innkeeper_host::Environment;
use innkeeper_host::config::Secret;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::setting::{Setting, default, parse_seconds, variable};
use super::store::StoreSettings;
use crate::exit::CliError;
use crate::output::Output;

/// Time after which other replicas take over.
const DEFAULT_LEASE: Duration = Duration::from_secs(10);

/// The lease must be longer than the time that Redis gets for its responses.
const MIN_LEASE_SECONDS: u64 = 3;

/// Minimum length of the secret.
const MIN_SECRET_CHARS: usize = 32;

#[derive(Clone, Debug)]
pub(super) struct ReplicaSettings {
    /// The address for the requests of other replicas; `None` for the only replica.
    listen: Option<Setting<SocketAddr>>,
    url: Option<Setting<String>>,
    secret: Option<Setting<Secret>>,
    lease: Setting<Duration>,
}

impl ReplicaSettings {
    pub(super) fn new(environment: &Environment) -> Result<Self, CliError> {
        Ok(Self {
            listen: variable(environment, "MCP_REPLICA_LISTEN", parse_address)?,
            url: variable(environment, "MCP_REPLICA_URL", parse_url)?,
            secret: variable(environment, "MCP_REPLICA_SECRET", parse_secret)?,
            lease: variable(environment, "MCP_LEASE_SECONDS", parse_lease)?
                .unwrap_or(default(DEFAULT_LEASE)),
        })
    }

    /// Returns whether the gateway is one of several replicas.
    pub(super) fn is_enabled(&self) -> bool {
        self.listen.is_some()
    }

    /// Returns the settings with their sources, without the secret.
    pub(super) fn json(&self) -> Value {
        json!({
            "listen": self.listen.as_ref().map(|listen| listen.json(|value| json!(value))),
            "url": self.url.as_ref().map(|url| url.json(|value| json!(value))),
            "secret": self.secret.as_ref().map(|secret| secret.json(|_| "***".into())),
            "leaseSeconds": self.lease.json(|lease| lease.as_secs().into()),
        })
    }

    /// Returns the replica if the settings describe one.
    pub(super) fn replica(
        &self,
        idle: Duration,
        redis: Option<&Arc<RedisClient>>,
    ) -> Result<Option<Replica>, CliError> {
        let Some(listen) = &self.listen else {
            let set = [
                ("MCP_REPLICA_URL", self.url.is_some()),
                ("MCP_REPLICA_SECRET", self.secret.is_some()),
            ];
            return match set.into_iter().find(|(_, is_set)| *is_set) {
                None => Ok(None),
                Some((name, _)) => {
                    let message = format!("variable `{name}` needs `MCP_REPLICA_LISTEN`");
                    Err(CliError::usage(message)
                        .with_hint("set the address on which other replicas reach this one"))
                }
            };
        };
        let Some(redis) = redis else {
            let message =
                "variable `MCP_REPLICA_LISTEN`: replicas share a Redis, which is not the store";
            return Err(CliError::usage(message)
                .with_hint("set `MCP_REDIS_URL`, or pass `--store redis://…`"));
        };
        let Some(secret) = &self.secret else {
            let message = "variable `MCP_REPLICA_LISTEN` needs `MCP_REPLICA_SECRET`";
            return Err(CliError::usage(message).with_hint(
                "set the same secret of at least 32 characters for all replicas, for example from \
                 `openssl rand -hex 32`",
            ));
        };
        if self.url.is_none() && listen.value.ip().is_unspecified() {
            let message = format!("other replicas cannot reach the address {}", listen.value);
            return Err(CliError::usage(message)
                .with_hint("set `MCP_REPLICA_URL` to the URL of this replica for the others"));
        }
        Ok(Some(Replica {
            listen: listen.value,
            url: self.url.as_ref().map(|url| url.value.clone()),
            secret: secret.value.clone(),
            lease: self.lease.value,
            idle,
            redis: redis.clone(),
        }))
    }
}

/// One of several replicas before it joins the others.
pub(super) struct Replica {
    listen: SocketAddr,
    url: Option<String>,
    secret: Secret,
    lease: Duration,
    idle: Duration,
    redis: Arc<RedisClient>,
}

impl Replica {
    /// Opens the address for the requests of other replicas, and joins them. Waits for a Redis that is
    /// not available.
    pub(super) async fn join(
        self,
        store: &StoreSettings,
        output: &mut Output,
    ) -> Result<(Replicas, TcpListener), CliError> {
        let Self { listen, url, secret, lease, idle, redis } = self;
        let listener = TcpListener::bind(listen).await.map_err(|error| {
            CliError::failure(format!("cannot listen on {listen} for replicas"))
                .with_source(error)
                .with_hint("choose another address with `MCP_REPLICA_LISTEN`")
        })?;
        let address = listener.local_addr()?;
        let url = url.unwrap_or_else(|| format!("http://{address}"));
        let options = ReplicaOptions { url, secret, lease, idle };
        Ok((
            store
                .retry(output, async || Replicas::join(redis.clone(), options.clone()).await)
                .await?,
            listener,
        ))
    }
}

fn parse_address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "the value must be an address with a port, such as `0.0.0.0:9090`")
}

fn parse_url(text: &str) -> Result<String, &'static str> {
    let text = text.strip_suffix('/').unwrap_or(text);
    let host = text.strip_prefix("http://").unwrap_or_default();
    let is_usable =
        !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._:[]".contains(c));
    if !is_usable {
        return Err("the value must be a URL without a path, such as `http://10.0.0.7:9090`");
    }
    Ok(text.to_owned())
}

fn parse_secret(text: &str) -> Result<Secret, String> {
    let is_usable = text.chars().count() >= MIN_SECRET_CHARS
        && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_usable {
        return Ok(Secret::new(text));
    }
    Err(format!("the value must have at least {MIN_SECRET_CHARS} visible ASCII characters"))
}

fn parse_lease(text: &str) -> Result<Duration, String> {
    let lease = parse_seconds(text)?;
    if lease.as_secs() < MIN_LEASE_SECONDS {
        return Err(format!("the value must be at least {MIN_LEASE_SECONDS} seconds"));
    }
    Ok(lease)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_a_replica_has_a_scheme_and_a_host_and_nothing_else() {
        for good in ["http://10.0.0.7:9090", "http://a-0.replicas.default.svc:9090/"] {
            assert_eq!(parse_url(good).unwrap(), good.trim_end_matches('/'));
        }
        for bad in ["10.0.0.7:9090", "https://a:1", "http://a:1/x", "http://u:p@a:1", "http://"] {
            assert!(parse_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_secret_has_at_least_32_characters_that_a_header_can_contain() {
        assert_eq!(parse_secret(&"x".repeat(32)).unwrap().expose(), "x".repeat(32));
        assert!(parse_secret(&"x".repeat(31)).is_err());
        assert!(parse_secret(&format!("{}\n", "x".repeat(32))).is_err());
        assert!(parse_lease("2").is_err() && parse_lease("3").is_ok());
    }
}
