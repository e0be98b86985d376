//! The recorded servers, served as an MCP server over one connection.
//!
//! The answers to a request that changes nothing come in their recorded order, and the last one stays. A
//! tool call must be a recorded one. Before its result come the recorded questions of the server, whose
//! answers must be the recorded ones, and its progress.

mod servers_state;

pub(super) use servers_state::ServersState;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use innkeeper_agent::golden::{
    AnswerRecord, Golden, Miss, NotificationRecord, Outcome, ProgressRecord, QuestionRecord,
    SentCall, ToolCallRecord, differences, with_member, without_members,
};
use innkeeper_protocol::envelope::{self, ErrorId, code};
use innkeeper_protocol::{ErrorObject, Incoming, Message, RequestId, method};
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use super::mcp_recording::{CallParams, empty_object, text};
use servers_state::ServedState;

/// Maximum number of differences in a miss.
const MAX_DIFFERENCES: usize = 8;

#[derive(Debug)]
pub(super) struct ReplayedConnection {
    golden: Arc<Golden>,
    served: usize,
    /// Whether the client may get notifications.
    is_open: bool,
    /// The calls whose result may leave when its turn comes.
    answered: Vec<AnsweredCall>,
    /// The calls with an open question, by the id of the question.
    asking: HashMap<RequestId, AskingCall>,
    questions: i64,
}

/// A call that waits for an answer of the client.
#[derive(Debug)]
struct AskingCall {
    call: AnsweredCall,
    question: QuestionRecord,
    further: VecDeque<QuestionRecord>,
}

/// A call with its recorded answer.
#[derive(Debug)]
pub(super) struct AnsweredCall {
    id: RequestId,
    progress_token: Option<String>,
    /// The position of the call in the recording.
    pub(super) position: usize,
    record: ToolCallRecord,
}

impl ReplayedConnection {
    /// Returns the connection of a command line.
    ///
    /// # Errors
    ///
    /// The recording has no such command line.
    pub(super) fn new(
        golden: Arc<Golden>,
        servers: &mut ServersState,
        arguments: &[String],
    ) -> Result<Self, Miss> {
        let served = servers
            .connect(&golden, arguments)
            .ok_or_else(|| Miss::without_nearest(format!("`innkeeper {}`", arguments.join(" "))))?;
        Ok(Self {
            golden,
            served,
            is_open: false,
            answered: Vec::new(),
            asking: HashMap::new(),
            questions: 0,
        })
    }

    /// Returns the calls whose result may leave when its turn comes.
    pub(super) fn take_answered(&mut self) -> Vec<AnsweredCall> {
        std::mem::take(&mut self.answered)
    }

    /// Answers a line of the client; appends the lines for the client to `out`.
    ///
    /// # Errors
    ///
    /// The client asks for something that was not recorded. `out` then tells the client.
    pub(super) fn on_line(
        &mut self,
        servers: &mut ServersState,
        line: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Miss> {
        let message = match envelope::parse(line) {
            Ok(Message::Single(message)) => message,
            Ok(Message::Batch(_)) => {
                let id = ErrorId::Null;
                let text = "a recording has no batches";
                envelope::write_error_with_data(out, id, code::INVALID_REQUEST, text, None).ok();
                return Ok(());
            }
            Err(malformed) => {
                let id = malformed.id.as_ref().map_or(ErrorId::Null, ErrorId::Request);
                let text = malformed.detail;
                envelope::write_error_with_data(out, id, code::INVALID_REQUEST, &text, None).ok();
                return Ok(());
            }
        };
        match message {
            Incoming::Request { id, method, params } => {
                self.respond(servers, &id, &method, params, out).inspect_err(|miss| {
                    let code = code::INTERNAL_ERROR;
                    let text = miss.to_string();
                    // Strings and numbers always have a JSON text.
                    envelope::write_error(out, &id, code, &text).ok();
                })?;
            }
            Incoming::Response { id, outcome } => self.on_answer(&id, outcome, out)?,
            Incoming::Notification { method, .. } => {
                self.is_open |= method == method::INITIALIZED;
            }
        }
        self.send_notifications(servers, out);
        Ok(())
    }

    fn respond(
        &mut self,
        servers: &mut ServersState,
        id: &RequestId,
        method: &str,
        params: Option<&RawValue>,
        out: &mut Vec<u8>,
    ) -> Result<(), Miss> {
        // A modern client has no handshake.
        self.is_open |= !matches!(method, method::INITIALIZE | method::SERVER_DISCOVER);
        match method {
            method::PING => {
                envelope::write_response(out, id, &empty_object()).ok();
                Ok(())
            }
            method::TOOLS_CALL => self.answer_call(servers, id, params, out),
            _ => {
                let at = self.find_answer(&mut servers.served[self.served], method, params)?;
                let AnswerRecord { outcome, tools, .. } =
                    &self.golden.served[self.served].answers[at];
                // Its answer is the end of the stream, which is that of the connection.
                if method != method::SUBSCRIPTIONS_LISTEN {
                    self.write_outcome(id, outcome, tools.as_deref(), out);
                }
                Ok(())
            }
        }
    }

    /// Returns the position of the next answer to a request.
    fn find_answer(
        &self,
        state: &mut ServedState,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<usize, Miss> {
        let params = params.and_then(|params| without_members(params, &["_meta"]));
        let sent = text(params.as_deref());
        // What the client says about itself changes with its version.
        let is_handshake = matches!(method, method::INITIALIZE | method::SERVER_DISCOVER);
        let answers = self.golden.served[self.served].answers.iter().enumerate();
        let answers: Vec<_> = answers.filter(|(_, answer)| answer.method == method).collect();
        let same = answers
            .iter()
            .filter(|(_, answer)| is_handshake || text(answer.params.as_deref()) == sent);
        let same: Vec<usize> = same.map(|(at, _)| *at).collect();
        if let Some(at) = same.iter().find(|at| !state.used_answers[**at]).or(same.last()) {
            state.used_answers[*at] = true;
            state.answers += 1;
            return Ok(*at);
        }
        let request = format!("the request `{method}`");
        let Some((_, nearest)) = answers.first() else {
            return Err(Miss::without_nearest(request));
        };
        let recorded = nearest.params.as_deref().unwrap_or(RawValue::NULL);
        let sent = params.as_deref().unwrap_or(RawValue::NULL);
        let differences = differences(recorded, sent, &|_| false, MAX_DIFFERENCES);
        Err(Miss { request: request.clone(), nearest: Some(request), differences })
    }

    fn answer_call(
        &mut self,
        servers: &mut ServersState,
        id: &RequestId,
        params: Option<&RawValue>,
        out: &mut Vec<u8>,
    ) -> Result<(), Miss> {
        let Some(CallParams { name, arguments, others, progress_token }) = CallParams::new(params)
        else {
            envelope::write_error(out, id, code::INVALID_PARAMS, "no tool is named").ok();
            return Ok(());
        };
        let sent = SentCall {
            name: &name,
            arguments: &arguments,
            served: self.served,
            params: others.as_deref(),
        };
        let (position, record) = servers.script.take_call(sent)?;
        let call = AnsweredCall { id: id.clone(), progress_token, position, record };
        let questions = self.golden.questions.iter();
        let questions = questions.filter(|question| question.call == Some(position)).cloned();
        self.go_on(call, questions.collect(), out);
        Ok(())
    }

    /// Asks the next question of a call; without one, the result of the call may leave.
    fn go_on(
        &mut self,
        call: AnsweredCall,
        mut further: VecDeque<QuestionRecord>,
        out: &mut Vec<u8>,
    ) {
        let Some(question) = further.pop_front() else {
            self.answered.push(call);
            return;
        };
        self.questions += 1;
        // The ids of a client's own requests are another sequence.
        let id = RequestId::Integer(self.questions);
        let params = (question.params.get() != "null").then_some(&*question.params);
        envelope::write_request_with_id(out, &id, &question.method, params).ok();
        self.asking.insert(id, AskingCall { call, question, further });
    }

    /// Writes the progress and the result of a call.
    pub(super) fn end_call(
        &self,
        servers: &mut ServersState,
        call: &AnsweredCall,
        out: &mut Vec<u8>,
    ) {
        let AnsweredCall { id, progress_token, position: _, record } = call;
        let token =
            progress_token.as_ref().and_then(|token| RawValue::from_string(token.clone()).ok());
        if let Some(token) = token {
            for ProgressRecord { params, .. } in &record.progress {
                let params = with_member(Some(params), "progressToken", &token);
                envelope::write_notification(out, method::PROGRESS, Some(&*params)).ok();
            }
        }
        self.send_notifications(servers, out);
        if matches!(record.outcome, Outcome::Abandoned {}) {
            return;
        }
        self.write_outcome(id, &record.outcome, None, out);
        servers.script.end_call();
        self.send_notifications(servers, out);
    }

    /// Takes the client's answer to a question.
    fn on_answer(
        &mut self,
        id: &RequestId,
        outcome: Result<&RawValue, ErrorObject>,
        out: &mut Vec<u8>,
    ) -> Result<(), Miss> {
        let Some(AskingCall { call, question, further }) = self.asking.remove(id) else {
            return Ok(());
        };
        let recorded = question.answer.as_deref().unwrap_or(RawValue::NULL);
        let answer = outcome.unwrap_or(RawValue::NULL);
        let differences = differences(recorded, answer, &|_| false, MAX_DIFFERENCES);
        if !differences.is_empty() {
            let name = &call.record.name;
            let request = format!("the answer to the question `{}` of `{name}`", question.method);
            return Err(Miss {
                nearest: Some("the recorded answer".to_owned()),
                request,
                differences,
            });
        }
        self.go_on(call, further, out);
        Ok(())
    }

    /// Writes the notifications whose time has come.
    pub(super) fn send_notifications(&self, servers: &mut ServersState, out: &mut Vec<u8>) {
        if !self.is_open {
            return;
        }
        let ServersState { script, served } = servers;
        let state = &mut served[self.served];
        let notifications = &self.golden.served[self.served].notifications;
        for (notification, is_sent) in notifications.iter().zip(&mut state.sent_notifications) {
            let NotificationRecord { method, params, requests, begun, calls, answers } =
                notification;
            let is_due = *requests <= script.requests()
                && *begun <= script.begun_calls()
                && *calls <= script.ended_calls()
                && *answers <= state.answers;
            if is_due && !*is_sent {
                *is_sent = true;
                envelope::write_notification(out, method, params.as_deref()).ok();
            }
        }
    }

    fn write_outcome(
        &self,
        id: &RequestId,
        outcome: &Outcome,
        tools: Option<&[usize]>,
        out: &mut Vec<u8>,
    ) {
        match outcome {
            Outcome::Result(result) | Outcome::ToolError(result) => {
                let result = match tools {
                    None => result.clone(),
                    Some(tools) => with_member(Some(result), "tools", &self.definitions(tools)),
                };
                envelope::write_response(out, id, &result).ok();
            }
            Outcome::Error(error) => {
                let ErrorJson { code, message, data } =
                    serde_json::from_str(error.get()).unwrap_or_default();
                let id = ErrorId::Request(id);
                envelope::write_error_with_data(out, id, code, &message, data.as_deref()).ok();
            }
            Outcome::Failed { message, .. } => {
                envelope::write_error(out, id, code::INTERNAL_ERROR, message).ok();
            }
            Outcome::Abandoned {} => {}
        }
    }

    fn definitions(&self, tools: &[usize]) -> Box<RawValue> {
        let tools = tools.iter().filter_map(|at| self.golden.tools.get(*at));
        let definitions: Vec<_> = tools.map(|tool| &tool.definition).collect();
        to_raw_value(&definitions).unwrap_or_else(|_| RawValue::NULL.to_owned())
    }
}

/// A recorded JSON-RPC error.
#[derive(Default, Deserialize)]
struct ErrorJson {
    code: i64,
    message: String,
    #[serde(default)]
    data: Option<Box<RawValue>>,
}

#[cfg(test)]
mod tests;
