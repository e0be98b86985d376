//! What a replay may ask for, and the answers: each recorded answer serves once.

use std::fmt;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::difference::{Difference, differences};
use crate::file::{Answer, ApprovalRecord, Exchange, Golden, ReplyRecord, ToolCallRecord};
use crate::json::canonical;
use crate::varying::is_varying_in_request;

/// Maximum number of differences in a miss.
const MAX_DIFFERENCES: usize = 8;

/// Something that a replay asked for and no recording answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// What was asked for, such as "request 2 (POST https://a.example/v1/chat/completions)".
    pub request: String,
    /// The nearest recorded thing of the same kind that was not used before.
    pub nearest: Option<String>,
    /// The differences to it, at most eight.
    pub differences: Vec<Difference>,
}

impl Miss {
    /// Returns a miss of something of which nothing similar was recorded.
    pub fn without_nearest(request: String) -> Self {
        Self { request, nearest: None, differences: Vec::new() }
    }

    fn new(request: String, near: impl Iterator<Item = (String, Vec<Difference>)>) -> Self {
        match near.min_by_key(|(_, differences)| differences.len()) {
            None => Self::without_nearest(request),
            Some((nearest, differences)) => Self { request, nearest: Some(nearest), differences },
        }
    }
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

/// A request to the model, as far as it must be the recorded one.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SentRequest<'r> {
    /// The method.
    pub method: &'r str,
    /// The URL.
    pub url: &'r str,
    /// The body; `None` without one.
    pub body: Option<&'r RawValue>,
}

/// A tool call, as far as it must be the recorded one.
#[derive(Clone, Copy, Debug)]
pub struct SentCall<'r> {
    /// The public name of the tool.
    pub name: &'r str,
    /// The arguments.
    pub arguments: &'r RawValue,
    /// The position in [`Golden::served`] of what serves the call.
    pub served: usize,
    /// Other parameters of the request.
    pub params: Option<&'r RawValue>,
}

/// In which order a replay may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// The run does one thing after another: requests in the recorded order, and the calls of one
    /// response in any order.
    Rounds,
    /// The run does several things at once: it may ask for anything that it has not had. The order of
    /// the answers is the caller's to keep.
    Any,
}

/// The answers of a golden.
#[derive(Clone, Debug)]
pub struct Script {
    order: Order,
    exchanges: Vec<Exchange>,
    answered: Vec<bool>,
    calls: Vec<ToolCallRecord>,
    used_calls: Vec<bool>,
    ended_calls: usize,
    approvals: Vec<ApprovalRecord>,
    used_approvals: Vec<bool>,
}

impl Script {
    /// Prepares the answers of a golden.
    pub fn new(golden: &Golden) -> Self {
        Self {
            order: if golden.input.agent.is_some() { Order::Any } else { Order::Rounds },
            exchanges: golden.provider_responses.clone(),
            answered: vec![false; golden.provider_responses.len()],
            calls: golden.tool_calls.clone(),
            used_calls: vec![false; golden.tool_calls.len()],
            ended_calls: 0,
            approvals: golden.approvals.clone(),
            used_approvals: vec![false; golden.approvals.len()],
        }
    }

    /// Returns the number of requests that were answered.
    pub fn requests(&self) -> usize {
        self.answered.iter().filter(|is_answered| **is_answered).count()
    }

    /// Returns the number of calls that have begun.
    pub fn begun_calls(&self) -> usize {
        self.used_calls.iter().filter(|is_used| **is_used).count()
    }

    /// Returns the number of calls that have ended.
    pub fn ended_calls(&self) -> usize {
        self.ended_calls
    }

    /// Returns the calls that were made, in the recorded order.
    pub fn made_calls(&self) -> impl Iterator<Item = &ToolCallRecord> {
        self.calls
            .iter()
            .zip(&self.used_calls)
            .filter(|(_, is_used)| **is_used)
            .map(|(call, _)| call)
    }

    /// Returns the position of a request and the answer to it.
    ///
    /// # Errors
    ///
    /// No recorded request that may come next is this one.
    pub fn take_reply(&mut self, request: SentRequest<'_>) -> Result<(usize, ReplyRecord), Miss> {
        let sent = json(&request);
        let found = self
            .next_requests()
            .into_iter()
            .find(|at| request_differences(&self.exchanges[*at], &sent, 1).is_empty());
        if let Some(at) = found {
            self.answered[at] = true;
            return Ok((at, self.exchanges[at].response.clone()));
        }
        let name = |at: usize, method: &str, url: &str| format!("request {at} ({method} {url})");
        let open = self.exchanges.iter().zip(&self.answered).zip(1..);
        let near =
            open.filter(|((_, is_answered), _)| !**is_answered).map(|((exchange, _), at)| {
                let recorded = &exchange.request;
                let differences = request_differences(exchange, &sent, MAX_DIFFERENCES);
                (name(at, &recorded.method, &recorded.url), differences)
            });
        Err(Miss::new(name(self.requests() + 1, request.method, request.url), near))
    }

    /// Returns the positions of the requests that may come next.
    fn next_requests(&self) -> Vec<usize> {
        let open = self.answered.iter().enumerate().filter(|(_, is_answered)| !**is_answered);
        let open = open.map(|(at, _)| at);
        match self.order {
            Order::Rounds => open.take(1).collect(),
            Order::Any => open.collect(),
        }
    }

    /// Returns the position and the record of a call.
    ///
    /// # Errors
    ///
    /// No recorded call that may come next is this one.
    pub fn take_call(&mut self, call: SentCall<'_>) -> Result<(usize, ToolCallRecord), Miss> {
        let sent = call_json(call.name, call.arguments, call.params);
        let signature = canonical(&sent);
        let round = self.requests();
        let next = self.calls.iter().zip(&self.used_calls).enumerate();
        let next = next.filter(|(_, (recorded, is_used))| {
            let may_come = match self.order {
                Order::Rounds => recorded.round == round,
                Order::Any => true,
            };
            !**is_used && may_come && recorded.served == call.served
        });
        let next: Vec<_> = next
            .map(|(at, (recorded, _))| {
                let json =
                    call_json(&recorded.name, &recorded.arguments, recorded.params.as_deref());
                (at, recorded, json)
            })
            .collect();
        if let Some((at, recorded, _)) =
            next.iter().find(|(_, _, json)| canonical(json) == signature)
        {
            let at = *at;
            let recorded = (*recorded).clone();
            self.used_calls[at] = true;
            return Ok((at, recorded));
        }
        let near = next.iter().map(|(at, recorded, json)| {
            let differences = differences(json, &sent, &|_| false, MAX_DIFFERENCES);
            (format!("call {} (`{}`)", at + 1, recorded.name), differences)
        });
        Err(Miss::new(format!("the call of `{}` after request {round}", call.name), near))
    }

    /// Counts a call that has ended.
    pub fn end_call(&mut self) {
        self.ended_calls += 1;
    }

    /// Returns the recorded decision about a call.
    ///
    /// # Errors
    ///
    /// No open question of the recording is this one.
    pub fn take_approval(&mut self, tool: &str, arguments: &RawValue) -> Result<Answer, Miss> {
        let sent = call_json(tool, arguments, None);
        let signature = canonical(&sent);
        let open = self.approvals.iter().zip(&self.used_approvals).enumerate();
        let open: Vec<_> = open
            .filter(|(_, (_, is_used))| !**is_used)
            .map(|(at, (approval, _))| {
                (at, approval, call_json(&approval.tool, &approval.arguments, None))
            })
            .collect();
        if let Some((at, approval, _)) =
            open.iter().find(|(_, _, json)| canonical(json) == signature)
        {
            let at = *at;
            let answer = approval.answer.clone();
            self.used_approvals[at] = true;
            return Ok(answer);
        }
        let near = open.iter().take(1).map(|(at, approval, json)| {
            let differences = differences(json, &sent, &|_| false, MAX_DIFFERENCES);
            (format!("decision {} (`{}`)", at + 1, approval.tool), differences)
        });
        Err(Miss::new(format!("the question whether `{tool}` may run"), near))
    }

    /// Returns the recorded answers that nothing asked for.
    pub fn unused(&self) -> Vec<String> {
        let unused = |used: &[bool]| {
            let unused = used.iter().enumerate().filter(|(_, is_used)| !**is_used);
            unused.map(|(at, _)| at).collect::<Vec<_>>()
        };
        let requests = unused(&self.answered).into_iter().map(|at| {
            let iteration = self.exchanges[at].iteration;
            match self.order {
                Order::Rounds => format!("request {} (iteration {iteration})", at + 1),
                Order::Any => format!("request {}", at + 1),
            }
        });
        let calls = unused(&self.used_calls).into_iter();
        let calls = calls.map(|at| format!("call {} (`{}`)", at + 1, self.calls[at].name));
        let approvals = unused(&self.used_approvals).into_iter();
        let approvals =
            approvals.map(|at| format!("decision {} (`{}`)", at + 1, self.approvals[at].tool));
        requests.chain(calls).chain(approvals).collect()
    }
}

fn request_differences(exchange: &Exchange, sent: &RawValue, max: usize) -> Vec<Difference> {
    let request = &exchange.request;
    let body = request.body.as_deref();
    let recorded = json(&SentRequest { method: &request.method, url: &request.url, body });
    differences(
        &recorded,
        sent,
        &|path| path.strip_prefix("/body").is_some_and(is_varying_in_request),
        max,
    )
}

/// Returns the signature of a call as one value.
fn call_json(name: &str, arguments: &RawValue, params: Option<&RawValue>) -> Box<RawValue> {
    #[derive(Serialize)]
    struct CallJson<'r> {
        name: &'r str,
        arguments: &'r RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        params: Option<&'r RawValue>,
    }
    json(&CallJson { name, arguments, params })
}

fn json(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests;
