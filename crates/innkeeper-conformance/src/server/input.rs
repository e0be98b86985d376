//! The input that tools and prompts request from the user, the model or the client.

use serde_json::{Map, Value, json};

use super::message::Request;

#[derive(Debug)]
pub(crate) struct InputRequest {
    /// The key in `inputRequests`, and the id of the request in the legacy era.
    pub(crate) key: &'static str,
    pub(crate) kind: InputKind,
    pub(crate) params: Value,
}

/// What is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputKind {
    Elicitation,
    Sampling,
    Roots,
}

impl InputKind {
    pub(crate) fn method(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation/create",
            Self::Sampling => "sampling/createMessage",
            Self::Roots => "roots/list",
        }
    }

    /// Returns the capability that a client needs.
    pub(crate) fn capability(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }

    /// Returns whether a response has the required member.
    pub(crate) fn accepts(self, response: &Value) -> bool {
        match self {
            Self::Elicitation => response["action"].is_string(),
            Self::Sampling => !response["content"].is_null(),
            Self::Roots => response["roots"].is_array(),
        }
    }
}

/// The input of a tool or prompt.
#[derive(Debug)]
pub(crate) struct InputPlan {
    pub(crate) rounds: Vec<Vec<InputRequest>>,
    /// Whether the results that request input have a `requestState`.
    pub(crate) has_state: bool,
    /// Whether the item does without the input that a client cannot give.
    pub(crate) is_optional: bool,
}

impl InputPlan {
    fn one_round(requests: Vec<InputRequest>) -> Self {
        Self { rounds: vec![requests], has_state: false, is_optional: false }
    }

    fn with_state(mut self) -> Self {
        self.has_state = true;
        self
    }
}

/// Returns the input that a tool or prompt requests, or `None` if it requests none.
pub(crate) fn input_plan(request: &Request) -> Option<InputPlan> {
    let confirm = || vec![form("confirm", "Please confirm", &[("ok", "boolean")])];
    let name = || form("user_name", "What is your name?", &[("name", "string")]);
    Some(match request.text("name") {
        "test_sampling" => {
            InputPlan::one_round(vec![sampling("reply", request.argument("prompt"))])
        }
        "test_missing_capability" => {
            InputPlan::one_round(vec![sampling("required_reply", "Say anything")])
        }
        "test_elicitation" => {
            let fields = [("username", "string"), ("email", "string")];
            InputPlan::one_round(vec![form("user", request.argument("message"), &fields)])
        }
        "test_streaming_elicitation" => {
            let fields = [("answer", "string")];
            InputPlan::one_round(vec![form("streamed_answer", "What is next?", &fields)])
        }
        "test_elicitation_sep1034_defaults" => {
            InputPlan::one_round(vec![elicitation("defaults", "Check the values", &defaults())])
        }
        "test_elicitation_sep1330_enums" => {
            InputPlan::one_round(vec![elicitation("choices", "Choose", &choices())])
        }
        "test_input_required_result_elicitation" => InputPlan::one_round(vec![name()]),
        "test_input_required_result_sampling" => {
            let question = "What is the capital of France?";
            InputPlan::one_round(vec![sampling("capital_question", question)])
        }
        "test_input_required_result_list_roots" => InputPlan::one_round(vec![roots()]),
        "test_input_required_result_request_state"
        | "test_input_required_result_tampered_state" => {
            InputPlan::one_round(confirm()).with_state()
        }
        "test_input_required_result_multiple_inputs" => {
            let greeting = sampling("greeting", "Generate a greeting");
            InputPlan::one_round(vec![name(), greeting, roots()]).with_state()
        }
        "test_input_required_result_multi_round" => InputPlan {
            rounds: vec![
                vec![form("step1", "Step 1: What is your name?", &[("name", "string")])],
                vec![form("step2", "Step 2: What is your favorite color?", &[("color", "string")])],
            ],
            has_state: true,
            is_optional: false,
        },
        "test_input_required_result_capabilities" => InputPlan {
            is_optional: true,
            ..InputPlan::one_round(vec![name(), sampling("greeting", "Generate a greeting")])
        },
        "test_input_required_result_prompt" => {
            let question = "What context should the prompt use?";
            InputPlan::one_round(vec![form("user_context", question, &[("context", "string")])])
        }
        _ => return None,
    })
}

fn sampling(key: &'static str, text: &str) -> InputRequest {
    let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
    let params = json!({ "messages": [message], "maxTokens": 100 });
    InputRequest { key, kind: InputKind::Sampling, params }
}

fn roots() -> InputRequest {
    InputRequest { key: "client_roots", kind: InputKind::Roots, params: json!({}) }
}

fn elicitation(key: &'static str, message: &str, schema: &Value) -> InputRequest {
    let params = json!({ "message": message, "requestedSchema": schema });
    InputRequest { key, kind: InputKind::Elicitation, params }
}

/// Returns a form with required fields, each with a type.
fn form(key: &'static str, message: &str, fields: &[(&str, &str)]) -> InputRequest {
    let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let properties: Map<_, _> =
        fields.iter().map(|(name, kind)| ((*name).to_owned(), json!({ "type": kind }))).collect();
    let schema = json!({ "type": "object", "properties": properties, "required": names });
    elicitation(key, message, &schema)
}

/// Returns a form with a default for each primitive type.
fn defaults() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "default": true },
        },
        "required": [],
    })
}

/// Returns a form with each kind of enumeration.
fn choices() -> Value {
    let titled = |prefix: &str, title: &str| {
        let options = ["First", "Second", "Third"].iter().zip(1..);
        let options =
            options.map(|(word, n)| json!({ "const": format!("{prefix}{n}"), "title": format!("{word} {title}") }));
        Value::Array(options.collect())
    };
    let plain = json!(["option1", "option2", "option3"]);
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": plain },
            "titledSingle": { "type": "string", "oneOf": titled("value", "Option") },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": plain } },
            "titledMulti": {
                "type": "array",
                "items": { "anyOf": titled("value", "Choice") },
            },
        },
        "required": [],
    })
}
