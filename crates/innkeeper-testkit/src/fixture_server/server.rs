//! The loop of the fixture server: input and timers in, responses out.

use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use serde_json::{Value, json};

use super::call::CallState;
use super::catalog::Catalog;
use super::handshake::ClientState;
use super::input::InputEvent;
use super::journal_writer::JournalWriter;
use super::message::{Request, Response, error_code, meta_key};
use super::pending_requests::PendingRequests;
use super::process;
use super::stdout::StdoutWriter;
use super::subscriptions::Subscriptions;
use super::switches::Switches;
use super::task::TaskStore;
use super::timer::TimerQueue;

/// Maximum wait for input without a timer; the loop then waits again.
const IDLE_WAIT: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub(super) enum TimedAction {
    /// Handle a request.
    Handle(Request),
    /// Run a tool call.
    Run(Request),
    /// Respond to a tool call after its progress notifications.
    Finish(Request),
    /// Send a notification for a request.
    Notify(Value, String),
    /// Send bytes of an earlier line.
    Raw(Vec<u8>),
    /// Respond to the collected calls in reverse order.
    Release,
    /// Exit with a code.
    Exit(u8),
}

impl TimedAction {
    /// The id of the request that the action belongs to.
    fn request_id(&self) -> Option<&Value> {
        match self {
            Self::Handle(request) | Self::Run(request) | Self::Finish(request) => Some(&request.id),
            Self::Notify(id, _) => Some(id),
            Self::Raw(_) | Self::Release | Self::Exit(_) => None,
        }
    }
}

/// The state of a running fixture server.
#[derive(Debug)]
pub(super) struct FixtureServer {
    pub(super) switches: Switches,
    pub(super) journal: JournalWriter,
    pub(super) stdout: StdoutWriter,
    pub(super) timers: TimerQueue<TimedAction>,
    pub(super) catalog: Catalog,
    pub(super) client: ClientState,
    pub(super) open: OpenRequests,
    exit_code: Option<u8>,
}

/// The requests of both sides that are not finished, and the calls of the client so far.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    pub(super) subscriptions: Subscriptions,
    pub(super) calls: CallState,
    pub(super) pending: PendingRequests,
    pub(super) tasks: TaskStore,
}

impl OpenRequests {
    fn cancel(&mut self, id: &Value) {
        self.calls.cancel(id);
        self.pending.cancel(id);
        self.subscriptions.cancel(id);
    }
}

impl FixtureServer {
    pub(super) fn new(switches: Switches, journal: JournalWriter, catalog: Catalog) -> Self {
        Self {
            stdout: StdoutWriter::new(&switches),
            timers: TimerQueue::new(),
            client: ClientState::default(),
            open: OpenRequests::default(),
            exit_code: None,
            switches,
            journal,
            catalog,
        }
    }

    /// Serves until the end of the input or until a switch ends the process.
    pub(super) fn serve(mut self, input: &Receiver<InputEvent>) -> ExitCode {
        loop {
            while let Some(action) = self.timers.pop() {
                self.run_action(action);
                if let Some(code) = self.exit_code {
                    return self.finish(code);
                }
            }
            match input.recv_timeout(self.timers.time_until_next().unwrap_or(IDLE_WAIT)) {
                Ok(InputEvent::Line(line)) => {
                    self.journal.record_received(&line);
                    self.handle_line(&line);
                }
                Ok(InputEvent::End) => self.on_end_of_input(),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
            if let Some(code) = self.exit_code {
                return self.finish(code);
            }
        }
    }

    /// Exits with this code after the current step.
    pub(super) fn request_exit(&mut self, code: u8) {
        self.exit_code = Some(code);
    }

    fn finish(&self, code: u8) -> ExitCode {
        self.journal.record_event("exit", &json!({"code": code}));
        ExitCode::from(code)
    }

    fn on_end_of_input(&mut self) {
        self.journal.record_event("stdin_eof", &Value::Null);
        if self.switches.is_set("--ignore-eof") {
            return;
        }
        match self.switches.millis("--exit-delay") {
            Duration::ZERO => self.request_exit(0),
            delay => self.timers.schedule(delay, TimedAction::Exit(0)),
        }
    }

    fn run_action(&mut self, action: TimedAction) {
        match action {
            TimedAction::Handle(request) => {
                let response = self.dispatch(&request);
                self.respond(&request, response);
            }
            TimedAction::Run(request) => self.run_call(request),
            TimedAction::Finish(request) => self.finish_call(&request),
            TimedAction::Notify(_, text) => self.stdout.write_line(text.as_bytes()),
            TimedAction::Raw(bytes) => self.stdout.write_raw(&bytes),
            TimedAction::Release => self.release_held(),
            TimedAction::Exit(code) => self.request_exit(code),
        }
    }

    fn handle_line(&mut self, line: &[u8]) {
        if self.switches.is_set("--verbatim") && self.echo_verbatim(line) {
            return;
        }
        let Ok(mut message) = serde_json::from_slice::<Value>(line) else { return };
        let id = message.get("id").cloned();
        let Some(method) = message.get("method").and_then(Value::as_str).map(str::to_owned) else {
            return self.on_response(&message);
        };
        let params = message.get_mut("params").map_or(Value::Null, Value::take);
        match id {
            Some(id) => self.receive_request(Request { id, method, params }),
            None => self.on_notification(&method, &params),
        }
    }

    fn receive_request(&mut self, request: Request) {
        let (silent, delay) = self.reply_delay(&request.method);
        if request.method == "server/discover" {
            self.client.discover_seen = true;
            if self.switches.is_set("--exit-on-discover") {
                return self.request_exit(super::handshake::DISCOVER_EXIT_CODE);
            }
        }
        if silent {
            return;
        }
        if delay.is_zero() {
            let response = self.dispatch(&request);
            self.respond(&request, response);
        } else {
            self.timers.schedule(delay, TimedAction::Handle(request));
        }
    }

    /// Whether the server never responds to a method, and the delay otherwise.
    fn reply_delay(&self, method: &str) -> (bool, Duration) {
        let switches = &self.switches;
        match method {
            "server/discover" => {
                (switches.is_set("--silent-discover"), switches.millis("--discover-delay"))
            }
            "initialize" => (switches.is_set("--hang-init"), switches.millis("--init-delay")),
            "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
                let hangs = switches.is_set("--hang-lists") && self.has_list_fault(method);
                (hangs, switches.millis("--list-delay"))
            }
            _ => (false, Duration::ZERO),
        }
    }

    fn dispatch(&mut self, request: &Request) -> Response {
        if let Some(rejection) = self.reject_wrong_era(request) {
            return rejection;
        }
        match request.method.as_str() {
            "server/discover" => self.discover(),
            "initialize" => self.initialize(request),
            "ping" | "logging/setLevel" => Response::Result(json!({})),
            "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list" => {
                self.list(request)
            }
            "completion/complete" if self.switches.is_set("--completions") => {
                self.complete_argument(request)
            }
            "tools/call" => self.accept_call(request),
            "prompts/get" => self.get_prompt(request),
            "resources/read" => self.read_resource(request),
            "resources/subscribe" => self.open.subscriptions.subscribe(request.param("uri")),
            "resources/unsubscribe" => self.open.subscriptions.unsubscribe(request.param("uri")),
            "subscriptions/listen" => self.listen(request),
            "tasks/get" | "tasks/result" | "tasks/update" | "tasks/cancel"
                if self.switches.is_set("--task") =>
            {
                self.handle_task_request(request)
            }
            other => {
                Response::error(error_code::METHOD_NOT_FOUND, format!("unknown method `{other}`"))
            }
        }
    }

    /// Sends the response to any request except a tool call, in the form of the request's era.
    pub(super) fn respond(&mut self, request: &Request, response: Response) {
        let response = self.with_era_metadata(request, response);
        if let Some(text) = response.to_message(&request.id) {
            self.stdout.write_response(text.as_bytes());
        }
        self.after_response(&request.method);
    }

    /// Adds the members that protocol version 2026-07-28 requires in every result.
    pub(super) fn with_era_metadata(&self, request: &Request, response: Response) -> Response {
        let Response::Result(mut result) = response else { return response };
        let modern = request.is_modern() || request.method == "server/discover";
        if modern && let Some(members) = result.as_object_mut() {
            members.entry("resultType").or_insert_with(|| json!("complete"));
            if request.method.ends_with("/list")
                || matches!(request.method.as_str(), "server/discover" | "resources/read")
            {
                let list = request.method.ends_with("/list");
                let ttl = self.switches.number("--list-ttl").filter(|_| list).unwrap_or_default();
                members.entry("ttlMs").or_insert_with(|| json!(ttl));
                let scope = self.switches.value("--list-scope").filter(|_| list);
                members.entry("cacheScope").or_insert_with(|| json!(scope.unwrap_or("private")));
            }
            let info = self.server_info();
            let meta_object = members.entry("_meta").or_insert_with(|| json!({}));
            meta_object[meta_key::SERVER_INFO] = info;
        }
        Response::Result(result)
    }

    fn on_notification(&mut self, method: &str, params: &Value) {
        match method {
            "notifications/initialized" => self.on_initialized(),
            "notifications/cancelled" if !self.switches.is_set("--ignore-cancel") => {
                let Some(id) = params.get("requestId") else { return };
                self.timers.retain(|action| action.request_id() != Some(id));
                self.open.cancel(id);
            }
            _ => {}
        }
    }

    /// Kills this process by SIGKILL, as in a crash.
    pub(super) fn crash(&mut self) {
        if self.switches.is_set("--crash-signal") {
            self.journal.record_event("exit", &json!({"signal": "SIGKILL"}));
            process::signal_self(rustix::process::Signal::KILL);
        }
        self.request_exit(super::call::CRASH_CODE);
    }
}
