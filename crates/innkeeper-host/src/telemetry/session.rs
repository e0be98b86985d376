//! How long a server was ready: one measurement a session.

use std::sync::Arc;

use opentelemetry::KeyValue;
use tokio::time::Instant;

use super::{Meters, Reporter};
use crate::error::Lost;

/// The time of one session, told when this is dropped.
#[derive(Debug)]
pub(crate) struct SessionTime {
    meters: Option<Arc<Meters>>,
    about: Arc<[KeyValue]>,
    since: Instant,
    error: Option<&'static str>,
}

impl SessionTime {
    pub(super) fn begin(reporter: &Reporter) -> Self {
        let (meters, about) = (reporter.telemetry.meters.clone(), reporter.about.clone());
        Self { meters, about, since: Instant::now(), error: None }
    }

    /// The session ends because the server was lost.
    pub(crate) fn lost(mut self, lost: &Lost) {
        // Whoever shuts down loses nothing.
        self.error = (*lost != Lost::Shutdown).then(|| lost.as_str());
    }
}

impl Drop for SessionTime {
    fn drop(&mut self) {
        let Some(meters) = &self.meters else { return };
        let mut about = self.about.to_vec();
        about.extend(self.error.map(|error| KeyValue::new("error.type", error)));
        meters.sessions.record(self.since.elapsed().as_secs_f64(), &about);
    }
}
