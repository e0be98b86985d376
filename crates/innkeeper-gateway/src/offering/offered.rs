//! A server and an item that clients can use.

use std::sync::Arc;

use innkeeper_host::{CatalogServer, ListCacheHint};
use innkeeper_protocol::http::ParamHeaders;
use innkeeper_protocol::request_meta::EXTENSION_TASKS;
use innkeeper_protocol::view::TasksCapability;
use innkeeper_protocol::{Era, Revision, skim};
use serde_json::value::RawValue;

use super::ListKind;
use crate::item_names::ItemNames;
use crate::server_use::{InUse, ServerUse};
use crate::upstream::Upstream;

#[derive(Clone, Debug)]
pub(crate) struct OfferedServer {
    pub(crate) name: Arc<str>,
    pub(crate) declared: Declared,
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) server_use: Arc<ServerUse>,
    /// The use that a call already has. A second one could wait for a stop that waits for the first.
    pub(crate) in_use: Option<InUse>,
    /// The place in the configuration, among the servers of the same sharing policy.
    pub(super) position: (usize, usize),
}

/// What a server declared when it started.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    pub(crate) era: Era,
    /// Whether the protocol ties each message of the server to a call: on the response streams of
    /// HTTP. Over a pipe, the modern era ties requests and no log messages.
    pub(crate) ties_messages: bool,
    pub(crate) capabilities: Box<RawValue>,
    /// Whether the server sends log messages.
    pub(crate) has_logging: bool,
    /// The tasks that the server can create for a call of a tool, in its own era.
    pub(crate) tasks: TasksCapability,
    pub(crate) instructions: Option<Arc<str>>,
}

/// A tool or a prompt.
#[derive(Clone, Debug)]
pub(crate) struct NamedItem {
    pub(crate) names: ItemNames,
    pub(crate) server: Arc<OfferedServer>,
    /// The arguments that requests of the modern era repeat in headers; none for prompts.
    pub(crate) param_headers: ParamHeaders,
    /// Whether a call may run twice: its tool is read-only or idempotent, or the item is a prompt.
    pub(crate) may_repeat: bool,
}

impl NamedItem {
    /// Returns the item for a call that uses its server already.
    pub(crate) fn with_use(&self, in_use: &InUse) -> Self {
        let Self { server, .. } = self;
        let in_use = Some(in_use.clone()).filter(|in_use| in_use.is_of(&server.server_use));
        Self { server: Arc::new(OfferedServer { in_use, ..(**server).clone() }), ..self.clone() }
    }
}

impl AsRef<ItemNames> for NamedItem {
    fn as_ref(&self) -> &ItemNames {
        &self.names
    }
}

impl OfferedServer {
    /// Returns the cache hint of a list as of now. `None` without a hint: for a server of the legacy
    /// era, and for a server that is not ready.
    pub(crate) fn list_cache_hint(&self, kind: ListKind) -> Option<ListCacheHint> {
        let hints = self.upstream.host.catalog().server(&self.name)?.list_cache_hints()?;
        match kind {
            ListKind::Tools => hints.tools,
            ListKind::Prompts => hints.prompts,
            ListKind::Resources => hints.resources,
            ListKind::ResourceTemplates => hints.resource_templates,
        }
    }

    /// Returns the number of the connection to the server, if the server is ready.
    pub(crate) fn connection_number(&self) -> Option<u64> {
        self.upstream.connection_number(&self.name)
    }

    pub(crate) fn declares(&self, capability: &str) -> bool {
        declares(&self.declared.capabilities, capability)
    }
}

fn declares(capabilities: &RawValue, capability: &str) -> bool {
    skim::member(capabilities.get(), capability)
        .is_some_and(|value| !matches!(value, "false" | "null"))
}

/// Returns what a server declares about tasks in this revision.
fn task_capability(revision: Revision, capabilities: &RawValue) -> TasksCapability {
    let declared = |keys: &[&str]| {
        let value =
            keys.iter().try_fold(capabilities.get(), |object, key| skim::member(object, key));
        value.is_some_and(|value| value.starts_with('{'))
    };
    match revision.era() {
        Era::Modern => {
            let call = declared(&["extensions", EXTENSION_TASKS]);
            TasksCapability { call, cancel: call }
        }
        Era::Legacy if revision.has_core_tasks() => TasksCapability {
            call: declared(&["tasks", "requests", "tools", "call"]),
            cancel: declared(&["tasks", "cancel"]),
        },
        Era::Legacy => TasksCapability::default(),
    }
}

pub(super) fn offered_server(
    name: &str,
    server: &CatalogServer,
    upstream: &Arc<Upstream>,
) -> Option<OfferedServer> {
    let revision: Revision = server.protocol_version()?.parse().ok()?;
    let capabilities = server.capabilities()?;
    Some(OfferedServer {
        name: name.into(),
        declared: Declared {
            era: revision.era(),
            ties_messages: server.transport() == "http",
            capabilities: capabilities.to_owned(),
            has_logging: declares(capabilities, "logging"),
            tasks: task_capability(revision, capabilities),
            instructions: server.instructions().map(Into::into),
        },
        upstream: upstream.clone(),
        server_use: upstream.servers.server_use(name),
        in_use: None,
        position: upstream.position(name),
    })
}
