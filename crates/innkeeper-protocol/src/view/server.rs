//! What a server says about itself.

use serde_json::value::RawValue;

use super::object::{boolean, boxed};
use super::{Object, ViewError};

/// What a server offers.
#[derive(Clone, Debug)]
pub struct ServerCapabilities {
    /// Tools.
    pub tools: Option<ListChanged>,
    /// Prompts.
    pub prompts: Option<ListChanged>,
    /// Resources.
    pub resources: Option<ResourcesCapability>,
    /// Log messages.
    pub logging: bool,
    /// Completion of arguments.
    pub completions: bool,
    /// Tasks of the revision 2025-11-25.
    pub tasks: TasksCapability,
    /// The whole object as it was sent, for everything else in it.
    pub raw: Box<RawValue>,
}

/// A list that a server offers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListChanged {
    /// Whether it says when the list changes.
    pub list_changed: bool,
}

/// How a server offers resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourcesCapability {
    /// Whether it says, when asked to, that a resource changes.
    pub subscribe: bool,
    /// Whether it says when the list changes.
    pub list_changed: bool,
}

/// What a server can do with tasks of the revision 2025-11-25.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TasksCapability {
    /// Whether a call of a tool may become one.
    pub call: bool,
    /// Whether it stops one when asked to.
    pub cancel: bool,
}

/// Who a server says it is; never a proof of anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerInfo {
    /// The program's name.
    pub name: String,
    /// The program's version.
    pub version: String,
    /// What people may be shown instead of the name.
    pub title: Option<String>,
}

/// The answer to `initialize`.
#[derive(Clone, Debug)]
pub struct InitializeResult {
    /// The revision the server wants to speak, which may be any text.
    pub protocol_version: String,
    /// What it offers.
    pub capabilities: ServerCapabilities,
    /// Who it says it is.
    pub server_info: ServerInfo,
    /// The same as it was sent.
    pub server_info_raw: Box<RawValue>,
    /// What a model should know about it.
    pub instructions: Option<String>,
}

impl InitializeResult {
    /// Reads the result of `initialize`.
    ///
    /// # Errors
    ///
    /// If `protocolVersion` is not a string, `capabilities` or `serverInfo` not an object, or the
    /// latter without `name` and `version`.
    pub fn read(raw: &RawValue) -> Result<Self, ViewError> {
        let wanted = ["protocolVersion", "capabilities", "serverInfo", "instructions"];
        let result = Object::read(raw, wanted)?;
        let server_info = result.pointer_to("serverInfo");
        Ok(Self {
            protocol_version: result.required_string("protocolVersion")?,
            capabilities: ServerCapabilities::read(&result)?,
            server_info: ServerInfo::read(server_info, result.get("serverInfo"))?,
            server_info_raw: result.required_object("serverInfo")?,
            instructions: result.string("instructions"),
        })
    }
}

impl ServerInfo {
    fn read(pointer: String, raw: Option<&str>) -> Result<Self, ViewError> {
        let info = Object::at(pointer, raw, ["name", "version", "title"])?;
        Ok(Self {
            name: info.required_string("name")?,
            version: info.required_string("version")?,
            title: info.string("title"),
        })
    }
}

impl ServerCapabilities {
    /// Reads the member `capabilities` of an answer.
    pub(crate) fn read<const N: usize>(answer: &Object<'_, N>) -> Result<Self, ViewError> {
        let raw = answer.required_object("capabilities")?;
        let wanted = ["tools", "prompts", "resources", "logging", "completions", "tasks"];
        let offered = Object::read(&raw, wanted)?;
        let declared = |name| offered.get(name).filter(|raw| *raw != "false");
        let (tools, prompts) = (declared("tools"), declared("prompts"));
        Ok(Self {
            tools: tools.map(|raw| ListChanged { list_changed: flag(raw, "listChanged") }),
            prompts: prompts.map(|raw| ListChanged { list_changed: flag(raw, "listChanged") }),
            resources: declared("resources").map(|raw| ResourcesCapability {
                subscribe: flag(raw, "subscribe"),
                list_changed: flag(raw, "listChanged"),
            }),
            logging: declared("logging").is_some(),
            completions: declared("completions").is_some(),
            tasks: declared("tasks").map(TasksCapability::read).unwrap_or_default(),
            raw,
        })
    }
}

impl Default for ServerCapabilities {
    /// Nothing is offered.
    fn default() -> Self {
        Self {
            tools: None,
            prompts: None,
            resources: None,
            logging: false,
            completions: false,
            tasks: TasksCapability::default(),
            raw: boxed("{}").unwrap_or_default(),
        }
    }
}

impl TasksCapability {
    fn read(raw: &str) -> Self {
        let below = |path: &[&str]| {
            let found = path.iter().try_fold(raw, |raw, name| crate::skim::member(raw, name));
            found.is_some_and(|raw| !matches!(raw, "false" | "null"))
        };
        Self { call: below(&["requests", "tools", "call"]), cancel: below(&["cancel"]) }
    }
}

/// A flag inside a capability, which may be anything.
fn flag(capability: &str, name: &'static str) -> bool {
    crate::skim::member(capability, name).and_then(boolean).unwrap_or_default()
}
