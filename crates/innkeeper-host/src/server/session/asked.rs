//! Requests of a server: handed to the application's callback, a few at a time, for a bounded time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use innkeeper_protocol::RequestId;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::Shared;
use crate::audit::Fact;
use crate::callback::{Callbacks, Kind, Refusal, ServerRequest};
use crate::tasks::Tasks;
use crate::text::shown;

/// Requests answered at the same time: what an application's model or user can take from one server.
const AT_ONCE: usize = 4;

/// Requests that wait for their turn; a server that asks for more has lost its way.
const WAITING: usize = 16;

/// Questions to the user that wait behind the open one; further ones are declined.
const QUESTIONS: usize = 4;

/// How much of a method's name is shown.
const SHOWN: usize = 64;

/// The requests of one server that are being answered.
#[derive(Debug)]
pub(super) struct Asked {
    callbacks: Callbacks,
    tasks: Tasks,
    limit: Duration,
    open: AtomicUsize,
    questions: AtomicUsize,
    refused: AtomicU64,
    turn: Semaphore,
    /// A user reads one question at a time.
    user: Semaphore,
}

impl Asked {
    pub(super) fn new(callbacks: Callbacks, tasks: Tasks, limit: Duration) -> Self {
        Self {
            callbacks,
            tasks,
            limit,
            open: AtomicUsize::new(0),
            questions: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            turn: Semaphore::new(AT_ONCE),
            user: Semaphore::new(1),
        }
    }

    pub(super) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Tells of a request that is refused: at first of each, then of each power of two, so that a
    /// flood cannot flood the log.
    fn tell(&self, request: &ServerRequest, why: &str) {
        let count = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
        if count <= 16 || count.is_power_of_two() {
            let what = &shown(&request.method, SHOWN);
            Fact::RequestRefused { what, why, count }.tell(&request.server);
        }
    }

    /// Whether the application is at work on something the server waits for.
    pub(super) fn busy(&self) -> bool {
        self.open.load(Ordering::Relaxed) > 0
    }
}

/// Has the application answer; without anybody who does, or with too many open, the server is
/// refused at once.
pub(super) fn ask(shared: &Arc<Shared>, id: RequestId, method: &str, params: Option<&RawValue>) {
    let asked = &shared.asked;
    let kind = Kind::of(method);
    let request = ServerRequest {
        server: shared.server.clone(),
        method: method.into(),
        params: params.map(ToOwned::to_owned),
    };
    if !asked.callbacks.answers(&request.server, kind) {
        asked.tell(&request, "nobody here answers that");
        return refuse(shared, &id, &Refusal::unknown());
    }
    let question = kind == Kind::Elicitation;
    let open = Open::count(shared.clone(), id, question);
    if question && asked.questions.load(Ordering::Relaxed) > 1 + QUESTIONS {
        asked.tell(&request, "too many questions at once");
        return open.answer(Ok(json!({ "action": "decline" })));
    }
    if asked.open.load(Ordering::Relaxed) > AT_ONCE + WAITING {
        asked.tell(&request, "too many requests at once");
        return open.answer(Err(Refusal::internal("too many requests at once")));
    }
    asked.tasks.spawn(async move {
        let asked = &open.shared.asked;
        let turns = async {
            let _user = if question { asked.user.acquire().await.ok() } else { None };
            let _turn = asked.turn.acquire().await;
            match asked.callbacks.answer(request) {
                Some(answering) => answering.await,
                None => Err(Refusal::unknown()),
            }
        };
        let answer = tokio::select! {
            biased;
            answer = timeout(asked.limit, turns) => answer.unwrap_or_else(|_| {
                Err(Refusal::internal("the application did not answer in time"))
            }),
            // Nobody is left to be answered.
            _ = open.shared.pending.closed() => Err(Refusal::internal("the session is closed")),
        };
        open.answer(answer);
    });
}

fn refuse(shared: &Shared, id: &RequestId, refusal: &Refusal) {
    shared.outlet.refuse(id, refusal.code, &refusal.message);
}

/// One open request. However it ends, a panic of the callback included, the server is answered.
struct Open {
    shared: Arc<Shared>,
    id: Option<RequestId>,
    question: bool,
}

impl Open {
    fn count(shared: Arc<Shared>, id: RequestId, question: bool) -> Self {
        shared.asked.open.fetch_add(1, Ordering::Relaxed);
        shared.asked.questions.fetch_add(usize::from(question), Ordering::Relaxed);
        Self { shared, id: Some(id), question }
    }

    fn answer(mut self, answer: Result<Value, Refusal>) {
        let Some(id) = self.id.take() else { return };
        match answer {
            Ok(result) => self.shared.outlet.answer(&id, &result),
            Err(refusal) => refuse(&self.shared, &id, &refusal),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            refuse(&self.shared, &id, &Refusal::internal("the application failed to answer"));
        }
        // The server waited for us, so what waits for it begins to wait anew.
        self.shared.pending.touch_all();
        self.shared.asked.open.fetch_sub(1, Ordering::Relaxed);
        self.shared.asked.questions.fetch_sub(usize::from(self.question), Ordering::Relaxed);
    }
}
