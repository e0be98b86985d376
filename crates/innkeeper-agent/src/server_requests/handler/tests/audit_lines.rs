//! Tests of the audit events.

use std::fmt::{Debug, Write as _};

use innkeeper_host::audit::TARGET;
use tracing::field::{Field, Visit};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};

use super::*;
use crate::provider::Usage;

/// Records the audit events of the thread, one line each, without hashes and durations.
#[derive(Clone, Default)]
struct AuditLines(Arc<Mutex<Vec<String>>>);

impl<S: tracing::Subscriber> Layer<S> for AuditLines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        if metadata.target() == TARGET {
            let mut line = EventLine(metadata.level().to_string());
            event.record(&mut line);
            self.0.lock().unwrap().push(line.0);
        }
    }
}

struct EventLine(String);

impl Visit for EventLine {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        match field.name() {
            "message" | "milliseconds" | "security" => {}
            "parameters_sha256" => assert_eq!(format!("{value:?}").len(), 18),
            "response_sha256" => self.0.push_str(" response"),
            name => write!(self.0, " {name}={value:?}").unwrap(),
        }
    }
}

#[tokio::test]
async fn each_request_has_one_audit_event_with_hashes_in_place_of_texts() {
    let lines = AuditLines::default();
    let subscriber = tracing_subscriber::registry().with(lines.clone());
    let _guard = tracing::subscriber::set_default(subscriber);
    let usage = Some(Usage { prompt_tokens: 3, completion_tokens: 2, ..Usage::default() });
    let reply = Response { usage, ..Response::from_text("Blue.") };
    let settings = ServerRequestSettings {
        max_sampling_per_minute: 4,
        max_sampling_tokens: 16,
        ..allow_all()
    };
    let failure = LlmError::new("p", LlmErrorKind::Connection, "no route");
    let (sampler, _) = handler(settings, [Ok(reply), Err(failure)]);
    sampler.respond(sampling("a", 16)).await.unwrap();
    sampler.respond(sampling("a", 16)).await.unwrap_err();
    sampler.respond(sampling("a", 17)).await.unwrap_err();
    let unknown = ServerRequest { call: CallReference::Unknown, ..sampling("a", 0) };
    sampler.respond(unknown).await.unwrap_err();
    sampler.respond(sampling("a", 16)).await.unwrap_err();
    sampler.respond(elicitation("a")).await.unwrap();
    let user = TestUser::new(ApprovalDecision::Approve, values(&json!({"colour": "red"})));
    handler(ask(&user), []).0.respond(elicitation("a")).await.unwrap();
    let (nested, _) = nested_model();
    let _ = nested.respond(sampling("a", 16)).now_or_never();
    let lines = lines.0.lock().unwrap().join("\n");
    let expected = r#"
 INFO audit="sampling" server="a" item="paint" outcome="answered" response total_tokens=5
 INFO audit="sampling" server="a" item="paint" outcome="failed" why="model not reachable"
 WARN audit="sampling" server="a" item="paint" outcome="refused" why="too many tokens"
 WARN audit="sampling" server="a" outcome="refused" why="invalid parameters"
 WARN audit="sampling" server="a" item="paint" outcome="refused" why="budget used up"
 INFO audit="elicitation" server="a" item="paint" outcome="denied" why="no user interface"
 INFO audit="elicitation" server="a" item="paint" outcome="answered" response
 INFO audit="sampling" server="a" item="paint" outcome="cancelled""#;
    let expected: Vec<_> = expected.trim().lines().map(str::trim).collect();
    assert_eq!(lines.lines().map(str::trim).collect::<Vec<_>>(), expected, "{lines}");
}
