//! The `_meta` of a client's request.

use innkeeper_protocol::request_meta::{
    META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_PROTOCOL_VERSION,
};
use innkeeper_protocol::skim;
use serde_json::value::RawValue;

/// The members of `_meta` as JSON text.
#[derive(Debug, Default)]
pub(crate) struct IncomingMeta<'a> {
    version: Option<&'a str>,
    capabilities: Option<&'a str>,
    log_level: Option<&'a str>,
    progress_token: Option<&'a str>,
    forwarded: Vec<(&'a str, &'a str)>,
}

impl<'a> IncomingMeta<'a> {
    pub(crate) fn from_params(params: Option<&'a RawValue>) -> Result<Self, String> {
        let mut meta = Self::default();
        let Some(text) = params.and_then(|params| skim::member(params.get(), "_meta")) else {
            return Ok(meta);
        };
        if text == "null" {
            return Ok(meta);
        }
        if !text.starts_with('{') {
            return Err("`params/_meta` must be an object".to_owned());
        }
        for (key, value) in skim::members(text) {
            let slot = match &*skim::decode_key(key) {
                "progressToken" => &mut meta.progress_token,
                META_PROTOCOL_VERSION => &mut meta.version,
                META_CLIENT_CAPABILITIES => &mut meta.capabilities,
                META_LOG_LEVEL => &mut meta.log_level,
                META_CLIENT_INFO => continue,
                _ => {
                    meta.forwarded.push((key, value));
                    continue;
                }
            };
            if slot.replace(value).is_some() {
                return Err(format!("`params/_meta` has two members `{}`", skim::decode_key(key)));
            }
        }
        Ok(meta)
    }

    pub(crate) fn protocol_version(&self) -> Option<String> {
        self.version.and_then(skim::decode_string).map(std::borrow::Cow::into_owned)
    }

    pub(crate) fn client_capabilities(&self) -> Option<&'a str> {
        self.capabilities.filter(|text| text.starts_with('{'))
    }

    pub(crate) fn log_level(&self) -> Option<&'a str> {
        self.log_level
    }

    pub(crate) fn progress_token(&self) -> Option<&'a str> {
        self.progress_token
    }

    /// Returns the members that belong to the server.
    pub(crate) fn forwarded(&self) -> Option<Box<RawValue>> {
        if self.forwarded.is_empty() {
            return None;
        }
        let members: Vec<String> =
            self.forwarded.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
        RawValue::from_string(format!("{{{}}}", members.join(","))).ok()
    }
}
