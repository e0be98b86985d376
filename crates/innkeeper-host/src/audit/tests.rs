//! Tests of the lines of the audit log.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

use super::*;
use crate::error::{ServerFailure, StartFailureReason, StartPhase};

type Fields = BTreeMap<&'static str, String>;

#[derive(Clone, Default)]
struct CaptureLayer(Arc<Mutex<Vec<(&'static str, Fields)>>>);

struct FieldVisitor(Fields);

impl Visit for FieldVisitor {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

impl<S: tracing::Subscriber> Layer<S> for CaptureLayer {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut fields = FieldVisitor(Fields::new());
        event.record(&mut fields);
        self.0.lock().unwrap().push((event.metadata().target(), fields.0));
    }
}

/// Proves: TR10.5
#[test]
fn every_fact_is_one_line_at_the_target_with_its_kind_and_server() {
    let failure = ServerFailure {
        server: "a".into(),
        phase: StartPhase::Launch,
        reason: StartFailureReason::TimedOut(Duration::from_secs(1)),
        stderr: String::new(),
        attempts: 1,
    };
    let (subject, tool, reason) = ("w", "t", "because");
    // A new kind does not compile here; its number is one more than the last.
    let number = |fact: &AuditEvent<'_>| match fact {
        AuditEvent::StartFailed { .. } => 0,
        AuditEvent::NotTrusted => 1,
        AuditEvent::LimitNotApplied { .. } => 2,
        AuditEvent::PinMismatch { .. } => 3,
        AuditEvent::ToolRefused { .. } => 4,
        AuditEvent::ArgumentsRefused { .. } => 5,
        AuditEvent::SecretAsked { .. } => 6,
        AuditEvent::SecurityWarning { .. } => 7,
        AuditEvent::GuardFinding { .. } => 8,
        AuditEvent::TrustPanicked => 9,
        AuditEvent::RequestRefused { .. } => 10,
        AuditEvent::AddressRefused { .. } => 11,
        AuditEvent::AccessDenied { .. } => 12,
        AuditEvent::SigningIn => 13,
        AuditEvent::SignedIn => 14,
        AuditEvent::NotSignedIn { .. } => 15,
        AuditEvent::IssuerChanged => 16,
    };
    let facts = [
        AuditEvent::StartFailed { required: true, error: &failure },
        AuditEvent::NotTrusted,
        AuditEvent::LimitNotApplied { key: subject, reason },
        AuditEvent::PinMismatch { subject, reason, withheld: true },
        AuditEvent::ToolRefused { tool, reason },
        AuditEvent::ArgumentsRefused { tool, rule: reason },
        AuditEvent::SecretAsked { subject },
        AuditEvent::SecurityWarning { tool: Some(tool), reason },
        AuditEvent::GuardFinding {
            tool: Some(tool),
            item: Some("i"),
            subject,
            reason,
            withheld: true,
        },
        AuditEvent::TrustPanicked,
        AuditEvent::RequestRefused { subject, reason, count: 1 },
        AuditEvent::AddressRefused { reason },
        AuditEvent::AccessDenied { status: 401 },
        AuditEvent::SigningIn,
        AuditEvent::SignedIn,
        AuditEvent::NotSignedIn { reason },
        AuditEvent::IssuerChanged,
    ];
    assert_eq!(facts.each_ref().map(number), std::array::from_fn::<_, 17, _>(|at| at));
    let lines = CaptureLayer::default();
    let subscriber = tracing_subscriber::registry().with(lines.clone());
    tracing::subscriber::with_default(subscriber, || facts.map(|fact| fact.emit("a")));
    let lines = lines.0.lock().unwrap();
    assert_eq!(lines.len(), facts.len());
    let mut kinds: Vec<&str> = Vec::new();
    for (target, fields) in &*lines {
        assert_eq!((*target, &*fields["security"]), (TARGET, "true"), "{fields:?}");
        assert_eq!(fields["server"], "\"a\"");
        assert!(!kinds.contains(&&*fields["audit"]), "{fields:?}");
        kinds.push(&fields["audit"]);
    }
    let shared = ["security", "server", "audit", "message"];
    let own_fields = lines.iter().map(|(_, fields)| {
        let own = fields.iter().filter(|(key, _)| !shared.contains(key));
        own.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    });
    assert_eq!(own_fields.collect::<Vec<_>>(), expected_fields(&failure));
}

/// Returns the fields of each fact but the kind, the server and the message.
fn expected_fields(failure: &ServerFailure) -> [String; 17] {
    let failure = format!("error={failure} required=true");
    let expected = [
        &*failure,
        "",
        r#"what="w" why="because""#,
        r#"refused=true what="w" why="because""#,
        r#"tool="t" why="because""#,
        r#"tool="t" why="because""#,
        r#"what="w""#,
        r#"tool="t" why="because""#,
        r#"item="i" refused=true tool="t" what="w" why="because""#,
        "",
        r#"count=1 what="w" why="because""#,
        r#"why="because""#,
        "status=401",
        "",
        "",
        r#"why="because""#,
        "",
    ];
    expected.map(str::to_owned)
}
