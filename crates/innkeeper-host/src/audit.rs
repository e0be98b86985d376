//! Security audit log: one line per security-relevant event, under one target.

use std::error::Error;

/// The `tracing` target of the audit log.
///
/// Each line has the fields `security` (always `true`), `audit` (the kind of event) and `server`.
/// Most lines have `why`, many have `tool`, `item` (a prompt or resource) or `what`. No line
/// contains a secret or the value of an argument.
pub const TARGET: &str = "innkeeper::audit";

/// A security-relevant event of one server.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AuditEvent<'a> {
    /// The server failed to start.
    StartFailed { required: bool, error: &'a (dyn Error + 'static) },
    /// The server has no trust decision that allows the start.
    NotTrusted,
    /// A resource limit or a part of the sandbox has no effect.
    LimitNotApplied { key: &'a str, reason: &'a str },
    /// An item of the server differs from its pin.
    PinMismatch { subject: &'a str, reason: &'a str, withheld: bool },
    /// The application called an excluded tool.
    ToolRefused { tool: &'a str, reason: &'a str },
    /// A rule of the configuration forbids the arguments.
    ArgumentsRefused { tool: &'a str, rule: &'a str },
    /// An elicitation form of the server asks the user for a secret.
    SecretAsked { subject: &'a str },
    /// An item of the server looks deceptive.
    SecurityWarning { tool: Option<&'a str>, reason: &'a str },
    /// The guard detected a possible attack.
    GuardFinding {
        tool: Option<&'a str>,
        item: Option<&'a str>,
        subject: &'a str,
        reason: &'a str,
        withheld: bool,
    },
    /// The application's trust decision panicked. The host counts the panic as a denial.
    TrustPanicked,
    /// The host rejected `count` requests of the server.
    RequestRefused { subject: &'a str, reason: &'a str, count: u64 },
    /// The server named an address that the host does not contact for a server.
    AddressRefused { reason: &'a str },
    /// The server rejected the credentials with this HTTP status.
    AccessDenied { status: u16 },
    /// A sign-in started.
    SigningIn,
    /// A sign-in returned a token.
    SignedIn,
    /// A sign-in failed.
    NotSignedIn { reason: &'a str },
    /// The server names a different authorization server than before.
    IssuerChanged,
}

/// The fields of one line of the audit log.
#[derive(Default)]
struct AuditRecord<'a> {
    kind: &'static str,
    message: &'static str,
    tool: Option<&'a str>,
    item: Option<&'a str>,
    subject: Option<&'a str>,
    reason: Option<&'a str>,
    withheld: Option<bool>,
    required: Option<bool>,
    status: Option<u16>,
    count: Option<u64>,
    error: Option<&'a (dyn Error + 'static)>,
}

impl<'a> AuditEvent<'a> {
    /// Writes the line to the log.
    pub(crate) fn emit(self, server: &str) {
        macro_rules! emit_at {
            ($level:ident) => {{
                let AuditRecord { kind, message, tool, item, subject, reason, .. } = self.to_record();
                let AuditRecord { withheld, required, status, count, error, .. } = self.to_record();
                tracing::$level!(
                    target: TARGET,
                    server,
                    tool,
                    item,
                    what = subject,
                    why = reason,
                    refused = withheld,
                    required,
                    status,
                    count,
                    error,
                    audit = kind,
                    security = true,
                    "{message}"
                );
            }};
        }
        match self {
            Self::StartFailed { .. } => emit_at!(error),
            // The level is `info` because a server also denies access when a token expires.
            Self::SigningIn | Self::SignedIn | Self::AccessDenied { .. } => emit_at!(info),
            Self::NotTrusted
            | Self::LimitNotApplied { .. }
            | Self::PinMismatch { .. }
            | Self::ToolRefused { .. }
            | Self::ArgumentsRefused { .. }
            | Self::SecretAsked { .. }
            | Self::SecurityWarning { .. }
            | Self::GuardFinding { .. }
            | Self::TrustPanicked
            | Self::RequestRefused { .. }
            | Self::AddressRefused { .. }
            | Self::NotSignedIn { .. }
            | Self::IssuerChanged => emit_at!(warn),
        }
    }

    fn to_record(self) -> AuditRecord<'a> {
        let line = |kind, message| AuditRecord { kind, message, ..AuditRecord::default() };
        match self {
            Self::StartFailed { required, error } => AuditRecord {
                required: required.then_some(true),
                error: Some(error),
                ..line("start-failed", "server start failed")
            },
            Self::NotTrusted => line("not-trusted", "server not trusted, not started"),
            Self::LimitNotApplied { key, reason } => AuditRecord {
                subject: Some(key),
                reason: Some(reason),
                ..line("limit-not-applied", "limit not applied")
            },
            Self::PinMismatch { subject, reason, withheld } => AuditRecord {
                subject: Some(subject),
                reason: Some(reason),
                withheld: Some(withheld),
                ..line("pin-mismatch", "pin mismatch")
            },
            Self::ToolRefused { tool, reason } => AuditRecord {
                tool: Some(tool),
                reason: Some(reason),
                ..line("tool-refused", "excluded tool called")
            },
            Self::ArgumentsRefused { tool, rule } => AuditRecord {
                tool: Some(tool),
                reason: Some(rule),
                ..line("arguments-refused", "arguments rejected")
            },
            Self::SecretAsked { subject } => {
                let message = "form with a secret field rejected";
                AuditRecord { subject: Some(subject), ..line("secret-asked", message) }
            }
            Self::SecurityWarning { tool, reason: why } => AuditRecord {
                tool,
                reason: Some(why),
                ..line("security-warning", "possible deception detected")
            },
            Self::GuardFinding { tool, item, subject, reason, withheld } => AuditRecord {
                tool,
                item,
                subject: Some(subject),
                reason: Some(reason),
                withheld: Some(withheld),
                ..line("guard-finding", "possible attack detected")
            },
            Self::TrustPanicked => line("trust-panicked", "trust decision panicked"),
            Self::RequestRefused { subject, reason, count } => AuditRecord {
                subject: Some(subject),
                reason: Some(reason),
                count: Some(count),
                ..line("request-refused", "server request rejected")
            },
            Self::AddressRefused { reason } => {
                AuditRecord { reason: Some(reason), ..line("address-refused", "address rejected") }
            }
            Self::AccessDenied { status } => {
                AuditRecord { status: Some(status), ..line("access-denied", "access denied") }
            }
            Self::SigningIn => line("signing-in", "sign-in started"),
            Self::SignedIn => line("signed-in", "signed in"),
            Self::NotSignedIn { reason } => {
                AuditRecord { reason: Some(reason), ..line("not-signed-in", "sign-in failed") }
            }
            Self::IssuerChanged => {
                line("issuer-changed", "authorization server changed, tokens discarded")
            }
        }
    }
}

#[cfg(test)]
mod tests;
