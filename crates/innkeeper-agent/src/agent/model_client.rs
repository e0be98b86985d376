//! Sends the requests of a run to the model, with the rate limit and the timeout.

use futures_util::StreamExt as _;
use innkeeper_host::Telemetry;

use super::spans::ActiveSpan;
use super::{AgentEvent, AgentSettings, EventSink};
use crate::provider::{LlmError, LlmErrorKind, LlmProvider, Request, Response, StreamChunk};
use crate::run::{Effect, Run, RunOutcome};
use crate::safety::RateLimit;
use crate::timing::Timing;

/// Sends requests to the model.
pub(super) struct ModelClient<'a> {
    pub(super) provider: &'a dyn LlmProvider,
    pub(super) settings: &'a AgentSettings,
    pub(super) rate_limit: Option<&'a RateLimit>,
    pub(super) telemetry: &'a Telemetry,
    pub(super) timing: &'a Timing,
    pub(super) streaming: bool,
}

impl ModelClient<'_> {
    /// Sends a request, and returns what the run does about the response or the failure.
    pub(super) async fn next_effect(
        &self,
        request: Request,
        run: &mut Run,
        sink: &mut EventSink<'_>,
    ) -> Effect {
        match self.send_request(request, run, sink).await {
            Ok(response) => {
                sink(AgentEvent::ResponseFinished { usage: response.usage });
                let mut effect = run.on_response(&response, self.timing.jitter());
                // A run does not know its provider.
                if let Effect::Finish(RunOutcome::Failed(error)) = &mut effect {
                    self.provider.name().clone_into(&mut error.provider);
                    error.model = self.provider.model().into();
                }
                effect
            }
            Err(error) => run.on_error(error, self.timing.jitter()),
        }
    }

    /// Sends a request within the rate limit, and returns the complete response.
    pub(super) async fn send_request(
        &self,
        request: Request,
        run: &mut Run,
        sink: &mut EventSink<'_>,
    ) -> Result<Response, LlmError> {
        self.acquire_rate_limit().await?;
        let request = Request { iteration: run.stats().iterations, ..request };
        let limit = self.settings.limits.response_timeout;
        let response = async {
            if self.streaming {
                self.stream_response(request, run, sink).await
            } else {
                self.provider.generate(request).await
            }
        };
        let span = ActiveSpan::start_request(self.telemetry, self.provider);
        let response = span.enter(self.timing.timeout(limit, response)).await;
        let response = response.unwrap_or_else(|| {
            let message = format!("no complete response within {} s", limit.as_secs());
            let model = self.provider.model().into();
            let error = LlmError::new(self.provider.name(), LlmErrorKind::TimedOut, message);
            Err(LlmError { model, ..error })
        });
        span.end_request(&response);
        response
    }

    /// Waits until the rate limit allows a request, or fails if it does not.
    async fn acquire_rate_limit(&self) -> Result<(), LlmError> {
        let Some(rate) = self.rate_limit else { return Ok(()) };
        while let Err(after) = rate.try_acquire_at(self.timing.now()) {
            if !self.settings.limits.wait_for_rate_limit || !rate.allows_any() {
                let message = format!(
                    "rate limit of {} requests per minute reached; next request in {:.1} s",
                    self.settings.limits.rate_limit_per_minute.unwrap_or_default(),
                    after.as_secs_f64()
                );
                let kind = LlmErrorKind::LocalRateLimit { after };
                return Err(LlmError::new(self.provider.name(), kind, message));
            }
            self.timing.sleep(after).await;
        }
        Ok(())
    }

    async fn stream_response(
        &self,
        request: Request,
        run: &mut Run,
        sink: &mut EventSink<'_>,
    ) -> Result<Response, LlmError> {
        let mut chunks = self.provider.stream(request);
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            run.on_chunk(&chunk, &mut |event| sink(event.into()));
            match chunk {
                StreamChunk::Done(response) => return Ok(*response),
                StreamChunk::Text(_)
                | StreamChunk::Reasoning(_)
                | StreamChunk::ToolCallStart { .. }
                | StreamChunk::ArgumentsDelta { .. } => {}
            }
        }
        let message = "the response is incomplete";
        Err(LlmError::new(self.provider.name(), LlmErrorKind::Connection, message))
    }
}
