//! Every security-relevant fact a host tells: one line of the log each, under one target.

use std::error::Error;

use crate::error::ServerFailure;

/// The target of these lines. Each has `security`, which is true, `audit`, which is the kind of
/// fact, and `server`; most have `why`, many `tool`, `item` (a prompt or resource) or `what`. None has a secret or the value of an
/// argument.
pub const TARGET: &str = "innkeeper::audit";

/// One fact about a server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fact<'a> {
    /// It could not be started.
    StartFailed { required: bool, error: &'a ServerFailure },
    /// Nobody has decided that it may be started.
    NotTrusted,
    /// A limit or a part of the sandbox has no effect.
    LimitNotApplied { what: &'a str, why: &'a str },
    /// Something of it is not as it was pinned.
    PinBroken { what: &'a str, why: &'a str, refused: bool },
    /// A tool that is kept out was called.
    ToolRefused { tool: &'a str, why: &'a str },
    /// A rule of the configuration forbids the arguments.
    ArgumentsRefused { tool: &'a str, rule: &'a str },
    /// A form of it asks the user for a secret.
    SecretAsked { what: &'a str },
    /// Something of it looks as if it were made to deceive.
    Doubtful { tool: Option<&'a str>, why: &'a str },
    /// The guard has found what looks like an attack.
    Suspicious {
        tool: Option<&'a str>,
        item: Option<&'a str>,
        what: &'a str,
        why: &'a str,
        refused: bool,
    },
    /// The application's decision on it panicked; it counts as a no.
    TrustPanicked,
    /// It asked for something that it does not get; how often it did.
    RequestRefused { what: &'a str, why: &'a str, count: u64 },
    /// It named an address that is not asked on its behalf.
    AddressRefused { why: &'a str },
    /// It did not accept who we are: the HTTP status.
    AccessDenied { status: u16 },
    /// A sign-in begins.
    SigningIn,
    /// A sign-in has given a token.
    SignedIn,
    /// A sign-in has given none.
    NotSignedIn { why: &'a str },
    /// It names another authorization server than before.
    IssuerChanged,
}

/// A fact in the words of a line.
#[derive(Default)]
struct Line<'a> {
    kind: &'static str,
    words: &'static str,
    tool: Option<&'a str>,
    item: Option<&'a str>,
    what: Option<&'a str>,
    why: Option<&'a str>,
    refused: Option<bool>,
    required: Option<bool>,
    status: Option<u16>,
    count: Option<u64>,
    error: Option<&'a (dyn Error + 'static)>,
}

impl<'a> Fact<'a> {
    /// Writes the line.
    pub(crate) fn tell(self, server: &str) {
        macro_rules! told {
            ($level:ident) => {{
                let Line { kind, words, tool, item, what, why, .. } = self.line();
                let Line { refused, required, status, count, error, .. } = self.line();
                tracing::$level!(
                    target: TARGET,
                    server,
                    tool,
                    item,
                    what,
                    why,
                    refused,
                    required,
                    status,
                    count,
                    error,
                    audit = kind,
                    security = true,
                    "{words}"
                );
            }};
        }
        match self {
            Self::StartFailed { .. } => told!(error),
            // An expired token is refused as well.
            Self::SigningIn | Self::SignedIn | Self::AccessDenied { .. } => told!(info),
            Self::NotTrusted
            | Self::LimitNotApplied { .. }
            | Self::PinBroken { .. }
            | Self::ToolRefused { .. }
            | Self::ArgumentsRefused { .. }
            | Self::SecretAsked { .. }
            | Self::Doubtful { .. }
            | Self::Suspicious { .. }
            | Self::TrustPanicked
            | Self::RequestRefused { .. }
            | Self::AddressRefused { .. }
            | Self::NotSignedIn { .. }
            | Self::IssuerChanged => told!(warn),
        }
    }

    fn line(self) -> Line<'a> {
        let line = |kind, words| Line { kind, words, ..Line::default() };
        match self {
            Self::StartFailed { required, error } => Line {
                required: Some(required),
                error: Some(error),
                ..line("start-failed", "start failed")
            },
            Self::NotTrusted => line("not-trusted", "not trusted, not started"),
            Self::LimitNotApplied { what, why } => Line {
                what: Some(what),
                why: Some(why),
                ..line("limit-not-applied", "limit not applied")
            },
            Self::PinBroken { what, why, refused } => Line {
                what: Some(what),
                why: Some(why),
                refused: Some(refused),
                ..line("pin-broken", "pin broken")
            },
            Self::ToolRefused { tool, why } => {
                Line { tool: Some(tool), why: Some(why), ..line("tool-refused", "tool refused") }
            }
            Self::ArgumentsRefused { tool, rule } => Line {
                tool: Some(tool),
                why: Some(rule),
                ..line("arguments-refused", "arguments refused")
            },
            Self::SecretAsked { what } => {
                let words = "a form asks for a secret: refused";
                Line { what: Some(what), ..line("secret-asked", words) }
            }
            Self::Doubtful { tool, why } => {
                Line { tool, why: Some(why), ..line("doubtful", "looks deceptive") }
            }
            Self::Suspicious { tool, item, what, why, refused } => Line {
                tool,
                item,
                what: Some(what),
                why: Some(why),
                refused: Some(refused),
                ..line("suspicious", "looks like an attack")
            },
            Self::TrustPanicked => line("trust-panicked", "asking for trust panicked"),
            Self::RequestRefused { what, why, count } => Line {
                what: Some(what),
                why: Some(why),
                count: Some(count),
                ..line("request-refused", "request of the server refused")
            },
            Self::AddressRefused { why } => {
                Line { why: Some(why), ..line("address-refused", "address refused") }
            }
            Self::AccessDenied { status } => {
                Line { status: Some(status), ..line("access-denied", "access denied") }
            }
            Self::SigningIn => line("signing-in", "signing in"),
            Self::SignedIn => line("signed-in", "signed in"),
            Self::NotSignedIn { why } => {
                Line { why: Some(why), ..line("not-signed-in", "not signed in") }
            }
            Self::IssuerChanged => line(
                "issuer-changed",
                "another authorization server than before, its tokens are dropped",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use tracing::field::{Field, Visit};
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt};

    use super::*;
    use crate::error::{Phase, StartReason};

    type Fields = BTreeMap<&'static str, String>;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<(&'static str, Fields)>>>);

    struct Reading(Fields);

    impl Visit for Reading {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            self.0.insert(field.name(), format!("{value:?}"));
        }
    }

    impl<S: tracing::Subscriber> Layer<S> for Lines {
        fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
            let mut fields = Reading(Fields::new());
            event.record(&mut fields);
            self.0.lock().unwrap().push((event.metadata().target(), fields.0));
        }
    }

    /// Proves: TR10.5
    #[test]
    fn every_fact_is_one_line_at_the_target_with_its_kind_and_server() {
        let failure = ServerFailure {
            server: "a".into(),
            phase: Phase::Launch,
            reason: StartReason::TimedOut(Duration::from_secs(1)),
            stderr: String::new(),
            attempts: 1,
        };
        let (what, tool, why) = ("w", "t", "because");
        let facts = [
            Fact::StartFailed { required: true, error: &failure },
            Fact::NotTrusted,
            Fact::LimitNotApplied { what, why },
            Fact::PinBroken { what, why, refused: true },
            Fact::ToolRefused { tool, why },
            Fact::ArgumentsRefused { tool, rule: why },
            Fact::Suspicious { tool: Some(tool), item: None, what, why, refused: true },
            Fact::RequestRefused { what, why, count: 1 },
            Fact::AddressRefused { why },
            Fact::AccessDenied { status: 401 },
            Fact::SigningIn,
            Fact::SignedIn,
            Fact::NotSignedIn { why },
            Fact::IssuerChanged,
        ];
        let lines = Lines::default();
        let subscriber = tracing_subscriber::registry().with(lines.clone());
        tracing::subscriber::with_default(subscriber, || facts.map(|fact| fact.tell("a")));
        let lines = lines.0.lock().unwrap();
        assert_eq!(lines.len(), facts.len());
        let mut kinds: Vec<&str> = Vec::new();
        for (target, fields) in &*lines {
            assert_eq!((*target, &*fields["security"]), (TARGET, "true"), "{fields:?}");
            assert_eq!(fields["server"], "\"a\"");
            assert!(!kinds.contains(&&*fields["audit"]), "{fields:?}");
            kinds.push(&fields["audit"]);
        }
    }
}
