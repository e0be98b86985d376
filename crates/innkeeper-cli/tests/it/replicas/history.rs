//! What the clients of replicas saw, and the check of what they may see.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// What a call may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    /// Has an effect, so that it may not run twice.
    Effect,
    /// Only reads, and may run again.
    ReadOnly,
    /// Reads what the gateway knows, and runs at no server.
    List,
}

/// How a call ended for its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A result.
    Acknowledged,
    /// An error that says that the call did not run.
    NotRun,
    /// An error that says that the call may have run.
    Unknown,
    /// Another error of JSON-RPC.
    Failed(String),
    /// A status which says that nothing ran.
    Refused(u16),
    /// The connection or the stream ended without a response.
    Broken(String),
    /// The response has something else than the result of this call.
    Wrong(String),
    /// Neither a response nor an end in the time of a call.
    TimedOut,
}

/// An event of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    /// The client sends the call, which has so many progress messages.
    Started {
        kind: CallKind,
        steps: u64,
    },
    /// A message with an id on an event stream.
    Message {
        stream: u64,
        position: u64,
    },
    Progress(u64),
    /// The event stream broke off, and the client resumes the stream.
    BrokeOff,
    Ended(Outcome),
}

#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) at: Duration,
    /// The number of the call, which its server logs.
    pub(super) call: u64,
    pub(super) kind: EventKind,
}

/// The events of all clients in their order.
#[derive(Debug)]
pub(super) struct History {
    start: Instant,
    events: Mutex<Vec<Event>>,
}

impl History {
    pub(super) fn new() -> Self {
        Self { start: Instant::now(), events: Mutex::default() }
    }

    pub(super) fn add(&self, call: u64, kind: EventKind) {
        let at = self.start.elapsed();
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(Event { at, call, kind });
    }

    /// Returns the events since the last time.
    pub(super) fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a history has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Summary {
    pub(super) calls: usize,
    pub(super) acknowledged: usize,
    pub(super) unknown: usize,
    pub(super) not_run: usize,
    pub(super) refused: usize,
    pub(super) failed: usize,
    pub(super) broken: usize,
    pub(super) resumed: usize,
    /// Acknowledged calls that did not run.
    pub(super) lost: usize,
    /// Calls with effects that ran more than once.
    pub(super) twice: usize,
    /// Calls with a missing message.
    pub(super) gaps: usize,
    /// Calls with a message that arrived again.
    pub(super) repeats: usize,
    /// The longest call.
    pub(super) longest: Duration,
    /// Reasons of calls that failed or broke, with their numbers.
    pub(super) reasons: BTreeMap<String, usize>,
    /// Everything that may not happen.
    pub(super) violations: Vec<String>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, acknowledged, unknown, not_run, refused, failed, broken, .. } = self;
        let Self { resumed, lost, twice, gaps, repeats, longest, .. } = self;
        let longest = longest.as_secs_f64();
        write!(
            f,
            "| {calls} | {acknowledged} | {unknown} | {not_run} | {refused} | {failed} | {broken} \
             | {resumed} | {lost} | {twice} | {gaps} | {repeats} | {longest:.1} |"
        )
    }
}

/// What is known of one call.
#[derive(Default)]
struct CallState {
    started: Option<(Duration, CallKind, u64)>,
    ended: Option<Outcome>,
    position: Option<(u64, u64)>,
    progress: u64,
}

/// Checks the events of clients and the numbers of executions of each call by its server.
pub(super) fn check(events: &[Event], executions: &HashMap<u64, usize>) -> Summary {
    let mut summary = Summary::default();
    let mut calls: BTreeMap<u64, CallState> = BTreeMap::new();
    for event in events {
        let state = calls.entry(event.call).or_default();
        if let Some(outcome) = &state.ended {
            let text = format!("call {}: {:?} after {outcome:?}", event.call, event.kind);
            summary.violations.push(text);
            continue;
        }
        summary.follow(state, event);
    }
    for (call, state) in calls {
        summary.judge(call, &state, executions.get(&call).copied().unwrap_or_default());
    }
    summary
}

impl Summary {
    /// Adds an event to what is known of its call.
    fn follow(&mut self, state: &mut CallState, event: &Event) {
        match &event.kind {
            EventKind::Started { kind, steps } => state.started = Some((event.at, *kind, *steps)),
            EventKind::Message { stream, position } => {
                match state.position {
                    // An event without data precedes the messages.
                    None if *position == 0 => {}
                    None => self.compare(event.call, "message", 0, *position),
                    Some((known, last)) if known == *stream => {
                        self.compare(event.call, "message", last, *position);
                    }
                    Some(_) => {
                        self.violations.push(format!("call {}: another stream", event.call));
                    }
                }
                state.position = Some((*stream, *position));
            }
            EventKind::Progress(step) => {
                self.compare(event.call, "progress", state.progress, *step);
                state.progress = *step;
            }
            EventKind::BrokeOff => self.resumed += 1,
            EventKind::Ended(outcome) => {
                if let Some((started, ..)) = state.started {
                    self.longest = self.longest.max(event.at.saturating_sub(started));
                }
                state.ended = Some(outcome.clone());
            }
        }
    }

    fn compare(&mut self, call: u64, what: &str, last: u64, next: u64) {
        if next <= last {
            self.repeats += 1;
            self.violations.push(format!("call {call}: {what} {next} again after {last}"));
        } else if next > last + 1 {
            self.gaps += 1;
            self.violations.push(format!("call {call}: {what} {next} after {last}"));
        }
    }

    /// Compares the end of a call with its executions.
    fn judge(&mut self, call: u64, state: &CallState, executions: usize) {
        self.calls += 1;
        let Some((_, kind, steps)) = state.started else {
            return self.violations.push(format!("call {call}: not started"));
        };
        let Some(outcome) = &state.ended else {
            return self.violations.push(format!("call {call}: no end"));
        };
        if kind == CallKind::Effect && executions > 1 {
            self.twice += 1;
            self.violations.push(format!("call {call}: ran {executions} times, {outcome:?}"));
        }
        let mut count = |reason: &String| *self.reasons.entry(reason.clone()).or_default() += 1;
        match outcome {
            Outcome::Acknowledged => {
                self.acknowledged += 1;
                if kind != CallKind::List && executions == 0 {
                    self.lost += 1;
                    self.violations.push(format!("call {call}: has a result and did not run"));
                }
                if state.progress < steps {
                    self.gaps += 1;
                    let text = format!("call {call}: {} of {steps} progress", state.progress);
                    self.violations.push(text);
                }
            }
            Outcome::NotRun | Outcome::Refused(_) => {
                match outcome {
                    Outcome::Refused(status) => {
                        self.refused += 1;
                        count(&format!("status {status}"));
                    }
                    _ => self.not_run += 1,
                }
                if kind == CallKind::Effect && executions > 0 {
                    self.violations.push(format!("call {call}: ran although {outcome:?}"));
                }
            }
            Outcome::Unknown => self.unknown += 1,
            Outcome::Failed(reason) => {
                self.failed += 1;
                count(reason);
            }
            Outcome::Broken(reason) => {
                self.broken += 1;
                count(reason);
            }
            Outcome::Wrong(_) | Outcome::TimedOut => {
                self.violations.push(format!("call {call}: {outcome:?}"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EFFECT: EventKind = EventKind::Started { kind: CallKind::Effect, steps: 0 };

    fn message(position: u64) -> EventKind {
        EventKind::Message { stream: 4, position }
    }

    /// Checks the events of call 7, which ran so many times.
    fn check_call(kinds: &[EventKind], executions: usize) -> Summary {
        let at = Duration::from_secs(1);
        let events = kinds.iter().map(|kind| Event { at, call: 7, kind: kind.clone() });
        check(&events.collect::<Vec<_>>(), &HashMap::from([(7, executions)]))
    }

    fn end(outcome: Outcome, executions: usize) -> Summary {
        check_call(&[EFFECT, EventKind::Ended(outcome)], executions)
    }

    fn is_good(summary: &Summary) -> bool {
        summary.violations.is_empty()
    }

    #[test]
    fn a_call_with_a_result_ran_exactly_once() {
        assert!(is_good(&end(Outcome::Acknowledged, 1)));
        assert_eq!(end(Outcome::Acknowledged, 0).lost, 1);
        let twice = end(Outcome::Acknowledged, 2);
        assert_eq!((twice.twice, twice.violations.len()), (1, 1));
    }

    #[test]
    fn a_call_that_may_have_run_ran_at_most_once() {
        for outcome in [Outcome::Unknown, Outcome::Broken("x".into()), Outcome::Failed("x".into())]
        {
            assert!(is_good(&end(outcome.clone(), 0)) && is_good(&end(outcome.clone(), 1)));
            assert_eq!(end(outcome, 2).twice, 1);
        }
    }

    #[test]
    fn a_call_that_did_not_run_by_its_response_did_not_run() {
        for outcome in [Outcome::NotRun, Outcome::Refused(503)] {
            assert!(is_good(&end(outcome.clone(), 0)));
            assert_eq!(end(outcome, 1).violations.len(), 1);
        }
    }

    #[test]
    fn a_call_without_an_end_or_with_two_is_a_violation() {
        assert!(!is_good(&check_call(&[EFFECT], 1)));
        let ended = EventKind::Ended(Outcome::Acknowledged);
        assert!(!is_good(&check_call(&[EFFECT, ended.clone(), ended], 1)));
        assert!(
            !is_good(&end(Outcome::TimedOut, 0)) && !is_good(&end(Outcome::Wrong("x".into()), 1))
        );
    }

    #[test]
    fn a_missing_and_a_repeated_message_are_violations() {
        let ended = EventKind::Ended(Outcome::Acknowledged);
        let stream = |positions: &[u64]| {
            let messages = positions.iter().map(|position| message(*position));
            let kinds: Vec<_> =
                [EFFECT].into_iter().chain(messages).chain([ended.clone()]).collect();
            check_call(&kinds, 1)
        };
        for good in [&[1, 2, 3][..], &[0, 1, 2], &[0], &[1]] {
            assert!(is_good(&stream(good)), "{good:?}");
        }
        for gap in [&[2][..], &[0, 2], &[1, 2, 4]] {
            assert_eq!((stream(gap).gaps, stream(gap).repeats), (1, 0), "{gap:?}");
        }
        for repeat in [&[1, 1][..], &[1, 0], &[0, 0], &[1, 2, 1]] {
            assert_eq!((stream(repeat).gaps, stream(repeat).repeats), (0, 1), "{repeat:?}");
        }
        let other = EventKind::Message { stream: 5, position: 2 };
        assert!(!is_good(&check_call(&[EFFECT, message(1), other, ended], 1)));
    }

    #[test]
    fn the_progress_of_a_call_with_a_result_is_complete() {
        let started = EventKind::Started { kind: CallKind::Effect, steps: 2 };
        let run = |steps: &[u64], outcome: Outcome| {
            let progress = steps.iter().map(|step| EventKind::Progress(*step));
            let start = [started.clone()].into_iter();
            let kinds: Vec<_> = start.chain(progress).chain([EventKind::Ended(outcome)]).collect();
            check_call(&kinds, 1)
        };
        assert!(is_good(&run(&[1, 2], Outcome::Acknowledged)));
        assert!(is_good(&run(&[1], Outcome::Unknown)), "the call may have ended there");
        assert_eq!(run(&[1], Outcome::Acknowledged).gaps, 1);
        assert_eq!(run(&[2], Outcome::Unknown).gaps, 1);
        assert_eq!(run(&[1, 1], Outcome::Unknown).repeats, 1);
    }
}
