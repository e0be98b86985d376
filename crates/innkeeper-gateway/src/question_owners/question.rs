//! One question of a server, from its arrival to its answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use innkeeper_host::{CallbackError, CallbackResult, ServerRequest};
use innkeeper_protocol::envelope::code;
use tokio::time::{Instant, sleep, timeout};

use super::{
    AskedClient, CallClient, LATE_QUESTION_TIME, MAX_UNDECIDED_TIME, QuestionOwners, Suspects,
};

/// Why no client gets a question.
#[derive(Clone, Copy, Debug)]
enum Refusal {
    NoCall,
    SeveralClients,
    DeadEnd,
    CallEnded,
}

impl Refusal {
    fn reason(self) -> &'static str {
        match self {
            Self::NoCall => "no call in flight can have asked it",
            Self::SeveralClients => "calls of several clients are in flight",
            Self::DeadEnd => "several clients were asked at the same time",
            Self::CallEnded => "the calls that can have asked it have ended or were abandoned",
        }
    }
}

/// A question of a server that has no answer yet.
#[derive(Debug)]
pub(super) struct OpenQuestion {
    owners: Arc<QuestionOwners>,
    number: u64,
    arrived: Instant,
}

impl OpenQuestion {
    pub(super) fn new(owners: Arc<QuestionOwners>) -> Self {
        let mut state = owners.state();
        let number = state.next_number();
        state.undecided.insert(number);
        drop(state);
        Self { owners, number, arrived: Instant::now() }
    }

    /// Returns the answer of the client that the question belongs to. Dropping the future withdraws
    /// the question from the client.
    pub(super) async fn answer(self, request: ServerRequest) -> CallbackResult {
        let client = timeout(MAX_UNDECIDED_TIME, self.owner()).await;
        let answered = match client.unwrap_or(Err(Refusal::SeveralClients)) {
            Ok(client) => self.ask(&client, &request).await,
            Err(refusal) => Err(refusal),
        };
        answered.unwrap_or_else(|refusal| Err(self.refuse(&request, refusal)))
    }

    /// Waits until all suspects are of one client.
    async fn owner(&self) -> Result<CallClient, Refusal> {
        let owner = self.owners.until(|state| match state.suspects(self.number) {
            Suspects::None => Some(Err(Refusal::NoCall)),
            Suspects::OneClient(client) => Some(Ok(client)),
            Suspects::SeveralClients => {
                (state.dead_end() == Some(self.number)).then_some(Err(Refusal::DeadEnd))
            }
        });
        let owner = owner.await;
        self.decide();
        owner
    }

    /// The question waits for no other call any more.
    fn decide(&self) {
        if self.owners.state().undecided.remove(&self.number) {
            self.owners.changed.notify_waiters();
        }
    }

    async fn ask(
        &self,
        client: &CallClient,
        request: &ServerRequest,
    ) -> Result<CallbackResult, Refusal> {
        let latest = self.owners.state().latest_asked(self.number, client);
        let (_, AskedClient { callback, capabilities }) = latest.ok_or(Refusal::CallEnded)?;
        let rejection = capabilities.and_then(|capabilities| request.rejection(&capabilities));
        if let Some(rejection) = rejection.or_else(|| callback.is_none().then(not_answered)) {
            return Ok(Err(rejection));
        }
        let calls_ended = self.owners.until(|state| {
            state.latest_asked(self.number, client).is_none().then_some(Err(Refusal::CallEnded))
        });
        let asking = async {
            if self.owners.state().other_ended(&client.principal, self.arrived) {
                sleep(LATE_QUESTION_TIME).await;
            }
            loop {
                let latest = self.owners.state().latest_asked(self.number, client);
                let (call, asked) = latest.ok_or(Refusal::CallEnded)?;
                let Some(callback) = asked.callback else { return Ok(Err(not_answered())) };
                let answer = callback.respond(request.clone()).await;
                // An earlier call of the client may have asked, and still waits.
                if answer.is_err()
                    && self.owners.state().calls.get(&call).is_none_or(|call| call.asked.is_none())
                {
                    continue;
                }
                return Ok(answer);
            }
        };
        tokio::select! {
            biased;
            answer = asking => answer,
            ended = calls_ended => ended,
        }
    }

    fn refuse(&self, request: &ServerRequest, refusal: Refusal) -> CallbackError {
        let server = &*request.server;
        let reason = refusal.reason();
        let count = self.owners.refused_count.fetch_add(1, Ordering::Relaxed) + 1;
        // The first ones, and then fewer and fewer, so that a server cannot flood the log.
        if count <= 16 || count.is_power_of_two() {
            let method = &*request.method;
            tracing::warn!(server, method, reason, count, "request of a server refused");
        }
        let message = format!(
            "the gateway cannot tell whose question of server `{server}` this is: {reason}. Set \
             `\"share\": \"principal\"` (or `session`) for the server, so that each client has a \
             process of its own"
        );
        CallbackError::new(code::INTERNAL_ERROR, message)
    }
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.decide();
    }
}

fn not_answered() -> CallbackError {
    let message = "the client of the call answers no requests of servers";
    CallbackError::new(code::METHOD_NOT_FOUND, message)
}
