//! Questions of a public benchmark with their expected calls.
//!
//! The benchmark is the Python package `bfcl-eval`; `cargo xtask install` installs the package
//! under `target`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use innkeeper_toolcall::{Json, ResolvedCall, Tool, ToolValidator, Tools};
use serde_json::{Map, Value};

/// The benchmark files with one turn and Python types.
const BENCHMARK_FILES: &[&str] = &[
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
];

/// Number of questions in those files, in the installed version.
pub(super) const QUESTION_COUNT: usize = 2351;

/// A question with its tools and expected calls.
pub(super) struct BenchmarkEntry {
    pub(super) id: String,
    pub(super) tools: Arc<Tools>,
    pub(super) tool_validator: Arc<ToolValidator>,
    /// The calls that a correct model writes.
    pub(super) calls: Vec<IntendedCall>,
    /// The allowed values, call by call.
    pub(super) expected_calls: Vec<ExpectedCall>,
}

/// A call with the values that a model intends.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct IntendedCall {
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
}

/// The allowed values of each argument of a call; an empty string among them means that the
/// argument is optional.
#[derive(Clone, Debug)]
pub(super) struct ExpectedCall {
    pub(super) name: String,
    pub(super) allowed_values: Map<String, Value>,
}

/// The comparison of actual calls with the expected ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallVerdict {
    /// All expected calls, and no other.
    Right,
    /// Only expected calls, but not all.
    Incomplete,
    /// An unexpected call.
    Wrong,
}

/// Returns every question whose calls use only declared arguments and match their schemas.
pub(super) fn load_entries() -> Vec<BenchmarkEntry> {
    let data = data_dir();
    let mut all = Vec::new();
    let mut questions = 0;
    for file in BENCHMARK_FILES {
        let name = format!("BFCL_v4_{file}.json");
        let answers: HashMap<String, Value> =
            read_json_lines(&data.join("possible_answer").join(&name))
                .into_iter()
                .map(|answer| (answer["id"].as_str().unwrap().to_owned(), answer))
                .collect();
        for question in read_json_lines(&data.join(&name)) {
            questions += 1;
            let id = question["id"].as_str().unwrap();
            all.extend(answers.get(id).and_then(|answer| parse_entry(id, &question, answer)));
        }
    }
    assert_eq!(questions, QUESTION_COUNT, "another version of `bfcl-eval` is installed");
    all
}

/// Compares calls with the expected ones.
pub(super) fn judge(calls: &[(String, Value)], truths: &[ExpectedCall]) -> CallVerdict {
    let mut open: Vec<&ExpectedCall> = truths.iter().collect();
    for (name, arguments) in calls {
        let position =
            open.iter().position(|truth| truth.name == *name && truth.accepts(arguments));
        let Some(at) = position else { return CallVerdict::Wrong };
        open.remove(at);
    }
    if open.is_empty() { CallVerdict::Right } else { CallVerdict::Incomplete }
}

impl ExpectedCall {
    /// Returns whether each argument has an allowed value and no argument is missing or undeclared.
    fn accepts(&self, arguments: &Value) -> bool {
        let Value::Object(members) = arguments else { return false };
        members.keys().all(|key| self.allowed_values.contains_key(key))
            && self
                .allowed_values
                .iter()
                .all(|(key, options)| matches_any(members.get(key), options))
    }
}

fn matches_any(value: Option<&Value>, options: &Value) -> bool {
    let Value::Array(options) = options else { return false };
    match value {
        None => options.iter().any(is_blank),
        Some(value) => options.iter().any(|option| matches_option(value, option)),
    }
}

/// Returns whether a value matches an option. Objects in options contain lists of values in turn.
fn matches_option(value: &Value, option: &Value) -> bool {
    match (value, option) {
        (Value::Object(members), Value::Object(options)) if has_options(options) => {
            members.keys().all(|key| options.contains_key(key))
                && options.iter().all(|(key, options)| matches_any(members.get(key), options))
        }
        (Value::Object(members), Value::Object(others)) => {
            members.len() == others.len()
                && members.iter().all(|(key, element)| {
                    others.get(key).is_some_and(|alternative| matches_option(element, alternative))
                })
        }
        (Value::Array(items), Value::Array(others)) => {
            items.len() == others.len()
                && items
                    .iter()
                    .zip(others)
                    .all(|(element, alternative)| matches_option(element, alternative))
        }
        (Value::Number(number), Value::Number(other)) => number.as_f64() == other.as_f64(),
        _ => value == option,
    }
}

fn has_options(members: &Map<String, Value>) -> bool {
    members.values().all(Value::is_array)
}

fn is_blank(value: &Value) -> bool {
    value.as_str() == Some("")
}

/// Returns the first option that is not blank.
fn first_value(options: &Value) -> Option<Value> {
    options.as_array()?.iter().find(|option| !is_blank(option)).map(option_value)
}

/// Converts an option to a value.
fn option_value(option: &Value) -> Value {
    match option {
        Value::Object(members) if has_options(members) => {
            let members = members.iter();
            Value::Object(
                members
                    .filter_map(|(key, value)| Some((key.clone(), first_value(value)?)))
                    .collect(),
            )
        }
        Value::Array(items) => items.iter().map(option_value).collect(),
        _ => option.clone(),
    }
}

fn parse_entry(id: &str, question: &Value, answer: &Value) -> Option<BenchmarkEntry> {
    let tools: Tools = question["function"].as_array()?.iter().map(parse_tool).collect();
    let toolbox = ToolValidator::new(tools.clone());
    let (mut calls, mut expected_calls) = (Vec::new(), Vec::new());
    for truth in answer["ground_truth"].as_array()? {
        let (name, options) = truth.as_object()?.iter().next()?;
        let allowed_values = options.as_object()?.clone();
        let tool = tools.get(name)?;
        // Some expected calls have arguments that their function lacks.
        allowed_values.keys().all(|key| tool.property(key).is_some()).then_some(())?;
        let required = tool.input_schema["required"].clone();
        let is_required = |key: &str| {
            required.as_array().is_some_and(|list| list.iter().any(|entry| entry == key))
        };
        let mut arguments = Map::new();
        for (key, values) in &allowed_values {
            let blank = || is_required(key).then(|| Value::String(String::new()));
            arguments.extend(first_value(values).or_else(blank).map(|value| (key.clone(), value)));
        }
        let json = Json::from(&Value::Object(arguments.clone()));
        let call = ResolvedCall { name: name.clone(), arguments: json, repairs: Vec::new() };
        if !toolbox.violations(&call).ok()?.is_empty() {
            return None;
        }
        calls.push(IntendedCall { name: name.clone(), arguments });
        expected_calls.push(ExpectedCall { name: name.clone(), allowed_values });
    }
    let raw_calls: Vec<_> =
        calls.iter().map(|item| (item.name.clone(), item.arguments.clone().into())).collect();
    let is_consistent =
        !calls.is_empty() && judge(&raw_calls, &expected_calls) == CallVerdict::Right;
    let (tools, tool_validator) = (Arc::new(tools), Arc::new(toolbox));
    is_consistent.then(|| BenchmarkEntry {
        id: id.to_owned(),
        tools,
        tool_validator,
        calls,
        expected_calls,
    })
}

fn parse_tool(function: &Value) -> Tool {
    let text = |key: &str| function[key].as_str().unwrap_or_default();
    Tool::new(text("name"), text("description"), convert_schema(&function["parameters"]))
}

/// Converts the benchmark's Python types to JSON Schema.
fn convert_schema(input: &Value) -> Value {
    let Value::Object(members) = input else { return input.clone() };
    let mut read = Map::new();
    for (key, value) in members {
        let value = match (key.as_str(), value) {
            ("type", Value::String(name)) => match name.as_str() {
                "dict" => "object".into(),
                "float" => "number".into(),
                "tuple" => "array".into(),
                "any" => continue,
                _ => value.clone(),
            },
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(key, value)| (key.clone(), convert_schema(value))).collect()
            }
            ("items", _) => convert_schema(value),
            ("description" | "required" | "enum" | "type", _) => value.clone(),
            _ => continue,
        };
        read.insert(key.clone(), value);
    }
    Value::Object(read)
}

fn data_dir() -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-servers/bfcl/lib");
    let site_packages = fs::read_dir(&home).into_iter().flatten().flatten().find_map(|python| {
        let data = python.path().join("site-packages/bfcl_eval/data");
        data.is_dir().then_some(data)
    });
    site_packages.expect("`bfcl-eval` is not installed: run `cargo xtask install` once")
}

fn read_json_lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("a file of the benchmark");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
