//! The requests that wait for an answer.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::{Answer, Fault, Progress};
use crate::error::Lost;

/// One request that waits.
#[derive(Debug)]
struct Waiter {
    /// Takes the answer; `None` once it has come.
    answer: Option<oneshot::Sender<Answer>>,
    progress: Option<mpsc::Sender<Progress>>,
    /// How far the server last said it was.
    far: f64,
    /// When it last showed that it was at work on this.
    touched: Option<Instant>,
    /// Whether nobody waits for its end.
    background: bool,
}

#[derive(Debug, Default)]
struct Table {
    waiting: HashMap<u64, Waiter>,
    /// How many of them somebody waits for.
    calls: usize,
    lost: Option<Lost>,
}

/// What became of the connection, for those who wait for it.
#[derive(Clone, Debug, Default)]
struct Fate {
    output_ended: bool,
    lost: Option<Lost>,
    idle: bool,
}

/// Requests by id. The lock is held for a map operation only, never across an await.
#[derive(Debug, Default)]
pub(super) struct Pending {
    table: Mutex<Table>,
    fate: watch::Sender<Fate>,
}

impl Pending {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request; tells whether it is the only one that waits.
    pub(super) fn insert(
        &self,
        id: u64,
        progress: Option<mpsc::Sender<Progress>>,
        background: bool,
    ) -> Result<(oneshot::Receiver<Answer>, bool), Fault> {
        let (answer, receiver) = oneshot::channel();
        let mut table = self.table();
        if let Some(reason) = &table.lost {
            return Err(Fault::Lost { reason: reason.clone(), sent: false });
        }
        let alone = table.calls == 0;
        table.calls += usize::from(!background);
        let (answer, far, touched) = (Some(answer), f64::NEG_INFINITY, None);
        let waiter = Waiter { answer, progress, far, touched, background };
        table.waiting.insert(id, waiter);
        Ok((receiver, alone))
    }

    /// Counts a request that was answered as open, and hears of its progress, until it is removed.
    pub(super) fn hold(&self, id: u64, progress: Option<mpsc::Sender<Progress>>) {
        let (answer, far, touched, background) = (None, f64::NEG_INFINITY, None, false);
        let waiter = Waiter { answer, progress, far, touched, background };
        let mut table = self.table();
        if table.lost.is_none() {
            table.calls += 1;
            table.waiting.insert(id, waiter);
        }
    }

    /// Whom to give the answer to a request; it counts as open until it is removed.
    pub(super) fn take(&self, id: u64) -> Option<oneshot::Sender<Answer>> {
        let mut table = self.table();
        let waiter = table.waiting.get_mut(&id)?;
        let answer = waiter.answer.take()?;
        // There is no progress after the end.
        waiter.far = f64::INFINITY;
        Some(answer)
    }

    /// Forgets a request; tells whether it was without an answer.
    pub(super) fn remove(&self, id: u64) -> bool {
        let mut table = self.table();
        let waiter = table.waiting.remove(&id);
        if waiter.as_ref().is_some_and(|waiter| !waiter.background) {
            table.calls -= 1;
        }
        if table.calls == 0 {
            // Told once, so that no call wakes those who wait for the end of the connection.
            self.fate.send_if_modified(|fate| !std::mem::replace(&mut fate.idle, true));
        }
        waiter.is_some_and(|waiter| waiter.answer.is_some())
    }

    /// Notes that the server has come further with a request, and tells who wants to know of it;
    /// `None` if it has not, or nobody waits for that request.
    pub(super) fn progress(&self, id: u64, far: f64) -> Option<Option<mpsc::Sender<Progress>>> {
        let mut table = self.table();
        let waiter = table.waiting.get_mut(&id).filter(|waiter| far > waiter.far)?;
        waiter.far = far;
        waiter.touched = Some(Instant::now());
        Some(waiter.progress.clone())
    }

    /// Whether this request still waits for its answer.
    pub(super) fn waits(&self, id: u64) -> bool {
        self.table().waiting.get(&id).is_some_and(|waiter| waiter.answer.is_some())
    }

    /// When the server last showed that it was at work on a request.
    pub(super) fn touched(&self, id: u64) -> Option<Instant> {
        self.table().waiting.get(&id)?.touched
    }

    /// Lets every request that waits begin to wait anew.
    pub(super) fn touch_all(&self) {
        let now = Instant::now();
        for waiter in self.table().waiting.values_mut() {
            waiter.touched = Some(now);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.table().calls
    }

    /// Fails everything that waits and everything to come; the first reason stays.
    pub(super) fn close(&self, reason: &Lost) {
        let waiting = {
            let mut table = self.table();
            table.lost.get_or_insert_with(|| reason.clone());
            table.calls = 0;
            std::mem::take(&mut table.waiting)
        };
        // Those who have waited longest are told first.
        let mut waiting: Vec<_> = waiting.into_iter().collect();
        waiting.sort_unstable_by_key(|(id, _)| *id);
        for (_, waiter) in waiting {
            let fault = Fault::Lost { reason: reason.clone(), sent: true };
            // The caller may have stopped waiting; then nobody is left to tell.
            drop(waiter.answer.map(|answer| answer.send(Err(fault))));
        }
        self.fate.send_modify(|fate| {
            fate.lost.get_or_insert_with(|| reason.clone());
            fate.output_ended = true;
            fate.idle = true;
        });
    }

    pub(super) fn end_output(&self) {
        self.fate.send_modify(|fate| fate.output_ended = true);
    }

    pub(super) async fn output_ended(&self) {
        // The sender lives in self, so the wait cannot fail.
        drop(self.fate.subscribe().wait_for(|fate| fate.output_ended).await);
    }

    pub(super) async fn closed(&self) -> Lost {
        let mut fate = self.fate.subscribe();
        let seen = fate.wait_for(|fate| fate.lost.is_some()).await;
        seen.ok().and_then(|fate| fate.lost.clone()).unwrap_or(Lost::ClosedOutput)
    }

    pub(super) async fn idle(&self) {
        let mut fate = self.fate.subscribe();
        // What a call began counts anew, so that idle once may be over already.
        loop {
            self.fate.send_modify(|fate| fate.idle = false);
            if self.len() == 0 {
                // Others may wait for the same.
                return self.fate.send_modify(|fate| fate.idle = true);
            }
            drop(fate.wait_for(|fate| fate.idle).await);
        }
    }
}
