//! Runs the crate `tool-parser` on malformed calls, with the parser of each format.
//!
//! `bench-repair DIR`: `DIR/tools.jsonl` has the tools of each question, `DIR/cases.jsonl` the
//! responses. Prints one line per response: the calls as names with the text of their arguments, or
//! `null` if the crate has no parser for the format.

use std::collections::HashMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use openai_protocol::common::{Function, Tool};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tool_parser::{ParserFactory, ToolParser};

/// Formats with the name of their parser.
const PARSER_NAMES: &[(&str, &str)] = &[
    ("name/arguments", "json"),
    ("hermes", "qwen"),
    ("llama3.1", "llama"),
    ("mistral list", "mistral"),
    ("deepseek", "deepseek"),
    ("kimi", "kimik2"),
    ("qwen-xml", "qwen_xml"),
    ("glm", "glm45_moe"),
    ("minimax", "minimax_m2"),
    ("pythonic", "pythonic"),
    ("gemma", "gemma4"),
];

fn main() -> ExitCode {
    // A panic of a parser counts as a response without calls.
    std::panic::set_hook(Box::new(|_| {}));
    match parse_answers() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

fn parse_answers() -> Result<(), String> {
    let folder = std::env::args().nth(1).ok_or("usage: bench-repair DIR")?;
    let factory = ParserFactory::new();
    let create = |name: &str| factory.registry().create_parser(name);
    let parsers: HashMap<&str, Box<dyn ToolParser>> =
        PARSER_NAMES.iter().filter_map(|(form, name)| Some((*form, create(name)?))).collect();
    if parsers.len() < PARSER_NAMES.len() {
        return Err("the crate lacks a parser of the list".to_owned());
    }
    let runtime = Builder::new_current_thread().build().map_err(|error| error.to_string())?;
    let tools: Vec<Vec<Tool>> = read_json_lines(&folder, "tools.jsonl")?
        .iter()
        .map(parse_tools)
        .collect::<Option<_>>()
        .ok_or("tools")?;
    for case in read_json_lines(&folder, "cases.jsonl")? {
        let tools = case["entry"].as_u64().and_then(|at| tools.get(usize::try_from(at).ok()?));
        let (Some(tools), Some(form), Some(text)) =
            (tools, case["form"].as_str(), case["text"].as_str())
        else {
            return Err(format!("invalid case `{case}`"));
        };
        let calls = parsers.get(form).map(|parser| parse_calls(&runtime, &**parser, text, tools));
        println!("{}", json!(calls));
    }
    Ok(())
}

fn parse_calls(runtime: &Runtime, parser: &dyn ToolParser, text: &str, tools: &[Tool]) -> Value {
    let read = || runtime.block_on(parser.parse_complete_with_tools(text, tools));
    let Ok(Ok((_, calls))) = catch_unwind(AssertUnwindSafe(read)) else { return json!([]) };
    calls.iter().map(|call| json!([call.function.name, call.function.arguments])).collect()
}

fn parse_tools(tools: &Value) -> Option<Vec<Tool>> {
    let tool = |tool: &Value| {
        let function = Function {
            name: tool["name"].as_str()?.to_owned(),
            description: tool["description"].as_str().map(str::to_owned),
            parameters: tool["parameters"].clone(),
            strict: None,
            extra: Default::default(),
        };
        Some(Tool { tool_type: "function".to_owned(), function })
    };
    tools.as_array()?.iter().map(tool).collect()
}

fn read_json_lines(folder: &str, name: &str) -> Result<Vec<Value>, String> {
    let problem = |error: &dyn std::fmt::Display| format!("`{name}`: {error}");
    let text = fs::read_to_string(Path::new(folder).join(name)).map_err(|it| problem(&it))?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|it| problem(&it))).collect()
}
