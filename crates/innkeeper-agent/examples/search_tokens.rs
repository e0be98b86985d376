//! Measures the requests of an agent that searches its tools, beside a request with all tools.
//!
//! `search_tokens FILE` reads tools and queries, as `search_quality` writes them, and prints one JSON
//! object with estimated tokens. The model of each run is scripted: it makes the searches of the
//! query, describes the needed tools that the searches found, and ends.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;

use innkeeper_agent::agent::{Agent, AgentSettings};
use innkeeper_agent::conversation::{HistoryBudget, estimate_tokens};
use innkeeper_agent::provider::{LlmError, Request, Response, ScriptedProvider};
use innkeeper_agent::run::RunLimits;
use innkeeper_agent::tool_search::{DEFAULT_SEARCH_LIMIT, MAX_DESCRIBED_TOOLS, ToolSearchSettings};
use innkeeper_agent::tools::{
    AvailableTool, ToolAnnotations, ToolCallFuture, ToolCallOptions, ToolError, ToolRunner,
};
use innkeeper_toolcall::{ToolIndex, Tools};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

/// A budget that a request with all tools does not exceed.
const LISTING_BUDGET: HistoryBudget = HistoryBudget { max_tokens: 10_000_000 };

/// Number of measured queries of one benchmark: each run indexes all tools.
const MAX_RUNS: usize = 40;

/// A benchmark, as `search_quality` writes it.
#[derive(Deserialize)]
struct Benchmark {
    tools: Tools,
    queries: Vec<Query>,
}

#[derive(Deserialize)]
struct Query {
    texts: Vec<String>,
    needed: BTreeSet<String>,
}

/// The tools of a benchmark, of which none is called.
struct ListedTools(Vec<AvailableTool>);

impl ToolRunner for ListedTools {
    fn list_tools(&self) -> Vec<AvailableTool> {
        self.0.clone()
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        _: Box<RawValue>,
        _: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        let error = ToolError::Runner { tool: name.to_owned(), source: "no server".into() };
        Box::pin(std::future::ready(Err(error)))
    }
}

#[tokio::main(flavor = "current_thread")]
#[expect(clippy::print_stdout, reason = "prints the figures")]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1).ok_or("expected FILE")?;
    let benchmark: Benchmark = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let index = ToolIndex::new(&benchmark.tools);
    let all = benchmark
        .tools
        .iter()
        .map(|tool| AvailableTool::new(tool.clone(), ToolAnnotations::default()));
    let runner = Arc::new(ListedTools(all.collect()));
    let limits = RunLimits { max_iterations: 100, ..RunLimits::default() };
    let searching = AgentSettings { limits, ..AgentSettings::default() };
    let mut listing =
        AgentSettings { tool_search: ToolSearchSettings::disabled(), ..searching.clone() };
    listing.requests.history_budget = Some(LISTING_BUDGET);
    let query = benchmark.queries.first().ok_or("no queries")?;
    let (listing, _) = run(&runner, listing, query, &[]).await?;
    let (mut first, mut largest, mut sum) = (0, 0, 0);
    let step = benchmark.queries.len().div_ceil(MAX_RUNS);
    let measured = || benchmark.queries.iter().step_by(step);
    for query in measured() {
        let (begin, end) = run(&runner, searching.clone(), query, &calls(query, &index)).await?;
        first = first.max(begin);
        largest = largest.max(end);
        sum += end;
    }
    let mean = sum / measured().count();
    println!("{}", json!({"listing": listing, "first": first, "mean": mean, "largest": largest}));
    Ok(())
}

/// Returns the calls of a model that needs the tools of a query.
fn calls(query: &Query, index: &ToolIndex) -> Vec<(String, String)> {
    let mut calls = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for text in &query.texts {
        calls.push(("search_tools".to_owned(), json!({"query": text}).to_string()));
        for name in index.search(text, DEFAULT_SEARCH_LIMIT as usize) {
            let is_needed = |own: &String| name == own || name.ends_with(&format!(".{own}"));
            if query.needed.iter().any(is_needed) && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    for names in names.chunks(MAX_DESCRIBED_TOOLS) {
        calls.push(("describe_tools".to_owned(), json!({"names": names}).to_string()));
    }
    calls
}

/// Returns the estimated tokens of the first and of the last request of a run.
async fn run(
    runner: &Arc<ListedTools>,
    settings: AgentSettings,
    query: &Query,
    calls: &[(String, String)],
) -> Result<(usize, usize), Box<dyn Error>> {
    let replies = calls.iter().map(|(name, arguments)| {
        Ok::<_, LlmError>(Response::from_tool_calls([(name.as_str(), arguments.as_str())]))
    });
    let replies = replies.chain([Ok(Response::from_text("Done."))]);
    let model = Arc::new(ScriptedProvider::new(replies));
    let agent = Agent::new(model.clone(), runner.clone(), settings);
    let result = agent.run(query.texts.join("\n")).await;
    let requests = model.requests();
    if !result.is_success() || requests.len() != calls.len() + 1 {
        return Err(format!("the run ended with {:?}", result.outcome).into());
    }
    let tokens = |request: Option<&Request>| -> Result<usize, Box<dyn Error>> {
        Ok(estimate_tokens(&serde_json::to_string(request.ok_or("no request")?)?))
    };
    Ok((tokens(requests.first())?, tokens(requests.last())?))
}
