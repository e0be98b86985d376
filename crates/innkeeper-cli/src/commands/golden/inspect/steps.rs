//! The steps of a recorded run: requests, the model's text and calls, by iteration.

use std::collections::BTreeSet;

use innkeeper_agent::golden::{Exchange, Golden, HttpResponseRecord, ReplyRecord, StreamEnd};
use serde::Serialize;
use serde_json::value::RawValue;
use url::Url;

use super::super::run_view::{AttemptsView, CallView, ErrorView, RunView, TokenView, millis};

/// One model response with its requests and calls.
#[derive(Debug, Serialize)]
pub(super) struct Iteration<'g> {
    pub(super) iteration: u32,
    pub(super) requests: Vec<Request<'g>>,
    /// What the model wrote.
    pub(super) text: Option<&'g str>,
    pub(super) calls: Vec<Call<'g>>,
    /// The errors that belong to no call.
    pub(super) errors: Vec<&'g str>,
}

/// A request to the model with what came back.
#[derive(Debug, Serialize)]
pub(super) struct Request<'g> {
    pub(super) method: &'g str,
    pub(super) path: String,
    pub(super) status: Option<u16>,
    pub(super) failure: Option<String>,
    /// The time from the request to the end of the response, if it ended.
    pub(super) ms: Option<u64>,
    pub(super) chunks: usize,
    pub(super) tokens: Option<&'g RawValue>,
    #[serde(skip)]
    pub(super) reported: Option<TokenView>,
}

/// A tool call with its result.
#[derive(Debug, Serialize)]
pub(super) struct Call<'g> {
    pub(super) tool: &'g str,
    pub(super) arguments: &'g RawValue,
    pub(super) mechanism: &'g str,
    #[serde(flatten)]
    pub(super) outcome: CallOutcome<'g>,
    #[serde(flatten)]
    pub(super) attempts: AttemptsView,
    pub(super) recovery_action: Option<&'g str>,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct CallOutcome<'g> {
    pub(super) success: bool,
    pub(super) result: Option<&'g RawValue>,
    pub(super) error: Option<&'g str>,
    pub(super) ms: u64,
}

impl<'g> Iteration<'g> {
    /// Returns the iterations in which anything happened.
    pub(super) fn all(golden: &'g Golden, run: &'g RunView) -> Vec<Self> {
        let of_requests = golden.provider_responses.iter().map(|exchange| exchange.iteration);
        let of_calls = run.tool_chain.iter().map(|call| call.iteration);
        let of_errors = run.errors.iter().map(|error| error.iteration);
        let numbers: BTreeSet<u32> = of_requests.chain(of_calls).chain(of_errors).collect();
        numbers.into_iter().map(|number| Self::new(number, golden, run)).collect()
    }

    fn new(number: u32, golden: &'g Golden, run: &'g RunView) -> Self {
        let exchanges = golden.provider_responses.iter().filter(|item| item.iteration == number);
        let calls = run.tool_chain.iter().filter(|call| call.iteration == number);
        let errors = run.errors.iter().filter(|error| error.iteration == number);
        let errors = errors.filter(|error| !is_of_call(error, run));
        Self {
            iteration: number,
            requests: exchanges.map(Request::new).collect(),
            text: Some(run.model_text(number)).filter(|text| !text.is_empty()),
            calls: calls.map(|call| Call::new(call, run)).collect(),
            errors: errors.map(|error| error.error.as_str()).collect(),
        }
    }
}

fn is_of_call(error: &ErrorView, run: &RunView) -> bool {
    run.tool_chain.iter().any(|call| match &error.tool_call_id {
        Some(id) => call.tool_call_id.as_ref() == Some(id),
        None => {
            error.tool_name.as_ref() == Some(&call.tool_name)
                && call.error.as_ref() == Some(&error.error)
        }
    })
}

impl<'g> Request<'g> {
    fn new(exchange: &'g Exchange) -> Self {
        let request = &exchange.request;
        let tokens = exchange.token_usage.as_deref();
        let failed = Self {
            method: &request.method,
            path: path_of(&request.url),
            status: None,
            failure: None,
            ms: None,
            chunks: 0,
            reported: tokens.and_then(|tokens| serde_json::from_str(tokens.get()).ok()),
            tokens,
        };
        match &exchange.response {
            ReplyRecord::Http(HttpResponseRecord { status, ms, chunks, end, .. }) => {
                let last_ms = chunks.last().map_or(*ms, |chunk| chunk.ms);
                let (end_ms, cut) = match end {
                    StreamEnd::Complete { ms } => (*ms, None),
                    StreamEnd::Failed { ms, kind, message } => {
                        (*ms, Some(format!("the response was cut off ({kind}): {message}")))
                    }
                    StreamEnd::Unread {} => (last_ms, None),
                };
                let is_success = (200..300).contains(status);
                let refused = (!is_success).then(|| format!("status {status}"));
                Self {
                    status: Some(*status),
                    failure: cut.or(refused),
                    ms: Some(end_ms),
                    chunks: chunks.len(),
                    ..failed
                }
            }
            ReplyRecord::Failed { ms, kind, message } => {
                let failure = Some(format!("no response ({kind}): {message}"));
                Self { failure, ms: Some(*ms), ..failed }
            }
            ReplyRecord::Silent {} => {
                let failure = Some("no response before the run gave up".to_owned());
                Self { failure, ..failed }
            }
        }
    }
}

/// Returns the path of a URL with its query; the whole text if it is no URL.
fn path_of(url: &str) -> String {
    let Ok(parsed) = Url::parse(url) else { return url.to_owned() };
    match parsed.query() {
        Some(query) => format!("{}?{query}", parsed.path()),
        None => parsed.path().to_owned(),
    }
}

impl<'g> Call<'g> {
    fn new(call: &'g CallView, run: &'g RunView) -> Self {
        Self {
            tool: &call.tool_name,
            arguments: &call.arguments,
            mechanism: &call.mechanism,
            outcome: CallOutcome {
                success: call.success,
                result: call.result.as_deref(),
                error: call.error.as_deref(),
                ms: millis(call.execution_time),
            },
            attempts: call.attempts,
            recovery_action: run.recovery_action(call),
        }
    }
}
