//! A question that a typed line answers.

use std::task::{Context, Poll};

use innkeeper_agent::safety::DecisionScope;
use innkeeper_agent::server_requests::ElicitationResponse;
use innkeeper_agent::server_requests::form::Form;
use serde_json::{Map, Value};

use crate::chat::question::{ApprovalAnswer, Question, RequestedInput};

/// The line that closes a form.
const CANCEL_LINE: &str = "/cancel";

/// What a line did.
#[derive(Debug)]
pub(super) enum LineOutcome {
    /// The question is answered; the text says what the answer means.
    Answered(String),
    /// The question needs another line, because of a problem or for another field.
    Open(Box<LineQuestion>, String),
}

/// A question with the values that were entered so far.
#[derive(Debug)]
pub(super) struct LineQuestion {
    question: Question,
    values: Map<String, Value>,
    /// The index of the field that the next line fills in.
    field: usize,
    /// Whether the next line has the arguments of the call.
    takes_arguments: bool,
}

impl LineQuestion {
    pub(super) fn new(question: Question) -> Self {
        Self { question, values: Map::new(), field: 0, takes_arguments: false }
    }

    /// Waits until nobody waits for the answer any more.
    pub(super) fn poll_withdrawn(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.question.poll_withdrawn(context)
    }

    /// Returns the text of the question, or of the next field.
    pub(super) fn text(&self) -> String {
        match &self.question {
            Question::Approval(call, _) if self.takes_arguments => format!(
                "The arguments are {}\nType other arguments as a JSON object on one line \
                 ({CANCEL_LINE} keeps them):",
                call.arguments
            ),
            Question::Approval(call, _) => {
                let server = call.server.as_deref().unwrap_or("this program");
                let description = call.description.as_deref();
                let always = match call.permanent_obstacle {
                    Some(_) => "",
                    None => " a always this tool,",
                };
                let said = description.map(|text| format!("\nThe tool says: {text}"));
                format!(
                    "Run {} on {server} with {}? The tool {}.{}\n\
                     y once, t this tool, s this server,{always} e change the arguments, n no, N never \
                     this tool; another line is the reason for a no",
                    call.tool,
                    call.arguments,
                    call.facts(),
                    said.unwrap_or_default()
                )
            }
            Question::Sampling(request, _) => {
                let texts = request.messages.iter();
                let texts: String =
                    texts.map(|(role, text)| format!("\n  {role}: {text}")).collect();
                format!(
                    "Server {} asks {} for a message of at most {} tokens:{texts}\ny answer, n no",
                    request.server, request.model, request.max_tokens
                )
            }
            Question::Elicitation(request, _) => match &request.input {
                RequestedInput::Url { url, host } => format!(
                    "Server {} asks you to open an address of {host}: {}\n{url}\n\
                     y I will open it, n no",
                    request.server, request.message
                ),
                RequestedInput::Form(form) => {
                    let intro = match self.field {
                        0 => format!("Server {} asks: {}\n", request.server, request.message),
                        _ => String::new(),
                    };
                    format!("{intro}{}", self.field_text(form))
                }
            },
        }
    }

    fn field_text(&self, form: &Form) -> String {
        match form.fields().get(self.field) {
            Some(field) => {
                let optional = if field.is_required { "" } else { ", optional" };
                format!("{} ({CANCEL_LINE} to close{optional}):", field.label())
            }
            None => format!("Enter sends the form, {CANCEL_LINE} closes it:"),
        }
    }

    /// Runs the call with other arguments, or asks for them if there are none yet.
    fn on_arguments(mut self, arguments: String) -> LineOutcome {
        let is_open = self.takes_arguments;
        self.takes_arguments = !(is_open && arguments == CANCEL_LINE);
        if !self.takes_arguments || (!is_open && arguments.is_empty()) {
            return LineOutcome::Open(Box::new(self), String::new());
        }
        match (ApprovalAnswer::with_arguments(arguments), self.question) {
            (Ok(answer), Question::Approval(call, reply)) => sent(
                reply.send(answer).is_ok(),
                &format!("{}: allowed with changed arguments", call.tool),
            ),
            (Ok(_), question) => {
                self.question = question;
                LineOutcome::Open(Box::new(self), String::new())
            }
            (Err(problem), question) => {
                self.question = question;
                LineOutcome::Open(Box::new(self), problem)
            }
        }
    }

    /// Uses a line as the answer, or as the value of a field.
    pub(super) fn on_line(mut self, line: &str) -> LineOutcome {
        let word = line.trim();
        match self.question {
            Question::Approval(call, reply) => {
                let arguments = match (self.takes_arguments, typed_arguments(word)) {
                    (true, _) => Some(word),
                    (false, arguments) => arguments,
                };
                if let Some(arguments) = arguments {
                    self.question = Question::Approval(call, reply);
                    return self.on_arguments(arguments.to_owned());
                }
                if let ("a", Some(obstacle)) = (word, call.permanent_obstacle) {
                    self.question = Question::Approval(call, reply);
                    return LineOutcome::Open(Box::new(self), obstacle.to_owned());
                }
                let answer = match word {
                    "y" | "yes" => ApprovalAnswer::Allow(DecisionScope::Call),
                    "t" => ApprovalAnswer::Allow(DecisionScope::Tool),
                    "s" => ApprovalAnswer::Allow(DecisionScope::Server),
                    "a" => ApprovalAnswer::AllowAlways,
                    "N" => ApprovalAnswer::Deny(DecisionScope::Tool, None),
                    other => ApprovalAnswer::Deny(DecisionScope::Call, denial_reason(other)),
                };
                let text = match answer {
                    ApprovalAnswer::Deny(..) => "denied",
                    ApprovalAnswer::Allow(_)
                    | ApprovalAnswer::AllowAlways
                    | ApprovalAnswer::AllowWith(_) => "allowed",
                };
                sent(reply.send(answer).is_ok(), &format!("{}: {text}", call.tool))
            }
            Question::Sampling(request, reply) => {
                let is_allowed = matches!(word, "y" | "yes");
                let text = if is_allowed { "the model answers" } else { "denied" };
                sent(reply.send(is_allowed).is_ok(), &format!("{}: {text}", request.server))
            }
            Question::Elicitation(request, reply) => {
                let form = match &request.input {
                    RequestedInput::Url { .. } => {
                        let (answer, text) = match word {
                            "y" | "yes" => (ElicitationResponse::Accept(Map::new()), "agreed"),
                            _ => (ElicitationResponse::Decline, "declined"),
                        };
                        return sent(reply.send(answer).is_ok(), text);
                    }
                    RequestedInput::Form(form) => form,
                };
                if word == CANCEL_LINE {
                    return sent(reply.send(ElicitationResponse::Cancel).is_ok(), "closed");
                }
                let mut problem = String::new();
                if let Some(field) = form.fields().get(self.field) {
                    match field.parse_input(line) {
                        Ok(value) => {
                            self.values.extend(value.map(|value| (field.name.clone(), value)));
                            self.field += 1;
                        }
                        Err(error) => problem = error.to_string(),
                    }
                    if self.field < form.fields().len() {
                        self.question = Question::Elicitation(request, reply);
                        return LineOutcome::Open(Box::new(self), problem);
                    }
                }
                let answer = ElicitationResponse::Accept(self.values);
                sent(reply.send(answer).is_ok(), "sent the form")
            }
        }
    }
}

/// Returns the arguments behind `e`, which may be empty; `None` for another line. A sentence that
/// starts with the letter is a reason.
fn typed_arguments(line: &str) -> Option<&str> {
    let arguments = line.strip_prefix('e')?;
    let is_spaced = arguments.starts_with(char::is_whitespace);
    let arguments = arguments.trim_start();
    (arguments.is_empty() || (is_spaced && arguments.starts_with('{'))).then_some(arguments)
}

/// Returns the reason for a denial: the line without a `n` or `no` at its start.
fn denial_reason(line: &str) -> Option<String> {
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let reason = if matches!(first, "n" | "no" | "no,") { rest.trim() } else { line };
    (!reason.is_empty()).then(|| reason.to_owned())
}

fn sent(is_sent: bool, text: &str) -> LineOutcome {
    LineOutcome::Answered(match is_sent {
        true => text.to_owned(),
        false => "the question was withdrawn".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use innkeeper_agent::ToolAnnotations;

    use super::*;
    use crate::chat::question::ApprovalQuestion;

    #[test]
    fn a_line_that_denies_a_call_is_its_reason_without_the_no() {
        let reasons = [
            ("n", None),
            ("no", None),
            ("", None),
            ("no, use the other file", Some("use the other file")),
            ("n not now", Some("not now")),
            ("not this one", Some("not this one")),
        ];
        for (line, reason) in reasons {
            assert_eq!(denial_reason(line).as_deref(), reason, "{line}");
        }
    }
    fn approval(
        permanent_obstacle: Option<&'static str>,
    ) -> (LineQuestion, tokio::sync::oneshot::Receiver<ApprovalAnswer>) {
        let (reply, receiver) = tokio::sync::oneshot::channel();
        let call = ApprovalQuestion {
            tool: "files.write".to_owned(),
            server: Some("files".to_owned()),
            arguments: "{}".to_owned(),
            description: None,
            annotations: ToolAnnotations::default(),
            is_pinned: false,
            permanent_obstacle,
        };
        (LineQuestion::new(Question::Approval(call, reply)), receiver)
    }

    #[test]
    fn a_line_allows_a_tool_always_if_a_rule_can_be_stored() {
        let (question, mut receiver) = approval(None);
        assert!(question.text().contains("a always this tool"), "{}", question.text());
        assert!(matches!(question.on_line("a"), LineOutcome::Answered(_)));
        assert_eq!(receiver.try_recv().unwrap(), ApprovalAnswer::AllowAlways);
        let (question, mut receiver) = approval(Some("nothing is stored"));
        assert!(!question.text().contains("always"), "{}", question.text());
        let LineOutcome::Open(question, problem) = question.on_line("a") else {
            panic!("the question is answered");
        };
        assert_eq!(problem, "nothing is stored");
        question.on_line("y");
        assert_eq!(receiver.try_recv().unwrap(), ApprovalAnswer::Allow(DecisionScope::Call));
    }
}
