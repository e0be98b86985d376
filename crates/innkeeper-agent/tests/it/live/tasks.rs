//! The tasks for a real model, fixed before the first run.

use std::sync::{Arc, Mutex};

use innkeeper_agent::tools::{
    AvailableTool, ToolAnnotations, ToolCallFuture, ToolCallOptions, ToolOutput, ToolRunner,
};
use innkeeper_toolcall::Tool;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const TASKS_JSON: &str = include_str!("tasks.json");

/// A question that one call answers.
#[derive(Clone, Debug)]
pub(super) struct TaskCase {
    pub(super) question: String,
    pub(super) tools: Vec<Tool>,
    /// The tool that the model should call.
    expected_tool: String,
    expected_arguments: Value,
    /// The text that the tool returns.
    result: String,
    /// The part of the result that the last response should contain.
    fact: String,
}

/// Returns every task in each of its phrasings.
pub(super) fn load_cases() -> Vec<TaskCase> {
    let data: Value = serde_json::from_str(TASKS_JSON).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tool = |name: &Value| {
        let mut definitions = data["tools"].as_array().unwrap().iter();
        let tool = definitions.find(|tool| tool["name"] == *name).unwrap();
        Tool::new(text(&tool["name"]), text(&tool["description"]), tool["inputSchema"].clone())
    };
    let tasks = data["tasks"].as_array().unwrap().iter();
    let cases = tasks.flat_map(|task| {
        let tools: Vec<_> = task["offered"].as_array().unwrap().iter().map(tool).collect();
        task["asked"].as_array().unwrap().iter().map(move |question| TaskCase {
            question: text(question),
            tools: tools.clone(),
            expected_tool: text(&task["tool"]),
            expected_arguments: task["arguments"].clone(),
            result: text(&task["result"]),
            fact: text(&task["fact"]),
        })
    });
    cases.collect()
}

impl TaskCase {
    /// Returns whether the call names an available tool and its arguments match the schema,
    /// according to an independent validator.
    pub(super) fn is_valid(&self, tool: &str, arguments: &Value) -> bool {
        let Some(definition) = self.tools.iter().find(|candidate| candidate.name == tool) else {
            return false;
        };
        jsonschema::validator_for(&definition.input_schema).unwrap().is_valid(arguments)
    }

    /// Returns whether the call is the expected one, ignoring case, outer whitespace and a trailing
    /// `/` or `.`.
    pub(super) fn is_correct(&self, tool: &str, arguments: &Value) -> bool {
        tool == self.expected_tool && normalize(arguments) == normalize(&self.expected_arguments)
    }

    /// Returns whether a last response contains the fact.
    pub(super) fn contains_fact(&self, text: &str) -> bool {
        text.contains(&self.fact)
    }
}

fn normalize(value: &Value) -> Value {
    match value {
        Value::String(text) => text.trim().trim_end_matches(['/', '.']).to_lowercase().into(),
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(normalize).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), normalize(value))).collect()
        }
        Value::Null | Value::Bool(_) => value.clone(),
    }
}

/// Offers the tools of a case and records their calls.
#[derive(Debug)]
pub(super) struct RecordingTools {
    case: TaskCase,
    calls: Mutex<Vec<(String, Value)>>,
}

impl RecordingTools {
    pub(super) fn for_case(case: &TaskCase) -> Arc<Self> {
        Arc::new(Self { case: case.clone(), calls: Mutex::default() })
    }

    pub(super) fn calls(&self) -> Vec<(String, Value)> {
        self.calls.lock().unwrap().clone()
    }
}

impl ToolRunner for RecordingTools {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let tools = self.case.tools.iter().cloned();
        tools.map(|tool| AvailableTool::new(tool, ToolAnnotations::default())).collect()
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let arguments: Value = serde_json::from_str(arguments.get()).unwrap();
        self.calls.lock().unwrap().push((name.to_owned(), arguments));
        let text = if name == self.case.expected_tool {
            &self.case.result
        } else {
            "There is nothing here."
        };
        let result = json!({"content": [{"type": "text", "text": text}]});
        let raw = serde_json::value::to_raw_value(&result).unwrap();
        Box::pin(async move { Ok(ToolOutput::new(raw, false)) })
    }
}

#[test]
fn there_are_ten_tasks_in_three_phrasings_with_two_to_five_tools_and_each_can_be_done() {
    let cases = load_cases();
    assert_eq!(cases.len(), 30);
    for case in &cases {
        assert!((2..=5).contains(&case.tools.len()), "{case:?}");
        let right = &case.expected_arguments;
        assert!(
            case.is_valid(&case.expected_tool, right)
                && case.is_correct(&case.expected_tool, right)
        );
        assert!(case.contains_fact(&case.result), "{case:?}");
    }
}
