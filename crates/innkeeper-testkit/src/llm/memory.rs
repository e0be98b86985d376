//! What a scripted model remembers of its answers: what has to come back with each call.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::answer::{Answer, Part};

/// Calls remembered; the oldest are forgotten first.
const KEPT: usize = 4096;

/// The calls so far.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<VecDeque<Known>>);

/// A call of an answer.
#[derive(Clone, Debug)]
pub(super) struct Known {
    id: String,
    /// The last thought before it in its answer.
    pub(super) thought: Option<String>,
}

impl Memory {
    pub(super) fn remember(&self, answer: &Answer) {
        let mut thought = None;
        let mut calls = self.lock();
        for part in &answer.parts {
            match part {
                Part::Thought(text) => thought = Some(text.clone()),
                Part::Text(_) => {}
                Part::Call(call) => {
                    if calls.len() == KEPT {
                        calls.pop_front();
                    }
                    calls.push_back(Known { id: call.id.clone(), thought: thought.clone() });
                }
            }
        }
    }

    /// The call with this id, if it was this model's.
    pub(super) fn call(&self, id: &str) -> Option<Known> {
        self.lock().iter().rev().find(|call| call.id == id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
