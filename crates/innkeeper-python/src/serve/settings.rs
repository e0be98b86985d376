//! The settings of a gateway inside this process, which Python passes as one object.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use innkeeper::config::{ApprovalConfig, NameStyle, ServeConfig};
use innkeeper_gateway::RedisClient;
use innkeeper_gateway::connections::store::{
    ConnectionStore, MemoryStore, RedisStore, StoreOptions,
};
use innkeeper_gateway::connections::{
    CapabilityRegistry, ConnectionOptions, ConnectionService, ConnectionServiceBuilder,
    CookieSecure, Feature, FeatureCapabilityLevel, PathPrefix, VersionCompatibility,
};
use innkeeper_gateway::pending_questions::store::{
    MemoryQuestionStore, QuestionStore, RedisQuestionStore,
};
use innkeeper_gateway::pending_questions::{PendingQuestions, QuestionOptions};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::failure::Failure;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settings {
    /// `None` for `serve.listen` of the configuration.
    listen: Option<String>,
    pub(super) allow_unauthenticated: bool,
    names: Option<Names>,
    /// The URL of a Redis; `None` for memory.
    store: Option<String>,
    /// `None` for a gateway without connections.
    connections: Option<ConnectionSettings>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Names {
    Prefixed,
    Flat,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConnectionSettings {
    server_name: String,
    server_version: String,
    prefix: String,
    expiry: f64,
    cookie_secure: Secure,
    features: Vec<FeatureSettings>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Secure {
    Auto,
    Always,
    Never,
}

/// A feature of the application, in the form in which clients receive features.
#[derive(Deserialize)]
struct FeatureSettings {
    #[serde(default)]
    name: String,
    version: Option<String>,
    level: FeatureCapabilityLevel,
    version_compatibility: VersionCompatibility,
    properties: Map<String, Value>,
    required_properties: Vec<String>,
}

impl Settings {
    /// Replaces the settings of the configuration.
    pub(super) fn apply(&self, serve: &mut ServeConfig) -> Result<(), Failure> {
        if let Some(text) = &self.listen {
            serve.listen = text.parse::<SocketAddr>().map_err(|_| {
                Failure::Serve(format!(
                    "`listen` must be an address with a port, such as `127.0.0.1:0`, not `{text}`"
                ))
            })?;
        }
        match self.names {
            Some(Names::Prefixed) => serve.names = NameStyle::Prefixed,
            Some(Names::Flat) => serve.names = NameStyle::Flat,
            None => {}
        }
        Ok(())
    }

    /// Creates the connection service with its features; `None` if there is none.
    pub(super) async fn connection_service(
        &self,
        max_connections: usize,
    ) -> Result<Option<(ConnectionService, CapabilityRegistry)>, Failure> {
        let Some(settings) = &self.connections else { return Ok(None) };
        let prefix: PathPrefix = settings
            .prefix
            .parse()
            .map_err(|error| Failure::Serve(format!("`{}`: {error}", settings.prefix)))?;
        let expiry = Duration::try_from_secs_f64(settings.expiry)
            .map_err(|error| Failure::Serve(format!("the expiry of connections: {error}")))?;
        let cookie_secure = match settings.cookie_secure {
            Secure::Auto => CookieSecure::Auto,
            Secure::Always => CookieSecure::Always,
            Secure::Never => CookieSecure::Never,
        };
        let options = ConnectionOptions {
            prefix,
            server_name: settings.server_name.clone(),
            server_version: settings.server_version.clone(),
            expiry,
            cookie_secure,
        };
        let store_options = StoreOptions { expiry, max_connections };
        let store: Arc<dyn ConnectionStore> = match self.redis()? {
            None => Arc::new(MemoryStore::new(store_options)),
            Some(redis) => {
                let store = RedisStore::with_client(redis, store_options).await;
                Arc::new(store.map_err(|error| Failure::Serve(format!("no store: {error}")))?)
            }
        };
        let registry = registry(&settings.features)?;
        let builder = ConnectionServiceBuilder::new(options, registry.clone(), store);
        Ok(Some((builder.build(), registry)))
    }

    /// Returns the questions of operators; `None` if nothing waits for an operator.
    pub(super) async fn questions(
        &self,
        approval: &ApprovalConfig,
    ) -> Result<Option<PendingQuestions>, Failure> {
        if !approval.is_configured() {
            return Ok(None);
        }
        let store: Arc<dyn QuestionStore> = match self.redis()? {
            None => Arc::new(MemoryQuestionStore::default()),
            Some(redis) => {
                let store = RedisQuestionStore::connect(redis).await;
                Arc::new(store.map_err(|error| Failure::Serve(format!("no store: {error}")))?)
            }
        };
        Ok(Some(PendingQuestions::new(store, QuestionOptions::from(approval))))
    }

    fn redis(&self) -> Result<Option<Arc<RedisClient>>, Failure> {
        let client = self.store.as_deref().map(RedisClient::new).transpose();
        let client = client.map_err(|error| Failure::Serve(format!("no store: {error}")))?;
        Ok(client.map(Arc::new))
    }
}

/// Returns the features of the application, and the service's own unless the application replaces
/// them.
fn registry(features: &[FeatureSettings]) -> Result<CapabilityRegistry, Failure> {
    let mut registry = CapabilityRegistry::new();
    for feature in features {
        register(&mut registry, &feature.name, feature)?;
    }
    for (name, declared) in CapabilityRegistry::with_core_features().declaration() {
        if features.iter().all(|feature| feature.name != name) {
            let core = FeatureSettings::deserialize(declared)
                .map_err(|error| Failure::Internal(error.to_string()))?;
            register(&mut registry, &name, &core)?;
        }
    }
    Ok(registry)
}

fn register(
    registry: &mut CapabilityRegistry,
    name: &str,
    settings: &FeatureSettings,
) -> Result<(), Failure> {
    let feature = Feature {
        version: settings.version.clone(),
        level: settings.level,
        version_compatibility: settings.version_compatibility,
        properties: settings.properties.clone(),
        required_properties: settings.required_properties.clone(),
    };
    registry.register_feature(name, feature).map_err(|error| Failure::Serve(error.to_string()))
}
