//! What the fixture server wants of its client in the middle of a call.

use serde_json::{Map, Value, json};

use super::message::{self, Answer, Request, code, meta};
use super::server::Server;
use super::tool;

/// Start of the `requestState` of the rounds of a modern call.
const STATE: &str = "fx-state-";

/// Requests sent and not yet answered, by the call they belong to.
#[derive(Debug, Default)]
pub(super) struct Asks {
    last_id: u64,
    open: Vec<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    call: Request,
    asked: Vec<(Value, &'static str)>,
    answers: Vec<Value>,
}

impl Asks {
    /// The next id of this server's own, small numbers from 1 like everybody's.
    pub(super) fn next_id(&mut self) -> Value {
        self.last_id += 1;
        json!(self.last_id)
    }

    /// Drops what was asked for a call the client no longer wants.
    pub(super) fn forget(&mut self, id: &Value) {
        self.open.retain(|waiting| waiting.call.id != *id);
    }
}

impl Server {
    /// Asks the client what the switches say; true when the call has to wait for it.
    pub(super) fn ask_first(&mut self, call: &Request) -> bool {
        let wanted = self.wanted();
        if wanted.is_empty() {
            return false;
        }
        if call.is_modern() {
            let answer = self.next_round(call, &wanted);
            self.answer_call(call, answer);
            return true;
        }
        let mut asked = Vec::new();
        for _ in 0..self.switches.count("--ask-count").max(1) {
            for &method in &wanted {
                let id = if self.switches.on("--same-request-id") {
                    call.id.clone()
                } else {
                    self.asks.next_id()
                };
                let text = message::request(&id, method, &self.question(method));
                self.wire.line(text.as_bytes());
                asked.push((id, method));
            }
        }
        self.asks.open.push(Waiting { call: call.clone(), asked, answers: Vec::new() });
        true
    }

    /// Asks for the roots before the handshake is done, for `--early-request`.
    pub(super) fn ask_early(&mut self) {
        let id = self.asks.next_id();
        let text = message::request(&id, "roots/list", &json!({}));
        self.wire.line(text.as_bytes());
    }

    /// Takes a response of the client's; the last one expected lets its call finish.
    pub(super) fn answered(&mut self, response: &Value) {
        let id = &response["id"];
        let found = self.asks.open.iter_mut().enumerate().find_map(|(index, waiting)| {
            let place = waiting.asked.iter().position(|(asked, _)| asked == id)?;
            Some((index, waiting, place))
        });
        let Some((index, waiting, place)) = found else {
            self.task_answered(response);
            return;
        };
        let (_, method) = waiting.asked.remove(place);
        let mut answer = json!({"method": method});
        for member in ["result", "error"] {
            if let Some(value) = response.get(member) {
                answer[member] = value.clone();
            }
        }
        waiting.answers.push(answer);
        if waiting.asked.is_empty() {
            let done = self.asks.open.remove(index);
            let answers = Value::Array(done.answers).to_string();
            self.answer_call(&done.call, Answer::Result(tool::text(&answers)));
        }
    }

    /// One round of a modern call: another set of questions, or the answers collected.
    fn next_round(&self, call: &Request, wanted: &[&'static str]) -> Answer {
        let offered = call.meta(meta::CAPABILITIES).cloned().unwrap_or_default();
        let mut missing = Map::new();
        for method in wanted {
            let capability = method.split('/').next().unwrap_or_default();
            if offered.get(capability).is_none() && !self.switches.on("--ask-anyway") {
                missing.insert(capability.to_owned(), json!({}));
            }
        }
        if !missing.is_empty() {
            return Answer::Error {
                code: code::MISSING_CAPABILITY,
                message: "the client lacks a capability this call needs".to_owned(),
                data: Some(json!({"requiredCapabilities": missing})),
            };
        }
        let state = call.param("requestState").trim_end_matches('.');
        let done = state.strip_prefix(STATE).and_then(|round| round.parse().ok()).unwrap_or(0);
        let answers = call.params.get("inputResponses");
        if done > 0 && answers.is_none() {
            return Answer::error(code::INVALID_PARAMS, "a further round without input responses");
        }
        if done >= self.switches.count("--rounds").max(1) {
            return Answer::Result(tool::text(&json!(answers).to_string()));
        }
        let questions: Map<String, Value> = wanted
            .iter()
            .map(|method| {
                let question = json!({"method": method, "params": self.question(method)});
                (format!("{method}-{done}"), question)
            })
            .collect();
        let padding = ".".repeat(self.switches.count("--state-bytes"));
        Answer::Result(json!({
            "resultType": "input_required",
            "inputRequests": questions,
            "requestState": format!("{STATE}{}{padding}", done + 1),
        }))
    }

    fn wanted(&self) -> Vec<&'static str> {
        [
            ("--ask-roots", "roots/list"),
            ("--ask-sampling", "sampling/createMessage"),
            ("--ask-elicit", "elicitation/create"),
        ]
        .into_iter()
        .filter(|(switch, _)| self.switches.on(switch))
        .map(|(_, method)| method)
        .collect()
    }

    pub(super) fn question(&self, method: &str) -> Value {
        let server = self.switches.server();
        match method {
            "sampling/createMessage" => json!({
                "messages": [{
                    "role": "user",
                    "content": {"type": "text", "text": format!("{server} asks: which colour?")},
                }],
                "maxTokens": 16,
            }),
            "elicitation/create" => json!({
                "mode": "form",
                "message": format!("{server} asks: which colour?"),
                "requestedSchema": {
                    "type": "object",
                    "properties": {"colour": {"type": "string"}},
                    "required": ["colour"],
                },
            }),
            _ => json!({}),
        }
    }
}
