//! What passes between an agent's MCP clients and `innkeeper serve --stdio`.
//!
//! Tool calls go into the calls of the recording. Everything else that a client asks for changes
//! nothing; its answers are kept in their order.

use std::collections::HashMap;

use innkeeper_agent::golden::{
    AnswerRecord, NotificationRecord, Outcome, QuestionRecord, Recording, ServedRecord, ToolRecord,
    canonical, without_members,
};
use innkeeper_protocol::{
    ErrorObject, Incoming, Message, RequestId, RequestParams, envelope, method,
};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// Maximum number of answers and notifications of one command line.
const MAX_RECORDS: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct McpRecording {
    served: Vec<ServedRecord>,
    questions: Vec<QuestionRecord>,
}

#[derive(Debug)]
pub(super) struct RecordedConnection {
    served: usize,
    open: HashMap<RequestId, OpenRequest>,
    /// The open questions of the server, as positions.
    questions: HashMap<RequestId, usize>,
    /// The questions since the last end of a call, as positions.
    unassigned: Vec<usize>,
}

/// A request without an answer so far.
#[derive(Debug)]
enum OpenRequest {
    Call { position: usize, progress_token: Option<String> },
    Other { method: String, params: Option<Box<RawValue>> },
}

impl McpRecording {
    /// Returns the connection of a command line, and adds the command line if it is new.
    pub(super) fn connect(
        &mut self,
        arguments: Vec<String>,
        server_config: Box<RawValue>,
    ) -> RecordedConnection {
        let known = self.served.iter().position(|served| {
            served.arguments == arguments && served.server_config.get() == server_config.get()
        });
        let served = known.unwrap_or_else(|| {
            self.served.push(ServedRecord {
                arguments,
                server_config,
                answers: Vec::new(),
                notifications: Vec::new(),
            });
            self.served.len() - 1
        });
        RecordedConnection {
            served,
            open: HashMap::new(),
            questions: HashMap::new(),
            unassigned: Vec::new(),
        }
    }

    /// Records the requests that have no answer at the end of a connection.
    pub(super) fn on_end(&mut self, connection: RecordedConnection) {
        let answers = &mut self.served[connection.served].answers;
        for open in connection.open.into_values() {
            if let OpenRequest::Other { method, params } = open
                && answers.len() < MAX_RECORDS
            {
                let outcome = Outcome::Abandoned {};
                answers.push(AnswerRecord { method, params, outcome, tools: None });
            }
        }
    }

    pub(super) fn into_records(self) -> (Vec<ServedRecord>, Vec<QuestionRecord>) {
        (self.served, self.questions)
    }

    pub(super) fn on_client_line(
        &mut self,
        connection: &mut RecordedConnection,
        recording: &mut Recording,
        now_ms: u64,
        line: &[u8],
    ) {
        if let Some(message) = message(line) {
            match message {
                Incoming::Request { id, method, params } if method == method::TOOLS_CALL => {
                    let Some(call) = CallParams::new(params) else { return };
                    let CallParams { name, arguments, others, progress_token } = call;
                    let served = connection.served;
                    let position = recording.on_call(now_ms, &name, &arguments, served, others);
                    connection.open.insert(id, OpenRequest::Call { position, progress_token });
                }
                Incoming::Request { id, method, params } => {
                    let params = params.and_then(|params| without_members(params, &["_meta"]));
                    let method = method.into_owned();
                    connection.open.insert(id, OpenRequest::Other { method, params });
                }
                Incoming::Response { id, outcome } => {
                    let question = connection.questions.remove(&id);
                    let question = question.and_then(|at| self.questions.get_mut(at));
                    if let (Some(question), Ok(answer)) = (question, outcome) {
                        question.answer = Some(answer.to_owned());
                    }
                }
                Incoming::Notification { .. } => {}
            }
        }
    }

    pub(super) fn on_server_line(
        &mut self,
        connection: &mut RecordedConnection,
        recording: &mut Recording,
        now_ms: u64,
        line: &[u8],
    ) {
        if let Some(message) = message(line) {
            match message {
                Incoming::Response { id, outcome } => {
                    let outcome = record_outcome(outcome);
                    match connection.open.remove(&id) {
                        Some(OpenRequest::Call { position, .. }) => {
                            recording.on_call_end(position, now_ms, outcome);
                            // Which of several open calls asked is not in the protocol.
                            for question in connection.unassigned.drain(..) {
                                if let Some(question) = self.questions.get_mut(question) {
                                    question.call = Some(position);
                                }
                            }
                        }
                        Some(OpenRequest::Other { method, params }) => {
                            let served = connection.served;
                            self.add_answer(served, recording, method, params, outcome);
                        }
                        None => {}
                    }
                }
                Incoming::Request { id, method, params } => {
                    self.questions.push(QuestionRecord {
                        server: self.served[connection.served].arguments.join(" "),
                        method: method.into_owned(),
                        params: params.unwrap_or(RawValue::NULL).to_owned(),
                        answer: None,
                        call: None,
                    });
                    connection.questions.insert(id, self.questions.len() - 1);
                    if connection.has_open_call() {
                        connection.unassigned.push(self.questions.len() - 1);
                    }
                }
                Incoming::Notification { method, params } => {
                    let call = params.and_then(|params| connection.call_of_progress(params));
                    match (method == method::PROGRESS, call, params) {
                        (true, Some(call), Some(params)) => {
                            let params = without_members(params, &["progressToken"]);
                            let params = params.as_deref().unwrap_or(RawValue::NULL);
                            recording.on_progress(call, now_ms, params);
                        }
                        _ => self.add_notification(connection.served, recording, &method, params),
                    }
                }
            }
        }
    }

    fn add_answer(
        &mut self,
        served: usize,
        recording: &mut Recording,
        method: String,
        params: Option<Box<RawValue>>,
        outcome: Outcome,
    ) {
        let (outcome, tools) = match outcome {
            Outcome::Result(result) if method == method::TOOLS_LIST => {
                let (rest, tools) = take_tools(&result, recording);
                (Outcome::Result(rest), tools)
            }
            outcome => (outcome, None),
        };
        let answers = &mut self.served[served].answers;
        if answers.len() < MAX_RECORDS {
            recording.count(&outcome);
            answers.push(AnswerRecord { method, params, outcome, tools });
        }
    }

    fn add_notification(
        &mut self,
        served: usize,
        recording: &Recording,
        method: &str,
        params: Option<&RawValue>,
    ) {
        let ServedRecord { answers, notifications, .. } = &mut self.served[served];
        if notifications.len() < MAX_RECORDS {
            notifications.push(NotificationRecord {
                method: method.to_owned(),
                params: params.map(RawValue::to_owned),
                requests: recording.exchanges().len(),
                begun: recording.calls().len(),
                calls: recording.ended_calls(),
                answers: answers.len(),
            });
        }
    }
}

impl RecordedConnection {
    fn has_open_call(&self) -> bool {
        self.open.values().any(|open| matches!(open, OpenRequest::Call { .. }))
    }

    fn call_of_progress(&self, params: &RawValue) -> Option<usize> {
        let token =
            RequestParams::from_raw(Some(params)).ok()?.get("progressToken")?.get().to_owned();
        self.open.values().find_map(|open| match open {
            OpenRequest::Call { position, progress_token }
                if progress_token.as_ref() == Some(&token) =>
            {
                Some(*position)
            }
            OpenRequest::Call { .. } | OpenRequest::Other { .. } => None,
        })
    }
}

/// The parameters of a tool call.
pub(super) struct CallParams {
    pub(super) name: String,
    pub(super) arguments: Box<RawValue>,
    /// The other parameters, without `_meta`.
    pub(super) others: Option<Box<RawValue>>,
    /// The token for progress notifications, as written.
    pub(super) progress_token: Option<String>,
}

impl CallParams {
    /// Reads the parameters of `tools/call`; `None` for those that a server refuses.
    pub(super) fn new(params: Option<&RawValue>) -> Option<Self> {
        let members = RequestParams::from_raw(params).ok()?;
        let meta = RequestParams::from_raw(members.get("_meta")).unwrap_or_default();
        let arguments = members.get("arguments").map(RawValue::to_owned);
        Some(Self {
            name: serde_json::from_str(members.get("name")?.get()).ok()?,
            arguments: arguments.unwrap_or_else(empty_object),
            others: without_members(params?, &["name", "arguments", "_meta"]),
            progress_token: meta.get("progressToken").map(|token| token.get().to_owned()),
        })
    }
}

/// Returns the message of a line. The gateway refuses what is none, and most revisions have no batches.
fn message(line: &[u8]) -> Option<Incoming<'_>> {
    match envelope::parse(line) {
        Ok(Message::Single(message)) => Some(message),
        Ok(Message::Batch(_)) | Err(_) => None,
    }
}

fn record_outcome(outcome: Result<&RawValue, ErrorObject>) -> Outcome {
    #[derive(Serialize)]
    struct ErrorJson {
        code: i64,
        message: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        data: Option<Box<RawValue>>,
    }
    #[derive(Deserialize)]
    struct Flag {
        #[serde(rename = "isError", default)]
        is_error: bool,
    }
    match outcome {
        Ok(result) => match serde_json::from_str(result.get()) {
            Ok(Flag { is_error: true }) => Outcome::ToolError(result.to_owned()),
            Ok(Flag { is_error: false }) | Err(_) => Outcome::Result(result.to_owned()),
        },
        Err(ErrorObject { code, message, data }) => {
            let error = to_raw_value(&ErrorJson { code, message, data });
            Outcome::Error(error.unwrap_or_else(|_| RawValue::NULL.to_owned()))
        }
    }
}

/// Moves the definitions of a result to the recording. Returns the other members and the positions.
fn take_tools(result: &RawValue, recording: &mut Recording) -> (Box<RawValue>, Option<Vec<usize>>) {
    #[derive(Deserialize)]
    struct ToolName {
        name: String,
    }
    let members = RequestParams::from_raw(Some(result)).unwrap_or_default();
    let tools = members.get("tools");
    let tools = tools.and_then(|tools| serde_json::from_str::<Vec<&RawValue>>(tools.get()).ok());
    let Some(tools) = tools else { return (result.to_owned(), None) };
    let positions = tools.into_iter().map(|definition| {
        let name = serde_json::from_str(definition.get()).map(|ToolName { name }| name);
        recording.on_tool(ToolRecord {
            name: name.unwrap_or_default(),
            hash: ToolRecord::hash_of(definition),
            from_server: true,
            refusal: None,
            definition: definition.to_owned(),
        })
    });
    let positions = positions.collect();
    (without_members(result, &["tools"]).unwrap_or_else(empty_object), Some(positions))
}

pub(super) fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

pub(super) fn text(params: Option<&RawValue>) -> String {
    params.map(canonical).unwrap_or_default()
}

#[cfg(test)]
mod tests;
