//! The `_meta` of a client's request, as raw text.

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::{
    META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_PROTOCOL_VERSION,
    META_SUBSCRIPTION_ID,
};
use crate::params_error::ParamsError;
use crate::request_params::RequestParams;
use crate::skim;
use crate::view::{ObjectView, ViewError, child_pointer};

/// The keys that [`IncomingMeta`] reads.
const PROTOCOL_KEYS: [&str; 6] = [
    META_PROTOCOL_VERSION,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_PROGRESS_TOKEN,
    META_SUBSCRIPTION_ID,
];

/// Key of the token of a request's progress notifications.
pub const META_PROGRESS_TOKEN: &str = "progressToken";

/// The keys that belong to one connection, and that [`IncomingMeta::forwarded_without`] omits.
pub const CONNECTION_META_KEYS: [&str; 5] = [
    META_PROGRESS_TOKEN,
    META_PROTOCOL_VERSION,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
];

/// The protocol members of a request's `_meta`, as text of the request (2026-07-28, Base Protocol,
/// `_meta`). A member that is `null` counts as absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IncomingMeta<'a> {
    /// The protocol revision of a modern request; may be any string.
    pub protocol_version: Option<Cow<'a, str>>,
    /// The client's capabilities, an object as raw JSON.
    pub client_capabilities: Option<&'a str>,
    /// The client's name and version, unverified, an object as raw JSON.
    pub client_info: Option<&'a str>,
    /// The minimum level of log messages for this request; may be any string.
    pub log_level: Option<Cow<'a, str>>,
    /// The progress token: a string or a number as raw JSON.
    pub progress_token: Option<&'a str>,
    /// The subscription of the message: a string or a number as raw JSON.
    pub subscription_id: Option<&'a str>,
    /// The raw `_meta` object.
    meta: Option<&'a str>,
}

/// The members that every modern request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequiredMeta<'m> {
    /// The protocol revision; may be any string.
    pub protocol_version: &'m str,
    /// The client's capabilities, an object as raw JSON.
    pub client_capabilities: &'m str,
}

impl<'a> IncomingMeta<'a> {
    /// Reads the `_meta` of a request's `params`, without a copy.
    ///
    /// # Errors
    ///
    /// Returns an error if `_meta` is not an object, if a member has the wrong type, or if two
    /// members of an object in `_meta`, at any level, have the same key. The absence of a member is
    /// no error; see [`IncomingMeta::required`].
    pub fn from_params(params: &RequestParams<'a>) -> Result<Self, ParamsError> {
        let meta = params.get("_meta").map(RawValue::get).filter(|meta| *meta != "null");
        let Some(meta) = meta else { return Ok(Self::default()) };
        let pointer = child_pointer("", "_meta");
        let members = ObjectView::from_raw_at(pointer, Some(meta), PROTOCOL_KEYS)?;
        if skim::has_duplicate_key(meta) {
            return Err(ParamsError::DuplicateKey { object: "_meta" });
        }
        Ok(Self {
            protocol_version: members.optional_string(META_PROTOCOL_VERSION)?,
            client_capabilities: members.optional_object(META_CLIENT_CAPABILITIES)?,
            client_info: members.optional_object(META_CLIENT_INFO)?,
            log_level: members.optional_string(META_LOG_LEVEL)?,
            progress_token: members.optional_token(META_PROGRESS_TOKEN)?,
            subscription_id: members.optional_token(META_SUBSCRIPTION_ID)?,
            meta: Some(meta),
        })
    }

    /// Returns the members that a modern request must have (2026-07-28, Base Protocol, Per-request
    /// protocol fields).
    ///
    /// # Errors
    ///
    /// Returns an error if the protocol revision or the capabilities are absent.
    pub fn required(&self) -> Result<RequiredMeta<'_>, ParamsError> {
        Ok(RequiredMeta {
            protocol_version: self
                .protocol_version
                .as_deref()
                .ok_or_else(|| missing(META_PROTOCOL_VERSION, "a string"))?,
            client_capabilities: self
                .client_capabilities
                .ok_or_else(|| missing(META_CLIENT_CAPABILITIES, "an object"))?,
        })
    }

    /// Returns the `_meta` object for another connection: without the progress token, the protocol
    /// revision, the client's capabilities and identity, the log level, and the members with an
    /// omitted key. The other members keep their text. Returns `None` if no member remains.
    pub fn forwarded_without(&self, is_omitted: impl Fn(&str) -> bool) -> Option<String> {
        let is_of_connection = |key: &str| {
            let key = skim::decode_key(key);
            CONNECTION_META_KEYS.contains(&key.as_ref()) || is_omitted(&key)
        };
        let meta = self.meta?;
        let remains = skim::members(meta).any(|(key, _)| !is_of_connection(key));
        remains.then(|| skim::remove_members(meta, is_of_connection))
    }
}

fn missing(name: &str, expected: &'static str) -> ParamsError {
    ViewError::new(child_pointer("/_meta", name), expected, None).into()
}
