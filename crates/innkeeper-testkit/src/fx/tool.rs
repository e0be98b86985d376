//! What each tool of the fixture server does.

use serde_json::{Map, Value, json};

use super::catalog;
use super::message::{Answer, Request, code};
use super::server::Server;

/// Names of the entries `grow` adds.
const GROWN: &str = "grown_";

impl Server {
    /// Runs the tool a call names.
    pub(super) fn run_tool(&mut self, request: &Request) -> Answer {
        let name = request.param("name");
        if !self.catalog.has_tool(name) {
            return Answer::error(code::INVALID_PARAMS, format!("unknown tool `{name}`"));
        }
        let nothing = json!({});
        let arguments = request.params.get("arguments").unwrap_or(&nothing);
        let result = match name {
            "echo" => text(arguments["message"].as_str().unwrap_or_default()),
            "add" => self.add(arguments),
            "a.b" => text("a.b"),
            "fail" => failed("failed as asked"),
            "env" => text(&surroundings(arguments["name"].as_str()).to_string()),
            "read" => read(arguments["path"].as_str().unwrap_or_default()),
            "sleep" => text("slept"),
            "big" => text(&"x".repeat(arguments["bytes"].as_u64().unwrap_or(0) as usize)),
            "pid" => text(&std::process::id().to_string()),
            "grow" => self.change(arguments, true),
            "shrink" => self.change(arguments, false),
            "touch" => {
                self.tell_updated(arguments["uri"].as_str().unwrap_or_default());
                text("touched")
            }
            _ => text(&json!({"tool": name, "arguments": arguments}).to_string()),
        };
        Answer::Result(result)
    }

    fn add(&self, arguments: &Value) -> Value {
        let both = [&arguments["a"], &arguments["b"]];
        let sum = match both.map(Value::as_i64) {
            [Some(a), Some(b)] => json!(a + b),
            _ => json!(both.iter().filter_map(|number| number.as_f64()).sum::<f64>()),
        };
        let mut result = text(&sum.to_string());
        let broken = self.switches.on("--bad-structured");
        result["structuredContent"] =
            json!({"sum": if broken { json!("not a number") } else { sum }});
        result
    }

    /// Makes a list longer or shorter and says so.
    fn change(&mut self, arguments: &Value, grow: bool) -> Value {
        let what = arguments["what"].as_str().unwrap_or("tools");
        let (list, key) = match what {
            "prompts" => (&mut self.catalog.prompts, "name"),
            "resources" => (&mut self.catalog.resources, "uri"),
            _ => (&mut self.catalog.tools, "name"),
        };
        if grow {
            let name = format!("{GROWN}{}", list.len());
            let schema = json!({"type": "object"});
            list.push(match what {
                "prompts" => json!({"name": name}),
                "resources" => json!({"uri": format!("fx://grown/{name}"), "name": name}),
                _ => catalog::tool(&name, "Was added while running.", &schema),
            });
        } else if let Some(last) = list.iter().rposition(|entry| !is_changer(&entry["name"])) {
            list.remove(last);
        }
        let names: Vec<Value> = list.iter().map(|entry| entry[key].clone()).collect();
        for _ in 0..self.switches.count("--list-changed-burst").max(1) {
            self.tell_list_changed(what);
        }
        text(&json!(names).to_string())
    }
}

/// Whether an entry is one of the tools that change lists, which stay.
fn is_changer(name: &Value) -> bool {
    name == "grow" || name == "shrink"
}

/// A tool result of one text.
pub(super) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A tool result that says the tool failed.
pub(super) fn failed(message: &str) -> Value {
    let mut result = text(message);
    result["isError"] = json!(true);
    result
}

fn read(path: &str) -> Value {
    match std::fs::read_to_string(path) {
        Ok(content) => text(&content),
        Err(error) => failed(&format!("{path}: {error}")),
    }
}

/// How this process was started; only the one variable when a name is given.
#[expect(clippy::disallowed_methods, reason = "its own environment is what the tool reports")]
fn surroundings(name: Option<&str>) -> Value {
    let variables: Map<String, Value> = std::env::vars_os()
        .map(|(key, value)| (key.to_string_lossy().into_owned(), json!(value.to_string_lossy())))
        .filter(|(key, _)| name.is_none_or(|name| name == key))
        .collect();
    let arguments: Vec<String> =
        std::env::args_os().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let directory = std::env::current_dir().unwrap_or_default();
    json!({"env": variables, "argv": arguments, "cwd": directory.to_string_lossy()})
}
