//! The tools and queries of two public benchmarks, in two halves.

use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::fs;
use std::path::Path;

use innkeeper_toolcall::{Tool, Tools};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

type AnyError = Box<dyn Error>;

/// The seed of the halves. Weights may be tuned on one half only; the other half is reported.
const SPLIT_SEED: &str = "innkeeper tool search 1";

/// The files of BFCL with one turn and Python types.
const BFCL_FILES: &[&str] = &[
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
];

/// The files of LiveMCPBench with the tools of the servers, and with the tasks and the tools that each
/// task needs. The rest of the second file is the conversation of a model, which is not read.
const LIVE_TOOLS: &str =
    "baseline/mcp_copilot/config/mcp_arg_Qwen3-Embedding-0.6B_qwen25_72b_int4_instruct.json";
const LIVE_TASKS: &str = "baseline/annotation/claude-sonnet-4-20250514_Qwen3-Embedding-0.6B.json";

/// The half of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    Tuning,
    Report,
}

impl Half {
    /// Returns the half of a task, which depends on its id and the seed only.
    fn for_task(id: &str) -> Self {
        let hash = Sha256::digest(format!("{SPLIT_SEED}\n{id}"));
        if hash[0].is_multiple_of(2) { Self::Tuning } else { Self::Report }
    }
}

/// The searches of one task, and the tools that the task needs.
#[derive(Debug)]
pub(crate) struct Query {
    pub(crate) kind: &'static str,
    pub(crate) half: Half,
    /// One text per search.
    pub(crate) texts: Vec<String>,
    /// The tools' own names.
    pub(crate) needed: BTreeSet<String>,
}

impl Query {
    pub(crate) fn to_json(&self) -> Value {
        json!({"kind": self.kind, "texts": self.texts, "needed": self.needed})
    }
}

/// A benchmark.
#[derive(Debug)]
pub(crate) struct Benchmark {
    pub(crate) name: &'static str,
    pub(crate) tools: Tools,
    pub(crate) queries: Vec<Query>,
    /// The own name of each tool by its public name.
    own_names: HashMap<String, String>,
}

impl Benchmark {
    /// Reads BFCL: the functions of all questions in one list, the first of several functions with
    /// one name. A question is one query.
    pub(crate) fn bfcl(data: &Path) -> Result<Self, AnyError> {
        let (mut tools, mut queries) = (Vec::new(), Vec::new());
        for file in BFCL_FILES {
            let name = format!("BFCL_v4_{file}.json");
            let answers: HashMap<String, Value> =
                read_lines(&data.join("possible_answer").join(&name))?
                    .into_iter()
                    .map(|answer| (text(&answer["id"]), answer))
                    .collect();
            for question in read_lines(&data.join(&name))? {
                tools.extend(items(&question["function"]).map(bfcl_tool));
                let id = text(&question["id"]);
                let calls =
                    items(&answers.get(&id).ok_or("a question without an answer")?["ground_truth"]);
                let needed: BTreeSet<String> =
                    calls.filter_map(|call| call.as_object()?.keys().next().cloned()).collect();
                let kind =
                    if needed.len() == 1 { "question" } else { "question with several tools" };
                queries.push(Query {
                    kind,
                    half: Half::for_task(&id),
                    texts: vec![user_text(&question)],
                    needed,
                });
            }
        }
        let tools: Tools = tools.into_iter().collect();
        let own_names = tools.iter().map(|tool| (tool.name.clone(), tool.name.clone())).collect();
        Ok(Self { name: "BFCL", tools, queries, own_names })
    }

    /// Reads LiveMCPBench: the tools of all servers under their public names. A task is one query
    /// with its text, and one with a search for each of its steps. The tasks name no servers, so that a
    /// tool counts as found under the name of any server. A tool that no server has is not needed.
    pub(crate) fn live(data: &Path) -> Result<Self, AnyError> {
        let (mut tools, mut own_names) = (Vec::new(), HashMap::new());
        for server in items(&read(&data.join(LIVE_TOOLS))?) {
            for tool in items(&server["tools"]) {
                let own_name = text(&tool["name"]);
                let public_name = format!("{}.{own_name}", text(&server["server_name"]));
                tools.push(live_tool(&public_name, tool));
                own_names.insert(public_name, own_name);
            }
        }
        let mut queries = Vec::new();
        for task in items(&read(&data.join(LIVE_TASKS))?) {
            let half = Half::for_task(&text(&task["task_id"]));
            let notes = &task["Annotator Metadata"];
            let mut needed: BTreeSet<String> =
                numbered_lines(&text(&notes["Tools"])).into_iter().collect();
            needed.retain(|name| own_names.values().any(|own_name| own_name == name));
            let query = |kind, texts| Query { kind, half, texts, needed: needed.clone() };
            queries.push(query("task", vec![text(&task["Question"])]));
            queries.push(query("steps", numbered_lines(&text(&notes["Steps"]))));
        }
        Ok(Self { name: "LiveMCPBench", tools: tools.into_iter().collect(), queries, own_names })
    }

    /// Returns the kinds of queries in the order of their first query.
    pub(crate) fn kinds(&self) -> Vec<&'static str> {
        let mut kinds = Vec::new();
        for query in &self.queries {
            if !kinds.contains(&query.kind) {
                kinds.push(query.kind);
            }
        }
        kinds
    }

    pub(crate) fn own_name(&self, public_name: &str) -> &str {
        &self.own_names[public_name]
    }
}

fn bfcl_tool(function: &Value) -> Tool {
    let parameters = function["parameters"].clone();
    Tool::new(text(&function["name"]), text(&function["description"]), parameters)
}

/// Returns a tool whose parameters are texts such as `(string) The name of the city`.
fn live_tool(public_name: &str, tool: &Value) -> Tool {
    let parameters = tool["parameter"].as_object().into_iter().flatten();
    let properties: Map<String, Value> = parameters
        .map(|(name, parameter)| {
            let parameter = text(parameter);
            let parts = parameter.strip_prefix('(').and_then(|rest| rest.split_once(')'));
            let (kind, description) = parts.unwrap_or(("string", &parameter));
            (name.clone(), json!({"type": kind, "description": description.trim()}))
        })
        .collect();
    let schema = json!({"type": "object", "properties": properties});
    Tool::new(public_name, text(&tool["description"]), schema)
}

/// Joins the messages of the user.
fn user_text(question: &Value) -> String {
    let messages = items(&question["question"]).flat_map(items);
    let messages = messages.filter(|message| message["role"] == "user");
    messages.map(|message| text(&message["content"])).collect::<Vec<_>>().join("\n")
}

/// Returns the lines of a text without the numbers at their beginnings.
fn numbered_lines(text: &str) -> Vec<String> {
    let number = |character: char| character.is_ascii_digit() || ".、) ".contains(character);
    let lines = text.lines().map(|line| line.trim_start_matches(number).trim().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn read(path: &Path) -> Result<Value, AnyError> {
    let text =
        fs::read_to_string(path).map_err(|error| format!("`{}`: {error}", path.display()))?;
    Ok(serde_json::from_str(&text)?)
}

fn read_lines(path: &Path) -> Result<Vec<Value>, AnyError> {
    let text =
        fs::read_to_string(path).map_err(|error| format!("`{}`: {error}", path.display()))?;
    text.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}
