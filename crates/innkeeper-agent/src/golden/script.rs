//! What a replay may ask for, and the answers: each recorded answer serves once.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use innkeeper_golden::{
    Answer, Difference, Exchange, Golden, ReplyRecord, ToolCallRecord, canonical, differences,
    is_varying_in_request,
};
use innkeeper_protocol::view::ViewError;
use serde_json::value::{RawValue, to_raw_value};

use super::recorder::body_json;
use super::tool_records::{available_tool, unavailable_tool};
use crate::tools::{AvailableTool, UnavailableTool};
use crate::transport::OutgoingRequest;

/// Maximum number of differences in a miss.
const MAX_DIFFERENCES: usize = 8;

/// Something that the run asked for and no recording answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// What was asked for, such as "request 2 (POST https://a.example/v1/chat/completions)".
    pub request: String,
    /// The nearest recorded thing of the same kind that was not used before.
    pub nearest: Option<String>,
    /// The differences to it, at most eight.
    pub differences: Vec<Difference>,
}

impl fmt::Display for Miss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no recording answers {}", self.request)?;
        match &self.nearest {
            None => f.write_str("; nothing of its kind is left"),
            Some(nearest) => {
                write!(f, "; the nearest is {nearest}")?;
                for (at, difference) in self.differences.iter().enumerate() {
                    write!(f, "{} {difference}", if at == 0 { ":" } else { ";" })?;
                }
                Ok(())
            }
        }
    }
}

/// The answers of a golden. Clones share what was used.
#[derive(Clone)]
pub(super) struct Script(Arc<Mutex<ScriptState>>);

struct ScriptState {
    exchanges: Vec<Exchange>,
    calls: Vec<ToolCallRecord>,
    approvals: Vec<innkeeper_golden::ApprovalRecord>,
    offers: Vec<ReplayedOffer>,
    /// The number of requests that were answered; they come in the recorded order.
    requests: usize,
    used_calls: Vec<bool>,
    ended_calls: usize,
    used_approvals: Vec<bool>,
    miss: Option<Miss>,
    watcher: Option<Waker>,
}

struct ReplayedOffer {
    requests: usize,
    calls: usize,
    tools: Vec<AvailableTool>,
    unavailable: Vec<UnavailableTool>,
}

impl Script {
    /// Prepares the answers of a golden.
    ///
    /// # Errors
    ///
    /// A definition is not that of a tool.
    pub(super) fn new(golden: &Golden) -> Result<Self, ViewError> {
        let tools: Vec<AvailableTool> =
            golden.tools.iter().map(available_tool).collect::<Result<_, _>>()?;
        let offers = golden.offers.iter().map(|offer| ReplayedOffer {
            requests: offer.requests,
            calls: offer.calls,
            tools: offer.tools.iter().filter_map(|at| tools.get(*at).cloned()).collect(),
            unavailable: offer.unavailable.iter().map(unavailable_tool).collect(),
        });
        Ok(Self(Arc::new(Mutex::new(ScriptState {
            exchanges: golden.provider_responses.clone(),
            calls: golden.tool_calls.clone(),
            approvals: golden.approvals.clone(),
            offers: offers.collect(),
            requests: 0,
            used_calls: vec![false; golden.tool_calls.len()],
            ended_calls: 0,
            used_approvals: vec![false; golden.approvals.len()],
            miss: None,
            watcher: None,
        }))))
    }

    /// Returns the answer to a request; `None` for a miss.
    pub(super) fn take_reply(&self, request: &OutgoingRequest) -> Option<ReplyRecord> {
        let mut state = self.lock();
        let sent = request_json(request.method.as_str(), &request.url, || {
            (!request.body.is_empty()).then(|| body_json(&request.body))
        });
        let position = state.requests;
        let next = state.exchanges.get(position);
        if let Some(exchange) = next
            && request_differences(exchange, &sent, 1).is_empty()
        {
            let reply = exchange.response.clone();
            state.requests += 1;
            return Some(reply);
        }
        let nearest = state.exchanges.iter().enumerate().skip(position);
        let nearest = nearest.map(|(at, exchange)| {
            let differences = request_differences(exchange, &sent, MAX_DIFFERENCES);
            let Exchange { request, .. } = exchange;
            (format!("request {} ({} {})", at + 1, request.method, request.url), differences)
        });
        let nearest = nearest.min_by_key(|(_, differences)| differences.len());
        let sent = format!("request {} ({} {})", position + 1, request.method, request.url);
        state.miss(sent, nearest);
        None
    }

    /// Returns the record of a call; `None` for a miss. The calls of one response may come in any
    /// order.
    pub(super) fn take_call(&self, name: &str, arguments: &RawValue) -> Option<ToolCallRecord> {
        let mut state = self.lock();
        let round = state.requests;
        let sent = call_json(name, arguments);
        let open = state.calls.iter().zip(&state.used_calls).enumerate();
        let open = open.filter(|(_, (call, is_used))| !**is_used && call.round == round);
        let candidates: Vec<_> = open.map(|(at, (call, _))| (at, call)).collect();
        let signature = canonical(&sent);
        let found = candidates
            .iter()
            .find(|(_, call)| canonical(&call_json(&call.name, &call.arguments)) == signature);
        if let Some((at, call)) = found {
            let (at, call) = (*at, (*call).clone());
            if let Some(is_used) = state.used_calls.get_mut(at) {
                *is_used = true;
            }
            return Some(call);
        }
        let nearest = candidates.iter().map(|(at, call)| {
            let recorded = call_json(&call.name, &call.arguments);
            let differences = differences(&recorded, &sent, &|_| false, MAX_DIFFERENCES);
            (format!("call {} (`{}`)", at + 1, call.name), differences)
        });
        let nearest = nearest.min_by_key(|(_, differences)| differences.len());
        state.miss(format!("the call of `{name}` after request {round}"), nearest);
        None
    }

    /// Counts a call that has ended.
    pub(super) fn end_call(&self) {
        self.lock().ended_calls += 1;
    }

    /// Returns the recorded decision about a call; `None` for a miss.
    pub(super) fn take_approval(&self, tool: &str, arguments: &RawValue) -> Option<Answer> {
        let mut state = self.lock();
        let sent = call_json(tool, arguments);
        let signature = canonical(&sent);
        let open = state.approvals.iter().zip(&state.used_approvals).enumerate();
        let open = open.filter(|(_, (_, is_used))| !**is_used);
        let open: Vec<_> = open.map(|(at, (approval, _))| (at, approval)).collect();
        let found = open.iter().find(|(_, approval)| {
            canonical(&call_json(&approval.tool, &approval.arguments)) == signature
        });
        if let Some((at, approval)) = found {
            let (at, answer) = (*at, approval.answer.clone());
            if let Some(is_used) = state.used_approvals.get_mut(at) {
                *is_used = true;
            }
            return Some(answer);
        }
        let nearest = open.first().map(|(at, approval)| {
            let recorded = call_json(&approval.tool, &approval.arguments);
            let differences = differences(&recorded, &sent, &|_| false, MAX_DIFFERENCES);
            (format!("decision {} (`{}`)", at + 1, approval.tool), differences)
        });
        state.miss(format!("the question whether `{tool}` may run"), nearest);
        None
    }

    /// Returns the tools that were offered at this point of the run.
    pub(super) fn offered_tools(&self) -> Vec<AvailableTool> {
        self.lock().present_offer().map(|offer| offer.tools.clone()).unwrap_or_default()
    }

    /// Returns the tools whose server was not available at this point of the run.
    pub(super) fn unavailable_tools(&self) -> Vec<UnavailableTool> {
        self.lock().present_offer().map(|offer| offer.unavailable.clone()).unwrap_or_default()
    }

    /// Completes when something was asked for that no recording answers.
    pub(super) async fn missed(&self) -> Miss {
        std::future::poll_fn(|context| {
            let mut state = self.lock();
            match state.miss.clone() {
                Some(miss) => Poll::Ready(miss),
                None => {
                    state.watcher = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Returns the recorded answers that nothing asked for.
    pub(super) fn unused(&self) -> Vec<String> {
        let state = self.lock();
        let requests = state.exchanges.iter().enumerate().skip(state.requests);
        let requests = requests
            .map(|(at, exchange)| format!("request {} (iteration {})", at + 1, exchange.iteration));
        let calls = state.calls.iter().zip(&state.used_calls).enumerate();
        let calls = calls.filter(|(_, (_, is_used))| !**is_used);
        let calls = calls.map(|(at, (call, _))| format!("call {} (`{}`)", at + 1, call.name));
        let approvals = state.approvals.iter().zip(&state.used_approvals).enumerate();
        let approvals = approvals.filter(|(_, (_, is_used))| !**is_used);
        let approvals = approvals
            .map(|(at, (approval, _))| format!("decision {} (`{}`)", at + 1, approval.tool));
        requests.chain(calls).chain(approvals).collect()
    }

    fn lock(&self) -> MutexGuard<'_, ScriptState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScriptState {
    fn present_offer(&self) -> Option<&ReplayedOffer> {
        let (requests, calls) = (self.requests, self.ended_calls);
        self.offers.iter().rfind(|offer| (offer.requests, offer.calls) <= (requests, calls))
    }

    fn miss(&mut self, request: String, nearest: Option<(String, Vec<Difference>)>) {
        let (nearest, differences) = nearest.unzip();
        let differences = differences.unwrap_or_default();
        self.miss.get_or_insert(Miss { request, nearest, differences });
        if let Some(watcher) = self.watcher.take() {
            watcher.wake();
        }
    }
}

/// Returns the parts of a request that must be equal, as one value.
fn request_json(
    method: &str,
    url: &str,
    body: impl FnOnce() -> Option<Box<RawValue>>,
) -> Box<RawValue> {
    #[derive(serde::Serialize)]
    struct RequestJson<'r> {
        method: &'r str,
        url: &'r str,
        body: Option<Box<RawValue>>,
    }
    let request = RequestJson { method, url, body: body() };
    to_raw_value(&request).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn request_differences(exchange: &Exchange, sent: &RawValue, max: usize) -> Vec<Difference> {
    let request = &exchange.request;
    let recorded = request_json(&request.method, &request.url, || request.body.clone());
    let is_ignored = |path: &str| path.strip_prefix("/body").is_some_and(is_varying_in_request);
    differences(&recorded, sent, &is_ignored, max)
}

/// Returns the signature of a call as one value.
fn call_json(name: &str, arguments: &RawValue) -> Box<RawValue> {
    #[derive(serde::Serialize)]
    struct CallJson<'r> {
        name: &'r str,
        arguments: &'r RawValue,
    }
    to_raw_value(&CallJson { name, arguments }).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
