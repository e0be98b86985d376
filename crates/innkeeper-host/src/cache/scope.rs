//! The callers that can receive a cached result (`cacheScope`).

use innkeeper_protocol::skim;
use serde_json::value::RawValue;

/// The callers that can receive a cached result (`cacheScope` of the revision 2026-07-28).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheScope {
    /// All callers: the result has no data of one user.
    Public,
    /// The callers of one principal.
    Private,
}

impl CacheScope {
    /// Returns the name in the protocol.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Private => "private",
        }
    }

    /// Returns the scope of a result. A result without `cacheScope`, with an unknown value or with
    /// several values is private.
    ///
    /// The revision 2026-07-28 requires the member in cacheable results and defines no default
    /// (`CacheableResult`), because no default is safe (SEP-2549). Earlier revisions do not have
    /// the member.
    pub(crate) fn from_result(result: &RawValue) -> Self {
        let members = skim::members(result.get());
        let mut scopes = members.filter(|(key, _)| skim::decode_key(key) == "cacheScope");
        let first = scopes.next().and_then(|(_, value)| skim::decode_string(value));
        match first.as_deref() {
            Some("public") if scopes.next().is_none() => Self::Public,
            Some(_) | None => Self::Private,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_private_unless_its_server_says_public_and_nothing_else() {
        for (result, expected) in [
            (r#"{"cacheScope":"public"}"#, CacheScope::Public),
            (r#"{"contents":[], "cacheScope" : "\u0070ublic", "ttlMs":1}"#, CacheScope::Public),
            (r#"{"cacheScope":"private"}"#, CacheScope::Private),
            (r#"{}"#, CacheScope::Private),
            (r#"{"cacheScope":"Public"}"#, CacheScope::Private),
            (r#"{"cacheScope":["public"]}"#, CacheScope::Private),
            (r#"{"cacheScope":null}"#, CacheScope::Private),
            (r#"{"cachescope":"public"}"#, CacheScope::Private),
            (r#"{"_meta":{"cacheScope":"public"}}"#, CacheScope::Private),
            (r#"{"cacheScope":"private","cacheScope":"public"}"#, CacheScope::Private),
            (r#"{"cacheScope":"public","cache\u0053cope":"private"}"#, CacheScope::Private),
        ] {
            let raw = RawValue::from_string(result.to_owned()).unwrap();
            assert_eq!(CacheScope::from_result(&raw), expected, "{result}");
        }
    }

    #[test]
    fn a_scope_is_read_back_from_its_name() {
        for scope in [CacheScope::Public, CacheScope::Private] {
            let result = format!(r#"{{"cacheScope":"{}"}}"#, scope.as_str());
            assert_eq!(CacheScope::from_result(&RawValue::from_string(result).unwrap()), scope);
        }
        assert_eq!(CacheScope::Private.as_str(), "private");
    }
}
