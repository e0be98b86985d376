//! A tool as a server describes it.

use serde_json::value::RawValue;

use super::{Object, ViewError};

/// A tool in a server's list.
#[derive(Clone, Debug)]
pub struct Tool {
    /// What it is called by.
    pub name: String,
    /// What people may be shown instead.
    pub title: Option<String>,
    /// What the model is told about it.
    pub description: Option<String>,
    /// The JSON Schema of its arguments; an object, nothing more is known of it.
    pub input_schema: Box<RawValue>,
    /// The JSON Schema of its structured result.
    pub output_schema: Option<Box<RawValue>>,
    /// Hints about what it does.
    pub annotations: ToolAnnotations,
    /// Whether a call may or must become a task of the revision 2025-11-25.
    pub task_support: TaskSupport,
}

/// Whether a call of a tool may become a task (`execution.taskSupport`, 2025-11-25). In 2026-07-28
/// the server decides at every call and says nothing here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskSupport {
    /// It may not; so is it too if the server says nothing, or something unknown.
    #[default]
    Forbidden,
    /// As the client wants.
    Optional,
    /// It must.
    Required,
}

/// What a server says of a tool's behaviour: hints, no promises.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// What people may be shown instead of the name.
    pub title: Option<String>,
    /// It changes nothing.
    pub read_only_hint: Option<bool>,
    /// It may destroy something.
    pub destructive_hint: Option<bool>,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent_hint: Option<bool>,
    /// It reaches beyond what the server holds.
    pub open_world_hint: Option<bool>,
}

impl Tool {
    /// Reads one item of `tools/list`.
    ///
    /// # Errors
    ///
    /// If `name` is not a string or `inputSchema` not an object.
    pub fn read(raw: &RawValue) -> Result<Self, ViewError> {
        let wanted = [
            "name",
            "title",
            "description",
            "inputSchema",
            "outputSchema",
            "annotations",
            "execution",
        ];
        let tool = Object::read(raw, wanted)?;
        Ok(Self {
            name: tool.required_string("name")?,
            title: tool.string("title"),
            description: tool.string("description"),
            input_schema: tool.required_object("inputSchema")?,
            output_schema: tool.raw_object("outputSchema"),
            annotations: ToolAnnotations::read(tool.get("annotations")).unwrap_or_default(),
            task_support: TaskSupport::read(tool.get("execution")),
        })
    }
}

impl TaskSupport {
    fn read(execution: Option<&str>) -> Self {
        let execution = Object::at(String::new(), execution, ["taskSupport"]).ok();
        match execution.and_then(|execution| execution.string("taskSupport")).as_deref() {
            Some("optional") => Self::Optional,
            Some("required") => Self::Required,
            _ => Self::Forbidden,
        }
    }
}

impl ToolAnnotations {
    fn read(raw: Option<&str>) -> Option<Self> {
        let wanted =
            ["title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
        let hints = Object::at(String::new(), raw, wanted).ok()?;
        Some(Self {
            title: hints.string("title"),
            read_only_hint: hints.bool("readOnlyHint"),
            destructive_hint: hints.bool("destructiveHint"),
            idempotent_hint: hints.bool("idempotentHint"),
            open_world_hint: hints.bool("openWorldHint"),
        })
    }
}
