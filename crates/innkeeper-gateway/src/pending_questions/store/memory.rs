//! Questions in the memory of the process.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::Utc;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::{
    Changed, KEEP_TIME, LEASE_TIME, MAX_CHANGE_WAIT, MAX_EXPIRY, MAX_FINAL_QUESTIONS,
    MAX_OPEN_PER_PRINCIPAL, MAX_OPEN_QUESTIONS, MAX_PAGE, NewQuestion, PROCESS_ENDED, Question,
    QuestionAdded, QuestionChange, QuestionId, QuestionList, QuestionStore, StoreFuture,
};
use crate::pending_questions::{
    QuestionAnswer, QuestionKind, QuestionState, QuestionStep, QuestionTimes,
};
use crate::principal::Principal;
use crate::quota::oldest_of_most;

/// Keeps questions in the memory of the process: they end with the process.
#[derive(Debug)]
pub struct MemoryQuestionStore {
    entries: Mutex<Entries>,
    /// One more than the number of changes.
    changes: watch::Sender<u64>,
}

impl Default for MemoryQuestionStore {
    fn default() -> Self {
        Self { entries: Mutex::default(), changes: watch::Sender::new(1) }
    }
}

#[derive(Debug, Default)]
struct Entries {
    by_id: HashMap<QuestionId, Entry>,
    /// The position of the last change, which is their number.
    position: u64,
}

#[derive(Debug)]
struct Entry {
    question: Question,
    expires: Instant,
    /// The time until which the process that waits or runs the call must renew the question.
    lease: Option<Instant>,
    /// The time of the last step.
    changed: Instant,
}

impl Entry {
    /// Returns the step that the time has brought.
    fn due_step(&self, now: Instant) -> Option<QuestionChange> {
        let lease_is_over = self.lease.is_some_and(|lease| lease <= now);
        match self.question.state {
            QuestionState::Waiting if self.expires <= now => {
                Some(QuestionChange::new(QuestionStep::Expire))
            }
            QuestionState::Waiting if lease_is_over => Some(QuestionChange::end(PROCESS_ENDED)),
            QuestionState::Running if lease_is_over => {
                Some(QuestionChange::new(QuestionStep::Lose))
            }
            _ => None,
        }
    }
}

impl Entries {
    fn next_position(&mut self) -> u64 {
        self.position += 1;
        self.position
    }

    /// Takes a step of a question that exists.
    fn take(&mut self, id: QuestionId, change: &QuestionChange) -> Changed {
        let position = self.position + 1;
        let Some(entry) = self.by_id.get_mut(&id) else { return Changed::Unknown };
        let question = &mut entry.question;
        let Ok(after) = question.state.after(question.content.kind, change.step) else {
            return Changed::Refused(Box::new(question.clone()));
        };
        question.state = after;
        question.position = position;
        question.times.changed = Utc::now();
        entry.changed = Instant::now();
        entry.lease = after.is_open().then(|| entry.changed + LEASE_TIME);
        let QuestionChange { step: _, by, process, reason, response } = change;
        set(&mut question.answer.by, by);
        set(&mut question.claimed_by, process);
        set(&mut question.answer.reason, reason);
        set(&mut question.answer.response, response);
        let question = question.clone();
        self.next_position();
        Changed::Done(Box::new(question))
    }

    /// Ends the questions whose time is over, and removes those that ended long ago.
    fn end_expired(&mut self) {
        let now = Instant::now();
        let due = self.by_id.iter().filter_map(|(id, entry)| Some((*id, entry.due_step(now)?)));
        let due: Vec<_> = due.collect();
        for (id, change) in due {
            self.take(id, &change);
        }
        self.by_id.retain(|_, entry| {
            entry.question.state.is_open()
                || now.saturating_duration_since(entry.changed) < KEEP_TIME
        });
        let in_final_state = self.by_id.values().map(|entry| &entry.question);
        let in_final_state = in_final_state.filter(|question| !question.state.is_open());
        let mut questions: Vec<_> = in_final_state
            .map(|question| (question.position, question.content.asker.principal.clone()))
            .collect();
        questions.sort_unstable();
        while questions.len() > MAX_FINAL_QUESTIONS {
            let owners = questions.iter().map(|(_, principal)| principal);
            let Some(index) = oldest_of_most(owners) else { break };
            let (position, _) = questions.remove(index);
            self.by_id.retain(|_, entry| entry.question.position != position);
        }
    }

    fn open(&self) -> impl Iterator<Item = &Question> {
        self.by_id.values().map(|entry| &entry.question).filter(|one| one.state.is_open())
    }
}

fn set<T: Clone>(field: &mut Option<T>, value: &Option<T>) {
    if value.is_some() {
        field.clone_from(value);
    }
}

impl MemoryQuestionStore {
    /// Uses the questions as of now.
    fn with<T>(&self, use_entries: impl FnOnce(&mut Entries) -> T) -> T {
        let mut entries = self.lock();
        entries.end_expired();
        let value = use_entries(&mut entries);
        // A step can make the oldest questions leave.
        entries.end_expired();
        let changes = entries.position + 1;
        // Under the lock, so that the number never decreases.
        self.changes.send_if_modified(|number| std::mem::replace(number, changes) != changes);
        value
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add_now(&self, id: QuestionId, content: &NewQuestion, expiry: Duration) -> QuestionAdded {
        self.with(|entries| {
            if entries.by_id.contains_key(&id) {
                return QuestionAdded::AlreadyExists;
            }
            if entries.open().count() >= MAX_OPEN_QUESTIONS {
                return QuestionAdded::TotalLimit;
            }
            let principal = &content.asker.principal;
            let has_limit = **principal != **Principal::local_user().id();
            let own =
                entries.open().filter(|one| one.content.asker.principal == *principal).count();
            if has_limit && own >= MAX_OPEN_PER_PRINCIPAL {
                return QuestionAdded::PrincipalLimit;
            }
            let (now, created, expiry) = (Instant::now(), Utc::now(), expiry.min(MAX_EXPIRY));
            let question = Question {
                id,
                content: content.clone(),
                state: QuestionState::Waiting,
                position: entries.next_position(),
                times: QuestionTimes { created, expires: created + expiry, changed: created },
                claimed_by: None,
                answer: QuestionAnswer::default(),
            };
            let lease = (content.kind == QuestionKind::Elicitation).then(|| now + LEASE_TIME);
            let entry = Entry { question, expires: now + expiry, lease, changed: now };
            entries.by_id.insert(id, entry);
            QuestionAdded::Added
        })
    }

    fn page(&self, list: QuestionList, before: Option<u64>, limit: usize) -> Vec<Question> {
        let is_open = match list {
            QuestionList::Open => true,
            QuestionList::Final => false,
        };
        let mut questions: Vec<Question> = self.with(|entries| {
            let all = entries.by_id.values().map(|entry| &entry.question);
            let listed = all.filter(|one| {
                one.state.is_open() == is_open && before.is_none_or(|before| one.position < before)
            });
            listed.cloned().collect()
        });
        questions.sort_unstable_by_key(|one| std::cmp::Reverse(one.position));
        questions.truncate(limit.min(MAX_PAGE));
        questions
    }

    fn renew_now(&self, id: QuestionId) -> bool {
        self.with(|entries| {
            let Some(entry) = entries.by_id.get_mut(&id) else { return false };
            if entry.lease.is_some() {
                entry.lease = Some(Instant::now() + LEASE_TIME);
            }
            entry.question.state.is_open()
        })
    }
}

/// Returns a response that is there at once.
fn ready<'a, T: Send + 'a>(value: T) -> StoreFuture<'a, T> {
    Box::pin(async move { Ok(value) })
}

impl QuestionStore for MemoryQuestionStore {
    fn add<'a>(
        &'a self,
        id: QuestionId,
        question: &'a NewQuestion,
        expiry: Duration,
    ) -> StoreFuture<'a, QuestionAdded> {
        ready(self.add_now(id, question, expiry))
    }

    fn find(&self, id: QuestionId) -> StoreFuture<'_, Option<Question>> {
        ready(self.with(|entries| Some(entries.by_id.get(&id)?.question.clone())))
    }

    fn list(
        &self,
        list: QuestionList,
        before: Option<u64>,
        limit: usize,
    ) -> StoreFuture<'_, Vec<Question>> {
        ready(self.page(list, before, limit))
    }

    fn count_open(&self) -> StoreFuture<'_, usize> {
        ready(self.with(|entries| entries.open().count()))
    }

    fn change<'a>(
        &'a self,
        id: QuestionId,
        change: &'a QuestionChange,
    ) -> StoreFuture<'a, Changed> {
        ready(self.with(|entries| entries.take(id, change)))
    }

    fn renew(&self, id: QuestionId) -> StoreFuture<'_, bool> {
        ready(self.renew_now(id))
    }

    fn changes(&self, seen: u64) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let mut changes = self.changes.subscribe();
            let changed = changes.wait_for(|number| seen == 0 || *number != seen);
            let number = timeout(MAX_CHANGE_WAIT, changed).await;
            // The sender is in the store.
            Ok(number.ok().and_then(Result::ok).map_or(seen, |number| *number))
        })
    }
}
