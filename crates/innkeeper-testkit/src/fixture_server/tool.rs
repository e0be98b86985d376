//! The tools of the fixture server.

use serde_json::{Map, Value, json};

use super::catalog;
use super::message::{Request, Response, error_code};
use super::server::FixtureServer;

/// Prefix of the names of entries that `grow` adds.
const GROWN_PREFIX: &str = "grown_";

impl FixtureServer {
    /// Runs the tool of a call.
    pub(super) fn run_tool(&mut self, request: &Request) -> Response {
        let name = request.param("name");
        if !self.catalog.has_tool(name) {
            return Response::error(error_code::INVALID_PARAMS, format!("unknown tool `{name}`"));
        }
        let nothing = json!({});
        let arguments = request.params.get("arguments").unwrap_or(&nothing);
        let result = match name {
            "echo" => text_result(arguments["message"].as_str().unwrap_or_default()),
            "add" => self.add(arguments),
            "a.b" => text_result("a.b"),
            "fail" => error_result("failed as asked"),
            "env" => text_result(&process_environment(arguments["name"].as_str()).to_string()),
            "read" => read_file_result(arguments["path"].as_str().unwrap_or_default()),
            "sleep" => text_result("slept"),
            "big" => text_result(&"x".repeat(arguments["bytes"].as_u64().unwrap_or(0) as usize)),
            "pid" => text_result(&std::process::id().to_string()),
            "grow" => self.change_list(arguments, true),
            "shrink" => self.change_list(arguments, false),
            "note" => {
                self.open
                    .calls
                    .notes
                    .push(arguments["text"].as_str().unwrap_or_default().to_owned());
                text_result("noted")
            }
            "notes" => text_result(&json!(self.open.calls.notes).to_string()),
            "touch" => {
                self.notify_resource_updated(arguments["uri"].as_str().unwrap_or_default());
                text_result("touched")
            }
            _ => text_result(&json!({"tool": name, "arguments": arguments}).to_string()),
        };
        Response::Result(result)
    }

    fn add(&self, arguments: &Value) -> Value {
        let both = [&arguments["a"], &arguments["b"]];
        let sum = match both.map(Value::as_i64) {
            [Some(a), Some(b)] => json!(a + b),
            _ => json!(both.iter().filter_map(|number| number.as_f64()).sum::<f64>()),
        };
        let mut result = text_result(&sum.to_string());
        let is_malformed = self.switches.is_set("--bad-structured");
        result["structuredContent"] =
            json!({"sum": if is_malformed { json!("not a number") } else { sum }});
        result
    }

    /// Adds or removes an entry of a list and sends the change notification.
    fn change_list(&mut self, arguments: &Value, grow: bool) -> Value {
        let list_name = arguments["what"].as_str().unwrap_or("tools");
        let (list, key) = match list_name {
            "prompts" => (&mut self.catalog.prompts, "name"),
            "resources" => (&mut self.catalog.resources, "uri"),
            _ => (&mut self.catalog.tools, "name"),
        };
        if grow {
            let name = format!("{GROWN_PREFIX}{}", list.len());
            let schema = json!({"type": "object"});
            list.push(match list_name {
                "prompts" => json!({"name": name}),
                "resources" => json!({"uri": format!("fx://grown/{name}"), "name": name}),
                _ => catalog::tool(&name, "Was added while running.", &schema),
            });
        } else if let Some(last) =
            list.iter().rposition(|entry| !is_list_changing_tool(&entry["name"]))
        {
            list.remove(last);
        }
        let names: Vec<Value> = list.iter().map(|entry| entry[key].clone()).collect();
        for _ in 0..self.switches.count("--list-changed-burst").max(1) {
            self.notify_list_changed(list_name);
        }
        text_result(&json!(names).to_string())
    }
}

/// Whether an entry is one of the tools `grow` and `shrink`, which are never removed.
fn is_list_changing_tool(name: &Value) -> bool {
    name == "grow" || name == "shrink"
}

pub(super) fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// Returns a tool result with `isError`.
pub(super) fn error_result(message: &str) -> Value {
    let mut result = text_result(message);
    result["isError"] = json!(true);
    result
}

fn read_file_result(path: &str) -> Value {
    match std::fs::read_to_string(path) {
        Ok(content) => text_result(&content),
        Err(error) => error_result(&format!("{path}: {error}")),
    }
}

/// The arguments and environment of this process; with a name, only that variable.
#[expect(clippy::disallowed_methods, reason = "the tool reports its own environment")]
fn process_environment(name: Option<&str>) -> Value {
    let variables: Map<String, Value> = std::env::vars_os()
        .map(|(key, value)| (key.to_string_lossy().into_owned(), json!(value.to_string_lossy())))
        .filter(|(key, _)| name.is_none_or(|name| name == key))
        .collect();
    let arguments: Vec<String> =
        std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let directory = std::env::current_dir().unwrap_or_default();
    json!({"env": variables, "argv": arguments, "cwd": directory.to_string_lossy()})
}
