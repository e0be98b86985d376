//! What the revision 2026-07-28 adds to every message: identity and capabilities in `_meta`.

#[cfg(test)]
mod tests;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::revision::Revision;
use crate::skim;
use crate::view::{Object, ServerCapabilities, ViewError};

/// Key of the revision that a request is written in.
pub const META_PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Key of what the client can do for the server.
pub const META_CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Key of who the client is.
pub const META_CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// Key of how much a server should log for a request.
pub const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Key of who the server is.
pub const META_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// Key of the subscription that a notification belongs to.
pub const META_SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Key of the tasks extension under `extensions` of either side's capabilities.
pub const EXTENSION_TASKS: &str = "io.modelcontextprotocol/tasks";

/// What a client says of itself with every request.
#[derive(Clone, Copy, Debug)]
pub struct RequestMeta<'a> {
    /// The revision the request is written in.
    pub revision: Revision,
    /// The client's name.
    pub client_name: &'a str,
    /// The client's version.
    pub client_version: &'a str,
    /// What the client can do for the server, an object; nothing unless given.
    pub capabilities: Option<&'a RawValue>,
    /// From which level on the server should log for this request; it logs nothing unless given.
    pub log_level: Option<&'a str>,
}

impl RequestMeta<'_> {
    /// The `_meta` object of a request; with a token, the server may report progress under it.
    pub fn to_meta(&self, progress_token: Option<u64>) -> Box<RawValue> {
        to_raw_value(&Meta { of: self, progress_token })
            .expect("text and numbers can always be written as JSON")
    }
}

/// A request's `_meta` on its way out.
struct Meta<'a> {
    of: &'a RequestMeta<'a>,
    progress_token: Option<u64>,
}

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut meta = serializer.serialize_map(None)?;
        if let Some(token) = self.progress_token {
            meta.serialize_entry("progressToken", &token)?;
        }
        meta.serialize_entry(META_PROTOCOL_VERSION, &self.of.revision)?;
        let client = ClientInfo { name: self.of.client_name, version: self.of.client_version };
        meta.serialize_entry(META_CLIENT_INFO, &client)?;
        match self.of.capabilities {
            Some(capabilities) => meta.serialize_entry(META_CLIENT_CAPABILITIES, capabilities)?,
            None => meta.serialize_entry(META_CLIENT_CAPABILITIES, &NoCapabilities {})?,
        }
        if let Some(level) = self.of.log_level {
            meta.serialize_entry(META_LOG_LEVEL, level)?;
        }
        meta.end()
    }
}

#[derive(serde::Serialize)]
struct ClientInfo<'a> {
    name: &'a str,
    version: &'a str,
}

#[derive(serde::Serialize)]
struct NoCapabilities {}

/// The answer to `server/discover`.
#[derive(Clone, Debug)]
pub struct DiscoverResult {
    /// The revisions the server speaks without a handshake; not all that it speaks.
    pub supported_versions: Vec<String>,
    /// What it offers.
    pub capabilities: ServerCapabilities,
    /// Who it says it is, as it was sent.
    pub server_info: Option<Box<RawValue>>,
    /// What a model should know about it.
    pub instructions: Option<String>,
    /// How long this holds, in milliseconds.
    pub ttl_ms: Option<u64>,
    /// Who may share it: `public` or `private`.
    pub cache_scope: Option<String>,
}

/// The most revisions kept of a server's list; five are published.
const VERSIONS_LIMIT: usize = 64;

impl DiscoverResult {
    /// Reads the result of `server/discover`. Of the versions, those that are not text are left out,
    /// and those beyond the first 64.
    ///
    /// # Errors
    ///
    /// If `supportedVersions` is not an array or `capabilities` not an object.
    pub fn read(raw: &RawValue) -> Result<Self, ViewError> {
        let wanted =
            ["supportedVersions", "capabilities", "_meta", "instructions", "ttlMs", "cacheScope"];
        let result = Object::read(raw, wanted)?;
        let versions = skim::elements(result.required_array("supportedVersions")?);
        let meta = Object::at(String::new(), result.get("_meta"), [META_SERVER_INFO]).ok();
        Ok(Self {
            supported_versions: versions
                .filter_map(crate::text::decode)
                .map(Into::into)
                .take(VERSIONS_LIMIT)
                .collect(),
            capabilities: ServerCapabilities::read(&result)?,
            server_info: meta.and_then(|meta| meta.raw_object(META_SERVER_INFO)),
            instructions: result.string("instructions"),
            ttl_ms: result.unsigned("ttlMs"),
            cache_scope: result.string("cacheScope"),
        })
    }
}
