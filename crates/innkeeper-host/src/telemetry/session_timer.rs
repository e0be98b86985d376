//! The duration of a session, recorded once per session.

use std::sync::Arc;

use opentelemetry::KeyValue;
use tokio::time::Instant;

use super::{ConnectionTelemetry, MetricInstruments};
use crate::error::UnavailableReason;

/// The timer of one session. Records the duration when dropped.
#[derive(Debug)]
pub(crate) struct SessionTimer {
    metrics: Option<Arc<MetricInstruments>>,
    attributes: Arc<[KeyValue]>,
    started_at: Instant,
    error: Option<&'static str>,
}

impl SessionTimer {
    pub(super) fn start(connection: &ConnectionTelemetry) -> Self {
        let metrics = connection.telemetry.metrics.clone();
        let attributes = connection.attributes.clone();
        Self { metrics, attributes, started_at: Instant::now(), error: None }
    }

    /// Ends the session with the reason why the server became unavailable.
    pub(crate) fn fail(mut self, reason: &UnavailableReason) {
        // A shutdown is not an error.
        self.error = (*reason != UnavailableReason::Shutdown).then(|| reason.as_str());
    }
}

impl Drop for SessionTimer {
    fn drop(&mut self) {
        let Some(instruments) = &self.metrics else { return };
        let mut attributes = self.attributes.to_vec();
        attributes.extend(self.error.map(|error| KeyValue::new("error.type", error)));
        instruments.session_duration.record(self.started_at.elapsed().as_secs_f64(), &attributes);
    }
}
