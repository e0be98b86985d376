//! Requests of the host itself: lists, pings, log levels and subscriptions.

use crate::session::HeaderValues;
use std::time::Duration;

use innkeeper_protocol::JsonText;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::call_recorder::millis;
use super::round_trips::RoundTripParams;
use super::{Connection, RequestParams, RequestSpec};
use crate::deadline::RequestDeadlines;
use crate::error::CallError;
use crate::event::REPORTED_TARGET;
use crate::session::Budgeted;

impl Connection {
    /// Sends a request of the host itself (lists); logged, but not counted in the metrics.
    pub(crate) async fn request_internal(
        &self,
        method: &'static str,
        params: &(dyn JsonText + Sync),
        timeout: Duration,
    ) -> Result<Box<RawValue>, CallError> {
        let started = Instant::now();
        let mut id = None;
        let time = RequestDeadlines::new(started, timeout, timeout);
        let params = RequestParams::Whole(params);
        let spec = RequestSpec {
            headers: HeaderValues::default(),
            ..RequestSpec::new(method, method, params, timeout)
        };
        let mut attempts = self.attempts(&spec, time.idle_deadline);
        let response = loop {
            let next = *id.insert(self.session.next_id());
            let response =
                Some(self.send(&spec, next, None, RoundTripParams::default(), time).await);
            if let Some(response) = self.final_result(&mut attempts, &spec, response).await {
                break response;
            }
        };
        let response = response.map(Budgeted::into_inner).map_err(|failure| {
            self.call_error(failure, method, timeout).with_attempts(attempts.count())
        });
        let latency_ms = millis(started.elapsed());
        let server = &*self.server;
        match &response {
            Ok(_) => tracing::info!(server, method, id, latency_ms, outcome = "ok", "request"),
            Err(error) => {
                let outcome = error.kind().as_str();
                let error: &dyn std::error::Error = error;
                tracing::warn!(
                    target: REPORTED_TARGET,
                    server, method, id, latency_ms, outcome, error, "request"
                );
            }
        }
        response
    }
}
