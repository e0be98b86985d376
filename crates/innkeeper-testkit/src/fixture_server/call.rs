//! Tool calls of the fixture server: accept, delay, run, respond.

use std::time::Duration;

use serde_json::{Value, json};

use super::call_log::CallLog;
use super::malformed;
use super::message::{self, Request, Response};
use super::process;
use super::server::{FixtureServer, TimedAction};
use super::stdout;

/// Exit code of `--crash-after`.
pub(super) const CRASH_CODE: u8 = 3;

/// Time during which `--out-of-order` collects calls.
const REORDER_WINDOW: Duration = Duration::from_millis(20);

/// An id that no client has issued.
pub(super) const UNKNOWN_ID: u64 = 9_007_199_254_740_991;

/// Counters of calls, and the calls of `--out-of-order`.
#[derive(Debug, Default)]
pub(super) struct CallState {
    pub(super) resource_reads: usize,
    pub(super) log: CallLog,
    /// The texts that the tool `note` keeps.
    pub(super) notes: Vec<String>,
    received_count: usize,
    held_calls: Vec<Request>,
}

impl CallState {
    /// Removes a cancelled call.
    pub(super) fn cancel(&mut self, id: &Value) {
        self.held_calls.retain(|request| request.id != *id);
    }
}

impl FixtureServer {
    /// Accepts a tool call; faults that end the process or the connection come first.
    pub(super) fn accept_call(&mut self, request: &Request) -> Response {
        if self.is_tally_call(request) {
            return self.run_tally(request);
        }
        self.open.calls.received_count += 1;
        let switches = &self.switches;
        let crash_at = match switches.count("--crash-after") {
            0 if switches.is_set("--crash-signal") => 1,
            count => count,
        };
        if crash_at > 0 && self.open.calls.received_count >= crash_at {
            self.crash();
            return Response::Deferred;
        }
        if switches.is_set("--exit-while-grandchild") {
            self.request_exit(0);
            return Response::Deferred;
        }
        if switches.is_set("--close-stdout") {
            if let Err(error) = stdout::close_stdout() {
                self.journal.record_event("error", &json!(error.to_string()));
            }
            return Response::Deferred;
        }
        if switches.is_set("--stop-self") {
            process::signal_self(rustix::process::Signal::STOP);
        }
        if switches.is_set("--hang-calls") || switches.is_set("--stop-reading") {
            return Response::Deferred;
        }
        let nap = match request.param("name") {
            "sleep" => request.params.pointer("/arguments/ms").and_then(Value::as_u64),
            _ => None,
        };
        let delay = switches.millis("--slow") + Duration::from_millis(nap.unwrap_or(0));
        self.timers.schedule(delay, TimedAction::Run(request.clone()));
        Response::Deferred
    }

    /// Runs a call after its delay.
    pub(super) fn run_call(&mut self, request: Request) {
        if self.request_client_input(&request) {
            return;
        }
        let batch = self.switches.count("--out-of-order");
        if batch > 0 {
            self.open.calls.held_calls.push(request);
            match self.open.calls.held_calls.len() {
                count if count >= batch => self.release_held(),
                1 => self.timers.schedule(REORDER_WINDOW, TimedAction::Release),
                _ => {}
            }
            return;
        }
        self.send_progress(request);
    }

    /// Responds to the collected calls in reverse order.
    pub(super) fn release_held(&mut self) {
        while let Some(request) = self.open.calls.held_calls.pop() {
            self.send_progress(request);
        }
    }

    /// Sends the progress notifications, then schedules the response.
    pub(super) fn send_progress(&mut self, request: Request) {
        let step_count = self.switches.count("--progress");
        let (Some(token), 1..) = (request.meta("progressToken").cloned(), step_count) else {
            return self.finish_call(&request);
        };
        let step_delay = self.switches.millis("--progress-delay");
        for step in 1..=step_count {
            let text = self.progress(&request, &token, step);
            let delay = step_delay * u32::try_from(step).unwrap_or(u32::MAX);
            self.timers.schedule(delay, TimedAction::Notify(request.id.clone(), text));
        }
        let delay = step_delay * u32::try_from(step_count).unwrap_or(u32::MAX);
        self.timers.schedule(delay, TimedAction::Finish(request));
    }

    /// Sends the progress notifications of a call that requests input: before the request, and after
    /// the response.
    pub(super) fn send_progress_at_once(&mut self, request: &Request) {
        let Some(token) = request.meta("progressToken") else { return };
        for step in 1..=self.switches.count("--progress") {
            let text = self.progress(request, token, step);
            self.stdout.write_line(text.as_bytes());
        }
    }

    fn progress(&self, request: &Request, token: &Value, step: usize) -> String {
        let params = if self.switches.is_set("--bad-progress") {
            json!({"progressToken": UNKNOWN_ID, "progress": "half", "total": -1})
        } else {
            let total = self.switches.count("--progress");
            let mut params = json!({"progressToken": token, "progress": step, "total": total});
            if let Some(message) = self.switches.value("--progress-message") {
                let argument = request.params.pointer("/arguments/message");
                let argument = argument.and_then(Value::as_str).unwrap_or_default();
                params["message"] = json!(message.replace("{}", argument));
            }
            params
        };
        message::notification("notifications/progress", &params)
    }

    /// Runs the tool and responds to the call.
    pub(super) fn finish_call(&mut self, request: &Request) {
        let level = self.switches.value("--log-level").unwrap_or("info");
        for number in 0..self.switches.count("--log-flood") {
            let params = json!({"level": level, "logger": "flood", "data": number});
            self.stdout
                .write_line(message::notification("notifications/message", &params).as_bytes());
        }
        process::allocate(self.switches.count("--alloc"));
        if self.switches.is_set("--task") {
            return self.create_task(request);
        }
        let response = match self.canned_response() {
            Some(response) => response,
            None => self.run_tool(request),
        };
        self.respond_to_call(request, response);
    }

    /// Sends the response to a call with the faults of the switches.
    pub(super) fn respond_to_call(&mut self, request: &Request, response: Response) {
        let response = self.with_era_metadata(request, response);
        if self.switches.is_set("--cancel-ours") {
            let params = json!({"requestId": request.id, "reason": "not the server's to cancel"});
            self.stdout
                .write_line(message::notification("notifications/cancelled", &params).as_bytes());
        }
        if self.switches.is_set("--unknown-id")
            && let Some(text) = response.to_message(&json!(UNKNOWN_ID))
        {
            self.stdout.write_response(text.as_bytes());
        }
        let mut line = vec![b'x'; self.switches.count("--endless-line")];
        if !line.is_empty() {
            line.push(b'\n');
            self.stdout.write_raw(&line);
        }
        if let Some(kind) = self.switches.value("--malformed") {
            let bytes = malformed::malformed_reply(kind, &request.id, &response);
            return self.stdout.write_raw(&bytes);
        }
        let Some(text) = response.to_message(&request.id) else { return };
        if self.switches.is_set("--stall") {
            let (head, tail) = text.as_bytes().split_at(text.len() / 2);
            self.stdout.write_raw(head);
            let tail = [tail, b"\n"].concat();
            return self.timers.schedule(self.switches.millis("--stall"), TimedAction::Raw(tail));
        }
        let copies = if self.switches.is_set("--dup-reply") { 2 } else { 1 };
        for _ in 0..copies {
            self.stdout.write_response(text.as_bytes());
        }
    }

    /// The response that a switch sets for every tool.
    fn canned_response(&self) -> Option<Response> {
        if let Some(code) = self.switches.number("--server-error") {
            return Some(Response::Error {
                code,
                message: self.switches.error_text("failed as asked").to_owned(),
                data: Some(json!({"detail": "from the fixture"})),
            });
        }
        if self.switches.is_set("--odd-result") {
            return Some(Response::Text(malformed::UNEXPECTED_RESULT.to_owned()));
        }
        if let Some(result) = self.switches.value("--call-result-text") {
            return Some(Response::Text(result.to_owned()));
        }
        if let Some(result) = self.switches.json("--call-result") {
            return Some(Response::Result(result));
        }
        let bytes = self.switches.count("--huge");
        (bytes > 0).then(|| Response::Result(super::tool::text_result(&"x".repeat(bytes))))
    }
}
