//! Questions in a Redis that all replicas of a gateway use.

mod record;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Script, ScriptInvocation};
use tokio::sync::Notify;

use super::{
    Changed, KEEP_TIME, LEASE_TIME, MAX_CHANGE_WAIT, MAX_EXPIRY, MAX_FINAL_QUESTIONS,
    MAX_OPEN_PER_PRINCIPAL, MAX_OPEN_QUESTIONS, MAX_PAGE, NewQuestion, PROCESS_ENDED, Question,
    QuestionAdded, QuestionChange, QuestionId, QuestionList, QuestionStore,
};
use crate::pending_questions::{QuestionKind, QuestionState};
use crate::principal::Principal;
use crate::redis_client::{RedisClient, Reply, deliver_notices};
use crate::store_error::{StoreError, StoreFuture};
use crate::tasks::OwnedTask;

/// The start of all keys, which is also the channel of changes.
const PREFIX: &str = "mcp:questions";

/// Maximum time until a waiting reader looks without a notice: a lost notice delays a change by this
/// time.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Keeps questions in Redis. The questions outlive the process.
///
/// Each method is one script in Redis, with the clock of Redis.
pub struct RedisQuestionStore {
    client: Arc<RedisClient>,
    scripts: Scripts,
    changed: Arc<Notify>,
    _notices: OwnedTask,
}

#[derive(Debug)]
struct Scripts {
    add: Script,
    find: Script,
    list: Script,
    count: Script,
    change: Script,
    renew: Script,
}

impl Scripts {
    fn new() -> Self {
        Self {
            add: script(include_str!("redis/scripts/add.lua")),
            find: script(include_str!("redis/scripts/find.lua")),
            list: script(include_str!("redis/scripts/list.lua")),
            count: script(include_str!("redis/scripts/count.lua")),
            change: script(include_str!("redis/scripts/change.lua")),
            renew: script(include_str!("redis/scripts/renew.lua")),
        }
    }
}

fn script(text: &str) -> Script {
    Script::new(&[include_str!("redis/scripts/prelude.lua"), text].concat())
}

fn one_question(reply: &Reply) -> Result<Box<Question>, StoreError> {
    let question = record::parse(reply.items())?.pop();
    question.map(Box::new).ok_or_else(|| reply.unexpected())
}

/// Returns a call with the keys and the arguments that `prelude.lua` expects.
fn call(script: &Script) -> ScriptInvocation<'_> {
    let mut call = script.prepare_invoke();
    for set in ["open", "final", "deadlines", "position"] {
        call.key(format!("{PREFIX}:{set}"));
    }
    call.arg(PREFIX).arg(milliseconds(LEASE_TIME)).arg(milliseconds(KEEP_TIME));
    call.arg(MAX_FINAL_QUESTIONS).arg(PROCESS_ENDED);
    call
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl fmt::Debug for RedisQuestionStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisQuestionStore").field("client", &self.client).finish_non_exhaustive()
    }
}

impl RedisQuestionStore {
    /// Creates a store. Needs a runtime for the notices of Redis.
    ///
    /// # Errors
    ///
    /// Redis does not respond, or rejects the password or a script.
    pub async fn connect(client: Arc<RedisClient>) -> Result<Self, StoreError> {
        let scripts = Scripts::new();
        client.run(&call(&scripts.count)).await?;
        let changed = Arc::new(Notify::new());
        let on_notice = {
            let changed = changed.clone();
            move |_: Option<&str>| changed.notify_waiters()
        };
        let notices = OwnedTask::spawn(deliver_notices(client.clone(), PREFIX, on_notice));
        Ok(Self { client, scripts, changed, _notices: notices })
    }

    async fn add_question(
        &self,
        id: QuestionId,
        question: &NewQuestion,
        expiry: Duration,
    ) -> Result<QuestionAdded, StoreError> {
        let json = serde_json::to_string(question);
        let json = json.map_err(|error| StoreError { reason: error.to_string() })?;
        let has_limit = *question.asker.principal != **Principal::local_user().id();
        let mut call = call(&self.scripts.add);
        call.arg(id.to_string()).arg(json).arg(question.kind.as_str());
        call.arg(QuestionState::Waiting.as_str()).arg(milliseconds(expiry.min(MAX_EXPIRY)));
        call.arg(u8::from(question.kind == QuestionKind::Elicitation));
        call.arg(MAX_OPEN_QUESTIONS);
        call.arg(if has_limit { MAX_OPEN_PER_PRINCIPAL } else { MAX_OPEN_QUESTIONS });
        call.arg(&question.asker.principal);
        let reply = self.client.run(&call).await?;
        match reply.name() {
            "added" => Ok(QuestionAdded::Added),
            "exists" => Ok(QuestionAdded::AlreadyExists),
            "principal_limit" => Ok(QuestionAdded::PrincipalLimit),
            "total_limit" => Ok(QuestionAdded::TotalLimit),
            _ => Err(reply.unexpected()),
        }
    }

    async fn questions(&self, call: ScriptInvocation<'_>) -> Result<Vec<Question>, StoreError> {
        let reply = self.client.run(&call).await?;
        match reply.name() {
            "found" => record::parse(reply.items()),
            _ => Err(reply.unexpected()),
        }
    }

    async fn find_question(&self, id: QuestionId) -> Result<Option<Question>, StoreError> {
        let mut call = call(&self.scripts.find);
        call.arg(id.to_string());
        Ok(self.questions(call).await?.pop())
    }

    async fn change_question(
        &self,
        id: QuestionId,
        change: &QuestionChange,
    ) -> Result<Changed, StoreError> {
        let QuestionChange { step, by, process, reason, response } = change;
        let mut call = call(&self.scripts.change);
        call.arg(id.to_string());
        for text in [by, process, reason] {
            call.arg(text.as_deref().unwrap_or_default());
        }
        call.arg(response.as_deref().map(|response| response.get()).unwrap_or_default());
        for kind in QuestionKind::ALL {
            for state in QuestionState::ALL {
                if let Ok(after) = state.after(kind, *step) {
                    call.arg(kind.as_str()).arg(state.as_str()).arg(after.as_str());
                    call.arg(u8::from(after.is_open()));
                }
            }
        }
        let reply = self.client.run(&call).await?;
        match reply.name() {
            "done" => Ok(Changed::Done(one_question(&reply)?)),
            "refused" => Ok(Changed::Refused(one_question(&reply)?)),
            "unknown" => Ok(Changed::Unknown),
            _ => Err(reply.unexpected()),
        }
    }

    /// Runs the script with the number of open questions and of changes.
    async fn counts(&self) -> Result<(u64, u64), StoreError> {
        let reply = self.client.run(&call(&self.scripts.count)).await?;
        Ok((reply.number(0)?, reply.number(1)?))
    }

    async fn wait_for_change(&self, seen: u64) -> Result<u64, StoreError> {
        let deadline = tokio::time::Instant::now() + MAX_CHANGE_WAIT;
        loop {
            let notice = self.changed.notified();
            tokio::pin!(notice);
            // A notice from now on ends the wait below.
            notice.as_mut().enable();
            let (_, number) = self.counts().await?;
            let now = tokio::time::Instant::now();
            if seen == 0 || number != seen || now >= deadline {
                return Ok(number);
            }
            let wait = POLL_INTERVAL.min(deadline - now);
            let _ = tokio::time::timeout(wait, notice).await;
        }
    }

    async fn renew_question(&self, id: QuestionId) -> Result<bool, StoreError> {
        let mut call = call(&self.scripts.renew);
        call.arg(id.to_string());
        let reply = self.client.run(&call).await?;
        match reply.name() {
            "open" => Ok(true),
            "not_open" => Ok(false),
            _ => Err(reply.unexpected()),
        }
    }
}

impl QuestionStore for RedisQuestionStore {
    fn add<'a>(
        &'a self,
        id: QuestionId,
        question: &'a NewQuestion,
        expiry: Duration,
    ) -> StoreFuture<'a, QuestionAdded> {
        Box::pin(self.add_question(id, question, expiry))
    }

    fn find(&self, id: QuestionId) -> StoreFuture<'_, Option<Question>> {
        Box::pin(self.find_question(id))
    }

    fn list(
        &self,
        list: QuestionList,
        before: Option<u64>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Question>> {
        let mut call = call(&self.scripts.list);
        let before = before.map_or_else(|| "+inf".to_owned(), |before| format!("({before}"));
        call.arg(list.as_str()).arg(before).arg(limit.min(MAX_PAGE));
        Box::pin(self.questions(call))
    }

    fn count_open(&self) -> StoreFuture<'_, usize> {
        Box::pin(async { Ok(usize::try_from(self.counts().await?.0).unwrap_or(usize::MAX)) })
    }

    fn change<'a>(
        &'a self,
        id: QuestionId,
        change: &'a QuestionChange,
    ) -> StoreFuture<'a, Changed> {
        Box::pin(self.change_question(id, change))
    }

    fn renew(&self, id: QuestionId) -> StoreFuture<'_, bool> {
        Box::pin(self.renew_question(id))
    }

    fn changes(&self, seen: u64) -> StoreFuture<'_, u64> {
        Box::pin(self.wait_for_change(seen))
    }
}
