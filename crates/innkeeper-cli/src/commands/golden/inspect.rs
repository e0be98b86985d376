//! `golden inspect`: shows a recorded run step by step.

mod steps;
mod text;

use std::collections::BTreeMap;

use innkeeper_agent::golden::{
    Acceptance, ApprovalRecord, Category, Golden, Origin, QuestionRecord, ServerRecord,
};
use serde::Serialize;

use super::files;
use super::review::{Review, read_reviews};
use super::run_view::{RunView, TokenView, millis};
use crate::cli::InspectArgs;
use crate::exit::CliError;
use crate::output::Output;
use steps::Iteration;

pub(super) fn run(args: &InspectArgs, output: &mut Output) -> Result<(), CliError> {
    let file = files::read(&args.file)?;
    let run = RunView::from_file(&file)?;
    let reviews = read_reviews(&file.path)?;
    let inspection = Inspection::new(&file.golden, &run, &reviews);
    if output.is_json() {
        return Ok(output.print_json(&inspection)?);
    }
    text::print(&inspection, output)
}

/// What a person wants to know about a recorded run.
#[derive(Debug, Serialize)]
struct Inspection<'g> {
    #[serde(flatten)]
    recording: Recording<'g>,
    #[serde(flatten)]
    setup: Setup<'g>,
    #[serde(flatten)]
    prompts: Prompts<'g>,
    /// The iterations with what happened in them; 0 is the time before the first request of the run.
    iterations: Vec<Iteration<'g>>,
    #[serde(flatten)]
    decisions: Decisions<'g>,
    result: RunEnd<'g>,
    totals: Totals,
    #[serde(flatten)]
    judgements: Judgements<'g>,
}

#[derive(Debug, Serialize)]
struct Recording<'g> {
    test_name: &'g str,
    origin: Origin,
    category: Option<Category>,
    recorded_at: &'g str,
    program: &'g str,
}

/// The model and the servers of the run.
#[derive(Clone, Copy, Debug, Serialize)]
struct Setup<'g> {
    provider: &'g str,
    model: &'g str,
    api: &'g str,
    streaming: bool,
    servers: &'g BTreeMap<String, ServerRecord>,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Prompts<'g> {
    system_prompt: &'g str,
    user_prompt: &'g str,
    further_prompts: &'g [String],
}

/// What people decided, and what servers asked.
#[derive(Debug, Serialize)]
struct Decisions<'g> {
    approvals: &'g [ApprovalRecord],
    questions: &'g [QuestionRecord],
}

/// What people said about the run later.
#[derive(Debug, Serialize)]
struct Judgements<'g> {
    accepted: &'g [Acceptance],
    reviews: &'g [Review],
}

#[derive(Debug, Serialize)]
struct RunEnd<'g> {
    success: bool,
    final_result: Option<&'g str>,
    error: Option<&'g str>,
    /// The last iteration of a run that failed.
    failed_iteration: Option<u32>,
}

/// The sums over the run.
#[derive(Debug, Serialize)]
struct Totals {
    iterations: u32,
    requests: usize,
    failed_requests: usize,
    calls: usize,
    failed_calls: usize,
    #[serde(flatten)]
    tokens: TokenView,
    ms: u64,
}

impl<'g> Inspection<'g> {
    fn new(golden: &'g Golden, run: &'g RunView, reviews: &'g [Review]) -> Self {
        let iterations = Iteration::all(golden, run);
        let requests = || iterations.iter().flat_map(|iteration| &iteration.requests);
        let metadata = &run.execution_metadata;
        let totals = Totals {
            iterations: metadata.total_iterations,
            requests: requests().count(),
            failed_requests: requests().filter(|request| request.failure.is_some()).count(),
            calls: run.tool_chain.len(),
            failed_calls: run.failed_calls(),
            tokens: metadata.token_usage,
            ms: millis(metadata.total_execution_time),
        };
        let input = &golden.input;
        Self {
            recording: Recording {
                test_name: &golden.test_name,
                origin: golden.origin,
                category: golden.category,
                recorded_at: &golden.recorded_at,
                program: &golden.program,
            },
            setup: Setup {
                provider: &input.provider,
                model: &input.model,
                api: &input.api,
                streaming: input.streaming,
                servers: &golden.servers,
            },
            prompts: Prompts {
                system_prompt: &input.system_prompt,
                user_prompt: &input.user_prompt,
                further_prompts: &input.further_prompts,
            },
            decisions: Decisions { approvals: &golden.approvals, questions: &golden.questions },
            result: RunEnd {
                success: run.success,
                final_result: run.final_result.as_deref(),
                error: run.failure(),
                failed_iteration: (!run.success).then_some(metadata.total_iterations),
            },
            totals,
            judgements: Judgements { accepted: &golden.accepted, reviews },
            iterations,
        }
    }
}

#[cfg(test)]
mod tests;
