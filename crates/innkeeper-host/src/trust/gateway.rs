//! The settings of the gateway for a trust decision: who may connect is a part of the launch.

use innkeeper_config::{Config, ServeConfig};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The `serve` object of a configuration, with everything that matters for a trust decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewaySpec {
    /// The settings that differ from their defaults. The hashes of API keys are masked.
    pub settings: Map<String, Value>,
    hash: [u8; 32],
}

impl GatewaySpec {
    /// Returns the settings of a configuration; `None` if they are the defaults.
    pub fn from_config(config: &Config) -> Option<Self> {
        let serve = config.serve.as_ref().filter(|serve| **serve != ServeConfig::default())?;
        let mut hash = Sha256::new();
        // The JSON text has a mask in place of the hashes.
        for key in &serve.auth.api_keys {
            hash.update(key.sha256.as_bytes());
        }
        hash.update(json!(serve).to_string());
        let defaults = json!(ServeConfig::default());
        let settings = match json!(serve) {
            Value::Object(settings) => settings,
            _ => Map::new(),
        };
        let settings = settings.into_iter().filter(|(key, value)| defaults.get(key) != Some(value));
        Some(Self { settings: settings.collect(), hash: hash.finalize().into() })
    }

    /// Returns a SHA-256 in hexadecimal over all settings, including masked values.
    pub fn fingerprint(&self) -> String {
        hex::encode(self.hash)
    }
}
