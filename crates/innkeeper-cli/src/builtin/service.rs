//! The interface of a built-in server, independent of the protocol.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Members of a JSON object.
pub(super) type JsonObject = Map<String, Value>;

#[derive(Clone, Copy, Debug)]
pub(super) struct ServerIdentity {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) instructions: &'static str,
}

/// The result of a tool call.
#[derive(Debug)]
pub(super) struct ToolOutput {
    pub(super) text: String,
    /// Structured content that matches the tool's output schema.
    pub(super) structured: Value,
}

/// An error message that the caller, often a model, can act on.
pub(super) type FailureMessage = String;

/// A built-in server. Methods return `None` for an unknown name.
pub(super) trait Service {
    fn identity(&self) -> ServerIdentity;

    fn tools(&self) -> Vec<Value>;

    fn call_tool(
        &mut self,
        tool: &str,
        arguments: JsonObject,
    ) -> Option<Result<ToolOutput, FailureMessage>>;

    fn resources(&mut self) -> Result<Vec<Value>, FailureMessage>;

    fn resource_templates(&self) -> Vec<Value>;

    fn read_resource(&mut self, uri: &str) -> Option<Result<Value, FailureMessage>>;

    /// Returns the prompts; a server without prompts does not declare the capability.
    fn prompts(&self) -> Vec<Value>;

    fn get_prompt(
        &mut self,
        name: &str,
        arguments: JsonObject,
    ) -> Option<Result<Value, FailureMessage>>;
}

/// The effect of a tool, which determines its annotations.
#[derive(Clone, Copy, Debug)]
pub(super) enum ToolEffect {
    /// Changes nothing.
    ReadOnly,
    /// Adds data and never changes existing data.
    Create,
    /// Changes data; idempotent.
    Update,
    /// Replaces data; idempotent.
    Replace,
    /// Removes data; a second call fails.
    Delete,
}

impl ToolEffect {
    fn annotations(self, title: &str) -> Value {
        let (reads, destroys, repeats) = match self {
            Self::ReadOnly => (true, false, true),
            Self::Create => (false, false, false),
            Self::Update => (false, false, true),
            Self::Replace => (false, true, true),
            Self::Delete => (false, true, false),
        };
        json!({
            "title": title,
            "readOnlyHint": reads,
            "destructiveHint": destroys,
            "idempotentHint": repeats,
            "openWorldHint": false,
        })
    }
}

#[derive(Debug)]
pub(super) struct ToolDefinition {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) effect: ToolEffect,
    pub(super) input_schema: Value,
    pub(super) output_schema: Value,
}

impl From<ToolDefinition> for Value {
    fn from(tool: ToolDefinition) -> Self {
        json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.input_schema,
            "outputSchema": tool.output_schema,
            "annotations": tool.effect.annotations(tool.title),
        })
    }
}

/// Returns the schema of an object with these members and no others.
pub(super) fn object_schema(properties: Value, required: &[&str]) -> Value {
    Value::from_iter([
        ("type", "object".into()),
        ("properties", properties),
        ("required", required.into()),
        ("additionalProperties", false.into()),
    ])
}

pub(super) fn property_schema(kind: &str, description: &str) -> Value {
    json!({ "type": kind, "description": description })
}

/// Parses the arguments of a call into a type that mirrors the tool's input schema.
pub(super) fn parse_arguments<T: DeserializeOwned>(
    object: JsonObject,
) -> Result<T, FailureMessage> {
    serde_json::from_value(Value::Object(object))
        .map_err(|error| format!("invalid arguments: {error}"))
}
