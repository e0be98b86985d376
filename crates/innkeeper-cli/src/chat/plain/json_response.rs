//! The response of a program to a question: the check of its members, and the answer.

use innkeeper_agent::safety::DecisionScope;
use innkeeper_agent::server_requests::ElicitationResponse;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::chat::question::{ApprovalAnswer, ApprovalQuestion, Question, RequestedInput};

/// What is wrong with an `allow` that has a reason.
const REASON_OF_DENIAL: &str = "`reason` needs the decision `deny`";

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Decision {
    Allow,
    Deny,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Scope {
    #[default]
    Call,
    Tool,
    Server,
    Always,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Action {
    Accept,
    Decline,
    Cancel,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalResponse {
    #[serde(rename = "type")]
    _type: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    decision: Decision,
    scope: Option<Scope>,
    arguments: Option<Box<RawValue>>,
    reason: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SamplingResponse {
    #[serde(rename = "type")]
    _type: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    decision: Decision,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ElicitationResponseObject {
    #[serde(rename = "type")]
    _type: IgnoredAny,
    #[serde(rename = "id")]
    _id: IgnoredAny,
    action: Action,
    content: Option<Map<String, Value>>,
}

/// Answers a question with the object of a line.
///
/// # Errors
///
/// Returns the question, which stays open, and what is wrong with the object.
pub(super) fn send_response(question: Question, line: &str) -> Result<(), Box<(Question, String)>> {
    let invalid = |error: serde_json::Error| format!("the response is invalid: {error}");
    // A question that is withdrawn at this moment needs no answer.
    match question {
        Question::Approval(call, reply) => {
            let answer = serde_json::from_str(line)
                .map_err(invalid)
                .and_then(|response| approval_answer(response, &call));
            match answer {
                Ok(answer) => drop(reply.send(answer)),
                Err(text) => return Err(Box::new((Question::Approval(call, reply), text))),
            }
        }
        Question::Sampling(request, reply) => match serde_json::from_str(line) {
            Ok(SamplingResponse { decision, .. }) => drop(reply.send(decision == Decision::Allow)),
            Err(error) => {
                return Err(Box::new((Question::Sampling(request, reply), invalid(error))));
            }
        },
        Question::Elicitation(request, reply) => {
            let answer = serde_json::from_str(line)
                .map_err(invalid)
                .and_then(|response| elicitation_answer(response, &request.input));
            match answer {
                Ok(answer) => drop(reply.send(answer)),
                Err(text) => return Err(Box::new((Question::Elicitation(request, reply), text))),
            }
        }
    }
    Ok(())
}

fn approval_answer(
    response: ApprovalResponse,
    call: &ApprovalQuestion,
) -> Result<ApprovalAnswer, String> {
    let ApprovalResponse { decision, scope, arguments, reason, .. } = response;
    let scope = match (scope, arguments.is_some()) {
        (Some(Scope::Always), false) => {
            return match (decision, reason, call.permanent_obstacle) {
                (Decision::Allow, None, None) => Ok(ApprovalAnswer::AllowAlways),
                (Decision::Allow, None, Some(obstacle)) => Err(obstacle.to_owned()),
                (Decision::Allow, Some(_), _) => Err(REASON_OF_DENIAL.to_owned()),
                (Decision::Deny, ..) => Err("`always` needs the decision `allow`".to_owned()),
            };
        }
        (Some(Scope::Tool | Scope::Server | Scope::Always), true) => {
            return Err("`arguments` apply to this call only: leave out `scope`".to_owned());
        }
        (Some(Scope::Call) | None, _) => DecisionScope::Call,
        (Some(Scope::Tool), false) => DecisionScope::Tool,
        (Some(Scope::Server), false) => DecisionScope::Server,
    };
    match (decision, arguments, reason) {
        (Decision::Allow, _, Some(_)) => Err(REASON_OF_DENIAL.to_owned()),
        (Decision::Allow, Some(arguments), None) => {
            ApprovalAnswer::with_arguments(arguments.get().to_owned())
        }
        (Decision::Allow, None, None) => Ok(ApprovalAnswer::Allow(scope)),
        (Decision::Deny, Some(_), _) => Err("`arguments` need the decision `allow`".to_owned()),
        (Decision::Deny, None, reason) => {
            let reason = reason.filter(|reason| !reason.trim().is_empty());
            Ok(ApprovalAnswer::Deny(scope, reason))
        }
    }
}

fn elicitation_answer(
    response: ElicitationResponseObject,
    input: &RequestedInput,
) -> Result<ElicitationResponse, String> {
    let ElicitationResponseObject { action, content, .. } = response;
    match (action, content, input) {
        (Action::Decline, None, _) => Ok(ElicitationResponse::Decline),
        (Action::Cancel, None, _) => Ok(ElicitationResponse::Cancel),
        (Action::Decline | Action::Cancel, Some(_), _) => {
            Err("`content` needs the action `accept`".to_owned())
        }
        (Action::Accept, Some(_), RequestedInput::Url { .. }) => {
            Err("the visit of an address has no `content`".to_owned())
        }
        (Action::Accept, None, RequestedInput::Url { .. }) => {
            Ok(ElicitationResponse::Accept(Map::new()))
        }
        (Action::Accept, content, RequestedInput::Form(form)) => {
            let content = content.unwrap_or_default();
            match form.check(&content) {
                Ok(()) => Ok(ElicitationResponse::Accept(content)),
                Err(problems) => {
                    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                    Err(problems.join("; "))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
