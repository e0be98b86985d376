//! What the crate `tool-parser` makes of answers: each with the parser for its form.
//!
//! `recovery FOLDER`: `tools.jsonl` there has the tools of each question, `cases.jsonl` the answers.
//! Prints a line for each answer: the calls as names with the text of their arguments, or `null`
//! where the crate has no parser for the form.

use std::collections::HashMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;

use openai_protocol::common::{Function, Tool};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tool_parser::{ParserFactory, ToolParser};

/// Forms with the name of the parser that reads them.
const PARSERS: &[(&str, &str)] = &[
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
    // A parser that panics on an answer has found no call in it.
    std::panic::set_hook(Box::new(|_| {}));
    match read() {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

fn read() -> Result<(), String> {
    let folder = std::env::args().nth(1).ok_or("usage: recovery FOLDER")?;
    let factory = ParserFactory::new();
    let create = |name: &str| factory.registry().create_parser(name);
    let parsers: HashMap<&str, Box<dyn ToolParser>> =
        PARSERS.iter().filter_map(|(form, name)| Some((*form, create(name)?))).collect();
    if parsers.len() < PARSERS.len() {
        return Err("the crate lacks one of the parsers".to_owned());
    }
    let runtime = Builder::new_current_thread().build().map_err(|error| error.to_string())?;
    let tools: Vec<Vec<Tool>> =
        lines(&folder, "tools.jsonl")?.iter().map(offered).collect::<Option<_>>().ok_or("tools")?;
    for case in lines(&folder, "cases.jsonl")? {
        let tools = case["entry"].as_u64().and_then(|at| tools.get(usize::try_from(at).ok()?));
        let (Some(tools), Some(form), Some(text)) =
            (tools, case["form"].as_str(), case["text"].as_str())
        else {
            return Err(format!("`{case}` is no case"));
        };
        let calls = parsers.get(form).map(|parser| calls(&runtime, &**parser, text, tools));
        println!("{}", json!(calls));
    }
    Ok(())
}

fn calls(runtime: &Runtime, parser: &dyn ToolParser, text: &str, tools: &[Tool]) -> Value {
    let read = || runtime.block_on(parser.parse_complete_with_tools(text, tools));
    let Ok(Ok((_, calls))) = catch_unwind(AssertUnwindSafe(read)) else { return json!([]) };
    calls.iter().map(|call| json!([call.function.name, call.function.arguments])).collect()
}

fn offered(tools: &Value) -> Option<Vec<Tool>> {
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

fn lines(folder: &str, name: &str) -> Result<Vec<Value>, String> {
    let problem = |error: &dyn std::fmt::Display| format!("`{name}`: {error}");
    let text = fs::read_to_string(Path::new(folder).join(name)).map_err(|it| problem(&it))?;
    text.lines().map(|line| serde_json::from_str(line).map_err(|it| problem(&it))).collect()
}
