//! Failures in the words of OpenAI and of the servers that speak like it.

use crate::provider::Class;
use crate::provider::codec::{Fault, Fields, class_of, items, texts};

/// An answer with another status than 200.
pub(in crate::provider) fn fault(status: u16, body: &[u8]) -> Fault {
    let text = String::from_utf8_lossy(body);
    let told = Fields::parse(&text).or_else(|| {
        // Google's servers put the object into an array.
        items(&text)?.first().copied().and_then(Fields::of)
    });
    let told = told.map(|fields| Told::of(&fields)).unwrap_or_default();
    let mut fault = told.fault(Some(status));
    if fault.message.is_empty() {
        let said = text.trim();
        let said = if said.is_empty() { "the answer says nothing of why" } else { said };
        fault =
            Fault { class: fault.class, written: fault.written, ..Fault::new(fault.class, said) };
    }
    fault
}

/// The failure that an object tells, in an answer that has status 200: a body, an event or a choice.
pub(in crate::provider) fn told(fields: &Fields<'_>) -> Fault {
    let mut fault = Told::of(fields).fault(None);
    if fault.message.is_empty() {
        fault.message.push_str("the answer says that it failed, but not why");
    }
    fault
}

/// What an error object says, whatever form it has.
#[derive(Default)]
struct Told {
    message: String,
    code: String,
    kind: String,
    param: String,
    /// A status that is told as the code.
    status: Option<u16>,
    /// What the model had written.
    written: Option<String>,
    /// The provider watched what was asked, and has reasons.
    watched: bool,
}

impl Told {
    fn of(fields: &Fields<'_>) -> Self {
        if let Some(error) = fields.object("error") {
            return Self::inner(&error);
        }
        let mut told = Self::inner(fields);
        if let Some(error) = fields.word("error") {
            told.message = error;
        }
        if told.message.is_empty() {
            told.message = detail(fields);
        }
        told
    }

    fn inner(fields: &Fields<'_>) -> Self {
        let status = fields.number("code").or_else(|| fields.number("status"));
        let metadata = fields.object("metadata").unwrap_or_default();
        let mut message = fields.word("message").unwrap_or_default();
        if let Some(raw) = metadata.word("raw") {
            // What OpenRouter's own provider said; its message alone says that there was an error.
            message = format!("{message}: {raw}");
        }
        Self {
            message,
            code: fields.word("code").unwrap_or_default(),
            kind: fields.word("type").unwrap_or_default(),
            param: fields.word("param").unwrap_or_default(),
            status: status.and_then(|it| u16::try_from(it).ok()).filter(|it| *it >= 400),
            written: fields.word("failed_generation"),
            watched: metadata.get("reasons").is_some(),
        }
    }

    fn fault(self, status: Option<u16>) -> Fault {
        let class = self.class(status);
        let malformed = class == Class::Malformed;
        let written = malformed.then(|| self.written.or_else(|| quoted(&self.message))).flatten();
        Fault { written, ..Fault::new(class, self.message) }
    }

    fn class(&self, status: Option<u16>) -> Class {
        if self.watched {
            return Class::Refused;
        }
        for word in [&self.code, &self.kind] {
            if let Some((_, class)) = CODES.iter().find(|(codes, _)| codes.contains(&word.as_str()))
            {
                return *class;
            }
        }
        if self.param == "tools" && self.code.starts_with("unsupported") {
            return Class::NoTools;
        }
        // An item of the conversation is not found, not the model.
        if self.param == "input" {
            return Class::Request;
        }
        let message = self.message.to_ascii_lowercase();
        let said = |phrases: &[&str]| phrases.iter().any(|phrase| message.contains(phrase));
        if let Some((_, class)) = PHRASES.iter().find(|(phrases, _)| said(phrases)) {
            return *class;
        }
        if self.kind == "not_supported_error" {
            return Class::Request;
        }
        if let Some(status) = status.or(self.status) {
            return class_of(status);
        }
        let kind = self.kind.to_ascii_lowercase();
        if kind.contains("invalid_request") || kind.contains("badrequest") {
            return Class::Request;
        }
        // It was about to answer, and then could not.
        Class::Later { after: None }
    }
}

/// Codes and types, whatever the status.
const CODES: &[(&[&str], Class)] = &[
    (
        &[
            "insufficient_quota",
            "billing_hard_limit_reached",
            "billing_not_active",
            "insufficient_credits",
        ],
        Class::Billing,
    ),
    (&["context_length_exceeded", "exceed_context_size_error", "context_exceeded"], Class::TooLong),
    (
        &[
            "content_filter",
            "content_policy_violation",
            "invalid_prompt",
            "bio_policy",
            "misalignment_policy_violation",
        ],
        Class::Refused,
    ),
    (&["invalid_api_key", "authentication_error", "permission_error"], Class::Key),
    (&["model_not_found", "not_found_error"], Class::NotFound),
    (&["tool_use_failed"], Class::Malformed),
    (&["rate_limit_exceeded", "rate_limit_error"], Class::Later { after: None }),
];

/// Servers that give no code of their own for it say it in these words only.
const PHRASES: &[(&[&str], Class)] = &[
    (
        &[
            // OpenAI, of models that call tools over Responses only.
            "function tools with reasoning_effort are not supported",
            // Ollama, DeepSeek and others.
            "does not support tools",
            "does not support function calling",
            "tools is not supported in this model",
            "tool calling is not supported",
            // llama.cpp.
            "requires --jinja",
            // OpenRouter.
            "no endpoints found that support tool use",
            // vLLM.
            "requires --enable-auto-tool-choice",
        ],
        Class::NoTools,
    ),
    (
        &[
            // llama.cpp.
            "failed to parse input at pos",
            "failed to parse tool call arguments as json",
            // Ollama.
            "error parsing tool call",
        ],
        Class::Malformed,
    ),
    (
        &[
            // vLLM, OpenRouter and others.
            "maximum context length",
            // llama.cpp.
            "exceeds the available context size",
            "context size has been exceeded",
            // SGLang.
            "longer than the model's context length",
            // LM Studio.
            "greater than the context length",
        ],
        Class::TooLong,
    ),
];

/// What the model had written, where the message has all of it, as Ollama's does. llama.cpp tells only
/// what stands behind the place it could not read, which may be in the middle of anything.
fn quoted(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("error parsing tool call: raw='")?;
    let end = rest.rfind("', err=").unwrap_or(rest.len());
    Some(rest[..end].to_owned()).filter(|it| !it.is_empty())
}

/// FastAPI's form: a text, or a list of what is wrong where.
fn detail(fields: &Fields<'_>) -> String {
    if let Some(text) = fields.word("detail") {
        return text;
    }
    texts(&fields.list("detail").unwrap_or_default(), "msg").join("; ")
}

#[cfg(test)]
mod tests;
