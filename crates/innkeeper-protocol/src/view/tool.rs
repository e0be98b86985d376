//! Tool definitions.

use serde_json::value::RawValue;

use super::{ObjectView, ViewError};

/// A tool in a server's list.
#[derive(Clone, Debug)]
pub struct Tool {
    /// The identifier of the tool.
    pub name: String,
    /// The display name.
    pub title: Option<String>,
    /// The description for the model.
    pub description: Option<String>,
    /// The JSON Schema of the arguments. The value is an object; the view does not validate the
    /// schema.
    pub input_schema: Box<RawValue>,
    /// The JSON Schema of the structured result.
    pub output_schema: Option<Box<RawValue>>,
    /// Hints about the tool's behaviour.
    pub annotations: ToolAnnotations,
    /// Whether a call may or must become a task (revision 2025-11-25).
    pub task_support: TaskSupport,
}

/// Whether a call of a tool may become a task (`execution.taskSupport`, 2025-11-25). In 2026-07-28
/// the server decides for each call and tools have no such member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// A call must not become a task. This is the default, also for unknown values.
    #[default]
    Forbidden,
    /// The client decides.
    Optional,
    /// A call must become a task.
    Required,
}

/// A server's description of a tool's behaviour: hints without guarantee.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// The display name.
    pub title: Option<String>,
    /// Whether the tool changes nothing.
    pub read_only_hint: Option<bool>,
    /// Whether the tool may perform destructive changes.
    pub destructive_hint: Option<bool>,
    /// Whether a repeated call with the same arguments has no additional effect.
    pub idempotent_hint: Option<bool>,
    /// Whether the tool interacts with systems outside of the server.
    pub open_world_hint: Option<bool>,
}

impl Tool {
    /// Reads one item of `tools/list`.
    ///
    /// # Errors
    ///
    /// Returns an error if `name` is not a string or `inputSchema` is not an object.
    pub fn from_raw(raw: &RawValue) -> Result<Self, ViewError> {
        let members = [
            "name",
            "title",
            "description",
            "inputSchema",
            "outputSchema",
            "annotations",
            "execution",
        ];
        let tool = ObjectView::from_raw(raw, members)?;
        Ok(Self {
            name: tool.required_string("name")?,
            title: tool.string("title"),
            description: tool.string("description"),
            input_schema: tool.required_object("inputSchema")?,
            output_schema: tool.raw_object("outputSchema"),
            annotations: ToolAnnotations::from_raw(tool.get("annotations")).unwrap_or_default(),
            task_support: TaskSupport::from_raw(tool.get("execution")),
        })
    }
}

impl TaskSupport {
    fn from_raw(execution: Option<&str>) -> Self {
        let execution = ObjectView::from_raw_at(String::new(), execution, ["taskSupport"]).ok();
        match execution.and_then(|execution| execution.string("taskSupport")).as_deref() {
            Some("optional") => Self::Optional,
            Some("required") => Self::Required,
            _ => Self::Forbidden,
        }
    }
}

impl ToolAnnotations {
    fn from_raw(raw: Option<&str>) -> Option<Self> {
        let members =
            ["title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
        let hints = ObjectView::from_raw_at(String::new(), raw, members).ok()?;
        Some(Self {
            title: hints.string("title"),
            read_only_hint: hints.bool("readOnlyHint"),
            destructive_hint: hints.bool("destructiveHint"),
            idempotent_hint: hints.bool("idempotentHint"),
            open_world_hint: hints.bool("openWorldHint"),
        })
    }
}
