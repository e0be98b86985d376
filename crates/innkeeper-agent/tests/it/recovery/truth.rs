//! Questions of a public benchmark with the calls that answer them, and when a call is one of those.
//!
//! The benchmark is the Python package `bfcl-eval`; `cargo xtask servers` installs it under `target`.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use innkeeper_toolcall::{Call, Json, Tool, Toolbox, Tools};
use serde_json::{Map, Value};

/// The files with one round and functions in Python's types.
const FILES: &[&str] = &[
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
];

/// Questions in those files in the installed version.
pub(super) const QUESTIONS: usize = 2351;

/// A question: what may be called, and the calls that answer it.
pub(super) struct Entry {
    pub(super) id: String,
    pub(super) tools: Arc<Tools>,
    pub(super) toolbox: Arc<Toolbox>,
    /// What a model says.
    pub(super) calls: Vec<Said>,
    /// What it may say, call by call.
    pub(super) truths: Vec<Truth>,
}

/// A call as a model means it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Said {
    pub(super) name: String,
    pub(super) arguments: Map<String, Value>,
}

/// What one call may be: for each argument the values that are right; an empty text among them says
/// that it may be left out.
#[derive(Clone, Debug)]
pub(super) struct Truth {
    pub(super) name: String,
    pub(super) options: Map<String, Value>,
}

/// How calls stand to what was meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Every call that was meant, and no other.
    Right,
    /// Only calls that were meant, but not all.
    Short,
    /// A call that was not meant.
    Wrong,
}

/// Every question whose calls have arguments of their tools alone and fit their schemas.
pub(super) fn entries() -> Vec<Entry> {
    let data = data();
    let mut all = Vec::new();
    let mut questions = 0;
    for file in FILES {
        let name = format!("BFCL_v4_{file}.json");
        let answers: HashMap<String, Value> = lines(&data.join("possible_answer").join(&name))
            .into_iter()
            .map(|answer| (answer["id"].as_str().unwrap().to_owned(), answer))
            .collect();
        for question in lines(&data.join(&name)) {
            questions += 1;
            let id = question["id"].as_str().unwrap();
            all.extend(answers.get(id).and_then(|answer| entry(id, &question, answer)));
        }
    }
    assert_eq!(questions, QUESTIONS, "another version of `bfcl-eval` is installed");
    all
}

/// How these calls stand to what was meant.
pub(super) fn judge(calls: &[(String, Value)], truths: &[Truth]) -> Verdict {
    let mut open: Vec<&Truth> = truths.iter().collect();
    for (name, arguments) in calls {
        let found = open.iter().position(|truth| truth.name == *name && truth.admits(arguments));
        let Some(at) = found else { return Verdict::Wrong };
        open.remove(at);
    }
    if open.is_empty() { Verdict::Right } else { Verdict::Short }
}

impl Truth {
    /// Whether each argument has one of its values, and none is missing or too much.
    fn admits(&self, arguments: &Value) -> bool {
        let Value::Object(members) = arguments else { return false };
        members.keys().all(|key| self.options.contains_key(key))
            && self.options.iter().all(|(key, options)| one_of(members.get(key), options))
    }
}

fn one_of(value: Option<&Value>, options: &Value) -> bool {
    let Value::Array(options) = options else { return false };
    match value {
        None => options.iter().any(is_blank),
        Some(value) => options.iter().any(|option| same(value, option)),
    }
}

/// Whether a value is what an option says. Objects of options have lists of values in turn.
fn same(value: &Value, option: &Value) -> bool {
    match (value, option) {
        (Value::Object(members), Value::Object(options)) if has_options(options) => {
            members.keys().all(|key| options.contains_key(key))
                && options.iter().all(|(key, options)| one_of(members.get(key), options))
        }
        (Value::Object(members), Value::Object(others)) => {
            members.len() == others.len()
                && members.iter().all(|(key, one)| others.get(key).is_some_and(|it| same(one, it)))
        }
        (Value::Array(items), Value::Array(others)) => {
            items.len() == others.len() && items.iter().zip(others).all(|(one, it)| same(one, it))
        }
        (Value::Number(one), Value::Number(other)) => one.as_f64() == other.as_f64(),
        _ => value == option,
    }
}

fn has_options(members: &Map<String, Value>) -> bool {
    members.values().all(Value::is_array)
}

fn is_blank(value: &Value) -> bool {
    value.as_str() == Some("")
}

/// The first value that is one.
fn first(options: &Value) -> Option<Value> {
    options.as_array()?.iter().find(|option| !is_blank(option)).map(plain)
}

/// An option as a value.
fn plain(option: &Value) -> Value {
    match option {
        Value::Object(members) if has_options(members) => {
            let members = members.iter();
            Value::Object(members.filter_map(|(key, it)| Some((key.clone(), first(it)?))).collect())
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        _ => option.clone(),
    }
}

fn entry(id: &str, question: &Value, answer: &Value) -> Option<Entry> {
    let tools: Tools = question["function"].as_array()?.iter().map(tool).collect();
    let toolbox = Toolbox::new(tools.clone());
    let (mut calls, mut truths) = (Vec::new(), Vec::new());
    for truth in answer["ground_truth"].as_array()? {
        let (name, options) = truth.as_object()?.iter().next()?;
        let options = options.as_object()?.clone();
        let tool = tools.get(name)?;
        // Some answers have arguments that their function does not.
        options.keys().all(|key| tool.property(key).is_some()).then_some(())?;
        let required = tool.input_schema["required"].clone();
        let is_required =
            |key: &str| required.as_array().is_some_and(|it| it.iter().any(|it| it == key));
        let mut arguments = Map::new();
        for (key, values) in &options {
            let blank = || is_required(key).then(|| Value::String(String::new()));
            arguments.extend(first(values).or_else(blank).map(|value| (key.clone(), value)));
        }
        let json = Json::from(&Value::Object(arguments.clone()));
        let call = Call { name: name.clone(), arguments: json, repairs: Vec::new() };
        if !toolbox.violations(&call).ok()?.is_empty() {
            return None;
        }
        calls.push(Said { name: name.clone(), arguments });
        truths.push(Truth { name: name.clone(), options });
    }
    let said: Vec<_> =
        calls.iter().map(|it| (it.name.clone(), it.arguments.clone().into())).collect();
    let whole = !calls.is_empty() && judge(&said, &truths) == Verdict::Right;
    let (tools, toolbox) = (Arc::new(tools), Arc::new(toolbox));
    whole.then(|| Entry { id: id.to_owned(), tools, toolbox, calls, truths })
}

fn tool(function: &Value) -> Tool {
    let text = |key: &str| function[key].as_str().unwrap_or_default();
    Tool::new(text("name"), text("description"), schema(&function["parameters"]))
}

/// The benchmark's types are Python's.
fn schema(given: &Value) -> Value {
    let Value::Object(members) = given else { return given.clone() };
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
                properties.iter().map(|(key, value)| (key.clone(), schema(value))).collect()
            }
            ("items", _) => schema(value),
            ("description" | "required" | "enum" | "type", _) => value.clone(),
            _ => continue,
        };
        read.insert(key.clone(), value);
    }
    Value::Object(read)
}

fn data() -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-servers/bfcl/lib");
    let found = fs::read_dir(&home).into_iter().flatten().flatten().find_map(|python| {
        let data = python.path().join("site-packages/bfcl_eval/data");
        data.is_dir().then_some(data)
    });
    found.expect("`bfcl-eval` is not installed: run `cargo xtask servers` once")
}

fn lines(file: &Path) -> Vec<Value> {
    let text = fs::read_to_string(file).expect("a file of the benchmark");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
