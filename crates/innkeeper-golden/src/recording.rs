//! What passes between a run and the outside, with its times.
//!
//! A recording has no clock: each method gets the milliseconds since the start of the run.

use std::collections::HashMap;

use serde_json::value::RawValue;

use crate::file::{
    Chunk, ChunkData, Exchange, HttpRequestRecord, HttpResponseRecord, Offer, Outcome,
    ProgressRecord, QuestionRecord, ReplyRecord, StreamEnd, ToolCallRecord, ToolRecord,
    UnavailableRecord,
};
use crate::read::{MAX_FILE_BYTES, ReadError};

/// The headers of responses that a golden has: those that a run reads, and the type of the body.
const RECORDED_HEADERS: [&str; 5] =
    ["content-type", "date", "retry-after", "retry-after-ms", "x-should-retry"];

/// The requests to the model, the tools and the calls of a run, as far as they happened.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    exchanges: Vec<Exchange>,
    tools: Vec<ToolRecord>,
    /// Positions in `tools`, by hash, refusal and name.
    positions: HashMap<(String, String), usize>,
    offers: Vec<Offer>,
    calls: Vec<ToolCallRecord>,
    ended_calls: usize,
    questions: Vec<QuestionRecord>,
    /// The bytes of bodies and results, as far as counted.
    bytes: usize,
}

impl Recording {
    /// Returns the requests with their responses.
    pub fn exchanges(&self) -> &[Exchange] {
        &self.exchanges
    }

    /// Returns the definitions.
    pub fn tools(&self) -> &[ToolRecord] {
        &self.tools
    }

    /// Returns when which tools were offered.
    pub fn offers(&self) -> &[Offer] {
        &self.offers
    }

    /// Returns the calls.
    pub fn calls(&self) -> &[ToolCallRecord] {
        &self.calls
    }

    /// Returns the questions of servers.
    pub fn questions(&self) -> &[QuestionRecord] {
        &self.questions
    }

    /// Returns the position of the only running call of a server's tool, if there is one.
    pub fn open_call(&self, server: &str, tool: &str) -> Option<usize> {
        let mut open = self.calls.iter().enumerate().filter(|(_, call)| {
            let name = call.name.strip_prefix(server).and_then(|name| name.strip_prefix('.'));
            call.end_ms.is_none() && name == Some(tool)
        });
        let (position, _) = open.next()?;
        open.next().is_none().then_some(position)
    }

    /// Returns the number of calls that have ended.
    pub fn ended_calls(&self) -> usize {
        self.ended_calls
    }

    /// Returns an error if a file cannot hold the recording.
    ///
    /// # Errors
    ///
    /// [`ReadError::TooLarge`].
    pub fn check_size(&self) -> Result<(), ReadError> {
        match self.is_too_large() {
            true => Err(ReadError::TooLarge { bytes: self.bytes }),
            false => Ok(()),
        }
    }

    /// A recording that is too large keeps nothing further, and is refused at its end.
    fn is_too_large(&self) -> bool {
        self.bytes > MAX_FILE_BYTES
    }

    /// Records a request; returns its position.
    pub fn on_request(&mut self, iteration: u32, request: HttpRequestRecord) -> usize {
        self.bytes += request.body.as_ref().map_or(0, |body| body.get().len());
        self.exchanges.push(Exchange {
            iteration,
            request,
            response: ReplyRecord::Silent {},
            token_usage: None,
        });
        self.exchanges.len() - 1
    }

    /// Records the head of a response. Of its headers, a golden has those that a run reads.
    pub fn on_response<'h>(
        &mut self,
        exchange: usize,
        now_ms: u64,
        status: u16,
        headers: impl Fn(&str) -> Option<&'h str>,
    ) {
        let headers = RECORDED_HEADERS
            .iter()
            .filter_map(|name| headers(name).map(|value| ((*name).to_owned(), value.to_owned())));
        let headers = headers.collect();
        self.on_reply(exchange, now_ms, |ms| {
            ReplyRecord::Http(HttpResponseRecord {
                status,
                ms,
                headers,
                chunks: Vec::new(),
                end: StreamEnd::Unread {},
            })
        });
    }

    /// Records that a request has no response.
    pub fn on_send_error(&mut self, exchange: usize, now_ms: u64, kind: String, message: String) {
        self.on_reply(exchange, now_ms, |ms| ReplyRecord::Failed { ms, kind, message });
    }

    fn on_reply(&mut self, exchange: usize, now_ms: u64, reply: impl FnOnce(u64) -> ReplyRecord) {
        if let Some(exchange) = self.exchanges.get_mut(exchange) {
            exchange.response = reply(now_ms.saturating_sub(exchange.request.begin_ms));
        }
    }

    /// Records a piece of a body.
    pub fn on_chunk(&mut self, exchange: usize, now_ms: u64, bytes: &[u8]) {
        self.bytes += bytes.len();
        if self.is_too_large() {
            return;
        }
        self.on_body(exchange, now_ms, |response, ms| {
            response.chunks.push(Chunk { ms, data: ChunkData::from_bytes(bytes) });
        });
    }

    /// Records the failure of a body.
    pub fn on_body_error(&mut self, exchange: usize, now_ms: u64, kind: String, message: String) {
        self.on_body(exchange, now_ms, |response, ms| {
            response.end = StreamEnd::Failed { ms, kind, message };
        });
    }

    /// Records the end of a body, unless it failed.
    pub fn on_body_end(&mut self, exchange: usize, now_ms: u64) {
        self.on_body(exchange, now_ms, |response, ms| {
            if matches!(response.end, StreamEnd::Unread {}) {
                response.end = StreamEnd::Complete { ms };
            }
        });
    }

    fn on_body(
        &mut self,
        exchange: usize,
        now_ms: u64,
        change: impl FnOnce(&mut HttpResponseRecord, u64),
    ) {
        let Some(exchange) = self.exchanges.get_mut(exchange) else { return };
        let ms = now_ms.saturating_sub(exchange.request.begin_ms);
        if let ReplyRecord::Http(response) = &mut exchange.response {
            change(response, ms);
        }
    }

    /// Records the offered tools if they differ from those before.
    pub fn on_offer(&mut self, tools: Vec<ToolRecord>, unavailable: Vec<UnavailableRecord>) {
        let tools: Vec<usize> = tools.into_iter().map(|tool| self.on_tool(tool)).collect();
        let requests = self.exchanges.len();
        let calls = self.ended_calls;
        let offer = Offer { requests, calls, tools, unavailable };
        let is_new = self.offers.last().is_none_or(|last| {
            (&last.tools, &last.unavailable) != (&offer.tools, &offer.unavailable)
        });
        if is_new {
            self.offers.push(offer);
        }
    }

    /// Records a definition, once; returns its position.
    pub fn on_tool(&mut self, tool: ToolRecord) -> usize {
        let refusal = tool.refusal.as_deref().unwrap_or_default();
        let key = (format!("{} {refusal}", tool.hash), tool.name.clone());
        if let Some(position) = self.positions.get(&key) {
            return *position;
        }
        self.bytes += tool.definition.get().len();
        self.tools.push(tool);
        self.positions.insert(key, self.tools.len() - 1);
        self.tools.len() - 1
    }

    /// Records the start of a call; returns its position. `served` is the position of what serves the
    /// call, and `params` has the parameters besides the name and the arguments.
    pub fn on_call(
        &mut self,
        now_ms: u64,
        name: &str,
        arguments: &RawValue,
        served: usize,
        params: Option<Box<RawValue>>,
    ) -> usize {
        self.bytes += arguments.get().len();
        self.calls.push(ToolCallRecord {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            round: self.exchanges.len(),
            begin_ms: now_ms,
            end_ms: None,
            ended_before: 0,
            progress: Vec::new(),
            outcome: Outcome::Abandoned {},
            served,
            params,
        });
        self.calls.len() - 1
    }

    /// Records a progress notification.
    pub fn on_progress(&mut self, call: usize, now_ms: u64, params: &RawValue) {
        self.bytes += params.get().len();
        if self.is_too_large() {
            return;
        }
        if let Some(call) = self.calls.get_mut(call) {
            let ms = now_ms.saturating_sub(call.begin_ms);
            call.progress.push(ProgressRecord { ms, params: params.to_owned() });
        }
    }

    /// Records the end of a call.
    pub fn on_call_end(&mut self, call: usize, now_ms: u64, outcome: Outcome) {
        let ended_before = self.ended_calls as u64;
        self.ended_calls += 1;
        self.count(&outcome);
        if let Some(call) = self.calls.get_mut(call) {
            call.end_ms = Some(now_ms);
            call.ended_before = ended_before;
            call.outcome = outcome;
        }
        for question in self.questions.iter_mut().filter(|question| question.call.is_none()) {
            question.call = Some(call);
        }
    }

    /// Records a question of a server; returns its position.
    pub fn on_question(&mut self, question: QuestionRecord) -> usize {
        self.bytes += question.params.get().len();
        self.questions.push(question);
        self.questions.len() - 1
    }

    /// Records the answer to a question.
    pub fn on_answer(&mut self, question: usize, answer: &RawValue) {
        self.bytes += answer.get().len();
        if let Some(question) = self.questions.get_mut(question) {
            question.answer = Some(answer.to_owned());
        }
    }

    /// Counts what came back for a request that the recording does not keep itself.
    pub fn count(&mut self, outcome: &Outcome) {
        if let Outcome::Result(raw) | Outcome::ToolError(raw) | Outcome::Error(raw) = outcome {
            self.bytes += raw.get().len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(recording: &mut Recording, name: &str) -> usize {
        recording.on_call(0, name, RawValue::NULL, 0, None)
    }

    fn ask(recording: &mut Recording, call: Option<usize>) -> usize {
        recording.on_question(QuestionRecord {
            server: "a".to_owned(),
            method: "elicitation/create".to_owned(),
            params: RawValue::NULL.to_owned(),
            answer: None,
            call,
        })
    }

    #[test]
    fn a_question_belongs_to_the_only_running_call_of_its_tool() {
        let mut recording = Recording::default();
        let first = call(&mut recording, "a.ask");
        assert_eq!(recording.open_call("a", "ask"), Some(first));
        assert_eq!(recording.open_call("a", "sk"), None);
        assert_eq!(recording.open_call("b", "ask"), None);
        let second = call(&mut recording, "a.ask");
        assert_eq!(recording.open_call("a", "ask"), None);
        recording.on_call_end(first, 1, Outcome::Abandoned {});
        assert_eq!(recording.open_call("a", "ask"), Some(second));
    }

    #[test]
    fn a_question_of_no_known_call_belongs_to_the_call_that_ends_next() {
        let mut recording = Recording::default();
        let slow = call(&mut recording, "a.slow");
        let fast = call(&mut recording, "a.fast");
        let known = ask(&mut recording, Some(slow));
        let unknown = ask(&mut recording, None);
        recording.on_call_end(fast, 1, Outcome::Abandoned {});
        recording.on_answer(unknown, RawValue::TRUE);
        recording.on_call_end(slow, 2, Outcome::Abandoned {});
        let questions = recording.questions();
        assert_eq!((questions[known].call, questions[unknown].call), (Some(slow), Some(fast)));
        assert_eq!(questions[unknown].answer.as_deref().map(RawValue::get), Some("true"));
    }
}
