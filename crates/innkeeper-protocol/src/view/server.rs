//! Server capabilities and the result of `initialize`.

use serde_json::value::RawValue;

use super::object::{boxed_raw, parse_bool};
use super::{ObjectView, ViewError};

/// The capabilities of a server.
#[derive(Clone, Debug)]
pub struct ServerCapabilities {
    /// The tools capability.
    pub tools: Option<ListCapability>,
    /// The prompts capability.
    pub prompts: Option<ListCapability>,
    /// The resources capability.
    pub resources: Option<ResourcesCapability>,
    /// Whether the server sends log messages.
    pub logging: bool,
    /// Whether the server completes arguments.
    pub completions: bool,
    /// The tasks capability of the revision 2025-11-25.
    pub tasks: TasksCapability,
    /// The raw JSON of all capabilities, including unknown capabilities.
    pub raw: Box<RawValue>,
}

/// The capability of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListCapability {
    /// Whether the server notifies the client when the list changes.
    pub list_changed: bool,
}

/// The resources capability.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourcesCapability {
    /// Whether the client can subscribe to updates of a resource.
    pub subscribe: bool,
    /// Whether the server notifies the client when the list changes.
    pub list_changed: bool,
}

/// The tasks capability of the revision 2025-11-25.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TasksCapability {
    /// Whether a tool call may become a task.
    pub call: bool,
    /// Whether the server can cancel a task.
    pub cancel: bool,
}

/// The name and version that a server declares; unverified.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerInfo {
    /// The name of the program.
    pub name: Option<String>,
    /// The version of the program.
    pub version: Option<String>,
    /// The display name.
    pub title: Option<String>,
}

/// The result of `initialize`.
#[derive(Clone, Debug)]
pub struct InitializeResult {
    /// The protocol revision that the server selected; may be any string.
    pub protocol_version: String,
    /// The server's capabilities.
    pub capabilities: ServerCapabilities,
    /// The server's name and version.
    pub server_info: ServerInfo,
    /// The raw JSON of `server_info`, if the server sent an object.
    pub server_info_raw: Option<Box<RawValue>>,
    /// Instructions for the model.
    pub instructions: Option<String>,
}

impl InitializeResult {
    /// Reads the result of `initialize`.
    ///
    /// # Errors
    ///
    /// Returns an error if `protocolVersion` is not a string. Members that only inform, such as
    /// `serverInfo`, may be missing or malformed.
    pub fn from_raw(raw: &RawValue) -> Result<Self, ViewError> {
        let members = ["protocolVersion", "capabilities", "serverInfo", "instructions"];
        let result = ObjectView::from_raw(raw, members)?;
        Ok(Self {
            protocol_version: result.required_string("protocolVersion")?,
            capabilities: ServerCapabilities::from_object(&result)?,
            server_info: ServerInfo::from_raw(result.get("serverInfo")).unwrap_or_default(),
            server_info_raw: result.raw_object("serverInfo"),
            instructions: result.string("instructions"),
        })
    }
}

impl ServerInfo {
    fn from_raw(raw: Option<&str>) -> Option<Self> {
        let info =
            ObjectView::from_raw_at(String::new(), raw, ["name", "version", "title"]).ok()?;
        Some(Self {
            name: info.string("name"),
            version: info.string("version"),
            title: info.string("title"),
        })
    }
}

impl ServerCapabilities {
    /// Reads the member `capabilities` of a result. A server without this object is expected to have
    /// tools: the list of tools shows whether it has any.
    pub(crate) fn from_object<const N: usize>(
        result: &ObjectView<'_, N>,
    ) -> Result<Self, ViewError> {
        let Some(raw) = result.raw_object("capabilities") else {
            return Ok(Self { tools: Some(ListCapability::default()), ..Self::default() });
        };
        let members = ["tools", "prompts", "resources", "logging", "completions", "tasks"];
        let declared_members = ObjectView::from_raw(&raw, members)?;
        let declared = |name| declared_members.get(name).filter(|raw| *raw != "false");
        let tools = declared("tools");
        let prompts = declared("prompts");
        Ok(Self {
            tools: tools
                .map(|raw| ListCapability { list_changed: bool_member(raw, "listChanged") }),
            prompts: prompts
                .map(|raw| ListCapability { list_changed: bool_member(raw, "listChanged") }),
            resources: declared("resources").map(|raw| ResourcesCapability {
                subscribe: bool_member(raw, "subscribe"),
                list_changed: bool_member(raw, "listChanged"),
            }),
            logging: declared("logging").is_some(),
            completions: declared("completions").is_some(),
            tasks: declared("tasks").map(TasksCapability::from_raw).unwrap_or_default(),
            raw,
        })
    }
}

impl Default for ServerCapabilities {
    fn default() -> Self {
        Self {
            tools: None,
            prompts: None,
            resources: None,
            logging: false,
            completions: false,
            tasks: TasksCapability::default(),
            raw: boxed_raw("{}").unwrap_or_default(),
        }
    }
}

impl TasksCapability {
    fn from_raw(raw: &str) -> Self {
        let below = |path: &[&str]| {
            let value = path.iter().try_fold(raw, |raw, name| crate::skim::member(raw, name));
            value.is_some_and(|raw| !matches!(raw, "false" | "null"))
        };
        Self { call: below(&["requests", "tools", "call"]), cancel: below(&["cancel"]) }
    }
}

/// Reads a boolean member of a capability of any type.
fn bool_member(capability: &str, name: &'static str) -> bool {
    crate::skim::member(capability, name).and_then(parse_bool).unwrap_or_default()
}
