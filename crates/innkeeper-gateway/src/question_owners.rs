//! Whose question it is: the calls in flight at a server that does not say which call it asks for.
//!
//! Calls run side by side and never wait for each other. When the server asks, every call in flight
//! is a suspect; a call that starts later is not. The question reaches a client once all remaining
//! suspects are of that client, because a call whose response is there does not wait for an answer.
//! If that takes too long, or the questions of several clients wait for each other, the question is
//! refused: no client ever sees a question that may be about another client's call in flight.
//!
//! A server can also ask late, for a call that has its response. While calls of another principal
//! have ended lately, a question is therefore held for [`LATE_QUESTION_TIME`]: a call that ends
//! meanwhile did not ask it. A call that goes on cannot be told from one that waits for the answer.
//!
//! A call that its client has abandoned stays a suspect until the server responds to it: the host
//! holds [`CallInFlight`] for as long. So does a task, until it ends.

mod question;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use innkeeper_host::{CallHold, CallOptions, Callback, CallbackFuture, ServerRequest};
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::client::Client;
use crate::principal::Principal;
use question::OpenQuestion;

/// Maximum time for which a question waits until it can only be of one client: longer than most
/// calls, and shorter than the default timeout of many clients for a call.
const MAX_UNDECIDED_TIME: Duration = Duration::from_mins(1);

/// Time for which a question is held that may belong to a call with a response: most calls end
/// within it, and a person does not mind to wait as long for a form.
const LATE_QUESTION_TIME: Duration = Duration::from_secs(5);

/// Time after the end of a call in which the server may still send messages about it.
const ENDED_CALL_TIME: Duration = Duration::from_mins(5);

/// The client of a call. All requests of a principal without a connection or session are of one
/// client.
#[derive(Clone, Debug)]
pub(crate) struct CallClient {
    principal: Principal,
    /// Weak: an abandoned call outlives its session.
    client: Option<Weak<Client>>,
}

impl CallClient {
    pub(crate) fn new(principal: Principal, client: Option<&Arc<Client>>) -> Self {
        Self { principal, client: client.map(Arc::downgrade) }
    }
}

impl PartialEq for CallClient {
    fn eq(&self, other: &Self) -> bool {
        let same_client = match (&self.client, &other.client) {
            (Some(client), Some(other)) => Weak::ptr_eq(client, other),
            (None, None) => true,
            (Some(_), None) | (None, Some(_)) => false,
        };
        same_client && self.principal == other.principal
    }
}

/// How the client of a call is asked.
#[derive(Clone, Debug)]
struct AskedClient {
    /// `None` for a client that answers nothing.
    callback: Option<Arc<dyn Callback>>,
    capabilities: Option<Arc<RawValue>>,
}

#[derive(Debug)]
struct SuspectCall {
    client: CallClient,
    /// `None` for a call that its client has abandoned, and for a request about a task.
    asked: Option<AskedClient>,
}

/// The clients of the calls that may have asked a question.
#[derive(Debug, PartialEq)]
enum Suspects {
    None,
    OneClient(CallClient),
    SeveralClients,
}

#[derive(Debug, Default)]
struct State {
    /// The last number of a call or question: the suspects of a question are the calls with smaller
    /// numbers.
    last_number: u64,
    calls: BTreeMap<u64, SuspectCall>,
    undecided: BTreeSet<u64>,
    /// Until when the server may process abandoned calls that the host no longer remembers.
    forgotten: HashMap<Principal, Instant>,
    /// The last end of a call, and before it that of another principal's call.
    last_ends: [Option<(Principal, Instant)>; 2],
}

impl State {
    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    fn suspects(&self, question: u64) -> Suspects {
        let mut clients = self.calls.range(..question).map(|(_, call)| &call.client);
        let Some(first) = clients.next() else { return Suspects::None };
        let now = Instant::now();
        let has_forgotten = self
            .forgotten
            .iter()
            .any(|(principal, until)| *principal != first.principal && *until > now);
        match has_forgotten || clients.any(|client| client != first) {
            true => Suspects::SeveralClients,
            false => Suspects::OneClient(first.clone()),
        }
    }

    /// Returns the newest of the questions that wait for each other: as many questions as calls that
    /// may have asked them.
    fn dead_end(&self) -> Option<u64> {
        let waiting = self
            .undecided
            .iter()
            .filter(|question| self.suspects(**question) == Suspects::SeveralClients);
        let mut numbered = (1..).zip(waiting.copied());
        let found = numbered.find(|(count, question)| {
            *count >= self.calls.range(..question).count() + self.forgotten.len()
        });
        found.map(|(_, question)| question)
    }

    /// Returns the latest call of a client that may have asked a question and that can be asked,
    /// preferably one whose client answers.
    fn latest_asked(&self, question: u64, client: &CallClient) -> Option<(u64, AskedClient)> {
        let calls = self.calls.range(..question).rev().filter(|(_, call)| call.client == *client);
        let mut asked = calls.filter_map(|(number, call)| Some((*number, call.asked.as_ref()?)));
        let first = asked.clone().next()?;
        let answering = asked.find(|(_, client)| client.callback.is_some());
        answering.or(Some(first)).map(|(number, client)| (number, client.clone()))
    }

    fn record_end(&mut self, principal: Principal) {
        let end = Some((principal, Instant::now()));
        let [last, _] = &mut self.last_ends;
        let is_same = last.as_ref().map(|last| &last.0) == end.as_ref().map(|end| &end.0);
        let replaced = std::mem::replace(last, end);
        if !is_same {
            self.last_ends[1] = replaced;
        }
    }

    /// Returns whether a call of another principal ended after [`ENDED_CALL_TIME`] before a time.
    fn other_ended(&self, principal: &Principal, time: Instant) -> bool {
        let mut ends = self.last_ends.iter().flatten();
        ends.any(|(ended, at)| ended != principal && *at + ENDED_CALL_TIME > time)
    }
}

/// The calls in flight at one server, and its open questions.
#[derive(Debug, Default)]
pub(crate) struct QuestionOwners {
    state: Mutex<State>,
    /// Wakes the open questions after the end of a call or question.
    changed: Notify,
    refused_count: AtomicU64,
}

impl QuestionOwners {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call with these options, immediately before it runs. The client is asked through the
    /// callback of the options if `is_asked`.
    pub(crate) fn start(
        self: &Arc<Self>,
        client: CallClient,
        is_asked: bool,
        options: &mut CallOptions,
    ) -> RunningCall {
        let asked = is_asked.then(|| AskedClient {
            callback: options.callback.clone(),
            capabilities: options.client.capabilities.clone(),
        });
        let mut state = self.state();
        let number = state.next_number();
        state.calls.insert(number, SuspectCall { client: client.clone(), asked });
        drop(state);
        let in_flight = Arc::new(CallInFlight { owners: self.clone(), number });
        options.client.hold = Some(in_flight.clone());
        RunningCall { in_flight, client, started: Instant::now() }
    }

    /// Returns whether a call is in flight whose client can be asked.
    pub(crate) fn has_calls(&self) -> bool {
        self.state().calls.values().any(|call| call.asked.is_some())
    }

    /// Passes a question of the server to the client whose call it belongs to. The suspects are the
    /// calls in flight now, before the future is polled.
    pub(crate) fn ask(self: &Arc<Self>, request: ServerRequest) -> CallbackFuture {
        let question = OpenQuestion::new(self.clone());
        Box::pin(question.answer(request))
    }

    /// Waits until `check` returns a value.
    async fn until<T>(&self, check: impl Fn(&State) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            let value = check(&self.state());
            if let Some(value) = value {
                return value;
            }
            changed.await;
        }
    }
}

/// A call that the server may process: in the gateway, or abandoned by its client.
#[derive(Debug)]
pub(crate) struct CallInFlight {
    owners: Arc<QuestionOwners>,
    number: u64,
}

impl CallHold for CallInFlight {
    fn forget(&self, open_for: Duration) {
        let mut state = self.owners.state();
        let Some(call) = state.calls.get(&self.number) else { return };
        let principal = call.client.principal.clone();
        let now = Instant::now();
        state.forgotten.retain(|_, until| *until > now);
        state.forgotten.insert(principal, now + open_for);
    }
}

impl Drop for CallInFlight {
    fn drop(&mut self) {
        let mut state = self.owners.state();
        if let Some(call) = state.calls.remove(&self.number) {
            state.record_end(call.client.principal);
        }
        drop(state);
        self.owners.changed.notify_waiters();
    }
}

/// A call whose client waits for the result.
#[derive(Debug)]
pub(crate) struct RunningCall {
    in_flight: Arc<CallInFlight>,
    client: CallClient,
    started: Instant,
}

impl RunningCall {
    /// Returns whether a log message that the server sent during the call is certainly not about a
    /// call of another client.
    pub(crate) fn owns_log_messages(&self) -> bool {
        let state = self.in_flight.owners.state();
        let is_only_client =
            matches!(state.suspects(u64::MAX), Suspects::OneClient(only) if only == self.client);
        // The time of the start, because the notifications of a parked call wait for its client.
        is_only_client && !state.other_ended(&self.client.principal, self.started)
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let CallInFlight { owners, number } = &*self.in_flight;
        if let Some(call) = owners.state().calls.get_mut(number) {
            call.asked = None;
        }
        owners.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
