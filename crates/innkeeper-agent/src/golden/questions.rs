//! The questions of servers in a recorded run, with their answers.
//!
//! A question reaches the run's [`ServerRequestHandler`] during a call, and the result of the call depends
//! on the answer. A replay has the result, so it asks nobody; its recording has the questions of the calls
//! that it made.

use std::sync::Arc;

use innkeeper_golden::{Golden, QuestionRecord};
use innkeeper_host::callback::CallbackResult;
use innkeeper_host::{CallReference, ServerRequest};
use serde_json::value::RawValue;

use super::recorder::GoldenRecorder;
use crate::server_requests::{RequestObserver, ServerRequestHandler};

impl GoldenRecorder {
    /// Returns a handler whose requests and responses are recorded. Register this one with the host.
    #[must_use]
    pub fn record_questions(&self, handler: &ServerRequestHandler) -> ServerRequestHandler {
        handler.with_observer(Arc::new(self.clone()))
    }
}

impl RequestObserver for GoldenRecorder {
    fn on_request(&self, request: &ServerRequest) -> usize {
        let ServerRequest { server, method, params, call, .. } = request;
        self.on_question(|recording| QuestionRecord {
            server: server.to_string(),
            method: method.to_string(),
            params: params.clone().unwrap_or_else(|| RawValue::NULL.to_owned()),
            answer: None,
            call: match call {
                CallReference::Call { item, .. } => recording.open_call(server, item),
                CallReference::Unknown => None,
            },
        })
    }

    fn on_response(&self, number: usize, response: &CallbackResult) {
        if let Ok(answer) = response {
            self.on_answer(number, answer);
        }
    }
}

/// Returns the questions of a golden as its replay has them: those of the calls that the replay made,
/// which are given by their positions in the golden, and those outside of calls.
pub(super) fn replayed_questions(golden: &Golden, made_calls: &[usize]) -> Vec<QuestionRecord> {
    let questions = golden.questions.iter().filter_map(|question| {
        let call = match question.call {
            None => None,
            Some(recorded) => Some(made_calls.iter().position(|made| *made == recorded)?),
        };
        Some(QuestionRecord { call, ..question.clone() })
    });
    questions.collect()
}
