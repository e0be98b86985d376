//! A model that says what it was given to say, for tests of applications. It is no model, and its
//! name says so.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use super::{Capabilities, Class, Finish, LlmError, LlmProvider, Request, Response};
use crate::conversation::{Answer, Part, Said, ToolCall};

/// How many requests are kept to be looked at; the oldest go first.
const KEPT: usize = 1_000;

/// See the [module](self). Each request is answered with the next reply; when there is none left, with
/// an error that says so.
#[derive(Debug)]
pub struct Scripted {
    name: String,
    model: String,
    capabilities: Capabilities,
    said: Mutex<Spoken>,
}

#[derive(Debug, Default)]
struct Spoken {
    left: VecDeque<Result<Response, LlmError>>,
    asked: VecDeque<Request>,
}

impl Scripted {
    /// A script of these replies. It takes tools in a form of its own.
    pub fn new(replies: impl IntoIterator<Item = Result<Response, LlmError>>) -> Self {
        let left = replies.into_iter().collect();
        Self {
            name: "scripted".to_owned(),
            model: "scripted".to_owned(),
            capabilities: Capabilities {
                native_tools: true,
                temperature: true,
                stop_sequences: true,
                ..Capabilities::default()
            },
            said: Mutex::new(Spoken { left, asked: VecDeque::new() }),
        }
    }

    /// The same under the name of a model, by which prompts are chosen.
    #[must_use]
    pub fn as_model(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self
    }

    /// The same, taking this.
    #[must_use]
    pub fn taking(mut self, capabilities: Capabilities) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// What it was asked so far, oldest first; the last 1,000.
    pub fn asked(&self) -> Vec<Request> {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.asked.iter().cloned().collect()
    }
}

impl Response {
    /// An answer that calls tools: each by its public name with the text of its arguments.
    pub fn calls<'c>(calls: impl IntoIterator<Item = (&'c str, &'c str)>) -> Self {
        let parts = calls.into_iter().map(|(name, arguments)| {
            Part::new(Said::Call(ToolCall {
                id: String::new(),
                name: name.to_owned(),
                arguments: arguments.to_owned(),
            }))
        });
        let answer = Answer { parts: parts.collect() };
        let finish = if answer.parts.is_empty() { Finish::Stop } else { Finish::ToolCalls };
        Self { answer, finish, ..Self::default() }
    }
}

#[async_trait]
impl LlmProvider for Scripted {
    async fn generate(&self, request: Request) -> Result<Response, LlmError> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.asked.len() == KEPT {
            said.asked.pop_front();
        }
        said.asked.push_back(request);
        said.left.pop_front().unwrap_or_else(|| {
            Err(LlmError::new(&self.name, Class::Request, "the script has no reply left"))
        })
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn supports_tools(&self) -> bool {
        self.capabilities.native_tools
    }

    fn model(&self) -> &str {
        &self.model
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }
}
