//! A server in the catalog.

use std::sync::Arc;

use innkeeper_protocol::Era;
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::entry::CatalogEntry;
use crate::connection::list_ttls::ListCacheHints;
use crate::connection::listing::ServerListing;
use crate::error::UnavailableReason;
use crate::lifecycle::ServerState;

/// One server in the catalog.
#[derive(Clone, Debug)]
pub struct CatalogServer {
    pub(crate) name: Arc<str>,
    pub(crate) state: ServerState,
    pub(crate) transport: &'static str,
    pub(crate) unavailable_reason: Option<UnavailableReason>,
    pub(crate) entry: Option<Arc<CatalogEntry>>,
}

impl CatalogServer {
    /// Returns the state of the server at the time of the snapshot.
    pub fn state(&self) -> ServerState {
        self.state
    }

    /// Returns the transport, for example `stdio`.
    pub fn transport(&self) -> &'static str {
        self.transport
    }

    /// Returns the negotiated protocol revision, or `None` if the server is not ready.
    pub fn protocol_version(&self) -> Option<&'static str> {
        self.entry.as_ref().map(|entry| entry.connection.negotiated.revision.as_str())
    }

    /// Returns `serverInfo` as the server sent it. The content is a claim, not a verified identity.
    pub fn server_info(&self) -> Option<&RawValue> {
        self.entry.as_ref()?.introduction.server_info.as_deref()
    }

    /// Returns the capabilities that the server declares, byte for byte, or `None` if the server is
    /// not ready. The content is a claim of the server.
    pub fn capabilities(&self) -> Option<&RawValue> {
        self.entry.as_ref().map(|entry| &*entry.connection.negotiated.capabilities)
    }

    /// Returns the server's instructions for a model, or `None` while a pin or the guard withholds
    /// them.
    pub fn instructions(&self) -> Option<&str> {
        let introduction = &self.entry.as_ref()?.introduction;
        introduction.instructions.as_deref().filter(|_| !introduction.is_withheld)
    }

    /// Returns the tools, prompts, resources and templates, or `None` if the server is not ready.
    pub fn listing(&self) -> Option<&ServerListing> {
        self.entry.as_ref().map(|entry| &entry.listing)
    }

    /// Returns the cache hints of the last read of each list, as of now: a list that is read again
    /// without a change has a new lifetime in the same catalog. Returns `None` for a server of the
    /// legacy era, which sends no hints, and for a server that is not ready.
    pub fn list_cache_hints(&self) -> Option<ListCacheHints> {
        let connection = &self.entry.as_ref()?.connection;
        let is_modern = connection.negotiated.revision.era() == Era::Modern;
        is_modern.then(|| connection.freshness.list_ttls.hints())
    }

    /// Returns the number of the connection, which no other connection of the process has, or `None`
    /// if the server is not ready. A server that restarts has a new connection.
    pub fn connection_number(&self) -> Option<u64> {
        self.entry.as_ref().map(|entry| entry.connection.number.0)
    }
}

impl Serialize for CatalogServer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nothing = ServerListing::default();
        let lists = self.listing().unwrap_or(&nothing);
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("state", &self.state)?;
        map.serialize_entry("protocolVersion", &self.protocol_version())?;
        map.serialize_entry("transport", self.transport)?;
        map.serialize_entry("serverInfo", &self.server_info())?;
        if let Some(instructions) = self.instructions() {
            map.serialize_entry("instructions", instructions)?;
        }
        map.serialize_entry("tools", &lists.tools)?;
        map.serialize_entry("prompts", &lists.prompts)?;
        map.serialize_entry("resources", &lists.resources)?;
        map.serialize_entry("resourceTemplates", &lists.resource_templates)?;
        if !lists.missing.is_empty() {
            map.serialize_entry("missing", &lists.missing)?;
        }
        map.end()
    }
}

/// A server that accepts no calls.
#[derive(Debug)]
pub(super) struct UnavailableServer {
    pub(super) reason: UnavailableReason,
    /// The last entry of the server while it was ready.
    pub(super) entry: Option<Arc<CatalogEntry>>,
}
