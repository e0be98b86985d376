//! The capabilities of a remote client, on whose behalf the application calls.

use std::sync::Arc;

use innkeeper_protocol::envelope::code;
use innkeeper_protocol::skim;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{CallbackCapabilities, CallbackError, RequestKind, ServerRequest};
use crate::text::display_prefix;

/// Maximum size in bytes of the capabilities: many extensions with settings fit.
const MAX_CAPABILITIES_BYTES: usize = 64 << 10;

/// Maximum number of characters shown of a method.
const MAX_SHOWN_CHARS: usize = 64;

#[derive(Debug)]
pub(crate) struct ClientCapabilities {
    raw: Arc<RawValue>,
    declared: CallbackCapabilities,
}

impl ClientCapabilities {
    /// Reads capabilities; returns the problem of unusable capabilities.
    pub(crate) fn from_raw(raw: &RawValue) -> Result<Self, String> {
        if raw.get().len() > MAX_CAPABILITIES_BYTES {
            return Err(format!("longer than {MAX_CAPABILITIES_BYTES} bytes"));
        }
        // The host reads one member of each name, and the server may read another.
        if skim::has_duplicate_key(raw.get()) {
            return Err("two members of one object have the same name".to_owned());
        }
        let object: Value = serde_json::from_str(raw.get()).map_err(|error| error.to_string())?;
        if !object.is_object() {
            return Err("expected object".to_owned());
        }
        let capability = |name| object.get(name).filter(|declared| declared.is_object()).cloned();
        let declared = CallbackCapabilities {
            sampling: capability("sampling"),
            elicitation: capability("elicitation"),
            roots: capability("roots"),
            // MCP has no capability for custom methods. The callbacks of the host decide whether
            // forms may ask for secrets.
            custom: true,
            allow_secrets: true,
            ..CallbackCapabilities::NONE
        };
        Ok(Self { raw: raw.to_owned().into(), declared })
    }

    /// Returns the capabilities byte for byte.
    pub(crate) fn raw(&self) -> &Arc<RawValue> {
        &self.raw
    }

    /// Returns the error for a request that the client cannot respond to: its kind, or a feature of
    /// the request, is not declared.
    pub(crate) fn rejection(&self, request: &ServerRequest) -> Option<CallbackError> {
        let kind = RequestKind::from_method(&request.method);
        if self.declared.capability(kind).is_none() {
            let method = display_prefix(&request.method, MAX_SHOWN_CHARS);
            let message = format!("the client of the call does not declare `{method}`");
            return Some(CallbackError::new(code::METHOD_NOT_FOUND, message));
        }
        self.declared.rejection(kind, request)
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_protocol::method;
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::event::CallReference;

    fn capabilities(text: &str) -> Result<ClientCapabilities, String> {
        ClientCapabilities::from_raw(&RawValue::from_string(text.to_owned()).unwrap())
    }

    fn rejection_code(declared: &str, method: &str, params: &Value) -> Option<i64> {
        let request = ServerRequest {
            server: "a".into(),
            key: None,
            method: method.into(),
            params: Some(to_raw_value(params).unwrap()),
            call: CallReference::Unknown,
        };
        Some(capabilities(declared).unwrap().rejection(&request)?.code)
    }

    #[test]
    fn a_client_receives_only_requests_whose_kind_and_features_it_declares() {
        let (sampling, elicitation) = (method::SAMPLING_CREATE_MESSAGE, method::ELICITATION_CREATE);
        let (missing, invalid) = (Some(code::METHOD_NOT_FOUND), Some(code::INVALID_PARAMS));
        let (form, url) = (json!({"mode": "form"}), json!({"mode": "url"}));
        let tools = json!({"tools": []});
        for (declared, method, params, expected) in [
            ("{}", sampling, json!({}), missing),
            (r#"{"sampling":null}"#, sampling, json!({}), missing),
            (r#"{"sampling":{}}"#, sampling, json!({}), None),
            (r#"{"sampling":{}}"#, sampling, tools.clone(), invalid),
            (r#"{"sampling":{"tools":{}}}"#, sampling, tools, None),
            (r#"{"sampling":{}}"#, elicitation, json!({}), missing),
            (r#"{"elicitation":{}}"#, elicitation, json!({}), None),
            (r#"{"elicitation":{}}"#, elicitation, form.clone(), None),
            (r#"{"elicitation":{}}"#, elicitation, url.clone(), invalid),
            (r#"{"elicitation":{"url":{}}}"#, elicitation, url, None),
            (r#"{"elicitation":{"url":{}}}"#, elicitation, form, invalid),
            (r#"{"elicitation":{"url":{}}}"#, elicitation, json!({}), invalid),
            (r#"{"roots":{}}"#, method::ROOTS_LIST, json!({}), None),
            ("{}", method::ROOTS_LIST, json!({}), missing),
            ("{}", "own/method", json!({}), None),
        ] {
            let code = rejection_code(declared, method, &params);
            assert_eq!(code, expected, "{declared} {method} {params}");
        }
    }

    #[test]
    fn capabilities_over_64_kib_or_with_a_second_meaning_are_unusable() {
        let text = |padding| format!(r#"{{"x":"{}"}}"#, "y".repeat(padding));
        let padding = MAX_CAPABILITIES_BYTES - text(0).len();
        capabilities(&text(padding)).unwrap();
        assert_eq!(capabilities(&text(padding + 1)).unwrap_err(), "longer than 65536 bytes");
        assert_eq!(capabilities("[]").unwrap_err(), "expected object");
        let error = capabilities(r#"{"sampling":{},"sampling":null}"#).unwrap_err();
        assert_eq!(error, "two members of one object have the same name");
    }
}
