//! Requests of the fixture server to its client during a call.

use serde_json::{Map, Value, json};

use super::message::{self, Request, Response, error_code, meta_key};
use super::server::FixtureServer;
use super::tool;

/// Prefix of the `requestState` in the round trips of a modern call.
const REQUEST_STATE_PREFIX: &str = "fx-state-";

/// Outstanding requests with the calls that wait for them.
#[derive(Debug, Default)]
pub(super) struct PendingRequests {
    last_id: u64,
    waiting_calls: Vec<WaitingCall>,
}

#[derive(Debug)]
struct WaitingCall {
    call: Request,
    outstanding: Vec<(Value, &'static str)>,
    responses: Vec<Value>,
}

impl PendingRequests {
    /// Returns the next request id; small integers from 1, which collide with the ids of other
    /// servers.
    pub(super) fn next_id(&mut self) -> Value {
        self.last_id += 1;
        json!(self.last_id)
    }

    /// Removes the requests of a cancelled call.
    pub(super) fn cancel(&mut self, id: &Value) {
        self.waiting_calls.retain(|waiting| waiting.call.id != *id);
    }
}

impl FixtureServer {
    /// Sends the requests that the switches define; returns whether the call must wait for
    /// responses.
    pub(super) fn request_client_input(&mut self, call: &Request) -> bool {
        let methods = self.input_methods();
        let asks = self.switches.value("--ask-of").is_none_or(|tool| call.param("name") == tool);
        if methods.is_empty() || !asks {
            return false;
        }
        if call.is_modern() {
            let response = self.next_round_trip(call, &methods);
            self.respond_to_call(call, response);
            return true;
        }
        self.send_progress_at_once(call);
        let mut outstanding = Vec::new();
        for _ in 0..self.switches.count("--ask-count").max(1) {
            for &method in &methods {
                let id = if self.switches.is_set("--same-request-id") {
                    call.id.clone()
                } else {
                    self.open.pending.next_id()
                };
                let text = message::request(&id, method, &self.request_params(method));
                self.stdout.write_line(text.as_bytes());
                outstanding.push((id, method));
            }
        }
        self.open.pending.waiting_calls.push(WaitingCall {
            call: call.clone(),
            outstanding,
            responses: Vec::new(),
        });
        true
    }

    /// Requests the roots before the end of the handshake, for `--early-request`.
    pub(super) fn send_early_request(&mut self) {
        let id = self.open.pending.next_id();
        let text = message::request(&id, "roots/list", &json!({}));
        self.stdout.write_line(text.as_bytes());
    }

    /// Handles a response of the client; the last outstanding response completes its call.
    pub(super) fn on_response(&mut self, response: &Value) {
        let id = &response["id"];
        let matched =
            self.open.pending.waiting_calls.iter_mut().enumerate().find_map(|(index, waiting)| {
                let position =
                    waiting.outstanding.iter().position(|(request_id, _)| request_id == id)?;
                Some((index, waiting, position))
            });
        let Some((index, waiting, position)) = matched else {
            self.on_task_response(response);
            return;
        };
        let (_, method) = waiting.outstanding.remove(position);
        let mut input_response = json!({"method": method});
        for member in ["result", "error"] {
            if let Some(value) = response.get(member) {
                input_response[member] = value.clone();
            }
        }
        waiting.responses.push(input_response);
        if waiting.outstanding.is_empty() {
            let done = self.open.pending.waiting_calls.remove(index);
            self.send_progress_at_once(&done.call);
            let text = Value::Array(done.responses).to_string();
            self.respond_to_call(&done.call, Response::Result(tool::text_result(&text)));
        }
    }

    /// One round trip of a modern call: more input requests, or the collected responses.
    fn next_round_trip(&self, call: &Request, methods: &[&'static str]) -> Response {
        let capabilities = call.meta(meta_key::CAPABILITIES).cloned().unwrap_or_default();
        let mut missing = Map::new();
        for method in methods {
            let capability = method.split('/').next().unwrap_or_default();
            if capabilities.get(capability).is_none() && !self.switches.is_set("--ask-anyway") {
                missing.insert(capability.to_owned(), json!({}));
            }
        }
        if !missing.is_empty() {
            return Response::Error {
                code: error_code::MISSING_CAPABILITY,
                message: "the client lacks a capability this call needs".to_owned(),
                data: Some(json!({"requiredCapabilities": missing})),
            };
        }
        let state = call.param("requestState").trim_end_matches('.');
        let done = state
            .strip_prefix(REQUEST_STATE_PREFIX)
            .and_then(|count| count.parse().ok())
            .unwrap_or(0);
        let input_responses = call.params.get("inputResponses");
        if done > 0 && input_responses.is_none() {
            return Response::error(
                error_code::INVALID_PARAMS,
                "a further round without input responses",
            );
        }
        if done >= self.switches.count("--rounds").max(1) {
            return Response::Result(tool::text_result(&json!(input_responses).to_string()));
        }
        let questions: Map<String, Value> = methods
            .iter()
            .map(|method| {
                let input_request =
                    json!({"method": method, "params": self.request_params(method)});
                (format!("{method}-{done}"), input_request)
            })
            .collect();
        let padding = ".".repeat(self.switches.count("--state-bytes"));
        Response::Result(json!({
            "resultType": "input_required",
            "inputRequests": questions,
            "requestState": format!("{REQUEST_STATE_PREFIX}{}{padding}", done + 1),
        }))
    }

    fn input_methods(&self) -> Vec<&'static str> {
        [
            ("--ask-roots", "roots/list"),
            ("--ask-sampling", "sampling/createMessage"),
            ("--ask-elicit", "elicitation/create"),
        ]
        .into_iter()
        .filter(|(switch, _)| self.switches.is_set(switch))
        .map(|(_, method)| method)
        .collect()
    }

    pub(super) fn request_params(&self, method: &str) -> Value {
        let server = self.switches.server_name();
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
