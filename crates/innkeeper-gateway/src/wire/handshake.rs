//! `initialize` and `server/discover` on the side of the server.

use innkeeper_protocol::request_meta::META_SERVER_INFO;
use innkeeper_protocol::{Era, Revision, skim};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(crate) struct InitializeParams {
    pub(crate) protocol_version: String,
    pub(crate) capabilities: Box<RawValue>,
}

impl InitializeParams {
    pub(crate) fn from_raw(params: &RawValue) -> Result<Self, String> {
        let member = |key: &str| skim::member(params.get(), key);
        let version = member("protocolVersion").and_then(skim::decode_string);
        let protocol_version =
            version.ok_or("`params/protocolVersion` must be a string")?.into_owned();
        let capabilities = member("capabilities").unwrap_or("{}");
        if !capabilities.starts_with('{') {
            return Err("`params/capabilities` must be an object".to_owned());
        }
        let capabilities = RawValue::from_string(capabilities.to_owned());
        Ok(Self { protocol_version, capabilities: capabilities.map_err(|e| e.to_string())? })
    }
}

/// Returns the requested revision of the legacy era, else the latest.
pub(crate) fn negotiate(requested: &str) -> Revision {
    let known = requested.parse::<Revision>().ok();
    known.filter(|known| known.era() == Era::Legacy).unwrap_or(Revision::LATEST_LEGACY)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct InitializeResponse<'a> {
    #[serde(rename = "protocolVersion")]
    pub(crate) revision: Revision,
    pub(crate) capabilities: &'a RawValue,
    pub(crate) server_info: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) instructions: Option<&'a str>,
}

pub(crate) struct DiscoverResponse<'a> {
    pub(crate) supported_versions: &'a [Revision],
    pub(crate) capabilities: &'a RawValue,
    pub(crate) server_info: &'a RawValue,
    pub(crate) instructions: Option<&'a str>,
}

impl DiscoverResponse<'_> {
    pub(crate) fn to_value(&self) -> Value {
        let mut value = json!({
            "resultType": "complete",
            "supportedVersions": self.supported_versions,
            "capabilities": self.capabilities,
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": { META_SERVER_INFO: self.server_info },
        });
        if let Some(instructions) = self.instructions {
            value["instructions"] = instructions.into();
        }
        value
    }
}
