//! The life of one tool call in the fixture server: counted, delayed, asked about, answered.

use std::time::Duration;

use serde_json::{Value, json};

use super::malformed;
use super::message::{self, Answer, Request};
use super::process;
use super::server::{Action, Server};
use super::wire;

/// Exit code of `--crash-after`.
pub(super) const CRASH_CODE: u8 = 3;

/// How long `--out-of-order` collects calls before it answers those it has.
const COLLECT: Duration = Duration::from_millis(20);

/// An id no client has issued.
pub(super) const UNKNOWN_ID: u64 = 9_007_199_254_740_991;

/// Counts, and calls held back.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Resources read so far.
    pub(super) reads: usize,
    received: usize,
    held: Vec<Request>,
}

impl Calls {
    /// Drops a call the client no longer wants.
    pub(super) fn forget(&mut self, id: &Value) {
        self.held.retain(|request| request.id != *id);
    }
}

impl Server {
    /// Takes a tool call in: the faults that end the process or the conversation come first.
    pub(super) fn accept_call(&mut self, request: &Request) -> Answer {
        if self.is_tally(request) {
            return self.run_tally(request);
        }
        self.calls.received += 1;
        let switches = &self.switches;
        let crash_at = match switches.count("--crash-after") {
            0 if switches.on("--crash-signal") => 1,
            count => count,
        };
        if crash_at > 0 && self.calls.received >= crash_at {
            self.crash();
            return Answer::Later;
        }
        if switches.on("--exit-while-grandchild") {
            self.end(0);
            return Answer::Later;
        }
        if switches.on("--close-stdout") {
            if let Err(error) = wire::close_stdout() {
                self.recorder.event("error", &json!(error.to_string()));
            }
            return Answer::Later;
        }
        if switches.on("--stop-self") {
            process::signal_self(rustix::process::Signal::STOP);
        }
        if switches.on("--hang-calls") || switches.on("--stop-reading") {
            return Answer::Later;
        }
        let nap = match request.param("name") {
            "sleep" => request.params.pointer("/arguments/ms").and_then(Value::as_u64),
            _ => None,
        };
        let delay = switches.millis("--slow") + Duration::from_millis(nap.unwrap_or(0));
        self.timers.after(delay, Action::Run(request.clone()));
        Answer::Later
    }

    /// Runs a call whose delay is over.
    pub(super) fn run_call(&mut self, request: Request) {
        if self.ask_first(&request) {
            return;
        }
        let batch = self.switches.count("--out-of-order");
        if batch > 0 {
            self.calls.held.push(request);
            match self.calls.held.len() {
                held if held >= batch => self.release_held(),
                1 => self.timers.after(COLLECT, Action::Release),
                _ => {}
            }
            return;
        }
        self.send_progress(request);
    }

    /// Answers the calls held back, last first.
    pub(super) fn release_held(&mut self) {
        while let Some(request) = self.calls.held.pop() {
            self.send_progress(request);
        }
    }

    /// Sends the progress asked for, then lets the call finish.
    pub(super) fn send_progress(&mut self, request: Request) {
        let steps = self.switches.count("--progress");
        let (Some(token), 1..) = (request.meta("progressToken").cloned(), steps) else {
            return self.finish_call(&request);
        };
        let pause = self.switches.millis("--progress-delay");
        for step in 1..=steps {
            let params = if self.switches.on("--bad-progress") {
                json!({"progressToken": UNKNOWN_ID, "progress": "half", "total": -1})
            } else {
                json!({"progressToken": token, "progress": step, "total": steps})
            };
            let text = message::notification("notifications/progress", &params);
            let delay = pause * u32::try_from(step).unwrap_or(u32::MAX);
            self.timers.after(delay, Action::Notify(request.id.clone(), text));
        }
        let delay = pause * u32::try_from(steps).unwrap_or(u32::MAX);
        self.timers.after(delay, Action::Finish(request));
    }

    /// Runs the tool and answers the call.
    pub(super) fn finish_call(&mut self, request: &Request) {
        for number in 0..self.switches.count("--log-flood") {
            let params = json!({"level": "info", "logger": "flood", "data": number});
            self.wire.line(message::notification("notifications/message", &params).as_bytes());
        }
        process::allocate(self.switches.count("--alloc"));
        if self.switches.on("--task") {
            return self.begin_task(request);
        }
        let answer = match self.canned() {
            Some(answer) => answer,
            None => self.run_tool(request),
        };
        self.answer_call(request, answer);
    }

    /// Sends a call's answer with the faults asked for.
    pub(super) fn answer_call(&mut self, request: &Request, answer: Answer) {
        let answer = self.in_era(request, answer);
        if self.switches.on("--cancel-ours") {
            let params = json!({"requestId": request.id, "reason": "not the server's to cancel"});
            self.wire.line(message::notification("notifications/cancelled", &params).as_bytes());
        }
        if self.switches.on("--unknown-id")
            && let Some(text) = answer.response(&json!(UNKNOWN_ID))
        {
            self.wire.response(text.as_bytes());
        }
        let mut endless = vec![b'x'; self.switches.count("--endless-line")];
        if !endless.is_empty() {
            endless.push(b'\n');
            self.wire.raw(&endless);
        }
        if let Some(kind) = self.switches.text("--malformed") {
            let bytes = malformed::reply(kind, &request.id, &answer);
            return self.wire.raw(&bytes);
        }
        let Some(text) = answer.response(&request.id) else { return };
        if self.switches.on("--stall") {
            let (head, tail) = text.as_bytes().split_at(text.len() / 2);
            self.wire.raw(head);
            let tail = [tail, b"\n"].concat();
            return self.timers.after(self.switches.millis("--stall"), Action::Raw(tail));
        }
        let copies = if self.switches.on("--dup-reply") { 2 } else { 1 };
        for _ in 0..copies {
            self.wire.response(text.as_bytes());
        }
    }

    /// The answer a switch gives whatever the tool is.
    fn canned(&self) -> Option<Answer> {
        if let Some(code) = self.switches.number("--server-error") {
            return Some(Answer::Error {
                code,
                message: "failed as asked".to_owned(),
                data: Some(json!({"detail": "from the fixture"})),
            });
        }
        if self.switches.on("--odd-result") {
            return Some(Answer::Text(malformed::ODD_RESULT.to_owned()));
        }
        let bytes = self.switches.count("--huge");
        (bytes > 0).then(|| Answer::Result(super::tool::text(&"x".repeat(bytes))))
    }
}
