//! Replays the golden actions of a benchmark through a host and an agent.
//!
//! `trajectories PYTHON SCRIPT FAMILY FILE` reads the tasks of `FILE`, as the script writes them. For
//! each task, a host starts the script as the server of the task, and a scripted model makes the
//! golden calls over HTTP: one call per response, then all calls of a turn in one response. Each
//! result and the final state must equal those of the benchmark's own code. Prints one JSON object.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures_util::{StreamExt as _, stream};
use innkeeper_agent::agent::{Agent, AgentSettings};
use innkeeper_agent::conversation::HistoryBudget;
use innkeeper_agent::run::RunLimits;
use innkeeper_agent::tool_search::ToolSearchSettings;
use innkeeper_agent::transport::{ModelSelector, get_llm_client};
use innkeeper_host::{Config, Environment, Host};
use innkeeper_testkit::llm::{Script, ScriptedLlm, ScriptedReply};
use serde::Deserialize;
use serde_json::{Value, json};

/// The name of the server.
const SERVER: &str = "bench";

/// Number of tasks that run beside each other.
const PARALLEL_TASKS: usize = 2;

/// A budget that no task exceeds.
const HISTORY_BUDGET: HistoryBudget = HistoryBudget { max_tokens: 10_000_000 };

/// A task with the results of the benchmark's own code.
#[derive(Deserialize)]
struct Task {
    id: String,
    turns: Vec<Vec<Call>>,
    state: String,
}

#[derive(Deserialize)]
struct Call {
    tool: String,
    arguments: Value,
    text: String,
    is_error: bool,
}

impl Call {
    fn public_name(&self) -> String {
        format!("{SERVER}.{}", self.tool)
    }
}

/// How many calls one response of the model has.
#[derive(Clone, Copy, Debug)]
enum Grouping {
    OneCall,
    WholeTurn,
}

/// The command line of the servers.
struct Program {
    python: String,
    script: String,
    family: String,
}

#[tokio::main]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "prints the figures and differences")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().ok_or("expected PYTHON SCRIPT FAMILY FILE");
    let program = Program { python: next()?, script: next()?, family: next()? };
    let tasks: Vec<Task> = serde_json::from_str(&fs::read_to_string(next()?)?)?;
    if tasks.is_empty() {
        return Err("the benchmark has no tasks".into());
    }
    let dir = tempfile::tempdir()?;
    let groupings = [Grouping::OneCall, Grouping::WholeTurn];
    let runs = tasks.iter().flat_map(|task| groupings.map(|grouping| (task, grouping)));
    let (program, dir) = (&program, dir.path());
    let mut results = stream::iter(runs.enumerate())
        .map(|(at, (task, grouping))| async move {
            let state = dir.join(at.to_string());
            let problem = replay(program, task, grouping, &state).await.err();
            problem.map(|problem| format!("{} with {grouping:?}: {problem}", task.id))
        })
        .buffer_unordered(PARALLEL_TASKS);
    let (mut equal, mut differences) = (0, 0);
    while let Some(problem) = results.next().await {
        match problem {
            None => equal += 1,
            Some(problem) => {
                differences += 1;
                eprintln!("{problem}");
            }
        }
    }
    let calls = || tasks.iter().flat_map(|task| task.turns.iter().flatten());
    let errors = calls().filter(|call| call.is_error).count();
    println!(
        "{}",
        json!({"family": program.family, "tasks": tasks.len(), "calls": calls().count(),
            "errors": errors, "runs": equal + differences, "equal": equal})
    );
    if differences == 0 { Ok(()) } else { Err(format!("{differences} runs differ").into()) }
}

/// Runs a task, and compares each result and the final state.
async fn replay(
    program: &Program,
    task: &Task,
    grouping: Grouping,
    state: &Path,
) -> Result<(), Box<dyn Error>> {
    let args = [&program.script, "serve", &program.family, &task.id, &state.display().to_string()];
    let servers = json!({"mcpServers": {SERVER: {"command": program.python, "args": args, "env": {"PYTHONHASHSEED": "0"}}}});
    let environment = Environment::from_process();
    let config = Config::from_value(&servers, "mcp.json", Path::new("/"), &environment)?;
    let host = Host::start(config).await?;
    let replayed = replay_turns(&host, task, grouping).await;
    host.shutdown().await;
    replayed?;
    let found = fs::read_to_string(state)?;
    if found == task.state { Ok(()) } else { Err("the final state differs".into()) }
}

async fn replay_turns(host: &Host, task: &Task, grouping: Grouping) -> Result<(), Box<dyn Error>> {
    let replies = task.turns.iter().flat_map(|turn| replies(turn, grouping));
    let model = ScriptedLlm::start(Script::new(replies)).await;
    let selector = ModelSelector {
        provider: "openai".to_owned(),
        model: Some("scripted".to_owned()),
        base_url: Some(format!("{}/v1", model.origin())),
        key: Some(innkeeper_host::config::Secret::new("key")),
        ..ModelSelector::default()
    };
    let client = get_llm_client(&selector, &Environment::from_process())?;
    let settings = AgentSettings {
        limits: RunLimits { max_iterations: 1000, ..RunLimits::default() },
        history_budget: Some(HISTORY_BUDGET),
        tool_search: ToolSearchSettings::disabled(),
        // The golden actions depend on their order.
        max_parallel_calls: 1,
        ..AgentSettings::default()
    };
    let agent = Agent::new(Arc::new(client), Arc::new(host.clone()), settings);
    for (at, turn) in task.turns.iter().enumerate() {
        let result = agent.run(format!("Turn {at}.")).await;
        if !result.is_success() {
            return Err(format!("turn {at} ended with {:?}", result.outcome).into());
        }
        if result.tool_calls.len() != turn.len() {
            let (made, golden) = (result.tool_calls.len(), turn.len());
            return Err(format!("turn {at} made {made} calls, not {golden}").into());
        }
        for (made, golden) in result.tool_calls.iter().zip(turn) {
            let is_equal = made.tool == golden.public_name()
                && made.result_text == golden.text
                && made.success != golden.is_error;
            if !is_equal {
                let (tool, text) = (&golden.tool, &golden.text);
                return Err(format!("`{tool}`: `{}`, not `{text}`", made.result_text).into());
            }
        }
    }
    match model.remaining_replies() {
        0 => Ok(()),
        left => Err(format!("{left} responses of the model are left").into()),
    }
}

/// Returns the responses of the model in a turn.
fn replies(turn: &[Call], grouping: Grouping) -> Vec<ScriptedReply> {
    let add = |reply: ScriptedReply, call: &Call| {
        reply.with_tool_call(call.public_name(), call.arguments.clone())
    };
    let mut replies: Vec<_> = match grouping {
        Grouping::OneCall => turn.iter().map(|call| add(ScriptedReply::new(), call)).collect(),
        Grouping::WholeTurn if turn.is_empty() => Vec::new(),
        Grouping::WholeTurn => vec![turn.iter().fold(ScriptedReply::new(), add)],
    };
    replies.push(ScriptedReply::text("Done."));
    replies
}
