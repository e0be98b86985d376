//! The request log of a remote server.

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
    /// The number of the request, starting at one.
    pub number: usize,
    /// The HTTP method.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers in their order, with names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as JSON; the text if the body is not JSON, null if the body is empty.
    pub body: Value,
    /// The status of the response; none before the response or because of a fault.
    pub status: Option<u16>,
    /// The fault that affected the request.
    pub fault: Option<String>,
}

impl RecordedRequest {
    /// Returns the first header with this name, ignoring case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let matched = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        matched.map(|(_, value)| value.as_str())
    }

    /// Returns the JSON-RPC method of the body.
    #[must_use]
    pub fn rpc_method(&self) -> Option<&str> {
        self.body.get("method")?.as_str()
    }
}

#[derive(Debug)]
pub(super) struct RequestLog {
    requests: Mutex<(usize, VecDeque<RecordedRequest>)>,
    changed: watch::Sender<()>,
}

impl RequestLog {
    pub(super) fn new() -> Self {
        Self { requests: Mutex::new((0, VecDeque::new())), changed: watch::Sender::new(()) }
    }

    /// Adds a request; returns its number.
    pub(super) fn add(&self, head: &Parts, body: &[u8], fault: Option<String>) -> usize {
        let headers = head.headers.iter();
        let headers = headers.map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        });
        let body = match serde_json::from_slice(body) {
            Ok(body) => body,
            Err(_) if body.is_empty() => Value::Null,
            Err(_) => Value::String(String::from_utf8_lossy(body).into_owned()),
        };
        let mut log = self.lock();
        log.0 += 1;
        let number = log.0;
        let request = RecordedRequest {
            number,
            method: head.method.as_str().to_owned(),
            path: head.uri.path_and_query().map_or_else(String::new, ToString::to_string),
            headers: headers.collect(),
            body,
            status: None,
            fault,
        };
        if log.1.len() == MAX_REQUESTS {
            log.1.pop_front();
        }
        log.1.push_back(request);
        drop(log);
        self.changed.send_replace(());
        number
    }

    pub(super) fn record_status(&self, number: usize, status: u16) {
        if let Some(request) = self.lock().1.iter_mut().rfind(|request| request.number == number) {
            request.status = Some(status);
        }
        self.changed.send_replace(());
    }

    pub(super) fn all(&self) -> Vec<RecordedRequest> {
        self.lock().1.iter().cloned().collect()
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
