//! How old lists may become before they are read again, where a server does not tell of changes.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use innkeeper_protocol::skim;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::connection::{Connection, LONGEST};
use super::session::Change;

/// The least time between two readings of a list for its age: often enough for a person, seldom
/// enough for a server that says a millisecond.
const LEAST: Duration = Duration::from_secs(1);

/// Until when each list is good, as far as its server says.
#[derive(Debug, Default)]
pub(crate) struct Ages {
    lists: Mutex<Lists>,
    read: Notify,
}

#[derive(Debug, Default)]
struct Lists {
    tools: Option<Age>,
    prompts: Option<Age>,
    resources: Option<Age>,
}

#[derive(Clone, Copy, Debug)]
struct Age {
    good_for: Duration,
    ends: Instant,
}

impl Age {
    /// Nothing good for no time at all is read again and again: it is as if nothing were said.
    fn of(good_for: Option<Duration>) -> Option<Self> {
        let good_for = good_for.filter(|good_for| !good_for.is_zero())?;
        let good_for = good_for.clamp(LEAST, LONGEST);
        Some(Self { good_for, ends: Instant::now() + good_for })
    }
}

/// What the shortest of several hints is; `None` is no hint.
pub(super) fn shorter(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// How long a result is good for, as its server says (`ttlMs`).
pub(super) fn hint(result: &RawValue) -> Option<Duration> {
    let hint = skim::member(result.get(), "ttlMs")?;
    hint.parse().ok().map(Duration::from_millis)
}

impl Ages {
    fn lists(&self) -> MutexGuard<'_, Lists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These lists were read now, and are good for so long.
    pub(super) fn read(&self, read: Change, good_for: [Option<Duration>; 3]) {
        let mut lists = self.lists();
        let Lists { tools, prompts, resources } = &mut *lists;
        let of = [(read.tools, tools), (read.prompts, prompts), (read.resources, resources)];
        for ((was_read, age), good_for) in of.into_iter().zip(good_for) {
            if was_read {
                *age = Age::of(good_for);
            }
        }
        drop(lists);
        self.read.notify_one();
    }

    fn next(&self) -> Option<Instant> {
        let lists = self.lists();
        let all = [lists.tools, lists.prompts, lists.resources];
        all.into_iter().flatten().map(|age| age.ends).min()
    }

    /// The lists that are too old now. They count as young again, so that a reading that fails is
    /// followed by another.
    fn take_old(&self) -> Change {
        let now = Instant::now();
        let mut lists = self.lists();
        let old = |age: &mut Option<Age>| match age {
            Some(age) if age.ends <= now => {
                age.ends = now + age.good_for;
                true
            }
            Some(_) | None => false,
        };
        Change {
            tools: old(&mut lists.tools),
            prompts: old(&mut lists.prompts),
            resources: old(&mut lists.resources),
            told: false,
        }
    }
}

/// Has lists looked at when they are older than their server says they are good for.
pub(super) async fn look_again(connection: &Connection) {
    let Connection { ages, session, .. } = connection;
    loop {
        let Some(ends) = ages.next() else {
            ages.read.notified().await;
            continue;
        };
        tokio::select! {
            () = sleep_until(ends) => session.look_at(ages.take_old()),
            () = ages.read.notified() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Change = Change { tools: true, prompts: true, resources: true, told: true };

    fn millis(millis: u64) -> Option<Duration> {
        Some(Duration::from_millis(millis))
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_is_old_when_its_server_says_after_a_second_at_least_and_else_never() {
        let ages = Ages::default();
        ages.read(ALL, [None, millis(0), None]);
        assert_eq!(ages.next(), None);
        ages.read(ALL, [millis(1), millis(5000), millis(u64::MAX)]);
        assert_eq!(ages.next(), Some(Instant::now() + LEAST));
        assert_eq!(ages.take_old(), Change::default());
        tokio::time::advance(LEAST).await;
        let tools = Change { tools: true, ..Change::default() };
        assert_eq!((ages.take_old(), ages.take_old()), (tools, Change::default()));
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(ages.take_old(), Change { prompts: true, ..tools });
        ages.read(Change { tools: true, ..Change::default() }, [None; 3]);
        assert_eq!(ages.next(), Some(Instant::now() + Duration::from_secs(5)), "of the prompts");
    }

    #[test]
    fn the_shortest_hint_of_several_pages_counts() {
        let hint_of = |text: &str| hint(&RawValue::from_string(text.to_owned()).unwrap());
        assert_eq!(hint_of(r#"{"ttlMs":300,"tools":[]}"#), millis(300));
        for none in [r#"{"tools":[]}"#, r#"{"ttlMs":-1}"#, r#"{"ttlMs":"300"}"#] {
            assert_eq!(hint_of(none), None, "{none}");
        }
        assert_eq!(shorter(millis(300), millis(200)), millis(200));
        assert_eq!([shorter(None, millis(200)), shorter(None, None)], [millis(200), None]);
    }
}
