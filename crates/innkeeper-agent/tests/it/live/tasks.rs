//! The tasks a real model is given, as data: chosen once, before the first run, and not since.

use std::sync::{Arc, Mutex};

use innkeeper_agent::tools::{Hints, Offered, Output, Running, ToolRunner};
use innkeeper_toolcall::Tool;
use serde_json::{Value, json};

const DATA: &str = include_str!("tasks.json");

/// One question that one call answers.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) asked: String,
    pub(super) offered: Vec<Tool>,
    /// What should be called.
    tool: String,
    arguments: Value,
    /// What the tool then says.
    result: String,
    /// What of it the last answer should have.
    fact: String,
}

/// Every task in each of its phrasings.
pub(super) fn cases() -> Vec<Case> {
    let data: Value = serde_json::from_str(DATA).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let tool = |name: &Value| {
        let mut known = data["tools"].as_array().unwrap().iter();
        let tool = known.find(|tool| tool["name"] == *name).unwrap();
        Tool::new(text(&tool["name"]), text(&tool["description"]), tool["inputSchema"].clone())
    };
    let tasks = data["tasks"].as_array().unwrap().iter();
    let cases = tasks.flat_map(|task| {
        let offered: Vec<_> = task["offered"].as_array().unwrap().iter().map(tool).collect();
        task["asked"].as_array().unwrap().iter().map(move |asked| Case {
            asked: text(asked),
            offered: offered.clone(),
            tool: text(&task["tool"]),
            arguments: task["arguments"].clone(),
            result: text(&task["result"]),
            fact: text(&task["fact"]),
        })
    });
    cases.collect()
}

impl Case {
    /// Whether it is a call of an offered tool whose arguments fit, by a judge that is not ours.
    pub(super) fn is_valid(&self, tool: &str, arguments: &Value) -> bool {
        let Some(offered) = self.offered.iter().find(|it| it.name == tool) else { return false };
        jsonschema::validator_for(&offered.input_schema).unwrap().is_valid(arguments)
    }

    /// Whether it is the right one: case, outer blanks and a last `/` or `.` aside.
    pub(super) fn is_correct(&self, tool: &str, arguments: &Value) -> bool {
        tool == self.tool && lenient(arguments) == lenient(&self.arguments)
    }

    /// Whether a last answer has what the tool found.
    pub(super) fn is_told(&self, answer: &str) -> bool {
        answer.contains(&self.fact)
    }
}

fn lenient(value: &Value) -> Value {
    match value {
        Value::String(text) => text.trim().trim_end_matches(['/', '.']).to_lowercase().into(),
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(lenient).collect(),
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), lenient(value))).collect()
        }
        Value::Null | Value::Bool(_) => value.clone(),
    }
}

/// Offers the tools of a case, and counts what reaches it.
#[derive(Debug)]
pub(super) struct Desk {
    case: Case,
    called: Mutex<Vec<(String, Value)>>,
}

impl Desk {
    pub(super) fn of(case: &Case) -> Arc<Self> {
        Arc::new(Self { case: case.clone(), called: Mutex::default() })
    }

    pub(super) fn called(&self) -> Vec<(String, Value)> {
        self.called.lock().unwrap().clone()
    }
}

impl ToolRunner for Desk {
    fn offered(&self) -> Vec<Offered> {
        let tools = self.case.offered.iter().cloned();
        tools.map(|tool| Offered { tool, hints: Hints::default() }).collect()
    }

    fn run<'r>(&'r self, name: &'r str, arguments: Value) -> Running<'r> {
        self.called.lock().unwrap().push((name.to_owned(), arguments));
        let text =
            if name == self.case.tool { &self.case.result } else { "There is nothing here." };
        let result = json!({"content": [{"type": "text", "text": text}]});
        let raw = serde_json::value::to_raw_value(&result).unwrap();
        Box::pin(async move { Ok(Output::new(raw, false)) })
    }
}

#[test]
fn there_are_ten_tasks_in_three_phrasings_with_two_to_five_tools_and_each_can_be_done() {
    let cases = cases();
    assert_eq!(cases.len(), 30);
    for case in &cases {
        assert!((2..=5).contains(&case.offered.len()), "{case:?}");
        let right = &case.arguments;
        assert!(case.is_valid(&case.tool, right) && case.is_correct(&case.tool, right));
        assert!(case.is_told(&case.result), "{case:?}");
    }
}
