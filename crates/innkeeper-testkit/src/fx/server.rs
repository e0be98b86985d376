//! The fixture server's loop: input and due timers in, answers out, one at a time.

use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use serde_json::{Value, json};

use super::ask::Asks;
use super::call::Calls;
use super::catalog::Catalog;
use super::handshake::Session;
use super::input::Input;
use super::journal::Recorder;
use super::listen::Listeners;
use super::message::{Answer, Request, code, meta};
use super::process;
use super::switch::Switches;
use super::tally::Tally;
use super::task::Tasks;
use super::timer::Timers;
use super::wire::Wire;

/// How long to wait for input when no timer is set; the wait simply starts again.
const IDLE: Duration = Duration::from_secs(3600);

/// Something put off.
#[derive(Debug)]
pub(super) enum Action {
    /// Handle a request whose delay is over.
    Handle(Request),
    /// Run a tool call whose delay is over.
    Run(Request),
    /// Answer a tool call that has sent its progress.
    Finish(Request),
    /// Send a notification on behalf of a request.
    Notify(Value, String),
    /// Send bytes that belong to an earlier line.
    Raw(Vec<u8>),
    /// Answer the calls held back, last first.
    Release,
    /// End the process.
    Exit(u8),
}

impl Action {
    /// The id of the request this is done for.
    fn request_id(&self) -> Option<&Value> {
        match self {
            Self::Handle(request) | Self::Run(request) | Self::Finish(request) => Some(&request.id),
            Self::Notify(id, _) => Some(id),
            Self::Raw(_) | Self::Release | Self::Exit(_) => None,
        }
    }
}

/// The whole state of a running fixture server.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) switches: Switches,
    pub(super) recorder: Recorder,
    pub(super) wire: Wire,
    pub(super) timers: Timers<Action>,
    pub(super) catalog: Catalog,
    pub(super) session: Session,
    pub(super) listeners: Listeners,
    pub(super) calls: Calls,
    pub(super) asks: Asks,
    pub(super) tasks: Tasks,
    pub(super) tally: Tally,
    end: Option<u8>,
}

impl Server {
    pub(super) fn new(switches: Switches, recorder: Recorder, catalog: Catalog) -> Self {
        Self {
            wire: Wire::new(&switches),
            timers: Timers::new(),
            session: Session::default(),
            listeners: Listeners::default(),
            calls: Calls::default(),
            asks: Asks::default(),
            tasks: Tasks::default(),
            tally: Tally::default(),
            end: None,
            switches,
            recorder,
            catalog,
        }
    }

    /// Serves until end of input or until a switch ends it.
    pub(super) fn serve(mut self, input: &Receiver<Input>) -> ExitCode {
        loop {
            while let Some(action) = self.timers.pop() {
                self.act(action);
                if let Some(code) = self.end {
                    return self.ended(code);
                }
            }
            match input.recv_timeout(self.timers.wait().unwrap_or(IDLE)) {
                Ok(Input::Line(line)) => {
                    self.recorder.received(&line);
                    self.line(&line);
                }
                Ok(Input::End) => self.end_of_input(),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if let Some(code) = self.end {
                return self.ended(code);
            }
        }
    }

    /// Ends the process with this code once the current step is done.
    pub(super) fn end(&mut self, code: u8) {
        self.end = Some(code);
    }

    fn ended(&self, code: u8) -> ExitCode {
        self.recorder.event("exit", &json!({"code": code}));
        ExitCode::from(code)
    }

    fn end_of_input(&mut self) {
        self.recorder.event("stdin_eof", &Value::Null);
        if self.switches.on("--ignore-eof") {
            return;
        }
        match self.switches.millis("--exit-delay") {
            Duration::ZERO => self.end(0),
            delay => self.timers.after(delay, Action::Exit(0)),
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Handle(request) => {
                let answer = self.handle(&request);
                self.respond(&request, answer);
            }
            Action::Run(request) => self.run_call(request),
            Action::Finish(request) => self.finish_call(&request),
            Action::Notify(_, text) => self.wire.line(text.as_bytes()),
            Action::Raw(bytes) => self.wire.raw(&bytes),
            Action::Release => self.release_held(),
            Action::Exit(code) => self.end(code),
        }
    }

    fn line(&mut self, line: &[u8]) {
        let Ok(mut message) = serde_json::from_slice::<Value>(line) else { return };
        let id = message.get("id").cloned();
        let Some(method) = message.get("method").and_then(Value::as_str).map(str::to_owned) else {
            return self.answered(&message);
        };
        let params = message.get_mut("params").map_or(Value::Null, Value::take);
        match id {
            Some(id) => self.request(Request { id, method, params }),
            None => self.notified(&method, &params),
        }
    }

    fn request(&mut self, request: Request) {
        let (silent, delay) = self.reluctance(&request.method);
        if request.method == "server/discover" {
            self.session.discover_seen = true;
            if self.switches.on("--exit-on-discover") {
                return self.end(super::handshake::FRIGHTENED);
            }
        }
        if silent {
            return;
        }
        if delay.is_zero() {
            let answer = self.handle(&request);
            self.respond(&request, answer);
        } else {
            self.timers.after(delay, Action::Handle(request));
        }
    }

    /// Whether a method is never answered, and how late otherwise.
    fn reluctance(&self, method: &str) -> (bool, Duration) {
        let switches = &self.switches;
        match method {
            "server/discover" => {
                (switches.on("--silent-discover"), switches.millis("--discover-delay"))
            }
            "initialize" => (switches.on("--hang-init"), switches.millis("--init-delay")),
            "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
                (switches.on("--hang-lists"), switches.millis("--list-delay"))
            }
            _ => (false, Duration::ZERO),
        }
    }

    fn handle(&mut self, request: &Request) -> Answer {
        if let Some(refusal) = self.refuse_era(request) {
            return refusal;
        }
        match request.method.as_str() {
            "server/discover" => self.discover(),
            "initialize" => self.initialize(request),
            "ping" | "logging/setLevel" => Answer::Result(json!({})),
            "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
                self.list(request)
            }
            "tools/call" => self.accept_call(request),
            "prompts/get" => self.get_prompt(request),
            "resources/read" => self.read_resource(request),
            "resources/subscribe" => self.listeners.subscribe(request.param("uri")),
            "resources/unsubscribe" => self.listeners.unsubscribe(request.param("uri")),
            "subscriptions/listen" => self.listen(request),
            "tasks/get" | "tasks/result" | "tasks/update" | "tasks/cancel"
                if self.switches.on("--task") =>
            {
                self.task_request(request)
            }
            other => Answer::error(code::METHOD_NOT_FOUND, format!("unknown method `{other}`")),
        }
    }

    /// Sends the answer of anything but a tool call, in the form the request's era asks for.
    pub(super) fn respond(&mut self, request: &Request, answer: Answer) {
        let answer = self.in_era(request, answer);
        if let Some(text) = answer.response(&request.id) {
            self.wire.response(text.as_bytes());
        }
        self.after_answer(&request.method);
    }

    /// Adds what the 2026-07-28 revision wants in every result.
    pub(super) fn in_era(&self, request: &Request, answer: Answer) -> Answer {
        let Answer::Result(mut result) = answer else { return answer };
        let modern = request.is_modern() || request.method == "server/discover";
        if modern && let Some(members) = result.as_object_mut() {
            members.entry("resultType").or_insert_with(|| json!("complete"));
            if request.method.ends_with("/list")
                || matches!(request.method.as_str(), "server/discover" | "resources/read")
            {
                let list = request.method.ends_with("/list");
                let ttl = self.switches.number("--list-ttl").filter(|_| list).unwrap_or_default();
                members.entry("ttlMs").or_insert_with(|| json!(ttl));
                members.entry("cacheScope").or_insert_with(|| json!("private"));
            }
            let info = self.server_info();
            let meta_object = members.entry("_meta").or_insert_with(|| json!({}));
            meta_object[meta::SERVER_INFO] = info;
        }
        Answer::Result(result)
    }

    fn notified(&mut self, method: &str, params: &Value) {
        match method {
            "notifications/initialized" => self.initialized(),
            "notifications/cancelled" if !self.switches.on("--ignore-cancel") => {
                let Some(id) = params.get("requestId") else { return };
                self.timers.retain(|action| action.request_id() != Some(id));
                self.calls.forget(id);
                self.asks.forget(id);
                self.listeners.forget(id);
            }
            _ => {}
        }
    }

    /// Kills this process the way a crash would.
    pub(super) fn crash(&mut self) {
        if self.switches.on("--crash-signal") {
            self.recorder.event("exit", &json!({"signal": "SIGKILL"}));
            process::signal_self(rustix::process::Signal::KILL);
        }
        self.end(super::call::CRASH_CODE);
    }
}
