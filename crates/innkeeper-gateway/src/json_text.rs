//! Changes of single members of JSON objects, with all other bytes as they were, and the members that
//! results need in each era.

use innkeeper_protocol::request_meta::{
    META_CLIENT_CAPABILITIES, META_CLIENT_INFO, META_LOG_LEVEL, META_PROTOCOL_VERSION,
    META_SERVER_INFO, META_SUBSCRIPTION_ID,
};
use innkeeper_protocol::{Era, skim};
use serde_json::Value;
use serde_json::value::RawValue;

/// Returns an object without members.
pub(crate) fn empty_object() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).unwrap_or_default()
}

/// Replaces the member `name` of a definition.
pub(crate) fn replace_name(definition: &str, name: &str) -> String {
    skim::replace_member(definition, "name", &Value::from(name).to_string())
}

/// The members of `_meta` that only the modern era has.
const MODERN_META: [&str; 6] = [
    META_PROTOCOL_VERSION,
    META_CLIENT_CAPABILITIES,
    META_CLIENT_INFO,
    META_LOG_LEVEL,
    META_SERVER_INFO,
    META_SUBSCRIPTION_ID,
];

/// Returns a result without what only clients of the modern era know.
pub(crate) fn legacy_result(result: Box<RawValue>) -> Box<RawValue> {
    let text = result.get();
    let has = |part: &str| memchr::memmem::find(text.as_bytes(), part.as_bytes()).is_some();
    let has_type = has("\"resultType\"");
    let has_meta = has("io.modelcontextprotocol/");
    if !(has_type || has_meta) {
        return result;
    }
    let mut legacy = text.to_owned();
    if has_type && skim::member(&legacy, "resultType").is_some() {
        for member in ["resultType", "ttlMs", "cacheScope"] {
            legacy = skim::remove_member(&legacy, member);
        }
    }
    if let Some(meta) = skim::member(&legacy, "_meta").filter(|_| has_meta) {
        let left =
            MODERN_META.iter().fold(meta.to_owned(), |meta, key| match skim::member(&meta, key) {
                Some(_) => skim::remove_member(&meta, key),
                None => meta,
            });
        if left != meta {
            legacy = match skim::members(&left).next() {
                Some(_) => skim::replace_member(&legacy, "_meta", &left),
                None => skim::remove_member(&legacy, "_meta"),
            };
        }
    }
    RawValue::from_string(legacy).unwrap_or(result)
}

/// Adds a member to an object if the object does not have it.
pub(crate) fn with_default(object: String, key: &str, value: &str) -> String {
    let has_member = skim::member(&object, key).is_some();
    if has_member { object } else { skim::replace_member(&object, key, value) }
}

/// Returns parameters whose `_meta` has the members of `meta`, each in place of an earlier one.
pub(crate) fn with_meta_member(params: Option<&str>, key: &str, meta: &Value) -> Box<RawValue> {
    let params = params.unwrap_or("{}");
    let old = skim::member(params, "_meta").unwrap_or("{}");
    let member = meta.get(key).map(Value::to_string).unwrap_or_default();
    let meta = skim::replace_member(old, key, &member);
    let text = skim::replace_member(params, "_meta", &meta);
    RawValue::from_string(text).unwrap_or_default()
}

/// Returns a result for a client of this era: results of the modern era have a type.
pub(crate) fn complete_result(result: Box<RawValue>, era: Era) -> Box<RawValue> {
    match era {
        Era::Legacy => result,
        Era::Modern => with_defaults(result, &[("resultType", "\"complete\"")]),
    }
}

/// Works like [`complete_result`], with the cache hints that the modern era requires. A result of a
/// server without hints is not cacheable. Unless all clients may use the server, no cache between them and the
/// gateway may give the result of one client to another.
pub(crate) fn cacheable_result(result: Box<RawValue>, era: Era, is_for_all: bool) -> Box<RawValue> {
    let private = "\"private\"";
    let hints = [("resultType", "\"complete\""), ("ttlMs", "0"), ("cacheScope", private)];
    match era {
        Era::Legacy => result,
        Era::Modern if is_for_all => with_defaults(result, &hints),
        Era::Modern => {
            let result = with_defaults(result, &hints);
            let text = skim::replace_member(result.get(), "cacheScope", private);
            RawValue::from_string(text).unwrap_or(result)
        }
    }
}

fn with_defaults(result: Box<RawValue>, members: &[(&str, &str)]) -> Box<RawValue> {
    if !result.get().trim_start().starts_with('{') {
        return result;
    }
    let text = members.iter().fold(String::from(Box::<str>::from(result)), |text, (key, value)| {
        with_default(text, key, value)
    });
    RawValue::from_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legacy_client_gets_nothing_that_only_the_modern_era_has() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        for (result, expected) in [
            (
                r#"{"resultType":"complete","content":[],"ttlMs":0,"cacheScope":"private"}"#,
                r#"{"content":[]}"#,
            ),
            (
                r#"{"content":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#,
                r#"{"content":[]}"#,
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":1,"x":2.50},"content":[]}"#,
                r#"{"_meta":{"x":2.50},"content":[]}"#,
            ),
            (
                r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}, "a": 1}"#,
                r#"{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"1"}}, "a": 1}"#,
            ),
            (
                r#"{"content":[{"text":"\"resultType\""}], "ttlMs":1}"#,
                r#"{"content":[{"text":"\"resultType\""}], "ttlMs":1}"#,
            ),
        ] {
            assert_eq!(legacy_result(raw(result)).get(), expected);
        }
    }
}
