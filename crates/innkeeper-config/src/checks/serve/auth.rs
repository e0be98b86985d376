//! Checks the settings of the authentication of clients.

use url::{Host, Url};

use super::{KnownNames, indexed, known_names, rate, tool_filter};
use crate::checks::entry_checker::EntryChecker;
use crate::form::raw;
use crate::settings::serve::{
    ApiKeyConfig, BindingConfig, KeyDigest, MCP_ENDPOINT, ServeAuth, ServeOauth, TokenAlgorithm,
};
use crate::text::key_location::{PathSegment, key_segment};

/// Minimum length of an API key, in characters: 128 bits in Base64 have 22 characters. The hash is
/// fast, so a short key could be guessed.
const MIN_KEY_CHARS: usize = 22;

/// Maximum length of the name of a client, in characters.
const MAX_PRINCIPAL_CHARS: usize = 128;

/// The name of the user that runs the program, for clients without a key.
const LOCAL_USER: &str = "local";

pub(super) fn auth(
    checker: &mut EntryChecker<'_>,
    typed: raw::ServeAuth,
    known: KnownNames<'_>,
) -> ServeAuth {
    let mut api_keys: Vec<ApiKeyConfig> = Vec::new();
    for (index, typed) in typed.api_keys.unwrap_or_default().into_iter().enumerate() {
        let path = [key_segment("auth"), key_segment("apiKeys"), PathSegment::Index(index)];
        let Some(key) = api_key(checker, &path, typed, known) else { continue };
        if api_keys.iter().any(|other| other.sha256 == key.sha256) {
            checker.error(&path, "the same key as an earlier entry");
        }
        if api_keys.iter().any(|other| {
            other.principal == key.principal
                && (&other.tools, &other.binding, &other.rate)
                    != (&key.tools, &key.binding, &key.rate)
        }) {
            let message = format!(
                "`{}` has other values of `allow`, `deny`, `servers`, `endpoints` or `rate` in an \
                 earlier entry",
                key.principal
            );
            checker.error(&path, message);
        }
        api_keys.push(key);
    }
    ServeAuth { api_keys, oauth: typed.oauth.map(|typed| oauth(checker, typed, known)) }
}

fn api_key(
    checker: &mut EntryChecker<'_>,
    path: &[PathSegment<'_>],
    typed: raw::ApiKey,
    known: KnownNames<'_>,
) -> Option<ApiKeyConfig> {
    let principal = typed.principal.unwrap_or_default();
    if !is_principal(&principal) {
        let message = "needs a `principal` of letters, digits, `_`, `-`, `.` and `@`, at most 128 \
            characters and not `local`";
        checker.error(path, message);
    }
    let digest = match (typed.sha256, typed.key) {
        (Some(hash), None) => hashed(checker, &inner(path, "sha256"), &hash),
        (None, Some(key)) => plain(checker, &inner(path, "key"), &key),
        (Some(_), Some(_)) => {
            checker.error(path, "has both `sha256` and `key`");
            None
        }
        (None, None) => {
            checker.error(path, "has neither `sha256` nor `key`");
            None
        }
    };
    let rate = typed.rate.map(|typed| rate(checker, &inner(path, "rate"), typed));
    let tools = tool_filter(typed.allow, typed.deny);
    let binding = binding(checker, path, typed.servers, typed.endpoints, known);
    Some(ApiKeyConfig { principal, sha256: digest?, tools, binding, rate })
}

fn inner<'p>(path: &[PathSegment<'p>], key: &'p str) -> Vec<PathSegment<'p>> {
    [path, &[key_segment(key)]].concat()
}

/// Names that a client may use.
type NameList = Option<Vec<raw::StringElement>>;

/// Returns the servers and endpoints of a client, with `path` as the path of its object.
fn binding(
    checker: &mut EntryChecker<'_>,
    path: &[PathSegment<'_>],
    servers: NameList,
    endpoints: NameList,
    known: KnownNames<'_>,
) -> BindingConfig {
    let servers = servers.map(|list| {
        let known = known.servers.iter().map(String::as_str);
        known_names(checker, &inner(path, "servers"), "server", list, &known)
    });
    let endpoints = endpoints.map(|list| {
        let named = known.endpoints.iter().map(String::as_str);
        let known = named.chain([MCP_ENDPOINT]);
        known_names(checker, &inner(path, "endpoints"), "endpoint", list, &known)
    });
    BindingConfig { servers, endpoints }
}

fn is_principal(name: &str) -> bool {
    (1..=MAX_PRINCIPAL_CHARS).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'@'))
        && name != LOCAL_USER
}

fn hashed(
    checker: &mut EntryChecker<'_>,
    path: &[PathSegment<'_>],
    text: &str,
) -> Option<KeyDigest> {
    let digest = KeyDigest::parse(&checker.expand(path, text)?.value);
    if digest.is_none() {
        checker.error(path, "expected the 64 hexadecimal digits of a SHA-256 hash");
        checker.report.hint("write the hash of a key: `printf %s \"$KEY\" | sha256sum`");
    }
    digest
}

fn plain(
    checker: &mut EntryChecker<'_>,
    path: &[PathSegment<'_>],
    text: &str,
) -> Option<KeyDigest> {
    let expanded = checker.expand(path, text)?;
    if expanded.variables.is_empty() {
        checker.error(path, "a key in the file is readable for everyone with the file");
        checker.report.hint("write `sha256` with the hash of the key, or `${NAME}`");
        return None;
    }
    if expanded.value.chars().count() < MIN_KEY_CHARS {
        checker.error(path, format!("expected a key of at least {MIN_KEY_CHARS} characters"));
        checker.report.hint("create a key: `openssl rand -hex 32`");
        return None;
    }
    Some(KeyDigest::from_key(&expanded.value))
}

fn oauth(
    checker: &mut EntryChecker<'_>,
    typed: raw::ServeOauth,
    known: KnownNames<'_>,
) -> ServeOauth {
    let path = [key_segment("auth"), key_segment("oauth")];
    let mut url = |key, text: Option<String>, is_identifier| {
        let inner = [&path[..], &[key_segment(key)]].concat();
        let Some(text) = text else {
            checker.error(&path, format!("needs `{key}`"));
            return String::new();
        };
        let Some(expanded) = checker.expand(&inner, &text) else { return String::new() };
        if !is_secure_url(&expanded.value, is_identifier) {
            let message = "expected `https://`, or `http://` on this machine, without user and \
                fragment";
            checker.error(&inner, message);
        }
        expanded.value
    };
    let issuer = url("issuer", typed.issuer, true);
    let audience = url("audience", typed.audience, true);
    let jwks_url = url("jwksUrl", typed.jwks_url, false);
    let algorithms = typed.algorithms.map(|list| list.into_iter().map(algorithm).collect());
    let algorithms: Vec<_> =
        algorithms.unwrap_or_else(|| vec![TokenAlgorithm::Rs256, TokenAlgorithm::Es256]);
    if algorithms.is_empty() {
        checker.error(&[&path[..], &[key_segment("algorithms")]].concat(), "is empty");
    }
    let mut required_scopes = Vec::new();
    for (index, scope) in indexed(typed.required_scopes) {
        if !is_scope(&scope) {
            let last = [key_segment("requiredScopes"), PathSegment::Index(index)];
            checker.error(&[&path[..], &last].concat(), "not a valid scope");
        }
        required_scopes.push(scope);
    }
    let principal_claim = typed.principal_claim.unwrap_or_else(|| "sub".to_owned());
    if principal_claim.is_empty() {
        checker.error(&[&path[..], &[key_segment("principalClaim")]].concat(), "is empty");
    }
    let rate_path = [&path[..], &[key_segment("rate")]].concat();
    ServeOauth {
        issuer,
        audience,
        jwks_url,
        algorithms,
        required_scopes,
        principal_claim,
        tools: tool_filter(typed.allow, typed.deny),
        binding: binding(checker, &path, typed.servers, typed.endpoints, known),
        rate: typed.rate.map(|typed| rate(checker, &rate_path, typed)),
    }
}

/// Returns whether a URL is `https`, or `http` with a loopback host.
fn is_secure_url(text: &str, is_identifier: bool) -> bool {
    let Ok(url) = Url::parse(text) else { return false };
    let is_loopback = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    let is_plain = url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none()
        && !text.contains(|c: char| c.is_whitespace() || c.is_control() || c == '"')
        && !(is_identifier && url.query().is_some());
    is_plain && (url.scheme() == "https" || (url.scheme() == "http" && is_loopback))
}

/// Returns whether RFC 6749 allows this scope.
fn is_scope(scope: &str) -> bool {
    !scope.is_empty()
        && scope.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

fn algorithm(typed: raw::TokenAlgorithm) -> TokenAlgorithm {
    match typed {
        raw::TokenAlgorithm::Rs256 => TokenAlgorithm::Rs256,
        raw::TokenAlgorithm::Rs384 => TokenAlgorithm::Rs384,
        raw::TokenAlgorithm::Rs512 => TokenAlgorithm::Rs512,
        raw::TokenAlgorithm::Ps256 => TokenAlgorithm::Ps256,
        raw::TokenAlgorithm::Ps384 => TokenAlgorithm::Ps384,
        raw::TokenAlgorithm::Ps512 => TokenAlgorithm::Ps512,
        raw::TokenAlgorithm::Es256 => TokenAlgorithm::Es256,
        raw::TokenAlgorithm::Es384 => TokenAlgorithm::Es384,
        raw::TokenAlgorithm::EdDsa => TokenAlgorithm::EdDsa,
    }
}
