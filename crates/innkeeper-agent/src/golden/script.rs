//! The answers of a golden for the loop: also which tools are offered when.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use innkeeper_golden::{
    Answer, Golden, Miss, ReplyRecord, SentCall, SentRequest, ToolCallRecord, body_json,
};
use innkeeper_protocol::view::ViewError;
use serde_json::value::RawValue;

use super::tool_records::{available_tool, unavailable_tool};
use crate::tools::{AvailableTool, UnavailableTool};
use crate::transport::OutgoingRequest;

/// The answers of a golden. Clones share what was used.
#[derive(Clone)]
pub(super) struct Script(Arc<Mutex<ScriptState>>);

struct ScriptState {
    script: innkeeper_golden::Script,
    offers: Vec<ReplayedOffer>,
    /// The positions of the calls in the golden, in the order in which the replay made them.
    made_calls: Vec<usize>,
    miss: Option<Miss>,
    watcher: Option<Waker>,
}

struct ReplayedOffer {
    requests: usize,
    calls: usize,
    tools: Vec<AvailableTool>,
    unavailable: Vec<UnavailableTool>,
}

impl Script {
    /// Prepares the answers of a golden.
    ///
    /// # Errors
    ///
    /// A definition is not that of a tool.
    pub(super) fn new(golden: &Golden) -> Result<Self, ViewError> {
        let tools: Vec<AvailableTool> =
            golden.tools.iter().map(available_tool).collect::<Result<_, _>>()?;
        let offers = golden.offers.iter().map(|offer| ReplayedOffer {
            requests: offer.requests,
            calls: offer.calls,
            tools: offer.tools.iter().filter_map(|at| tools.get(*at).cloned()).collect(),
            unavailable: offer.unavailable.iter().map(unavailable_tool).collect(),
        });
        Ok(Self(Arc::new(Mutex::new(ScriptState {
            script: innkeeper_golden::Script::new(golden),
            offers: offers.collect(),
            made_calls: Vec::new(),
            miss: None,
            watcher: None,
        }))))
    }

    /// Returns the answer to a request; `None` for a miss.
    pub(super) fn take_reply(&self, request: &OutgoingRequest) -> Option<ReplyRecord> {
        let body = (!request.body.is_empty()).then(|| body_json(&request.body));
        let sent = SentRequest {
            method: request.method.as_str(),
            url: &request.url,
            body: body.as_deref(),
        };
        self.look_up(|script| script.take_reply(sent)).map(|(_, reply)| reply)
    }

    /// Returns the record of a call; `None` for a miss.
    pub(super) fn take_call(&self, name: &str, arguments: &RawValue) -> Option<ToolCallRecord> {
        let sent = SentCall { name, arguments, served: 0, params: None };
        let (position, call) = self.look_up(|script| script.take_call(sent))?;
        self.lock().made_calls.push(position);
        Some(call)
    }

    /// Returns the positions of the calls in the golden, in the order in which the replay made them.
    pub(super) fn made_calls(&self) -> Vec<usize> {
        self.lock().made_calls.clone()
    }

    /// Counts a call that has ended.
    pub(super) fn end_call(&self) {
        self.lock().script.end_call();
    }

    /// Returns the recorded decision about a call; `None` for a miss.
    pub(super) fn take_approval(&self, tool: &str, arguments: &RawValue) -> Option<Answer> {
        self.look_up(|script| script.take_approval(tool, arguments))
    }

    fn look_up<T>(
        &self,
        look_up: impl FnOnce(&mut innkeeper_golden::Script) -> Result<T, Miss>,
    ) -> Option<T> {
        let mut state = self.lock();
        match look_up(&mut state.script) {
            Ok(answer) => Some(answer),
            Err(miss) => {
                state.miss.get_or_insert(miss);
                if let Some(watcher) = state.watcher.take() {
                    watcher.wake();
                }
                None
            }
        }
    }

    /// Returns the tools that were offered at this point of the run.
    pub(super) fn offered_tools(&self) -> Vec<AvailableTool> {
        self.lock().present_offer().map(|offer| offer.tools.clone()).unwrap_or_default()
    }

    /// Returns the tools whose server was not available at this point of the run.
    pub(super) fn unavailable_tools(&self) -> Vec<UnavailableTool> {
        self.lock().present_offer().map(|offer| offer.unavailable.clone()).unwrap_or_default()
    }

    /// Completes when something was asked for that no recording answers.
    pub(super) async fn missed(&self) -> Miss {
        std::future::poll_fn(|context| {
            let mut state = self.lock();
            match state.miss.clone() {
                Some(miss) => Poll::Ready(miss),
                None => {
                    state.watcher = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Returns the recorded answers that nothing asked for.
    pub(super) fn unused(&self) -> Vec<String> {
        self.lock().script.unused()
    }

    fn lock(&self) -> MutexGuard<'_, ScriptState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScriptState {
    fn present_offer(&self) -> Option<&ReplayedOffer> {
        let present = (self.script.requests(), self.script.ended_calls());
        self.offers.iter().rfind(|offer| (offer.requests, offer.calls) <= present)
    }
}
