//! Replays one task through a host and an agent.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use innkeeper_agent::agent::{Agent, AgentSettings};
use innkeeper_agent::conversation::HistoryBudget;
use innkeeper_agent::run::RunLimits;
use innkeeper_agent::tool_search::ToolSearchSettings;
use innkeeper_agent::transport::{ModelSelector, get_llm_client};
use innkeeper_host::{Config, Environment, Host};
use innkeeper_testkit::llm::{Script, ScriptedLlm};
use serde::Deserialize;
use serde_json::json;

use crate::task::{Call, Difference, GoldenCall, ReplayMode, SERVER, Task, public_name};

/// A budget that no task exceeds.
const HISTORY_BUDGET: HistoryBudget = HistoryBudget { max_tokens: 10_000_000 };

/// The command line of the servers.
pub(crate) struct Program {
    pub(crate) python: String,
    pub(crate) script: String,
    pub(crate) family: String,
}

/// The file that the server writes.
#[derive(Deserialize)]
struct Written {
    calls: Vec<Call>,
    state: String,
}

/// Runs a task, and compares each result, the calls that the server got, and the final state.
/// Returns the first difference.
///
/// # Errors
///
/// The host or the model does not start, or the server wrote no state.
pub(crate) async fn replay(
    program: &Program,
    task: &Task,
    mode: ReplayMode,
    file: &Path,
) -> Result<Option<Difference>, Box<dyn Error>> {
    let args = [&program.script, "serve", &program.family, &task.id, &file.display().to_string()];
    let servers = json!({"mcpServers": {SERVER: {
        "command": program.python,
        "args": args,
        "env": {"PYTHONHASHSEED": "0"},
    }}});
    let environment = Environment::from_process();
    let config = Config::from_value(&servers, "mcp.json", Path::new("/"), &environment)?;
    let host = Host::start(config).await?;
    let difference = replay_turns(&host, task, mode).await;
    host.shutdown().await;
    if let Some(difference) = difference? {
        return Ok(Some(difference));
    }
    let written: Written = serde_json::from_str(&fs::read_to_string(file)?)?;
    if !written.calls.iter().eq(task.calls().map(|golden| golden.call(mode))) {
        return Ok(Some(Difference::ReceivedCalls));
    }
    Ok((written.state != task.state).then_some(Difference::State))
}

async fn replay_turns(
    host: &Host,
    task: &Task,
    mode: ReplayMode,
) -> Result<Option<Difference>, Box<dyn Error>> {
    let model = ScriptedLlm::start(Script::new(task.replies(mode))).await;
    let selector = ModelSelector {
        provider: "openai".to_owned(),
        model: Some("scripted".to_owned()),
        base_url: Some(format!("{}/v1", model.origin())),
        key: Some(innkeeper_host::config::Secret::new("key")),
        ..ModelSelector::default()
    };
    let client = get_llm_client(&selector, &Environment::from_process())?;
    let mut settings = AgentSettings {
        limits: RunLimits { max_iterations: 1000, ..RunLimits::default() },
        tool_search: ToolSearchSettings::disabled(),
        ..AgentSettings::default()
    };
    settings.requests.history_budget = Some(HISTORY_BUDGET);
    // The golden calls depend on their order.
    settings.calls.max_parallel = 1;
    let agent = Agent::new(Arc::new(client), Arc::new(host.clone()), settings);
    for (at, turn) in task.turns.iter().enumerate() {
        if let Some(difference) = replay_turn(&agent, at, turn, mode).await {
            return Ok(Some(difference));
        }
    }
    let left = model.remaining_replies();
    let difference = Difference::Course(format!("{left} responses of the model are left"));
    Ok((left > 0).then_some(difference))
}

async fn replay_turn(
    agent: &Agent,
    at: usize,
    turn: &[GoldenCall],
    mode: ReplayMode,
) -> Option<Difference> {
    let result = agent.run(format!("Turn {at}.")).await;
    for (made, golden) in result.tool_calls.iter().zip(turn) {
        let tool = &golden.call(mode).tool;
        let is_equal = made.tool == public_name(tool)
            && made.result_text == golden.text
            && made.outcome.success != golden.is_error;
        if !is_equal {
            let (made, golden) = (&made.result_text, &golden.text);
            return Some(Difference::Result(format!("`{tool}`: `{made}`, not `{golden}`")));
        }
    }
    let is_complete = result.is_completed() && result.tool_calls.len() == turn.len();
    let (made, golden) = (result.tool_calls.len(), turn.len());
    let course = || format!("turn {at}: {made} calls, not {golden}; end: {:?}", result.outcome);
    (!is_complete).then(|| Difference::Course(course()))
}
