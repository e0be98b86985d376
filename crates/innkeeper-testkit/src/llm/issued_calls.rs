//! The calls that a scripted model has issued, for the validation of conversations.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::response::{ContentPart, ModelResponse};

/// Maximum number of stored calls; the oldest calls are removed first.
const MAX_CALLS: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct IssuedCalls(Mutex<VecDeque<IssuedCall>>);

/// A call in a response of the model.
#[derive(Clone, Debug)]
pub(super) struct IssuedCall {
    id: String,
    /// The last reasoning before the call in its response.
    pub(super) reasoning: Option<String>,
}

impl IssuedCalls {
    pub(super) fn record(&self, response: &ModelResponse) {
        let mut reasoning = None;
        let mut calls = self.lock();
        for part in &response.content_parts {
            match part {
                ContentPart::Reasoning(text) => reasoning = Some(text.clone()),
                ContentPart::Text(_) => {}
                ContentPart::ToolCall(call) => {
                    if calls.len() == MAX_CALLS {
                        calls.pop_front();
                    }
                    calls.push_back(IssuedCall {
                        id: call.id.clone(),
                        reasoning: reasoning.clone(),
                    });
                }
            }
        }
    }

    /// Returns the call with this id, if this model issued it.
    pub(super) fn find(&self, id: &str) -> Option<IssuedCall> {
        self.lock().iter().rev().find(|call| call.id == id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<IssuedCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
