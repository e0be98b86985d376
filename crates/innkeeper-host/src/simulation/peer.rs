//! A server of the simulation: it speaks MCP in one of both eras, well or badly.

use std::collections::BTreeMap;
use std::future::pending;
use std::ops::ControlFlow;
use std::time::Duration;

use fastrand::Rng;
use innkeeper_protocol::envelope::code;
use innkeeper_protocol::method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::fault::Fault;
use super::plan::{ServerPlan, chance, millis};
use super::street::Street;
use super::wire::{Heard, Wire};
use crate::error::Lost;
use crate::server::session;

/// What it will do at some time.
enum Deed {
    Say(Vec<u8>),
    /// Answers a request, unless it was told to forget it.
    Answer(Value, Vec<u8>),
    SayInPieces(Vec<u8>),
    SayHeld,
    Fail(u64, session::Fault),
    CloseOutput,
    End(i32),
}

/// One launch of a server.
pub(super) struct Peer {
    plan: ServerPlan,
    rng: Rng,
    street: Street,
    wire: Wire,
    to_do: BTreeMap<(Instant, u64), Deed>,
    deeds: u64,
    /// Answers that wait to go out together.
    held: Vec<Vec<u8>>,
    /// Whether it has stopped reading.
    deaf: bool,
    /// Whether this launch does not work out.
    false_start: bool,
    /// Whether it offers one tool more than at first.
    grown: bool,
}

impl Peer {
    pub(super) fn new(plan: ServerPlan, mut rng: Rng, street: Street, wire: Wire) -> Self {
        let false_start = !plan.healthy && chance(&mut rng, plan.false_starts);
        let (to_do, held) = (BTreeMap::new(), Vec::new());
        let (deeds, deaf, grown) = (0, false, false);
        Self { plan, rng, street, wire, to_do, deeds, held, deaf, false_start, grown }
    }

    /// How its process ends: whether it ignores being asked to, whether its exit is known before
    /// its pipes close, and how many milliseconds are between the two.
    pub(super) fn end(&mut self) -> (bool, bool, u64) {
        let stubborn = !self.plan.healthy && chance(&mut self.rng, 25);
        (stubborn, self.rng.bool(), self.rng.u64(..60))
    }

    /// Serves until it ends by itself; gives its exit code.
    pub(super) async fn run(&mut self) -> i32 {
        loop {
            let next = self.to_do.first_key_value().map(|((at, _), _)| *at);
            let due = async {
                match next {
                    Some(at) => sleep_until(at).await,
                    None => pending().await,
                }
            };
            tokio::select! {
                biased;
                () = due => {
                    let Some((_, deed)) = self.to_do.pop_first() else { continue };
                    if let ControlFlow::Break(code) = self.act(deed).await {
                        return code;
                    }
                }
                heard = self.wire.next(self.deaf) => match heard {
                    Heard::Message(message) => self.hear(&message),
                    Heard::Forgotten(id) => self.forget(&json!(id)),
                    Heard::End if self.wire.is_carried() => return 0,
                    // Some do not care that nobody talks to them any more.
                    Heard::End if !self.plan.healthy && chance(&mut self.rng, 20) => {
                        self.deaf = true;
                    }
                    Heard::End => return 0,
                },
            }
        }
    }

    async fn act(&mut self, deed: Deed) -> ControlFlow<i32> {
        match deed {
            Deed::Say(bytes) | Deed::Answer(_, bytes) => self.wire.say(&bytes).await,
            Deed::SayInPieces(bytes) => {
                let size = self.rng.usize(1..20);
                self.wire.say_in_pieces(&bytes, size).await;
            }
            Deed::SayHeld => {
                let held: Vec<_> = std::mem::take(&mut self.held);
                let all: Vec<u8> = held.into_iter().rev().flatten().collect();
                self.wire.say(&all).await;
            }
            Deed::Fail(id, fault) => self.wire.fail(id, fault),
            Deed::CloseOutput => {
                if !self.wire.close_output() {
                    return ControlFlow::Break(0);
                }
            }
            Deed::End(code) => return ControlFlow::Break(code),
        }
        ControlFlow::Continue(())
    }

    fn after(&mut self, pause: Duration, deed: Deed) {
        self.deeds += 1;
        self.to_do.insert((Instant::now() + pause, self.deeds), deed);
    }

    fn soon(&mut self) -> Duration {
        millis(&mut self.rng, 0..60)
    }

    fn forget(&mut self, id: &Value) {
        if self.rng.bool() {
            self.to_do.retain(|_, deed| !matches!(deed, Deed::Answer(of, _) if of == id));
        }
    }

    fn hear(&mut self, message: &Value) {
        let Some(asked) = message["method"].as_str() else { return };
        let params = &message["params"];
        let Some(id) = message.get("id") else {
            if asked == method::CANCELLED {
                self.forget(&params["requestId"]);
            }
            return;
        };
        match asked {
            method::SERVER_DISCOVER if self.plan.modern => {
                let mut found = json!({ "supportedVersions": ["2026-07-28"] });
                found["capabilities"] = capabilities();
                self.greet(id, &found);
            }
            method::INITIALIZE if !self.plan.modern => {
                let mut found = json!({ "protocolVersion": "2025-11-25" });
                found["capabilities"] = capabilities();
                found["serverInfo"] = json!({ "name": self.plan.name, "version": "1" });
                self.greet(id, &found);
            }
            method::INITIALIZE => self.refuse(id, code::UNSUPPORTED_PROTOCOL_VERSION),
            // Some old ones say nothing to what they do not know.
            method::SERVER_DISCOVER if chance(&mut self.rng, 15) => {}
            method::TOOLS_LIST => self.list(id, "tools", &self.tools()),
            method::PROMPTS_LIST => self.list(id, "prompts", &prompts()),
            method::RESOURCES_LIST => {
                let resources = resources(&self.plan.name);
                self.list(id, "resources", &resources);
            }
            method::RESOURCES_TEMPLATES_LIST => self.list(id, "resourceTemplates", &json!([])),
            // It stays open.
            method::SUBSCRIPTIONS_LISTEN => {}
            method::TOOLS_CALL => {
                let key = params["arguments"]["key"].as_str().unwrap_or_default();
                let result = json!({ "content": [{ "type": "text", "text": key }] });
                self.treat(id, params, Some(key), result);
            }
            method::PROMPTS_GET => {
                let name = params["name"].as_str().unwrap_or_default();
                let text = format!("{}/{name}", self.plan.name);
                let content = json!({ "type": "text", "text": text });
                let result = json!({ "messages": [{ "role": "user", "content": content }] });
                self.treat(id, params, None, result);
            }
            method::RESOURCES_READ => {
                let uri = &params["uri"];
                let result = json!({ "contents": [{ "uri": uri, "text": uri }] });
                self.treat(id, params, None, result);
            }
            _ => self.refuse(id, code::METHOD_NOT_FOUND),
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
        if self.grown {
            tools.push(json!({ "name": "more", "inputSchema": { "type": "object" } }));
        }
        json!(tools)
    }

    fn answer(&mut self, pause: Duration, id: &Value, result: &Value) {
        let bytes = line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        self.after(pause, Deed::Answer(id.clone(), bytes));
    }

    fn refuse(&mut self, id: &Value, code: i64) {
        let pause = self.soon();
        let error = json!({ "code": code, "message": "no" });
        let bytes = line(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        self.after(pause, Deed::Answer(id.clone(), bytes));
    }

    fn greet(&mut self, id: &Value, result: &Value) {
        let pause = self.soon();
        if !self.false_start {
            return self.answer(pause, id, result);
        }
        match self.rng.u8(..4) {
            0 | 1 => self.after(pause, Deed::End(1)),
            2 => self.refuse(id, code::INTERNAL_ERROR),
            _ => self.after(pause, Deed::Say(b"Error: no such file\n".to_vec())),
        }
    }

    fn list(&mut self, id: &Value, member: &str, items: &Value) {
        let pause = self.soon();
        if self.plan.healthy || !chance(&mut self.rng, 3) {
            return self.answer(pause, id, &json!({ member: items }));
        }
        match self.rng.u8(..4) {
            0 => self.refuse(id, code::INTERNAL_ERROR),
            1 => self.answer(pause, id, &json!({ member: "none" })),
            2 => self.after(pause, Deed::End(2)),
            _ => {}
        }
    }

    /// Answers a call, well or badly.
    fn treat(&mut self, id: &Value, params: &Value, run: Option<&str>, mut result: Value) {
        if self.plan.modern {
            result["resultType"] = json!("complete");
        }
        let pause = self.soon();
        let street = self.street.clone();
        let ran = || {
            if let Some(call) = run {
                street.ran(call);
            }
        };
        if self.plan.healthy || !chance(&mut self.rng, self.plan.temper) {
            ran();
            if chance(&mut self.rng, 3) {
                self.tell_changes(1);
            }
            return self.answer(pause, id, &result);
        }
        let fault = Fault::pick(&mut self.rng);
        if !matches!(fault, Fault::CrashBefore | Fault::Unreached) {
            ran();
        }
        match fault {
            Fault::Progress => self.tell_progress(id, params, &result),
            Fault::ToolError => {
                if run.is_some() {
                    result["isError"] = json!(true);
                }
                self.answer(pause, id, &result);
            }
            Fault::Huge => {
                result["pad"] = json!("x".repeat(self.rng.usize(20 << 10..80 << 10)));
                self.answer(pause, id, &result);
            }
            fault => {
                self.answer_badly(fault, id, &result);
            }
        }
    }

    fn answer_badly(&mut self, fault: Fault, id: &Value, result: &Value) {
        let pause = self.soon();
        let bytes = line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
        match fault {
            Fault::Slow => {
                let pause = millis(&mut self.rng, 100..900);
                self.answer(pause, id, result);
            }
            Fault::Late => {
                let late = self.plan.timeout + millis(&mut self.rng, 0..3000);
                self.answer(late, id, result);
            }
            Fault::Twice => {
                self.after(pause, Deed::Say(bytes.clone()));
                let again = pause + self.soon();
                self.after(again, Deed::Say(bytes));
            }
            Fault::Stranger => {
                let id = 1_u64 << 50;
                let stranger = line(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
                self.after(pause, Deed::Say([stranger, bytes].concat()));
            }
            Fault::Garbage => self.after(pause, Deed::Say([&b"{\"a\": \n"[..], &bytes].concat())),
            Fault::Malformed => {
                self.after(pause, Deed::Say(line(&json!({ "jsonrpc": "2.0", "id": id }))));
            }
            Fault::NoText => self.after(pause, Deed::Say([&b"\xff\xfe{}\n"[..], &bytes].concat())),
            Fault::Pieces => self.after(pause, Deed::SayInPieces(bytes)),
            Fault::Joined => {
                self.held.push(bytes);
                let pause = millis(&mut self.rng, 50..700);
                self.after(pause, Deed::SayHeld);
            }
            Fault::Deaf => {
                self.after(pause, Deed::Say(bytes));
                self.deaf = true;
            }
            Fault::Storm => {
                let times = self.rng.u64(20..100);
                self.tell_changes(times);
                self.answer(pause, id, result);
            }
            Fault::Asks => {
                let asked = method::SAMPLING_CREATE_MESSAGE;
                let ask = json!({ "jsonrpc": "2.0", "id": "q", "method": asked });
                self.after(pause, Deed::Say(line(&ask)));
                self.answer(pause * 2, id, result);
            }
            fault => self.fail(fault, id, pause),
        }
    }

    /// Does not answer, or with an error.
    fn fail(&mut self, fault: Fault, id: &Value, pause: Duration) {
        let lost = |reason, sent| {
            let ours = id.as_u64().unwrap_or_default();
            Deed::Fail(ours, session::Fault::Lost { reason, sent })
        };
        match fault {
            Fault::Closed => self.after(pause, Deed::CloseOutput),
            Fault::Error => self.refuse(id, code::INTERNAL_ERROR),
            Fault::Unreached if self.wire.is_carried() => {
                let reason = match self.rng.bool() {
                    true => Lost::Unreachable("refused".into()),
                    false => Lost::Busy { status: 503, retry_after: None },
                };
                self.after(pause, lost(reason, false));
            }
            Fault::Unreached => self.refuse(id, code::INVALID_PARAMS),
            Fault::Broken if self.wire.is_carried() => {
                self.after(pause, lost(Lost::Broken("reset".into()), true));
            }
            Fault::CrashBefore | Fault::CrashAfter | Fault::Broken => {
                self.after(pause, Deed::End(3));
            }
            Fault::Flood => {
                let lines = self.rng.usize(900..1200);
                self.after(pause, Deed::Say(b"?\n".repeat(lines)));
            }
            // Silent.
            _ => {}
        }
    }

    fn tell_changes(&mut self, times: u64) {
        let lists = [
            method::TOOLS_LIST_CHANGED,
            method::PROMPTS_LIST_CHANGED,
            method::RESOURCES_LIST_CHANGED,
        ];
        self.grown = !self.grown;
        for time in 0..times {
            let list = lists[self.rng.usize(..lists.len())];
            let told = line(&json!({ "jsonrpc": "2.0", "method": list }));
            self.after(Duration::from_millis(time), Deed::Say(told));
        }
    }

    /// Tells how far it is, each time just before it would be too late.
    fn tell_progress(&mut self, id: &Value, params: &Value, result: &Value) {
        let token = &params["_meta"]["progressToken"];
        let step = self.plan.timeout * 4 / 5;
        let times = self.rng.u32(1..6);
        for time in 1..=times {
            let params = json!({ "progressToken": token, "progress": time });
            let told = json!({ "jsonrpc": "2.0", "method": method::PROGRESS, "params": params });
            self.after(step * time, Deed::Say(line(&told)));
        }
        self.answer(step * (times + 1), id, result);
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
    let resource = |number| json!({ "uri": format!("sim://{server}/{number}"), "name": "r" });
    (0..5).map(resource).collect()
}

fn line(message: &Value) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}
