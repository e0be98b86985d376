//! A simulated MCP server of either era, with or without faults.

use std::collections::BTreeMap;
use std::future::pending;
use std::ops::ControlFlow;
use std::time::Duration;

use fastrand::Rng;
use innkeeper_protocol::envelope::code;
use innkeeper_protocol::method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::fault::InjectedFault;
use super::plan::{ServerPlan, chance, millis};
use super::server_io::{HostInput, ServerIo};
use super::state::Simulation;
use crate::error::{ConnectFailureKind, UnavailableReason};
use crate::session;

enum ServerAction {
    Send(Vec<u8>),
    /// Responds to a request, unless the request was cancelled.
    Respond(Value, Vec<u8>),
    SendChunked(Vec<u8>),
    SendHeld,
    FailRequest(u64, session::RequestError),
    CloseOutput,
    Exit(i32),
}

pub(super) struct SimulatedServer {
    plan: ServerPlan,
    rng: Rng,
    simulation: Simulation,
    io: ServerIo,
    schedule: BTreeMap<(Instant, u64), ServerAction>,
    action_count: u64,
    /// Responses to send together.
    held_responses: Vec<Vec<u8>>,
    stopped_reading: bool,
    launch_fails: bool,
    /// Whether the server lists an additional tool.
    has_extra_tool: bool,
}

impl SimulatedServer {
    pub(super) fn new(
        plan: ServerPlan,
        mut rng: Rng,
        simulation: Simulation,
        io: ServerIo,
    ) -> Self {
        let launch_fails = !plan.faults.healthy && chance(&mut rng, plan.faults.launch_percent);
        Self {
            plan,
            rng,
            simulation,
            io,
            schedule: BTreeMap::new(),
            action_count: 0,
            held_responses: Vec::new(),
            stopped_reading: false,
            launch_fails,
            has_extra_tool: false,
        }
    }

    /// Returns the exit behaviour of the process: whether it ignores the terminate signal, whether
    /// its exit is reported before its pipes close, and the milliseconds between both.
    pub(super) fn exit_behavior(&mut self) -> (bool, bool, u64) {
        let stubborn = !self.plan.faults.healthy && chance(&mut self.rng, 25);
        (stubborn, self.rng.bool(), self.rng.u64(..60))
    }

    /// Runs until the server exits. Returns the exit code.
    pub(super) async fn run(&mut self) -> i32 {
        loop {
            let next = self.schedule.first_key_value().map(|((at, _), _)| *at);
            let due = async {
                match next {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = due => {
                    let Some((_, deed)) = self.schedule.pop_first() else { continue };
                    if let ControlFlow::Break(code) = self.perform(deed).await {
                        return code;
                    }
                }
                heard = self.io.next(self.stopped_reading) => match heard {
                    HostInput::Message(message) => self.handle(&message),
                    HostInput::Cancelled(id) => self.cancel(&json!(id)),
                    HostInput::Closed if self.io.is_transport() => return 0,
                    // Some servers ignore the end of their input.
                    HostInput::Closed if !self.plan.faults.healthy && chance(&mut self.rng, 20) => {
                        self.stopped_reading = true;
                    }
                    HostInput::Closed => return 0,
                },
            }
        }
    }

    async fn perform(&mut self, action: ServerAction) -> ControlFlow<i32> {
        match action {
            ServerAction::Send(bytes) | ServerAction::Respond(_, bytes) => {
                self.io.write(&bytes).await;
            }
            ServerAction::SendChunked(bytes) => {
                let size = self.rng.usize(1..20);
                self.io.write_chunked(&bytes, size).await;
            }
            ServerAction::SendHeld => {
                let responses: Vec<_> = std::mem::take(&mut self.held_responses);
                let all: Vec<u8> = responses.into_iter().rev().flatten().collect();
                self.io.write(&all).await;
            }
            ServerAction::FailRequest(id, error) => self.io.fail_request(id, error),
            ServerAction::CloseOutput => {
                if !self.io.close_output() {
                    return ControlFlow::Break(0);
                }
            }
            ServerAction::Exit(code) => return ControlFlow::Break(code),
        }
        ControlFlow::Continue(())
    }

    fn schedule_after(&mut self, delay: Duration, action: ServerAction) {
        self.action_count += 1;
        self.schedule.insert((Instant::now() + delay, self.action_count), action);
    }

    fn short_delay(&mut self) -> Duration {
        millis(&mut self.rng, 0..60)
    }

    fn cancel(&mut self, id: &Value) {
        if self.rng.bool() {
            self.schedule
                .retain(|_, action| !matches!(action, ServerAction::Respond(of, _) if of == id));
        }
    }

    fn handle(&mut self, message: &Value) {
        let Some(request_method) = message["method"].as_str() else { return };
        let params = &message["params"];
        let Some(id) = message.get("id") else {
            if request_method == method::CANCELLED {
                self.cancel(&params["requestId"]);
            }
            return;
        };
        match request_method {
            method::SERVER_DISCOVER if self.plan.modern => {
                let mut handshake = json!({ "supportedVersions": ["2026-07-28"] });
                handshake["capabilities"] = capabilities();
                self.respond_handshake(id, &handshake);
            }
            method::INITIALIZE if !self.plan.modern => {
                let mut handshake = json!({ "protocolVersion": "2025-11-25" });
                handshake["capabilities"] = capabilities();
                handshake["serverInfo"] = json!({ "name": self.plan.name, "version": "1" });
                self.respond_handshake(id, &handshake);
            }
            method::INITIALIZE => self.respond_error(id, code::UNSUPPORTED_PROTOCOL_VERSION),
            // Some legacy servers do not respond to unknown methods.
            method::SERVER_DISCOVER if chance(&mut self.rng, 15) => {}
            method::TOOLS_LIST => self.respond_list(id, "tools", &self.tools()),
            method::PROMPTS_LIST => self.respond_list(id, "prompts", &prompts()),
            method::RESOURCES_LIST => {
                let resources = resources(&self.plan.name);
                self.respond_list(id, "resources", &resources);
            }
            method::RESOURCES_TEMPLATES_LIST => {
                self.respond_list(id, "resourceTemplates", &json!([]));
            }
            // The request stays open.
            method::SUBSCRIPTIONS_LISTEN => {}
            method::TOOLS_CALL => {
                let key = params["arguments"]["key"].as_str().unwrap_or_default();
                let result = json!({ "content": [{ "type": "text", "text": key }] });
                self.handle_call(id, params, Some(key), result);
            }
            method::PROMPTS_GET => {
                let name = params["name"].as_str().unwrap_or_default();
                let text = format!("{}/{name}", self.plan.name);
                let content = json!({ "type": "text", "text": text });
                let result = json!({ "messages": [{ "role": "user", "content": content }] });
                self.handle_call(id, params, None, result);
            }
            method::RESOURCES_READ => {
                let uri = &params["uri"];
                let result = json!({ "contents": [{ "uri": uri, "text": uri }] });
                self.handle_call(id, params, None, result);
            }
            _ => self.respond_error(id, code::METHOD_NOT_FOUND),
        }
    }

    fn tools(&self) -> Value {
        let schema = json!({
            "type": "object",
            "properties": { "key": { "type": "string" } },
            "required": ["key"],
        });
        let mut tools = vec![
            json!({ "name": "work", "inputSchema": schema }),
            json!({ "name": "look", "inputSchema": schema, "annotations": { "readOnlyHint": true } }),
        ];
        if self.has_extra_tool {
            tools.push(json!({ "name": "more", "inputSchema": { "type": "object" } }));
        }
        json!(tools)
    }

    fn respond(&mut self, delay: Duration, id: &Value, result: &Value) {
        let bytes = to_line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        self.schedule_after(delay, ServerAction::Respond(id.clone(), bytes));
    }

    fn respond_error(&mut self, id: &Value, code: i64) {
        let delay = self.short_delay();
        let error = json!({ "code": code, "message": "no" });
        let bytes = to_line(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        self.schedule_after(delay, ServerAction::Respond(id.clone(), bytes));
    }

    fn respond_handshake(&mut self, id: &Value, result: &Value) {
        let delay = self.short_delay();
        if !self.launch_fails {
            return self.respond(delay, id, result);
        }
        match self.rng.u8(..4) {
            0 | 1 => self.schedule_after(delay, ServerAction::Exit(1)),
            2 => self.respond_error(id, code::INTERNAL_ERROR),
            _ => self.schedule_after(delay, ServerAction::Send(b"Error: no such file\n".to_vec())),
        }
    }

    fn respond_list(&mut self, id: &Value, member: &str, items: &Value) {
        let delay = self.short_delay();
        if self.plan.faults.healthy || !chance(&mut self.rng, 3) {
            return self.respond(delay, id, &json!({ member: items }));
        }
        match self.rng.u8(..4) {
            0 => self.respond_error(id, code::INTERNAL_ERROR),
            1 => self.respond(delay, id, &json!({ member: "none" })),
            2 => self.schedule_after(delay, ServerAction::Exit(2)),
            _ => {}
        }
    }

    /// Responds to a call, with or without a fault.
    fn handle_call(&mut self, id: &Value, params: &Value, run: Option<&str>, mut result: Value) {
        if self.plan.modern {
            result["resultType"] = json!("complete");
        }
        let delay = self.short_delay();
        let simulation = self.simulation.clone();
        let mark_run = || {
            if let Some(call) = run {
                simulation.record_run(call);
            }
        };
        if self.plan.faults.healthy || !chance(&mut self.rng, self.plan.faults.request_percent) {
            mark_run();
            if chance(&mut self.rng, 3) {
                self.notify_list_changes(1);
            }
            return self.respond(delay, id, &result);
        }
        let fault = InjectedFault::pick(&mut self.rng);
        if !matches!(fault, InjectedFault::CrashBefore | InjectedFault::NotDelivered) {
            mark_run();
        }
        match fault {
            InjectedFault::Progress => self.notify_progress(id, params, &result),
            InjectedFault::ToolError => {
                if run.is_some() {
                    result["isError"] = json!(true);
                }
                self.respond(delay, id, &result);
            }
            InjectedFault::TooLarge => {
                result["pad"] = json!("x".repeat(self.rng.usize(20 << 10..80 << 10)));
                self.respond(delay, id, &result);
            }
            fault => {
                self.respond_with_fault(fault, id, &result);
            }
        }
    }

    fn respond_with_fault(&mut self, fault: InjectedFault, id: &Value, result: &Value) {
        let delay = self.short_delay();
        let bytes = to_line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        match fault {
            InjectedFault::Delayed => {
                let delay = millis(&mut self.rng, 100..900);
                self.respond(delay, id, result);
            }
            InjectedFault::AfterTimeout => {
                let late = self.plan.limits.timeout + millis(&mut self.rng, 0..3000);
                self.respond(late, id, result);
            }
            InjectedFault::Duplicate => {
                self.schedule_after(delay, ServerAction::Send(bytes.clone()));
                let second_delay = delay + self.short_delay();
                self.schedule_after(second_delay, ServerAction::Send(bytes));
            }
            InjectedFault::UnknownId => {
                let id = 1_u64 << 50;
                let stranger = to_line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
                self.schedule_after(delay, ServerAction::Send([stranger, bytes].concat()));
            }
            InjectedFault::Garbage => self
                .schedule_after(delay, ServerAction::Send([&b"{\"a\": \n"[..], &bytes].concat())),
            InjectedFault::Malformed => {
                self.schedule_after(
                    delay,
                    ServerAction::Send(to_line(&json!({ "jsonrpc": "2.0", "id": id }))),
                );
            }
            InjectedFault::InvalidUtf8 => self
                .schedule_after(delay, ServerAction::Send([&b"\xff\xfe{}\n"[..], &bytes].concat())),
            InjectedFault::Chunked => self.schedule_after(delay, ServerAction::SendChunked(bytes)),
            InjectedFault::Reordered => {
                self.held_responses.push(bytes);
                let delay = millis(&mut self.rng, 50..700);
                self.schedule_after(delay, ServerAction::SendHeld);
            }
            InjectedFault::StopsReading => {
                self.schedule_after(delay, ServerAction::Send(bytes));
                self.stopped_reading = true;
            }
            InjectedFault::ListChangedStorm => {
                let times = self.rng.u64(20..100);
                self.notify_list_changes(times);
                self.respond(delay, id, result);
            }
            InjectedFault::ServerRequest => {
                let request_method = method::SAMPLING_CREATE_MESSAGE;
                let request = json!({ "jsonrpc": "2.0", "id": "q", "method": request_method });
                self.schedule_after(delay, ServerAction::Send(to_line(&request)));
                self.respond(delay * 2, id, result);
            }
            fault => self.fail_request(fault, id, delay),
        }
    }

    /// Sends no response or an error.
    fn fail_request(&mut self, fault: InjectedFault, id: &Value, delay: Duration) {
        let fail_action = |reason, sent| {
            let request_id = id.as_u64().unwrap_or_default();
            ServerAction::FailRequest(
                request_id,
                session::RequestError::Unavailable { reason, sent },
            )
        };
        match fault {
            InjectedFault::ClosesOutput => self.schedule_after(delay, ServerAction::CloseOutput),
            InjectedFault::Error => self.respond_error(id, code::INTERNAL_ERROR),
            InjectedFault::NotDelivered if self.io.is_transport() => {
                let reason = match self.rng.bool() {
                    true => UnavailableReason::Unreachable {
                        kind: ConnectFailureKind::Refused,
                        cause: "refused".into(),
                    },
                    false => {
                        UnavailableReason::Busy { status: 503, retry_after: None, body: "".into() }
                    }
                };
                self.schedule_after(delay, fail_action(reason, false));
            }
            InjectedFault::NotDelivered => self.respond_error(id, code::INVALID_PARAMS),
            InjectedFault::ConnectionBroken if self.io.is_transport() => {
                self.schedule_after(
                    delay,
                    fail_action(UnavailableReason::ConnectionLost("reset".into()), true),
                );
            }
            InjectedFault::CrashBefore
            | InjectedFault::CrashAfter
            | InjectedFault::ConnectionBroken => {
                self.schedule_after(delay, ServerAction::Exit(3));
            }
            InjectedFault::Flood => {
                let lines = self.rng.usize(900..1200);
                self.schedule_after(delay, ServerAction::Send(b"?\n".repeat(lines)));
            }
            // No response.
            _ => {}
        }
    }

    fn notify_list_changes(&mut self, times: u64) {
        let lists = [
            method::TOOLS_LIST_CHANGED,
            method::PROMPTS_LIST_CHANGED,
            method::RESOURCES_LIST_CHANGED,
        ];
        self.has_extra_tool = !self.has_extra_tool;
        for time in 0..times {
            let list = lists[self.rng.usize(..lists.len())];
            let notification = to_line(&json!({ "jsonrpc": "2.0", "method": list }));
            self.schedule_after(Duration::from_millis(time), ServerAction::Send(notification));
        }
    }

    /// Sends progress notifications, each shortly before the timeout, then the response.
    fn notify_progress(&mut self, id: &Value, params: &Value, result: &Value) {
        let token = &params["_meta"]["progressToken"];
        let interval = self.plan.limits.timeout * 4 / 5;
        let times = self.rng.u32(1..6);
        for time in 1..=times {
            let params = json!({ "progressToken": token, "progress": time });
            let notification =
                json!({ "jsonrpc": "2.0", "method": method::PROGRESS, "params": params });
            self.schedule_after(interval * time, ServerAction::Send(to_line(&notification)));
        }
        self.respond(interval * (times + 1), id, result);
    }
}

fn capabilities() -> Value {
    let changes = json!({ "listChanged": true });
    json!({ "tools": changes, "prompts": changes, "resources": changes })
}

fn prompts() -> Value {
    (0..5).map(|number| json!({ "name": format!("p{number}") })).collect()
}

fn resources(server: &str) -> Value {
    (0..5).map(|number| json!({ "uri": format!("sim://{server}/{number}"), "name": "r" })).collect()
}

fn to_line(message: &Value) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}
