//! What reached a scripted model, request by request.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::http::request::Parts;
use serde_json::Value;
use tokio::sync::watch;

/// Requests kept; the oldest are forgotten first.
const KEPT: usize = 4096;

/// One HTTP request and how it was answered.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The HTTP method.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// What stands behind `?`; may be empty.
    pub query: String,
    /// The headers in the order they came, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; null where it is none.
    pub body: Value,
    /// The body as it came, with every number as it was written.
    pub text: String,
    /// The status it was answered with; none so far, or none because it hangs.
    pub status: Option<u16>,
}

impl Seen {
    /// The first header of this name, in whatever case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// The requests so far.
#[derive(Debug)]
pub(super) struct Log {
    seen: Mutex<(usize, VecDeque<Seen>)>,
    changed: watch::Sender<()>,
}

impl Log {
    pub(super) fn new() -> Self {
        Self { seen: Mutex::default(), changed: watch::Sender::new(()) }
    }

    /// Remembers a request; returns its number.
    pub(super) fn add(&self, head: &Parts, body: &[u8]) -> usize {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let headers = head.headers.iter();
        let headers =
            headers.map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes())));
        let one = Seen {
            method: head.method.as_str().to_owned(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            headers: headers.collect(),
            body: serde_json::from_slice(body).unwrap_or_default(),
            text: text(body),
            status: None,
        };
        let mut seen = self.lock();
        if seen.1.len() == KEPT {
            seen.1.pop_front();
            seen.0 += 1;
        }
        seen.1.push_back(one);
        let number = seen.0 + seen.1.len();
        drop(seen);
        self.changed.send_replace(());
        number
    }

    /// Remembers how a request was answered.
    pub(super) fn answered(&self, number: usize, status: u16) {
        let mut seen = self.lock();
        let place = number.checked_sub(seen.0 + 1);
        if let Some(one) = place.and_then(|place| seen.1.get_mut(place)) {
            one.status = Some(status);
        }
        drop(seen);
        self.changed.send_replace(());
    }

    pub(super) fn all(&self) -> Vec<Seen> {
        self.lock().1.iter().cloned().collect()
    }

    /// Those behind the first `number`, as far as they are kept.
    pub(super) fn since(&self, number: usize) -> Vec<Seen> {
        let seen = self.lock();
        seen.1.iter().skip(number.saturating_sub(seen.0)).cloned().collect()
    }

    /// Waits, without a bound of its own, until there are more than `number`.
    pub(super) async fn beyond(&self, number: usize) {
        let mut changed = self.changed.subscribe();
        while self.count() <= number && changed.changed().await.is_ok() {}
    }

    fn count(&self) -> usize {
        let seen = self.lock();
        seen.0 + seen.1.len()
    }

    /// Waits, without a bound of its own, until the requests are as wanted.
    pub(super) async fn until(&self, wanted: impl Fn(&[Seen]) -> bool) -> Vec<Seen> {
        let mut changed = self.changed.subscribe();
        loop {
            let seen = self.all();
            if wanted(&seen) || changed.changed().await.is_err() {
                return seen;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, (usize, VecDeque<Seen>)> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
