//! The features of the server, and the check of the capabilities of a client against them.

use indexmap::IndexMap;
use innkeeper_host::display_safe;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::version::{FeatureVersion, InvalidVersion, VersionCompatibility};

/// How much a server needs a feature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeatureCapabilityLevel {
    /// A client without the feature is rejected.
    Required,
    /// The server works better with the feature.
    Preferred,
    /// The client can use the feature.
    #[default]
    Optional,
    /// The feature can change or go.
    Experimental,
}

/// A feature of the server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Feature {
    /// The version. Default: `version` of the properties, otherwise `1.0.0`.
    pub version: Option<String>,
    /// How much the server needs the feature.
    pub level: FeatureCapabilityLevel,
    /// Which versions of a client fit.
    pub version_compatibility: VersionCompatibility,
    /// What clients learn about the feature.
    pub properties: Map<String, Value>,
    /// The properties that the feature of a client must have. Default: none.
    pub required_properties: Vec<String>,
}

/// A feature cannot be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FeatureError {
    /// A feature with this name is registered.
    #[error("feature `{name}` is already registered")]
    AlreadyRegistered {
        /// The name.
        name: String,
    },
    /// The version of the feature is not a version.
    #[error("feature `{name}`")]
    Version {
        /// The name.
        name: String,
        /// The reason.
        source: InvalidVersion,
    },
}

/// The features of a server by name.
#[derive(Clone, Debug, Default)]
pub struct CapabilityRegistry {
    features: IndexMap<String, RegisteredFeature>,
}

#[derive(Clone, Debug)]
struct RegisteredFeature {
    version: FeatureVersion,
    feature: Feature,
}

/// What a client declares about its features.
pub type ClientCapabilities = IndexMap<String, ClientFeature>;

/// A feature in the capabilities of a client: a boolean, or an object with `version`, `properties`
/// and `supported`.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientFeature {
    /// Whether the client supports the feature. Default: true.
    pub supported: bool,
    /// The version; `None` fits every version of the server.
    pub version: Option<String>,
    /// The other members of the object, with the members of `properties` before them.
    pub properties: Map<String, Value>,
}

impl ClientFeature {
    /// Creates a feature without a version.
    pub fn new(supported: bool) -> Self {
        Self { supported, version: None, properties: Map::new() }
    }
}

impl CapabilityRegistry {
    /// Creates a registry without features.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a registry with the features of the connection service: `core.jsonrpc` 2.0 and
    /// `core.transport.http` 1.0 are required, `core.transport.sse` 1.0 is preferred, and `tools`,
    /// `prompts` and `resources` 1.0 are optional.
    pub fn with_core_features() -> Self {
        use FeatureCapabilityLevel::{Optional, Preferred, Required};
        use VersionCompatibility::{Compatible, Exact};
        let core = [
            ("core.jsonrpc", "2.0.0", Required, Exact),
            ("core.transport.http", "1.0.0", Required, Compatible),
            ("core.transport.sse", "1.0.0", Preferred, Compatible),
            ("tools", "1.0.0", Optional, Compatible),
            ("prompts", "1.0.0", Optional, Compatible),
            ("resources", "1.0.0", Optional, Compatible),
        ];
        let mut registry = Self::new();
        for (name, version, level, version_compatibility) in core {
            let version = Some(version.to_owned());
            let feature = Feature { version, level, version_compatibility, ..Feature::default() };
            // The constants are versions, and each name is there once.
            registry.register_feature(name, feature).unwrap_or_default();
        }
        registry
    }

    /// Adds a feature.
    ///
    /// # Errors
    ///
    /// Returns an error if the registry has a feature with the name, or if the version is invalid.
    ///
    /// # Examples
    ///
    /// ```
    /// use innkeeper_gateway::connections::{
    ///     CapabilityRegistry, Feature, FeatureCapabilityLevel, VersionCompatibility,
    /// };
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut registry = CapabilityRegistry::with_core_features();
    /// let properties = serde_json::json!({ "version": "1.2", "methods": ["list_jobs"] });
    /// registry.register_feature(
    ///     "tool.job_management",
    ///     Feature {
    ///         properties: properties.as_object().cloned().unwrap_or_default(),
    ///         level: FeatureCapabilityLevel::Optional,
    ///         version_compatibility: VersionCompatibility::Compatible,
    ///         ..Feature::default()
    ///     },
    /// )?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn register_feature(
        &mut self,
        name: impl Into<String>,
        feature: Feature,
    ) -> Result<(), FeatureError> {
        let name = name.into();
        if self.features.contains_key(&name) {
            return Err(FeatureError::AlreadyRegistered { name });
        }
        let property = feature.properties.get("version").and_then(Value::as_str);
        let version = match feature.version.as_deref().or(property) {
            Some(text) => match text.parse() {
                Ok(version) => version,
                Err(source) => return Err(FeatureError::Version { name, source }),
            },
            None => FeatureVersion::first(),
        };
        self.features.insert(name, RegisteredFeature { version, feature });
        Ok(())
    }

    /// Returns the features as clients receive them.
    pub fn declaration(&self) -> Map<String, Value> {
        let declared =
            self.features.iter().map(|(name, RegisteredFeature { version, feature })| {
                let declaration = json!({
                    "supported": true,
                    "version": version,
                    "level": feature.level,
                    "version_compatibility": feature.version_compatibility,
                    "properties": feature.properties,
                    "required_properties": feature.required_properties,
                });
                (name.clone(), declaration)
            });
        declared.collect()
    }

    /// Returns every reason why a client with these capabilities is rejected; none if it is
    /// accepted. Features that the server does not know are ignored.
    pub fn incompatibilities(&self, client: &ClientCapabilities) -> Vec<String> {
        self.features
            .iter()
            .flat_map(|(name, registered)| registered.incompatibilities(name, client.get(name)))
            .collect()
    }

    /// Returns whether a connection can use a feature: the feature is registered, and the client
    /// declares it without `supported: false`.
    pub fn is_feature_enabled(&self, name: &str, client: &ClientCapabilities) -> bool {
        self.features.contains_key(name)
            && client.get(name).is_some_and(|feature| feature.supported)
    }
}

impl RegisteredFeature {
    fn incompatibilities(&self, name: &str, client: Option<&ClientFeature>) -> Vec<String> {
        let Some(client) = client.filter(|client| client.supported) else {
            let is_required = self.feature.level == FeatureCapabilityLevel::Required;
            let reason = match client {
                None => format!("required feature `{name}` is missing"),
                Some(_) => format!("required feature `{name}` is not supported by the client"),
            };
            return is_required.then_some(reason).into_iter().collect();
        };
        let version = self.version_reason(name, client);
        let required = self.feature.required_properties.iter();
        let missing = required.filter(|property| !client.properties.contains_key(*property));
        let missing = missing
            .map(|property| format!("feature `{name}` lacks the required property `{property}`"));
        version.into_iter().chain(missing).collect()
    }

    fn version_reason(&self, name: &str, client: &ClientFeature) -> Option<String> {
        let compatibility = self.feature.version_compatibility;
        let text = client.version.as_deref()?;
        match text.parse::<FeatureVersion>() {
            Err(error) => Some(format!("version of feature `{name}`: {error}")),
            Ok(version) if compatibility.accepts(&self.version, &version) => None,
            Ok(_) => Some(format!(
                "feature `{name}`: the client has version `{}`, the server accepts {}",
                display_safe(text),
                compatibility.describe(&self.version)
            )),
        }
    }
}

impl Serialize for ClientFeature {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut members = Map::new();
        members.insert("supported".to_owned(), self.supported.into());
        if let Some(version) = &self.version {
            members.insert("version".to_owned(), version.clone().into());
        }
        members.insert("properties".to_owned(), self.properties.clone().into());
        members.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ClientFeature {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let invalid = serde::de::Error::custom;
        let mut members = match Value::deserialize(deserializer)? {
            Value::Bool(supported) => return Ok(Self::new(supported)),
            Value::Object(members) => members,
            _ => return Err(invalid("a feature must be a boolean or an object")),
        };
        let supported = match members.remove("supported") {
            None => true,
            Some(Value::Bool(supported)) => supported,
            Some(_) => return Err(invalid("`supported` must be a boolean")),
        };
        let version = match members.remove("version") {
            None => None,
            Some(Value::String(version)) => Some(version),
            Some(_) => return Err(invalid("`version` must be a string")),
        };
        let mut properties = match members.remove("properties") {
            None => Map::new(),
            Some(Value::Object(properties)) => properties,
            Some(_) => return Err(invalid("`properties` must be an object")),
        };
        for (key, value) in members {
            properties.entry(key).or_insert(value);
        }
        Ok(Self { supported, version, properties })
    }
}

#[cfg(test)]
mod tests;
