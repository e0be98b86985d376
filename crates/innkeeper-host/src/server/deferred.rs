//! Calls whose server answers with a task: asked after until the task has its result.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use innkeeper_protocol::envelope::code;
use innkeeper_protocol::view::{TASK_ID_LIMIT, Task, TaskStatus};
use innkeeper_protocol::{Era, ErrorObject, method, skim};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout_at};

use super::connection::{Ask, Connection, LONGEST, Permit};
use super::meta::Meta;
use super::rounds::{ROUNDS, gather};
use super::session::{Answer, Extend, Fault, Held, Outgoing};
use crate::error::{Lost, ProtocolFault};
use crate::retry::{Again, Attempts, Plan};
use crate::text::display_safe;

/// The pause before the next question where the server names none: short for a person who waits.
const PAUSE: Duration = Duration::from_secs(1);

/// The shortest pause, whatever the server says: it is asked, not flooded.
const PAUSE_LEAST: Duration = Duration::from_millis(100);

/// The longest pause, whatever the server says: a result does not lie about for longer.
const PAUSE_MOST: Duration = Duration::from_mins(1);

/// How long a server may take to hear that nobody waits for a task any more.
const CANCEL: Duration = Duration::from_secs(10);

/// How much of what a server says about a task is shown.
const SHOWN: usize = 200;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TaskParams<'a> {
    task_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_responses: Option<Arc<RawValue>>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
}

/// Waits for the result of the task that a call began, until `ends` at the latest. The server may
/// take the call's time for every single answer. However it ends before the task does, dropped
/// included, the server is told once to stop.
pub(super) async fn finish<F>(
    connection: &Connection,
    ask: &Ask<'_, F>,
    begun: &RawValue,
    permit: Option<Permit<'_>>,
    ends: Instant,
) -> Result<Box<RawValue>, Fault> {
    let task = read(begun);
    let id = task.as_ref().map_or_else(|_| begun_id(begun), |task| Some(task.id.clone()));
    let deferred = Deferred {
        connection,
        item: ask.item,
        // What cannot be read any further is stopped all the same.
        open: AtomicBool::new(id.is_some()),
        id: id.unwrap_or_default(),
        began: Instant::now(),
        idle: ask.timeout.min(LONGEST),
        ends,
        retries: ask.retries.unwrap_or(connection.retry.max),
        runtime: Handle::current(),
    };
    let task = task?;
    let work = async {
        match connection.revision.era() {
            Era::Modern => deferred.modern(task, permit).await,
            Era::Legacy => deferred.legacy(task).await,
        }
    };
    let result = tokio::select! {
        biased;
        () = connection.session.leaving() => {
            Err(Fault::Lost { reason: Lost::Shutdown, sent: true })
        }
        result = work => result,
    };
    result.map_err(|fault| match fault {
        // Of the call: it has run, whatever became of the question after it.
        Fault::Lost { reason, .. } => Fault::Lost { reason, sent: true },
        other => other,
    })
}

fn read(raw: &RawValue) -> Result<Task, Fault> {
    Task::read(raw).map_err(|error| Fault::Protocol(ProtocolFault::Shape(error)))
}

/// By what a task is asked for, whatever else its server says of it.
fn begun_id(begun: &RawValue) -> Option<String> {
    let id = |object: &str| serde_json::from_str(skim::member(object, "taskId")?).ok();
    let id: Option<String> = id(begun.get()).or_else(|| id(skim::member(begun.get(), "task")?));
    id.filter(|id| id.len() <= TASK_ID_LIMIT)
}

fn works(task: &Task) -> bool {
    matches!(task.status, TaskStatus::Working | TaskStatus::Other(_))
}

/// One task that somebody waits for.
struct Deferred<'a> {
    connection: &'a Connection,
    /// The tool.
    item: &'a str,
    id: String,
    began: Instant,
    /// How long each answer may take.
    idle: Duration,
    /// When it is over in any case.
    ends: Instant,
    /// How often a question may be sent again when it is lost.
    retries: u32,
    /// Whether there may be something left to stop.
    open: AtomicBool,
    runtime: Handle,
}

impl Deferred<'_> {
    /// 2026-07-28: questions and the result stand in the answers to `tasks/get`.
    async fn modern(
        &self,
        mut task: Task,
        mut permit: Option<Permit<'_>>,
    ) -> Result<Box<RawValue>, Fault> {
        let (mut answered, mut rounds) = (HashSet::new(), 0);
        if works(&task) {
            self.pause(&task).await?;
        }
        loop {
            task = self.poll(&task).await?;
            if task.status.is_final() {
                return ended(task);
            }
            let mut questions = std::mem::take(&mut task.requests);
            questions.retain(|question| !answered.contains(&question.key));
            if task.status == TaskStatus::InputRequired && !questions.is_empty() {
                rounds += 1;
                if rounds > ROUNDS {
                    return Err(Fault::Protocol(ProtocolFault::EndlessRounds { limit: ROUNDS }));
                }
                // Whoever answers may call this server.
                drop(permit.take());
                let answers = gather(self.connection, &questions, self.ends).await?;
                permit = self.connection.permit(self.ends).await;
                if permit.is_none() {
                    return Err(Fault::Late);
                }
                let params = TaskParams { input_responses: answers, ..self.params() };
                self.request(method::TASKS_UPDATE, &params, self.deadline()).await?;
                answered.extend(questions.into_iter().map(|question| question.key));
            }
            self.pause(&task).await?;
        }
    }

    /// 2025-11-25: the result is asked for by itself, and questions come as requests while it is.
    async fn legacy(&self, mut task: Task) -> Result<Box<RawValue>, Fault> {
        while works(&task) {
            self.pause(&task).await?;
            task = self.poll(&task).await?;
        }
        match task.status {
            TaskStatus::InputRequired => {}
            TaskStatus::Cancelled => return ended(task),
            _ => return self.result(&task, self.deadline()).await,
        }
        let last = task.clone();
        let result = self.result(&last, self.ends);
        // A server that waits for an answer, or works on with it, still says that it is there.
        let watch = async {
            while !task.status.is_final() {
                self.pause(&task).await?;
                task = self.poll(&task).await?;
            }
            Ok::<(), Fault>(())
        };
        tokio::pin!(result);
        let forgotten = tokio::select! {
            biased;
            result = &mut result => return result,
            watched = watch => match watched {
                Ok(()) => None,
                // Some forget a task as soon as its result is on the way.
                Err(
                    fault @ (Fault::Answer(_) | Fault::Protocol(ProtocolFault::TaskExpired { .. })),
                ) => Some(fault),
                Err(fault) => return Err(fault),
            },
        };
        match timeout_at(self.deadline(), result).await {
            Ok(result) => result,
            Err(_) => Err(forgotten.unwrap_or(Fault::Late)),
        }
    }

    /// Waits until the server wants to be asked again, or says that there is something to learn.
    async fn pause(&self, task: &Task) -> Result<(), Fault> {
        let said = task.poll_interval_ms.map_or(PAUSE, Duration::from_millis);
        let more = said.clamp(PAUSE_LEAST, PAUSE_MOST) - PAUSE_LEAST;
        let session = &self.connection.session;
        let wait = async {
            let told = session.task_told();
            tokio::pin!(told);
            told.as_mut().enable();
            sleep(PAUSE_LEAST).await;
            tokio::select! {
                () = told => {}
                () = sleep(more) => {}
            }
        };
        tokio::select! {
            reason = session.closed() => Err(Fault::Lost { reason, sent: true }),
            waited = timeout_at(self.ends, wait) => waited.map_err(|_| Fault::Late),
        }
    }

    /// Asks how far the task is.
    async fn poll(&self, last: &Task) -> Result<Task, Fault> {
        let answer = self.request(method::TASKS_GET, &self.params(), self.deadline()).await;
        let task = read(&answer.map(Held::take).map_err(|fault| self.unknown(fault, last))?)?;
        if task.status.is_final() {
            self.open.store(false, Ordering::Relaxed);
        }
        Ok(task)
    }

    /// Asks for the result; the server answers once there is one.
    async fn result(&self, last: &Task, deadline: Instant) -> Result<Box<RawValue>, Fault> {
        let answer = self.request(method::TASKS_RESULT, &self.params(), deadline).await;
        if matches!(answer, Ok(_) | Err(Fault::Answer(_))) {
            self.open.store(false, Ordering::Relaxed);
        }
        answer.map(Held::take).map_err(|fault| self.unknown(fault, last))
    }

    /// What a refusal means of a task that may have been forgotten by now.
    fn unknown(&self, fault: Fault, last: &Task) -> Fault {
        match &fault {
            Fault::Answer(error) if error.code == code::INVALID_PARAMS => {}
            _ => return fault,
        }
        self.open.store(false, Ordering::Relaxed);
        match last.ttl_ms.map(Duration::from_millis) {
            Some(after) if self.began.elapsed() >= after => {
                Fault::Protocol(ProtocolFault::TaskExpired { after })
            }
            _ => fault,
        }
    }

    /// Sends a request about the task; all of them may run twice.
    async fn request(
        &self,
        method: &'static str,
        params: &TaskParams<'_>,
        deadline: Instant,
    ) -> Answer {
        let Self { connection, idle, ends, .. } = *self;
        let (policy, most) = (connection.retry, self.retries);
        let mut attempts = Attempts::new(Plan { policy, most, harmless: true, deadline });
        let session = &connection.session;
        loop {
            let outgoing = Outgoing {
                name: Some(&self.id),
                extend: Some(Extend { idle, ends }),
                ..Outgoing::new(session.next_id(), method, params, deadline)
            };
            let answer = Some(session.request(outgoing).await);
            let tell = |again: Again<'_>| connection.tell_again(method, self.item, &again);
            let answer = attempts.after(answer, session.closed(), tell).await;
            if let Some(answer) = answer.break_value() {
                if matches!(answer, Ok(_) | Err(Fault::Answer(_) | Fault::Protocol(_))) {
                    connection.silence.broken();
                }
                return answer;
            }
        }
    }

    fn params(&self) -> TaskParams<'_> {
        let meta = self.connection.identity.meta(None);
        TaskParams { task_id: &self.id, input_responses: None, meta }
    }

    /// When the server is too late with an answer to what it is asked now.
    fn deadline(&self) -> Instant {
        (Instant::now() + self.idle).min(self.ends)
    }
}

/// What a task that ended came to.
fn ended(task: Task) -> Result<Box<RawValue>, Fault> {
    let error = task.error.as_deref().and_then(ErrorObject::read);
    let status = match (task.status, task.result, error) {
        (TaskStatus::Completed, Some(result), _) => return Ok(result),
        (TaskStatus::Failed, _, Some(error)) => return Err(Fault::Answer(error)),
        (TaskStatus::Completed, ..) => "completed",
        (TaskStatus::Cancelled, ..) => "cancelled",
        _ => "failed",
    };
    let said: String = task.status_message.unwrap_or_default().chars().take(SHOWN).collect();
    let message = display_safe(&said).into();
    Err(Fault::Protocol(ProtocolFault::NoTaskResult { status, message }))
}

impl Drop for Deferred<'_> {
    fn drop(&mut self) {
        let Connection { revision, tasks, session, .. } = self.connection;
        let stops = revision.era() == Era::Modern || tasks.cancel;
        if !stops || !self.open.load(Ordering::Relaxed) {
            return;
        }
        // Text and numbers can always be written.
        let params = to_raw_value(&self.params()).unwrap_or_default();
        // The caller may be dropped where there is no runtime.
        let _inside = self.runtime.enter();
        session.tell(method::TASKS_CANCEL, self.id.clone(), params, CANCEL);
    }
}

#[cfg(test)]
pub(super) mod tests;
