//! Identity and capabilities in `_meta` of modern messages (revision 2026-07-28).

mod incoming;

#[cfg(test)]
mod tests;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::revision::Revision;
use crate::skim;
use crate::view::{ObjectView, ServerCapabilities, ViewError};

pub use incoming::{CONNECTION_META_KEYS, IncomingMeta, META_PROGRESS_TOKEN, RequiredMeta};

/// Key of the protocol revision of a request.
pub const META_PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Key of the client's capabilities.
pub const META_CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Key of the client's name and version.
pub const META_CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Key of the minimum log level for a request.
pub const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Key of the server's name and version.
pub const META_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Key of the subscription of a notification.
pub const META_SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Key of the task that a message of revision 2025-11-25 belongs to: an object with `taskId`.
pub const META_RELATED_TASK: &str = "io.modelcontextprotocol/related-task";

/// Key of the tasks extension under `extensions` in the capabilities of either side.
pub const EXTENSION_TASKS: &str = "io.modelcontextprotocol/tasks";

/// The client metadata of every modern request.
#[derive(Clone, Copy, Debug)]
pub struct RequestMeta<'a> {
    /// The protocol revision of the request.
    pub revision: Revision,
    /// The client's name.
    pub client_name: &'a str,
    /// The client's version.
    pub client_version: &'a str,
    /// The client's capabilities as an object; none by default.
    pub capabilities: Option<&'a RawValue>,
    /// The minimum log level for this request. By default the server sends no log messages.
    pub log_level: Option<&'a str>,
}

impl RequestMeta<'_> {
    /// Returns the `_meta` object of a request. With a progress token the server may send progress
    /// notifications for that token.
    pub fn to_meta(&self, progress_token: Option<u64>) -> Box<RawValue> {
        to_raw_value(&MetaObject { request: self, progress_token })
            .expect("strings and numbers always serialize as JSON")
    }
}

/// Serialized form of a request's `_meta`.
struct MetaObject<'a> {
    request: &'a RequestMeta<'a>,
    progress_token: Option<u64>,
}

impl Serialize for MetaObject<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut meta = serializer.serialize_map(None)?;
        if let Some(token) = self.progress_token {
            meta.serialize_entry(META_PROGRESS_TOKEN, &token)?;
        }
        meta.serialize_entry(META_PROTOCOL_VERSION, &self.request.revision)?;
        let client = Implementation {
            name: self.request.client_name,
            version: self.request.client_version,
            title: None,
        };
        meta.serialize_entry(META_CLIENT_INFO, &client)?;
        match self.request.capabilities {
            Some(capabilities) => meta.serialize_entry(META_CLIENT_CAPABILITIES, capabilities)?,
            None => meta.serialize_entry(META_CLIENT_CAPABILITIES, &EmptyCapabilities {})?,
        }
        if let Some(level) = self.request.log_level {
            meta.serialize_entry(META_LOG_LEVEL, level)?;
        }
        meta.end()
    }
}

/// The name and version of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Implementation<'a> {
    /// The name of the program.
    pub name: &'a str,
    /// The version of the program.
    pub version: &'a str,
    /// The display name (since 2025-06-18).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<&'a str>,
}

#[derive(serde::Serialize)]
struct EmptyCapabilities {}

/// The result of `server/discover`.
#[derive(Clone, Debug)]
pub struct DiscoverResult {
    /// The revisions that the server supports without a handshake. The server may support further
    /// revisions with a handshake.
    pub supported_versions: Vec<String>,
    /// The server's capabilities.
    pub capabilities: ServerCapabilities,
    /// The server's name and version, unverified, as raw JSON.
    pub server_info: Option<Box<RawValue>>,
    /// Instructions for the model.
    pub instructions: Option<String>,
    /// Lifetime of this result in milliseconds.
    pub ttl_ms: Option<u64>,
    /// Cache scope of this result: `public` or `private`.
    pub cache_scope: Option<String>,
}

/// Maximum number of supported revisions stored per server; five revisions are published.
const MAX_VERSIONS: usize = 64;

impl DiscoverResult {
    /// Reads the result of `server/discover`. Versions that are not strings and versions after the
    /// first 64 are ignored.
    ///
    /// # Errors
    ///
    /// Returns an error if `supportedVersions` is not an array or `capabilities` is not an object.
    pub fn from_raw(raw: &RawValue) -> Result<Self, ViewError> {
        let members =
            ["supportedVersions", "capabilities", "_meta", "instructions", "ttlMs", "cacheScope"];
        let result = ObjectView::from_raw(raw, members)?;
        let versions = skim::elements(result.required_array("supportedVersions")?);
        let meta =
            ObjectView::from_raw_at(String::new(), result.get("_meta"), [META_SERVER_INFO]).ok();
        Ok(Self {
            supported_versions: versions
                .filter_map(crate::text::decode_string)
                .map(Into::into)
                .take(MAX_VERSIONS)
                .collect(),
            capabilities: ServerCapabilities::from_object(&result)?,
            server_info: meta.and_then(|meta| meta.raw_object(META_SERVER_INFO)),
            instructions: result.string("instructions"),
            ttl_ms: result.unsigned("ttlMs"),
            cache_scope: result.string("cacheScope"),
        })
    }
}
