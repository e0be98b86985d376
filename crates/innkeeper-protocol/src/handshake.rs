//! The server's side of the handshake: `initialize` and `server/discover`.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::params_error::{self, ParamsError};
use crate::request_meta::{Implementation, META_SERVER_INFO};
use crate::revision::Revision;
use crate::view::ObjectView;

/// The parameters of `initialize`, as text of the request (2025-11-25, Lifecycle, Initialization).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitializeParams<'a> {
    /// The revision that the client requests; may be any string. See [`Revision::negotiate`].
    pub protocol_version: Cow<'a, str>,
    /// The client's capabilities, an object as raw JSON.
    pub capabilities: &'a str,
    /// The client's name and version, unverified, an object as raw JSON.
    pub client_info: &'a str,
}

impl<'a> InitializeParams<'a> {
    /// Reads the `params` of `initialize`.
    ///
    /// # Errors
    ///
    /// Returns an error if `protocolVersion` is not a string, if `capabilities` or `clientInfo` is
    /// not an object, or if two members of `params` have the same key.
    pub fn from_raw(params: &'a RawValue) -> Result<Self, ParamsError> {
        let members =
            ObjectView::from_raw(params, ["protocolVersion", "capabilities", "clientInfo"])?;
        params_error::check_keys("params", params.get())?;
        let absent = |name, expected| members.unexpected_type(name, expected);
        Ok(Self {
            protocol_version: members
                .optional_string("protocolVersion")?
                .ok_or_else(|| absent("protocolVersion", "a string"))?,
            capabilities: members
                .optional_object("capabilities")?
                .ok_or_else(|| absent("capabilities", "an object"))?,
            client_info: members
                .optional_object("clientInfo")?
                .ok_or_else(|| absent("clientInfo", "an object"))?,
        })
    }
}

/// The result of `initialize` (2025-11-25, Lifecycle, Initialization), to serialize.
#[derive(Clone, Copy, Debug, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResponse<'a> {
    /// The negotiated revision.
    #[serde(rename = "protocolVersion")]
    pub revision: Revision,
    /// The server's capabilities, an object.
    pub capabilities: &'a RawValue,
    /// The server's name and version.
    pub server_info: Implementation<'a>,
    /// Instructions for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<&'a str>,
}

/// The result of `server/discover` (2026-07-28, Discovery), to serialize. The `resultType` is
/// `complete`.
#[derive(Clone, Copy, Debug)]
pub struct DiscoverResponse<'a> {
    /// The revisions that the server supports without a handshake.
    pub supported_versions: &'a [Revision],
    /// The server's capabilities, an object.
    pub capabilities: &'a RawValue,
    /// The server's name and version, sent in `_meta`.
    pub server_info: Implementation<'a>,
    /// Instructions for the model.
    pub instructions: Option<&'a str>,
    /// The lifetime of this result in milliseconds.
    pub ttl_ms: u64,
    /// The clients that may share this result.
    pub cache_scope: CacheScope,
}

/// The clients that may share a cached result (2026-07-28, Caching).
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheScope {
    /// All clients.
    Public,
    /// Only the client that sent the request.
    Private,
}

impl Serialize for DiscoverResponse<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut result = serializer.serialize_map(None)?;
        result.serialize_entry("resultType", "complete")?;
        result.serialize_entry("supportedVersions", self.supported_versions)?;
        result.serialize_entry("capabilities", self.capabilities)?;
        if let Some(instructions) = self.instructions {
            result.serialize_entry("instructions", instructions)?;
        }
        result.serialize_entry("ttlMs", &self.ttl_ms)?;
        result.serialize_entry("cacheScope", &self.cache_scope)?;
        result.serialize_entry("_meta", &BTreeMap::from([(META_SERVER_INFO, self.server_info)]))?;
        result.end()
    }
}
