//! The order in which the answers of a replay leave: that of the recording.
//!
//! An agent may do several things at once, and how fast it is differs from run to run. An answer that
//! left earlier in the recording cannot depend on a later one, so each answer waits until all earlier
//! ones have left. So whatever the agent does with the order of its answers, it does again. An agent
//! that no longer asks for something keeps the later answers waiting, and the replay ends.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use innkeeper_agent::golden::{Golden, ReplyRecord, ToolCallRecord};
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::time::{Instant, sleep_until, timeout_at};

/// Time for an agent to ask for what comes before an answer that it waits for. It may work meanwhile.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// Maximum time between two answers. Answers that leave together reach threads of the agent in any
/// order.
const MAX_GAP: Duration = Duration::from_millis(20);

/// Something that leaves for the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Departure {
    /// The head of the response to a request.
    Head(usize),
    /// The end of the response to a request.
    Body(usize),
    /// The result of a call.
    Result(usize),
}

/// What has not left yet, with the milliseconds since the start of the recording.
#[derive(Debug)]
pub(super) struct Timeline {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    waiting: BTreeSet<(u64, Departure)>,
    last_change: Instant,
    /// When the last answer left: in the recording, and now.
    last: Option<(u64, Instant)>,
}

impl Timeline {
    pub(super) fn new(golden: &Golden) -> Self {
        let mut waiting = BTreeSet::new();
        for (at, exchange) in golden.provider_responses.iter().enumerate() {
            let begin = exchange.request.begin_ms;
            match &exchange.response {
                ReplyRecord::Http(response) => {
                    waiting.insert((begin.saturating_add(response.ms), Departure::Head(at)));
                    if let Some(last) = response.chunks.last() {
                        waiting.insert((begin.saturating_add(last.ms), Departure::Body(at)));
                    }
                }
                ReplyRecord::Failed { ms, .. } => {
                    waiting.insert((begin.saturating_add(*ms), Departure::Head(at)));
                }
                ReplyRecord::Silent {} => {}
            }
        }
        for (at, ToolCallRecord { end_ms, .. }) in golden.tool_calls.iter().enumerate() {
            waiting.extend(end_ms.map(|end| (end, Departure::Result(at))));
        }
        Self {
            state: Mutex::new(State { waiting, last_change: Instant::now(), last: None }),
            changed: Notify::new(),
        }
    }

    /// Waits until everything has left that left earlier in the recording.
    ///
    /// # Errors
    ///
    /// Nothing left for a long time: returns what the answer waits for.
    pub(super) async fn turn(&self, departure: Departure) -> Result<(), Departure> {
        loop {
            let changed = self.changed.notified();
            let (first, last_change, gap_end) = {
                let state = self.lock();
                let own = state.waiting.iter().find(|(_, other)| *other == departure);
                // What left in the same millisecond has no order.
                let first =
                    own.and_then(|(ms, _)| state.waiting.first().filter(|(first, _)| first < ms));
                let gap_end = state.last.zip(own).map(|((last_ms, left_at), (ms, _))| {
                    left_at + Duration::from_millis(ms.saturating_sub(last_ms)).min(MAX_GAP)
                });
                (first.map(|(_, first)| *first), state.last_change, gap_end)
            };
            let Some(first) = first else {
                match gap_end.filter(|end| *end > Instant::now()) {
                    None => return Ok(()),
                    Some(end) => sleep_until(end).await,
                }
                continue;
            };
            if timeout_at(last_change + MAX_WAIT, changed).await.is_err()
                && self.lock().last_change == last_change
            {
                return Err(first);
            }
        }
    }

    /// Notes that something leaves.
    pub(super) fn depart(&self, departure: Departure) {
        let mut state = self.lock();
        let own = state.waiting.iter().find(|(_, other)| *other == departure).copied();
        if let Some(own) = own {
            state.waiting.remove(&own);
            state.last = Some((own.0, Instant::now()));
        }
        state.last_change = Instant::now();
        drop(state);
        self.changed.notify_waiters();
    }

    /// Notes that the agent has asked for something.
    pub(super) fn on_request(&self) {
        self.lock().last_change = Instant::now();
        self.changed.notify_waiters();
    }

    /// Completes at the next departure or request from now on.
    pub(super) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(departures: &[(u64, Departure)]) -> Timeline {
        let waiting = departures.iter().copied().collect();
        let state = State { waiting, last_change: Instant::now(), last: None };
        Timeline { state: Mutex::new(state), changed: Notify::new() }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_leave_in_the_recorded_order_and_those_of_one_millisecond_in_any() {
        let [first, second, third] =
            [Departure::Head(1), Departure::Result(0), Departure::Result(1)];
        let timeline = timeline(&[(5, first), (9, second), (9, third)]);
        let later = async {
            timeline.turn(third).await.unwrap();
            timeline.depart(third);
            timeline.turn(second).await
        };
        let earlier = async {
            tokio::time::sleep(Duration::from_secs(15)).await;
            timeline.turn(first).await.unwrap();
            timeline.depart(first);
        };
        let (turn, ()) = tokio::join!(later, earlier);
        assert_eq!(turn, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_whose_turn_does_not_come_names_what_it_waits_for() {
        let (first, second) = (Departure::Head(1), Departure::Result(0));
        let timeline = timeline(&[(5, first), (9, second)]);
        let started = Instant::now();
        let asking = async {
            tokio::time::sleep(Duration::from_secs(15)).await;
            timeline.on_request();
        };
        let (turn, ()) = tokio::join!(timeline.turn(second), asking);
        assert_eq!(turn, Err(first));
        assert_eq!(started.elapsed(), Duration::from_secs(15) + MAX_WAIT);
    }
}
