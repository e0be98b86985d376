//! What a server offers, apart from how it is spoken to.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Members of a JSON object.
pub(super) type Object = Map<String, Value>;

/// Who a server is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    /// How a model uses the server well.
    pub(super) instructions: &'static str,
}

/// What a tool call gave.
#[derive(Debug)]
pub(super) struct Produced {
    /// For a reader.
    pub(super) text: String,
    /// For a program, as the tool's output schema says.
    pub(super) structured: Value,
}

/// What went wrong in the words that the caller, often a model, is to act on.
pub(super) type Complaint = String;

/// What a server does. `None` where it has nothing of the name that was asked for.
pub(super) trait Service {
    fn identity(&self) -> Identity;

    fn tools(&self) -> Vec<Value>;

    fn call(&mut self, tool: &str, arguments: Object) -> Option<Result<Produced, Complaint>>;

    fn resources(&mut self) -> Result<Vec<Value>, Complaint>;

    fn resource_templates(&self) -> Vec<Value>;

    /// The contents of a resource.
    fn read(&mut self, uri: &str) -> Option<Result<Value, Complaint>>;

    /// The prompts; a server without any does not speak of prompts at all.
    fn prompts(&self) -> Vec<Value>;

    /// The messages of a prompt.
    fn prompt(&mut self, name: &str, arguments: Object) -> Option<Result<Value, Complaint>>;
}

/// How a tool acts, in the words of its annotations.
#[derive(Clone, Copy, Debug)]
pub(super) enum Acts {
    /// Looks and changes nothing.
    Reads,
    /// Adds, and never changes what is there.
    Adds,
    /// Changes, to the same end when repeated.
    Marks,
    /// Replaces what is there, to the same end when repeated.
    Replaces,
    /// Removes what is there; a second time there is nothing to remove.
    Removes,
}

impl Acts {
    fn annotations(self, title: &str) -> Value {
        let (reads, destroys, repeats) = match self {
            Self::Reads => (true, false, true),
            Self::Adds => (false, false, false),
            Self::Marks => (false, false, true),
            Self::Replaces => (false, true, true),
            Self::Removes => (false, true, false),
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

/// A tool as it is listed.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) description: &'static str,
    pub(super) acts: Acts,
    pub(super) takes: Value,
    pub(super) gives: Value,
}

impl From<Tool> for Value {
    fn from(tool: Tool) -> Self {
        json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.takes,
            "outputSchema": tool.gives,
            "annotations": tool.acts.annotations(tool.title),
        })
    }
}

/// The schema of an object that has these members and no others.
pub(super) fn object(properties: Value, required: &[&str]) -> Value {
    Value::from_iter([
        ("type", "object".into()),
        ("properties", properties),
        ("required", required.into()),
        ("additionalProperties", false.into()),
    ])
}

/// A schema with a sentence about what the value is.
pub(super) fn described(kind: &str, description: &str) -> Value {
    json!({ "type": kind, "description": description })
}

/// Reads the arguments of a call into a type that mirrors the tool's input schema.
pub(super) fn arguments<T: DeserializeOwned>(given: Object) -> Result<T, Complaint> {
    serde_json::from_value(Value::Object(given))
        .map_err(|error| format!("the arguments do not fit the tool: {error}"))
}
