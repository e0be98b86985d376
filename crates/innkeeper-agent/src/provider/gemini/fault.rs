//! Failures as Gemini tells them: one object, or a list with one, over both of its interfaces.

use std::time::Duration;

use serde_json::value::RawValue;

use crate::provider::Class;
use crate::provider::codec::{Fault, Fields, class_of, items};

/// Reads an answer with another status than 200.
pub(crate) fn fault(status: u16, body: &[u8]) -> Fault {
    let body = String::from_utf8_lossy(body);
    let body = body.trim();
    let raw: Option<&RawValue> = serde_json::from_str(body).ok();
    // Answers that were to come in pieces have their failure in a list.
    let raw = raw.map(|raw| items(raw.get()).and_then(|it| it.first().copied()).unwrap_or(raw));
    let told = raw.and_then(Fields::of).map(|fields| fault_of(&fields, status));
    told.unwrap_or_else(|| {
        let message = if body.is_empty() {
            format!("status {status}, and not a word")
        } else {
            body.to_owned()
        };
        Fault::new(class_of(status), message)
    })
}

/// Reads the failure in an object, be it the object itself or its `error`.
pub(crate) fn fault_of(fields: &Fields<'_>, status: u16) -> Fault {
    let inner = fields.object("error").filter(|it| it.iter().next().is_some());
    let error = inner.as_ref().unwrap_or(fields);
    let word = error.text("status").or_else(|| error.text("code")).unwrap_or_default();
    // A word of the newer interface may be the end of an address, and in small letters.
    let word = word.rsplit('/').next().unwrap_or_default().to_ascii_uppercase();
    let message = error.text("message").or_else(|| fields.text("error"));
    let message = message.unwrap_or_else(|| match word.as_str() {
        "" => format!("status {status}, and not a word"),
        word => word.to_owned(),
    });
    let details = error.list("details").unwrap_or_default();
    let details: Vec<_> = details.into_iter().filter_map(Fields::of).collect();
    let reason = details.iter().find_map(|it| it.text("reason")).unwrap_or_default();
    let after = details.iter().find_map(|it| it.text("retryDelay")).and_then(|it| seconds(&it));
    // Below 100 it is a code of gRPC.
    let code = error.number("code").filter(|code| *code >= 100);
    let status = code.and_then(|code| u16::try_from(code).ok()).unwrap_or(status);
    let class = match class(&word, &reason, &message.to_ascii_lowercase(), status) {
        Class::Later { .. } => Class::Later { after },
        class => class,
    };
    Fault::new(class, message)
}

/// The class by the most exact of what is told. `says` is the message in small letters.
fn class(word: &str, reason: &str, says: &str, status: u16) -> Class {
    if reason.starts_with("API_KEY_") || says.contains("api key") {
        return Class::Key;
    }
    match word {
        "RESOURCE_EXHAUSTED" if says.contains("credits are depleted") => Class::Billing,
        "RESOURCE_EXHAUSTED" | "TOO_MANY_REQUESTS" | "RATE_LIMIT_EXCEEDED" => later(),
        "PERMISSION_DENIED" if reason == "BILLING_DISABLED" => Class::Billing,
        "UNAUTHENTICATED" | "PERMISSION_DENIED" => Class::Key,
        "INVALID_ARGUMENT" | "INVALID_REQUEST" | "OUT_OF_RANGE" => request(says),
        "FAILED_PRECONDITION" if says.contains("billing") => Class::Billing,
        "FAILED_PRECONDITION" => Class::Request,
        "NOT_FOUND" => Class::NotFound,
        "UNAVAILABLE"
        | "SERVICE_UNAVAILABLE"
        | "INTERNAL"
        | "INTERNAL_ERROR"
        | "ABORTED"
        | "OVERLOADED" => later(),
        "DEADLINE_EXCEEDED" | "GATEWAY_TIMEOUT" => Class::TimedOut,
        _ if status == 400 => request(says),
        _ => class_of(status),
    }
}

fn later() -> Class {
    Class::Later { after: None }
}

/// What is wrong with a request, which only the message tells.
fn request(says: &str) -> Class {
    if says.contains("token count") || says.contains("maximum number of tokens") {
        Class::TooLong
    } else if says.contains("function calling is not enabled") {
        Class::NoTools
    } else {
        Class::Request
    }
}

/// A time as `34s` or `34.07s`.
fn seconds(told: &str) -> Option<Duration> {
    let seconds = told.strip_suffix('s')?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests;
