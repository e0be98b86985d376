//! The request log of a scripted model.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hyper::http::request::Parts;
use serde_json::Value;
use tokio::sync::watch;

/// Maximum number of stored requests; the oldest requests are removed first.
const MAX_REQUESTS: usize = 4096;

/// An HTTP request with the status of its response.
#[derive(Clone, Debug)]
pub struct RecordedRequest {
    /// The HTTP method.
    pub method: String,
    /// The path without the query.
    pub path: String,
    /// The query after `?`; may be empty.
    pub query: String,
    /// The headers in their order, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; null if the body is not JSON.
    pub body: Value,
    /// The unchanged text of the body.
    pub text: String,
    /// The status of the response; none before the response.
    pub status: Option<u16>,
}

impl RecordedRequest {
    /// Returns the first header with this name, ignoring case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let matched = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        matched.map(|(_, value)| value.as_str())
    }
}

#[derive(Debug)]
pub(super) struct RequestLog {
    requests: Mutex<(usize, VecDeque<RecordedRequest>)>,
    changed: watch::Sender<()>,
}

impl RequestLog {
    pub(super) fn new() -> Self {
        Self { requests: Mutex::default(), changed: watch::Sender::new(()) }
    }

    /// Adds a request; returns its number.
    pub(super) fn add(&self, head: &Parts, body: &[u8]) -> usize {
        let headers = head.headers.iter();
        let headers = headers.map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let request = RecordedRequest {
            method: head.method.as_str().to_owned(),
            path: head.uri.path().to_owned(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            headers: headers.collect(),
            body: serde_json::from_slice(body).unwrap_or_default(),
            text: String::from_utf8_lossy(body).into_owned(),
            status: None,
        };
        let mut log = self.lock();
        if log.1.len() == MAX_REQUESTS {
            log.1.pop_front();
            log.0 += 1;
        }
        log.1.push_back(request);
        let number = log.0 + log.1.len();
        drop(log);
        self.changed.send_replace(());
        number
    }

    pub(super) fn record_status(&self, number: usize, status: u16) {
        let mut log = self.lock();
        let index = number.checked_sub(log.0 + 1);
        if let Some(request) = index.and_then(|index| log.1.get_mut(index)) {
            request.status = Some(status);
        }
        drop(log);
        self.changed.send_replace(());
    }

    pub(super) fn all(&self) -> Vec<RecordedRequest> {
        self.lock().1.iter().cloned().collect()
    }

    /// Returns the stored requests after the first `number`.
    pub(super) fn since(&self, number: usize) -> Vec<RecordedRequest> {
        let log = self.lock();
        log.1.iter().skip(number.saturating_sub(log.0)).cloned().collect()
    }

    /// Waits without a limit until there are more than `number` requests.
    pub(super) async fn wait_for_more_than(&self, number: usize) {
        let mut changed = self.changed.subscribe();
        while self.count() <= number && changed.changed().await.is_ok() {}
    }

    fn count(&self) -> usize {
        let log = self.lock();
        log.0 + log.1.len()
    }

    /// Waits without a limit until the requests meet a condition.
    pub(super) async fn wait_for(
        &self,
        condition: impl Fn(&[RecordedRequest]) -> bool,
    ) -> Vec<RecordedRequest> {
        let mut changed = self.changed.subscribe();
        loop {
            let requests = self.all();
            if condition(&requests) || changed.changed().await.is_err() {
                return requests;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, (usize, VecDeque<RecordedRequest>)> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
