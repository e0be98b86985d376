//! A ready server as calls see it: the session, what every request carries, permits, and the record.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::view::TasksCapability;
use innkeeper_protocol::{Era, Revision, ViewError, skim};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::sync::{Semaphore, SemaphorePermit, mpsc};
use tokio::time::Instant;

use super::age::Ages;
use super::deferred;
use super::meta::Identity;
use super::rounds::{Further, Rounds, Turn};
use super::session::{Answer, Extend, Fault, Held, Outgoing, Progress, Session};
use super::silence::Silence;
use super::wishes::Wishes;
use crate::audit::Fact;
use crate::cache::{Cache, Reply};
use crate::callback::Callbacks;
use crate::config::Retry;
use crate::error::words::OwnWords;
use crate::error::{CallError, CallKind, ProtocolFault};
use crate::event::{CallOutcome, CallRecord, Event, Events};
use crate::guard::{Finding, Memory, Of, Told};
use crate::measure::Meter;
use crate::retry::{Again, Attempts, Plan};
use crate::telemetry::{Call, Carried, Reporter};

/// The longest a request may be allowed: a longer time cannot be counted on every system.
pub(crate) const LONGEST: Duration = Duration::from_secs(365 * 24 * 3600);

/// One server that takes requests.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) server: Arc<str>,
    pub(crate) session: Session,
    pub(crate) revision: Revision,
    /// What the server can do with tasks that are part of its revision.
    pub(crate) tasks: TasksCapability,
    /// What every request of the modern era carries.
    pub(crate) identity: Identity,
    pub(crate) permits: Semaphore,
    /// How long one call may take, whatever the server reports.
    pub(crate) most: Duration,
    pub(crate) retry: Retry,
    pub(crate) cache: Arc<Cache>,
    pub(crate) callbacks: Callbacks,
    pub(crate) wishes: Wishes,
    pub(crate) ages: Ages,
    pub(crate) meter: Arc<Meter>,
    pub(crate) silence: Silence,
    pub(crate) events: Events,
    /// What all servers' credentials are known again by.
    pub(crate) memory: Arc<Memory>,
    /// Tells an application's spans and metrics; `None` costs nothing.
    pub(crate) reporter: Option<Reporter>,
}

/// How long a request may take.
#[derive(Clone, Copy, Debug)]
struct Time {
    /// When a server that shows nothing of itself is too late.
    silence: Instant,
    /// When it is over in any case.
    ends: Instant,
}

impl Time {
    fn from(start: Instant, silence: Duration, most: Duration) -> Self {
        let silence = silence.min(LONGEST);
        Self { silence: start + silence, ends: start + most.min(LONGEST).max(silence) }
    }
}

/// Why a result is not given to the application.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// There is none, or it cannot be used.
    Fault(Fault),
    /// The guard keeps it back.
    Suspicious(Vec<Finding>),
}

impl From<ViewError> for Unfit {
    fn from(error: ViewError) -> Self {
        Self::Fault(Fault::Protocol(ProtocolFault::Shape(error)))
    }
}

/// One request to a server, however often it has to be sent.
pub(crate) struct Ask<'a, F> {
    pub(crate) method: &'static str,
    /// The tool, prompt or URI, for messages and records.
    pub(crate) item: &'a str,
    /// Makes the parameters of one attempt: its id, never used twice, is the progress token, and
    /// further rounds carry what the server wanted to know.
    pub(crate) params: F,
    /// Arguments that have to be shown in headers.
    pub(crate) headers: &'a [(String, String)],
    pub(crate) timeout: Duration,
    pub(crate) progress: Option<&'a mpsc::Sender<Progress>>,
    /// How often it may be sent again. Default: what is configured.
    pub(crate) retries: Option<u32>,
    /// Whether it may run twice.
    pub(crate) harmless: bool,
    /// Whether a server of the legacy era was asked to make a task of it.
    pub(crate) as_task: bool,
}

impl Connection {
    /// Sends a request on behalf of the application, checks its result with `judge`, and records
    /// it once, however it ends: answer, error, deadline, or a caller that goes away.
    pub(crate) async fn ask<P: Serialize>(
        &self,
        ask: Ask<'_, impl Fn(u64, Further) -> P>,
        judge: impl FnOnce(&RawValue) -> Result<CallOutcome, Unfit>,
    ) -> Result<Reply, CallError> {
        self.ask_wary(ask, judge, |_| None).await
    }

    /// The same where what a server says in place of a result may be kept back, too: `suspect` has the
    /// findings for which it is. It is asked before anything is recorded, so that no log has the words.
    pub(crate) async fn ask_wary<P: Serialize>(
        &self,
        ask: Ask<'_, impl Fn(u64, Further) -> P>,
        judge: impl FnOnce(&RawValue) -> Result<CallOutcome, Unfit>,
        suspect: impl FnOnce(&Fault) -> Option<Vec<Finding>>,
    ) -> Result<Reply, CallError> {
        let mut record = Record::open(self, ask.method, ask.item);
        let began = record.sent;
        let mut time = Time::from(began, ask.timeout, self.most);
        let mut attempts = self.attempts(&ask, time.silence);
        let mut rounds = Rounds::default();
        let answer = loop {
            let (answer, permit) = match self.permit(time.silence).await {
                Some(permit) => {
                    if permit.waited && record.id == 0 {
                        record.sent = Instant::now();
                    }
                    record.id = self.session.next_id();
                    let further = Further { carried: record.carried(), ..rounds.further() };
                    let answer = self.send(&ask, record.id, further, time).await;
                    (Some(answer), Some(permit))
                }
                None => {
                    record.silent = false;
                    (None, None)
                }
            };
            // Nothing of this call is at the server during a pause.
            let permit = permit.filter(|_| matches!(answer, Some(Ok(_))));
            let Some(answer) = self.last(&mut attempts, &ask, answer).await else { continue };
            let result = match answer {
                Ok(result) => result.take(),
                Err(fault) => break Err(fault),
            };
            let turn = self.turn(&ask, &result);
            if !matches!(turn, Ok(Turn::Final)) {
                record.heard = true;
                self.silence.broken();
            }
            let asked = match turn {
                Ok(Turn::Final) => break Ok(result),
                Ok(Turn::Task) => {
                    let _open = self.session.hold(record.id, ask.progress.cloned());
                    break deferred::finish(self, &ask, &result, permit, time.ends).await;
                }
                Ok(Turn::Question) => {
                    drop(permit);
                    rounds.next(self, &result, time.ends).await
                }
                Err(fault) => Err(fault),
            };
            if let Err(fault) = asked {
                break Err(fault);
            }
            // The user or the model took their time, not the server.
            time.silence = (Instant::now() + ask.timeout.min(LONGEST)).min(time.ends);
            attempts = self.attempts(&ask, time.silence);
        };
        let judged = match answer {
            Ok(result) => judge(&result).map(|outcome| (result, outcome)),
            Err(fault) => Err(Unfit::Fault(fault)),
        };
        let judged = judged.map_err(|unfit| match unfit {
            Unfit::Fault(fault) => suspect(&fault).map_or(Unfit::Fault(fault), Unfit::Suspicious),
            Unfit::Suspicious(findings) => Unfit::Suspicious(findings),
        });
        match judged {
            Ok((result, outcome)) => {
                record.close(outcome);
                Ok(Reply { result, keep: rounds.none(), clean: false })
            }
            Err(Unfit::Suspicious(findings)) => {
                let (server, item) = (self.server.clone(), ask.item.into());
                let error = CallError::Withheld { server, item, findings };
                record.fail(&error);
                Err(error)
            }
            Err(Unfit::Fault(fault)) => {
                // A call that is over although the server was heard of has used up all of its time.
                let over = Instant::now() >= time.ends;
                record.silent &= !over || !(record.heard || self.session.waits_for_us());
                let after = if over { time.ends - began } else { ask.timeout };
                let error = self.name(fault, ask.item, after).tried(attempts.made());
                record.fail(&error);
                Err(error)
            }
        }
    }

    /// Sends a request of the host's own (lists); not in the metrics, but in the log.
    pub(crate) async fn fetch<P: Serialize>(
        &self,
        method: &'static str,
        params: &P,
        timeout: Duration,
    ) -> Result<Box<RawValue>, CallError> {
        let started = Instant::now();
        let (mut id, time) = (None, Time::from(started, timeout, timeout));
        let (progress, retries, headers) = (None, None, &[][..]);
        let (item, params) = (method, |_, _| params);
        let (harmless, as_task) = (true, false);
        let ask =
            Ask { method, item, params, headers, timeout, progress, retries, harmless, as_task };
        let mut attempts = self.attempts(&ask, time.silence);
        let answer = loop {
            let next = *id.insert(self.session.next_id());
            let answer = Some(self.send(&ask, next, Further::default(), time).await);
            if let Some(answer) = self.last(&mut attempts, &ask, answer).await {
                break answer;
            }
        };
        let name = |fault| self.name(fault, method, timeout).tried(attempts.made());
        let answer = answer.map(Held::take).map_err(name);
        let latency_ms = millis(started.elapsed());
        let server = &*self.server;
        match &answer {
            Ok(_) => tracing::info!(server, method, id, latency_ms, outcome = "ok", "request"),
            Err(error) => {
                let outcome = error.kind().as_str();
                let error: &dyn std::error::Error = error;
                tracing::warn!(server, method, id, latency_ms, outcome, error, "request");
            }
        }
        answer
    }

    /// What a result is; in the legacy era there are no others than last ones unasked.
    fn turn<F>(&self, ask: &Ask<'_, F>, result: &RawValue) -> Result<Turn, Fault> {
        match self.revision.era() {
            Era::Modern => Turn::of(result, ask.method),
            Era::Legacy if ask.as_task && skim::member(result.get(), "task").is_some() => {
                Ok(Turn::Task)
            }
            Era::Legacy => Ok(Turn::Final),
        }
    }

    pub(super) async fn permit(&self, deadline: Instant) -> Option<Permit<'_>> {
        if let Ok(permit) = self.permits.try_acquire() {
            return Some(Permit { _held: permit, waited: false });
        }
        let permit = tokio::time::timeout_at(deadline, self.permits.acquire()).await.ok()?.ok()?;
        Some(Permit { _held: permit, waited: true })
    }

    fn attempts<F>(&self, ask: &Ask<'_, F>, deadline: Instant) -> Attempts {
        let most = ask.retries.unwrap_or(self.retry.max);
        Attempts::new(Plan { policy: self.retry, most, harmless: ask.harmless, deadline })
    }

    /// The answer to give, if this is it; else the pause before the next attempt is over.
    async fn last<F>(
        &self,
        attempts: &mut Attempts,
        ask: &Ask<'_, F>,
        answer: Option<Answer>,
    ) -> Option<Answer> {
        let tell = |again: Again<'_>| self.tell_again(ask.method, ask.item, &again);
        attempts.after(answer, self.session.closed(), tell).await.break_value()
    }

    pub(super) fn tell_again(&self, method: &'static str, item: &str, again: &Again<'_>) {
        let (server, reason) = (&*self.server, again.reason.to_string());
        let (attempt, delay_s) = (again.attempt, again.delay.as_secs_f64());
        tracing::warn!(server, method, item, attempt, delay_s, reason, "request is sent again");
        self.events.publish(Event::CallRetried {
            server: self.server.clone(),
            method,
            item: item.into(),
            attempt,
            delay: again.delay,
            reason,
        });
    }

    async fn send<P: Serialize>(
        &self,
        ask: &Ask<'_, impl Fn(u64, Further) -> P>,
        id: u64,
        further: Further,
        time: Time,
    ) -> Answer {
        let params = (ask.params)(id, further);
        let outgoing = Outgoing::new(id, ask.method, &params, time.silence);
        let outgoing = Outgoing {
            name: (ask.item != ask.method).then_some(ask.item),
            headers: ask.headers,
            extend: Some(Extend { idle: ask.timeout.min(LONGEST), ends: time.ends }),
            progress: ask.progress.cloned(),
            ..outgoing
        };
        self.session.request(outgoing).await
    }

    /// Tells what the guard has found, if anything, and gives it back where it holds something back.
    pub(crate) fn tell_found(
        &self,
        of: Of,
        item: &str,
        told: Option<Told>,
    ) -> Option<Vec<Finding>> {
        let told = told?;
        tell_found(&self.events, &self.server, Some((of, item)), &told);
        told.refused.then_some(told.findings)
    }

    /// Gives a fault of the session its server and item.
    pub(crate) fn name(&self, fault: Fault, item: &str, after: Duration) -> CallError {
        name_fault(&self.server, fault, item, after)
    }
}

/// Tells what the guard has found, to listeners and to the audit. Without an item it was found in the
/// instructions.
pub(crate) fn tell_found(
    events: &Events,
    server: &Arc<str>,
    item: Option<(Of, &str)>,
    told: &Told,
) {
    let refused = told.refused;
    let (tool, item) = Of::split(item);
    for finding in &told.findings {
        let (what, why) = (&*finding.place, finding.reason);
        Fact::Suspicious { tool, item, what, why, refused }.tell(server);
        events.publish(Event::Suspicious {
            server: server.clone(),
            tool: tool.map(Into::into),
            item: item.map(Into::into),
            finding: finding.clone(),
            refused,
        });
    }
}

/// Gives a fault of a session its server and item.
pub(crate) fn name_fault(
    server: &Arc<str>,
    fault: Fault,
    item: &str,
    after: Duration,
) -> CallError {
    let server = server.clone();
    match fault {
        Fault::Answer(error) => CallError::Server { server, item: item.into(), error },
        Fault::Protocol(source) => CallError::Protocol { server, item: item.into(), source },
        Fault::Lost { reason, sent } => {
            CallError::Unavailable { server, reason, may_have_run: sent, attempts: 1 }
        }
        Fault::Late => CallError::Timeout { server, item: item.into(), after },
    }
}

/// A latency as it stands in the log.
pub(crate) fn millis(latency: Duration) -> f64 {
    latency.as_secs_f64() * 1000.0
}

/// The right to have one more request at the server.
pub(super) struct Permit<'a> {
    _held: SemaphorePermit<'a>,
    waited: bool,
}

/// The one record of a call; a caller that goes away closes it as cancelled.
struct Record<'a> {
    connection: &'a Connection,
    method: &'static str,
    item: &'a str,
    id: u64,
    sent: Instant,
    open: bool,
    /// Whether the server has answered a part of it.
    heard: bool,
    /// Whether it is the silence of the server if it is late.
    silent: bool,
    call: Option<Call>,
}

impl<'a> Record<'a> {
    fn open(connection: &'a Connection, method: &'static str, item: &'a str) -> Self {
        let call = connection.reporter.as_ref().map(|reporter| reporter.call(method, item));
        let (id, sent, open, heard, silent) = (0, Instant::now(), true, false, true);
        Self { connection, method, item, id, sent, open, heard, silent, call }
    }

    fn carried(&self) -> Option<Arc<Carried>> {
        self.call.as_ref()?.carried()
    }

    fn close(mut self, outcome: CallOutcome) {
        self.write(outcome, None);
    }

    fn fail(mut self, error: &CallError) {
        self.write(CallOutcome::Failed(error.kind()), Some(error));
    }

    fn write(&mut self, outcome: CallOutcome, error: Option<&CallError>) {
        self.open = false;
        let now = Instant::now();
        let latency = now - self.sent;
        self.connection.meter.record(outcome, latency, now);
        if let Some(call) = self.call.take() {
            call.end(self.id, latency, outcome, error);
        }
        match outcome {
            CallOutcome::Ok
            | CallOutcome::ToolError
            | CallOutcome::Failed(CallKind::Server | CallKind::Protocol | CallKind::Withheld) => {
                self.connection.silence.broken();
            }
            // Without an id it waited for its turn only, and says nothing of the server.
            CallOutcome::Failed(CallKind::Timeout) if self.id != 0 && self.silent => {
                self.connection.silence.kept();
            }
            CallOutcome::Failed(_) | CallOutcome::Cancelled => {}
        }
        let (server, latency_ms) = (&*self.connection.server, millis(latency));
        let (method, item, id, word) = (self.method, self.item, self.id, outcome.as_str());
        match error {
            None => tracing::info!(server, method, item, id, latency_ms, outcome = word, "request"),
            Some(error) => {
                let own = OwnWords::of(error);
                let error: &dyn std::error::Error = match &own {
                    Some(own) => own,
                    None => error,
                };
                tracing::error!(
                    server,
                    method,
                    item,
                    id,
                    latency_ms,
                    outcome = word,
                    error,
                    "request"
                );
            }
        }
        if self.connection.events.wanted() {
            self.connection.events.publish(Event::Called(CallRecord {
                server: self.connection.server.clone(),
                method: self.method,
                item: self.item.into(),
                id: self.id,
                latency,
                outcome,
            }));
        }
    }
}

impl Drop for Record<'_> {
    fn drop(&mut self) {
        if self.open {
            self.write(CallOutcome::Cancelled, None);
        }
    }
}
