//! The check of a modern request's headers against its body (2026-07-28, Streamable HTTP, Server
//! Validation).

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::param_headers::{ParamHeaders, header_value, number_text};
use super::{HeaderValueError, METHOD, NAME, PARAM_PREFIX, PROTOCOL_VERSION, decode_value};
use crate::envelope::code;
use crate::revision::{Era, Revision};
use crate::{skim, text};

/// Maximum length of a value quoted in an error, in characters.
const MAX_SHOWN_VALUE_CHARS: usize = 100;

/// A header that contradicts the body of its request. The quoted values are escaped and shortened,
/// and safe to display.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderMismatch {
    /// A required header is missing.
    #[error("header mismatch: header `{header}` is missing; the value of the body is `{body}`")]
    Missing {
        /// The name of the header.
        header: String,
        /// The value of the body.
        body: String,
    },
    /// The header has another value than the body.
    #[error(
        "header mismatch: the value of header `{header}` is `{value}`; the value of the body is \
         `{body}`"
    )]
    Unequal {
        /// The name of the header.
        header: String,
        /// The value of the header.
        value: String,
        /// The value of the body.
        body: String,
    },
    /// The header has a value and the body has none.
    #[error("header mismatch: the value of header `{header}` is `{value}`; the body has no value")]
    Unexpected {
        /// The name of the header.
        header: String,
        /// The value of the header.
        value: String,
    },
    /// The value of the header cannot be decoded.
    #[error("header mismatch: the value of header `{header}` is `{value}`")]
    Invalid {
        /// The name of the header.
        header: String,
        /// The value of the header.
        value: String,
        /// Why the value cannot be decoded.
        source: HeaderValueError,
    },
    /// The body has several values for the header, because an object has two members with the same
    /// key.
    #[error("header mismatch: the body has several values for header `{header}`")]
    Ambiguous {
        /// The name of the header.
        header: String,
    },
}

impl HeaderMismatch {
    /// Returns the code of the error response, [`code::HEADER_MISMATCH`]. The HTTP status is 400.
    pub fn code(&self) -> i64 {
        code::HEADER_MISMATCH
    }
}

/// A revision that a legacy server does not support. The value is escaped and shortened. The HTTP
/// status is 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unsupported `{PROTOCOL_VERSION}`: `{value}`")]
pub struct UnsupportedVersionHeader {
    /// The value of the header.
    pub value: String,
}

/// Checks the standard headers of a modern request: the protocol revision, the method and, for the
/// methods of [`name_member`](super::name_member), the name. All three are required.
///
/// `version_in_meta` is the revision in `_meta`. `header` returns the value of the header with a
/// name, in any case. The caller rejects a request that repeats one of the headers. Only the name
/// may be [encoded](super::encode_value).
///
/// # Errors
///
/// Returns an error if a header is missing, cannot be decoded or has another value than the body, or
/// if the body has no name or several names.
pub fn check_request_headers<'h>(
    method: &str,
    params: Option<&RawValue>,
    version_in_meta: &str,
    header: impl Fn(&str) -> Option<&'h [u8]>,
) -> Result<(), HeaderMismatch> {
    for (name, body) in [(PROTOCOL_VERSION, version_in_meta), (METHOD, method)] {
        let value = header(name).ok_or_else(|| missing(name, body))?;
        if value != body.as_bytes() {
            return Err(unequal(name, value, body));
        }
    }
    let Some(member) = super::name_member(method) else { return Ok(()) };
    let raw = value_at(NAME, params, &[member])?;
    let body = raw.filter(|raw| raw.starts_with('"')).map(BodyValue::from_raw);
    match (header(NAME), body) {
        (None, body) => Err(missing(NAME, &body.map_or(Cow::default(), |body| body.text))),
        (Some(value), Some(body)) => body.check(NAME, value),
        (Some(value), None) => Err(unexpected(NAME, value)),
    }
}

impl ParamHeaders {
    /// Checks the headers of a call that repeat arguments. `params` are the parameters of
    /// `tools/call`; `header` is as for [`check_request_headers`].
    ///
    /// Integers are compared by value. An argument that is missing, `null`, an object or an array
    /// has no header.
    ///
    /// # Errors
    ///
    /// Returns an error if a header is missing, cannot be decoded, has another value than its
    /// argument or has no argument, or if an argument occurs twice.
    pub fn check_call<'h>(
        &self,
        params: Option<&RawValue>,
        header: impl Fn(&str) -> Option<&'h [u8]>,
    ) -> Result<(), HeaderMismatch> {
        for param in &self.params {
            let name = format!("{PARAM_PREFIX}{}", param.name);
            let mut path = vec!["arguments"];
            path.extend(param.path.iter().map(String::as_str));
            let raw = value_at(&name, params, &path)?;
            match (
                header(&name),
                raw.filter(|raw| !raw.starts_with(['{', '[', 'n'])).map(BodyValue::from_raw),
            ) {
                (None, None) => {}
                (None, Some(body)) => return Err(missing(&name, &body.text)),
                (Some(value), Some(body)) => body.check(&name, value)?,
                (Some(value), None) => return Err(unexpected(&name, value)),
            }
        }
        Ok(())
    }
}

/// Returns the revision of a legacy request from its [`PROTOCOL_VERSION`] header (2025-11-25,
/// Transports, Protocol Version Header).
///
/// Without the header, the revision is `negotiated`, the revision of the session, or else
/// `2025-03-26`, the last revision before the header.
///
/// # Errors
///
/// Returns an error if the header is not a published revision with a handshake.
pub fn legacy_revision(
    header: Option<&[u8]>,
    negotiated: Option<Revision>,
) -> Result<Revision, UnsupportedVersionHeader> {
    let Some(value) = header else { return Ok(negotiated.unwrap_or(Revision::V2025_03_26)) };
    let revision = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    let legacy = revision.filter(|revision: &Revision| revision.era() == Era::Legacy);
    legacy.ok_or_else(|| UnsupportedVersionHeader { value: shown(value) })
}

/// A primitive value of the body as text.
struct BodyValue<'a> {
    text: Cow<'a, str>,
    is_number: bool,
    /// Whether a header can contain the value. A string with a lone surrogate has no UTF-8 form.
    is_sendable: bool,
}

impl<'a> BodyValue<'a> {
    fn from_raw(raw: &'a str) -> Self {
        let is_number = !raw.starts_with(['"', 't', 'f']);
        match header_value(raw) {
            Some(text) => Self { text, is_number, is_sendable: true },
            None => Self { text: Cow::Borrowed(raw), is_number, is_sendable: false },
        }
    }

    fn check(&self, name: &str, value: &[u8]) -> Result<(), HeaderMismatch> {
        let decoded = decode_value(value).map_err(|source| HeaderMismatch::Invalid {
            header: name.to_owned(),
            value: shown(value),
            source,
        })?;
        let is_equal =
            decoded == self.text || self.is_number && is_same_number(&decoded, &self.text);
        if is_equal && self.is_sendable {
            return Ok(());
        }
        Err(unequal(name, decoded.as_bytes(), &self.text))
    }
}

/// Whether the text of a header is a JSON number with the value of a number of the body.
fn is_same_number(header: &str, body: &str) -> bool {
    let is_number = serde_json::from_str::<serde_json::Number>(header).is_ok();
    let integer = |text: &str| number_text(text).parse::<i128>().ok();
    is_number && integer(header).is_some_and(|value| integer(body) == Some(value))
}

/// Returns the value at `path`. Two members with the same key on the path are an error.
fn value_at<'a>(
    header: &str,
    params: Option<&'a RawValue>,
    path: &[&str],
) -> Result<Option<&'a str>, HeaderMismatch> {
    let mut value = params.map(RawValue::get);
    for key in path {
        let Some(object) = value else { return Ok(None) };
        let mut found = skim::members(object).filter(|(name, _)| text::key_is(name, key));
        value = found.next().map(|(_, value)| value);
        if found.next().is_some() {
            return Err(HeaderMismatch::Ambiguous { header: header.to_owned() });
        }
    }
    Ok(value)
}

fn missing(header: &str, body: &str) -> HeaderMismatch {
    HeaderMismatch::Missing { header: header.to_owned(), body: shown(body.as_bytes()) }
}

fn unequal(header: &str, value: &[u8], body: &str) -> HeaderMismatch {
    let header = header.to_owned();
    HeaderMismatch::Unequal { header, value: shown(value), body: shown(body.as_bytes()) }
}

fn unexpected(header: &str, value: &[u8]) -> HeaderMismatch {
    HeaderMismatch::Unexpected { header: header.to_owned(), value: shown(value) }
}

fn shown(value: &[u8]) -> String {
    text::printable(&String::from_utf8_lossy(value), MAX_SHOWN_VALUE_CHARS)
}
