//! OpenTelemetry spans of a run and of its requests to the model, by the conventions for generative
//! AI. The host has the spans of the calls.

use std::future::Future;

use innkeeper_host::Telemetry;
use opentelemetry::trace::{FutureExt as _, SpanBuilder, SpanKind, Status, TraceContextExt as _};
use opentelemetry::{Context, KeyValue};

use crate::provider::{LlmError, LlmProvider, Response};
use crate::run::RunOutcome;

use super::RunResult;

/// A span that has started; without a tracer provider, nothing. The span contains no text of the
/// user, the model or a tool.
pub(super) struct ActiveSpan(Option<Context>);

impl ActiveSpan {
    pub(super) fn start_run(telemetry: &Telemetry, provider: &dyn LlmProvider) -> Self {
        Self::start(telemetry, "invoke_agent", SpanKind::Internal, provider)
    }

    pub(super) fn start_request(telemetry: &Telemetry, provider: &dyn LlmProvider) -> Self {
        Self::start(telemetry, "chat", SpanKind::Client, provider)
    }

    fn start(
        telemetry: &Telemetry,
        operation: &'static str,
        kind: SpanKind,
        provider: &dyn LlmProvider,
    ) -> Self {
        let model = provider.model().to_owned();
        let attributes = vec![
            KeyValue::new("gen_ai.operation.name", operation),
            KeyValue::new("gen_ai.provider.name", provider.name().to_owned()),
            KeyValue::new("gen_ai.request.model", model.clone()),
        ];
        let builder = SpanBuilder::from_name(format!("{operation} {model}"));
        Self(telemetry.start_span(builder.with_kind(kind).with_attributes(attributes)))
    }

    /// Runs a future in the context of the span.
    pub(super) async fn enter<F: Future>(&self, future: F) -> F::Output {
        match &self.0 {
            Some(context) => future.with_context(context.clone()).await,
            None => future.await,
        }
    }

    pub(super) fn end_run(self, result: &RunResult) {
        let error = match &result.outcome {
            RunOutcome::Completed => None,
            RunOutcome::Truncated => Some("truncated"),
            RunOutcome::Refused => Some("refused"),
            RunOutcome::IterationLimit => Some("iteration_limit"),
            RunOutcome::Interrupted => Some("interrupted"),
            RunOutcome::CallFailed => Some("call_failed"),
            RunOutcome::LoopDetected => Some("loop_detected"),
            RunOutcome::NoValidCall { .. } => Some("no_valid_call"),
            RunOutcome::Failed(error) => Some(error.kind.name()),
            RunOutcome::NotSent { .. } => Some("not_sent"),
        };
        let usage = result.stats.usage;
        self.finish(
            [
                ("innkeeper.run.iterations", u64::from(result.stats.iterations)),
                ("innkeeper.run.tool_calls", result.tool_calls.len() as u64),
                ("gen_ai.usage.input_tokens", usage.prompt_tokens),
                ("gen_ai.usage.output_tokens", usage.completion_tokens),
            ],
            error,
        );
    }

    pub(super) fn end_request(self, outcome: &Result<Response, LlmError>) {
        match outcome {
            Ok(response) => {
                let usage = response.usage.unwrap_or_default();
                self.finish(
                    [
                        ("gen_ai.usage.input_tokens", usage.prompt_tokens),
                        ("gen_ai.usage.output_tokens", usage.completion_tokens),
                    ],
                    None,
                );
            }
            Err(error) => self.finish([], Some(error.kind.name())),
        }
    }

    fn finish<const N: usize>(self, counts: [(&'static str, u64); N], error: Option<&'static str>) {
        let Some(context) = self.0 else { return };
        let span = context.span();
        for (name, count) in counts {
            span.set_attribute(KeyValue::new(name, i64::try_from(count).unwrap_or(i64::MAX)));
        }
        if let Some(error) = error {
            span.set_attribute(KeyValue::new("error.type", error));
            span.set_status(Status::error(error));
        }
        span.end();
    }
}
