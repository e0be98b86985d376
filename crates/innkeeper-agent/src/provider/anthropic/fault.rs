//! What went wrong, in the words of Anthropic and of llama.cpp's server.

use crate::provider::Class;
use crate::provider::codec::{Fault, Fields, class_of, plain};

/// Reads the body of an answer with another status than 200.
pub(super) fn read(status: u16, body: &[u8]) -> Fault {
    let text = String::from_utf8_lossy(body);
    match Fields::parse(&text) {
        Some(body) => told(Some(status), &body),
        None => Fault::new(class_of(status), plain(&text)),
    }
}

/// Reads an error. In a stream there is no status, and llama.cpp's server sends what otherwise is
/// inside of `error` alone.
pub(super) fn told(status: Option<u16>, body: &Fields<'_>) -> Fault {
    let inner = body.object("error");
    let error = inner.as_ref().unwrap_or(body);
    let kind = error.text("type").unwrap_or_default();
    let said = error.text("message").or_else(|| body.text("error"));
    let message = match said {
        Some(message) => plain(&message).to_owned(),
        None => plain(&kind).to_owned(),
    };
    let code = error.object("details").and_then(|it| it.text("error_code")).unwrap_or_default();
    let status = status.or_else(|| error.number("code").and_then(|it| u16::try_from(it).ok()));
    let class = by_code(&code)
        .or_else(|| by_kind(&kind))
        .or_else(|| by_message(&message))
        .or_else(|| status.map(class_of))
        .unwrap_or_else(|| unsaid(&kind));
    Fault::new(class, message)
}

/// Limits on what is spent come with the status of a limit on requests.
fn by_code(code: &str) -> Option<Class> {
    match code {
        "contract_spend_limit_reached"
        | "enforced_spend_limit_reached"
        | "linked_organization_spend_limit_reached"
        | "linked_organization_billing_unavailable" => Some(Class::Billing),
        _ => None,
    }
}

/// Kinds that say enough by themselves.
fn by_kind(kind: &str) -> Option<Class> {
    match kind {
        "authentication_error" | "permission_error" => Some(Class::Key),
        "billing_error" => Some(Class::Billing),
        "not_found_error" => Some(Class::NotFound),
        "rate_limit_error" | "overloaded_error" | "unavailable_error" => {
            Some(Class::Later { after: None })
        }
        "timeout_error" => Some(Class::TimedOut),
        "request_too_large" | "exceed_context_size_error" => Some(Class::TooLong),
        _ => None,
    }
}

/// Many different things are an `invalid_request_error` or a `server_error`.
fn by_message(message: &str) -> Option<Class> {
    let message = message.to_ascii_lowercase();
    let known = [
        (
            Class::TooLong,
            &["prompt is too long", "exceed context limit", "context size", "context length"][..],
        ),
        (Class::Billing, &["credit balance is too low", "reached your specified api usage limit"]),
        (Class::Refused, &["blocked by content filtering"]),
        (Class::NoTools, &["requires --jinja", "does not support tool", "tools are not supported"]),
        (Class::Malformed, &["failed to parse input"]),
    ];
    let found = known.iter().find(|(_, words)| words.iter().any(|it| message.contains(it)));
    found.map(|(class, _)| *class)
}

/// The class of an error in a stream that says no more than its kind.
fn unsaid(kind: &str) -> Class {
    match kind {
        "invalid_request_error" | "not_supported_error" => Class::Request,
        _ => Class::Later { after: None },
    }
}
