//! Headers: what proves who asks, and how long a provider wants us to wait.

use std::time::Duration;

use innkeeper_host::config::Secret;
use reqwest::RequestBuilder;
use reqwest::header::{HeaderMap, HeaderValue};

use crate::provider::{Class, Wire};

/// Adds the key in the way of the wire. One that cannot stand in a header is left out, and the
/// provider says that there is none.
pub(super) fn sign(request: RequestBuilder, wire: Wire, key: &Secret) -> RequestBuilder {
    let (name, value) = match wire {
        Wire::OpenAiChat | Wire::OpenAiResponses | Wire::Ollama => {
            ("authorization", format!("Bearer {}", key.expose()))
        }
        Wire::Anthropic => ("x-api-key", key.expose().to_owned()),
        Wire::GeminiGenerate | Wire::GeminiInteractions => {
            ("x-goog-api-key", key.expose().to_owned())
        }
    };
    match HeaderValue::try_from(value) {
        Ok(mut value) => {
            value.set_sensitive(true);
            request.header(name, value)
        }
        Err(_) => request,
    }
}

/// What the headers of a failure say about asking again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wait {
    again: Option<bool>,
    after: Option<Duration>,
}

/// Reads `x-should-retry`, `retry-after-ms` and `retry-after`: seconds, or a date, which is taken
/// against the `date` of the answer, so that it does not matter how clocks differ.
pub(super) fn wait(headers: &HeaderMap) -> Wait {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let again = match text("x-should-retry") {
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) | None => None,
    };
    let number = |name: &str, scale: f64| {
        let number: f64 = text(name)?.parse().ok()?;
        Duration::try_from_secs_f64(number * scale).ok()
    };
    let date = |name: &str| httpdate::parse_http_date(text(name)?).ok();
    let until = || date("retry-after")?.duration_since(date("date")?).ok();
    let after = number("retry-after-ms", 0.001).or_else(|| number("retry-after", 1.0));
    Wait { again, after: after.or_else(until) }
}

impl Wait {
    /// The class with what the headers say put in.
    pub(super) fn applied(self, class: Class) -> Class {
        let repeats = match (self.again, class) {
            (Some(again), Class::Later { .. } | Class::Request | Class::TimedOut) => again,
            (_, class) => class.may_be_repeated(),
        };
        match (class, repeats) {
            (Class::Later { after }, true) => Class::Later { after: self.after.or(after) },
            (Class::Request | Class::TimedOut, true) if self.again.is_some() => {
                Class::Later { after: self.after }
            }
            (Class::Later { .. } | Class::TimedOut, false) => Class::Request,
            (class, _) => class,
        }
    }
}
