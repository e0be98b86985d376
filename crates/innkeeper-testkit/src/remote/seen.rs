//! What reached a remote server, request by request.

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
    /// Its number, counted from one.
    pub number: usize,
    /// The HTTP method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// The headers in the order they came, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; its text where it is none, null where it is empty.
    pub body: Value,
    /// The status it was answered with; none so far, or none because of a fault.
    pub status: Option<u16>,
    /// The fault it met.
    pub fault: Option<String>,
}

impl Seen {
    /// The first header of this name, in whatever case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The JSON-RPC method of its body.
    #[must_use]
    pub fn rpc_method(&self) -> Option<&str> {
        self.body.get("method")?.as_str()
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
        Self { seen: Mutex::new((0, VecDeque::new())), changed: watch::Sender::new(()) }
    }

    /// Remembers a request; returns its number.
    pub(super) fn add(&self, head: &Parts, body: &[u8], fault: Option<String>) -> usize {
        let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
        let headers = head.headers.iter();
        let headers =
            headers.map(|(name, value)| (name.as_str().to_owned(), text(value.as_bytes())));
        let body = match serde_json::from_slice(body) {
            Ok(body) => body,
            Err(_) if body.is_empty() => Value::Null,
            Err(_) => Value::String(text(body)),
        };
        let mut seen = self.lock();
        seen.0 += 1;
        let number = seen.0;
        let one = Seen {
            number,
            method: head.method.as_str().to_owned(),
            path: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
            headers: headers.collect(),
            body,
            status: None,
            fault,
        };
        if seen.1.len() == KEPT {
            seen.1.pop_front();
        }
        seen.1.push_back(one);
        drop(seen);
        self.changed.send_replace(());
        number
    }

    /// Remembers how a request was answered.
    pub(super) fn answered(&self, number: usize, status: u16) {
        if let Some(seen) = self.lock().1.iter_mut().rfind(|seen| seen.number == number) {
            seen.status = Some(status);
        }
        self.changed.send_replace(());
    }

    pub(super) fn all(&self) -> Vec<Seen> {
        self.lock().1.iter().cloned().collect()
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
