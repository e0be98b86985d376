//! Which values of an agent's run are secrets, by the names that they have.

use std::ffi::OsString;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderMap;
use innkeeper_agent::golden::{KnownSecret, SecretPlace};
use innkeeper_host::Environment;
use url::{Url, form_urlencoded};

/// What the names of credentials contain.
const WORDS: [&str; 10] =
    ["key", "token", "secret", "pass", "pwd", "auth", "sig", "credential", "cookie", "session"];

/// A part of a path of this size with letters and digits is a token.
const MIN_TOKEN_SEGMENT_BYTES: usize = 16;

/// Returns whether the name of a variable, an option, a header or a parameter is that of a credential.
fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word)) || name == "code"
}

/// Returns whether a value may be one of a credential: not a path, and not an ordinary word such as the
/// key `ollama` of a server that needs none.
fn is_secret_value(value: &str) -> bool {
    let is_word = value.bytes().all(|byte| byte.is_ascii_alphabetic() || b"._- ".contains(&byte));
    !value.is_empty() && !value.starts_with('/') && !is_word
}

fn secret(name: &str, value: impl Into<String>) -> KnownSecret {
    KnownSecret { name: name.to_owned(), value: value.into(), place: SecretPlace::Anywhere }
}

/// Adds the secrets whose values are not known yet.
pub(super) fn add(known: &mut Vec<KnownSecret>, secrets: Vec<KnownSecret>) {
    for secret in secrets {
        if known.iter().all(|other| other.value != secret.value) {
            known.push(secret);
        }
    }
}

pub(super) fn of_environment(environment: &Environment) -> Vec<KnownSecret> {
    let secrets =
        environment.iter().filter(|(name, value)| is_credential(name) && is_secret_value(value));
    secrets.map(|(name, value)| secret(&format!("variable:{name}"), value)).collect()
}

/// Returns the secrets in the arguments of the agent: `--password VALUE`, `--api-key=VALUE`.
pub(super) fn of_command(command: &[OsString]) -> Vec<KnownSecret> {
    let mut secrets = Vec::new();
    let mut option = None;
    for argument in command.iter().skip(1).map(|argument| argument.to_string_lossy()) {
        let value = match (argument.strip_prefix('-'), option.take()) {
            (Some(named), _) => match named.split_once('=') {
                Some((name, value)) => Some((name.to_owned(), value.to_owned())),
                None => {
                    option = Some(named.to_owned());
                    None
                }
            },
            (None, Some(name)) => Some((name, argument.into_owned())),
            (None, None) => None,
        };
        let value = value.filter(|(name, value)| is_credential(name) && !value.is_empty());
        secrets.extend(value.map(|(name, value)| {
            secret(&format!("argument:{}", name.trim_start_matches('-')), value)
        }));
    }
    secrets
}

/// Returns the keys in the headers of a request to the model.
pub(super) fn of_headers(headers: &HeaderMap) -> Vec<KnownSecret> {
    let mut secrets = Vec::new();
    for (name, value) in headers {
        let Some(value) = value.to_str().ok().filter(|_| is_credential(name.as_str())) else {
            continue;
        };
        let last = value.rsplit(' ').next().unwrap_or_default();
        let decoded = STANDARD.decode(last).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let password =
            decoded.as_deref().and_then(|pair| pair.split_once(':')).map(|(_, word)| word);
        let quoted = value.split('"').skip(1).step_by(2);
        let values = [value, last].into_iter().chain(password).chain(quoted);
        let values = values.filter(|value| is_secret_value(value));
        secrets.extend(values.map(|value| secret("api-key", value)));
    }
    secrets
}

/// Returns the secrets in a base URL: its user, its password and the tokens in its path.
pub(super) fn of_base_url(url: &Url) -> Vec<KnownSecret> {
    let user = [("base-url:user", Some(url.username())), ("base-url:password", url.password())];
    let user = user.into_iter().filter_map(|(name, part)| Some((name, part?)));
    let tokens = url.path_segments().into_iter().flatten().filter(|segment| {
        segment.len() >= MIN_TOKEN_SEGMENT_BYTES
            && segment.bytes().any(|byte| byte.is_ascii_digit())
            && segment.bytes().any(|byte| byte.is_ascii_alphabetic())
    });
    let parts = user.chain(tokens.map(|token| ("base-url:path", token)));
    let parts = parts.filter(|(_, part)| !part.is_empty());
    let forms = parts.flat_map(|(name, part)| [(name, part.to_owned()), (name, decoded(part))]);
    forms.map(|(name, value)| secret(name, value)).collect()
}

/// Splits a query into the part without credentials, and the credentials as they are written.
pub(super) fn split_query(query: &str) -> (Option<String>, Vec<&str>) {
    let (keys, rest): (Vec<_>, Vec<_>) =
        query.split('&').filter(|pair| !pair.is_empty()).partition(|pair| {
            let name = pair.split('=').next().unwrap_or_default();
            is_credential(&decoded(name))
        });
    ((!rest.is_empty()).then(|| rest.join("&")), keys)
}

pub(super) fn of_query(keys: &[&str]) -> Vec<KnownSecret> {
    let values = keys.iter().filter_map(|pair| pair.split_once('=')).map(|(_, value)| value);
    let forms = values.flat_map(|value| [value.to_owned(), decoded(value)]);
    forms.filter(|value| !value.is_empty()).map(|value| secret("api-key", value)).collect()
}

fn decoded(text: &str) -> String {
    let pair = format!("name={text}");
    let mut pairs = form_urlencoded::parse(pair.as_bytes());
    pairs.next().map(|(_, value)| value.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(secrets: &[KnownSecret]) -> Vec<&str> {
        secrets.iter().map(|secret| &*secret.value).collect()
    }

    /// Attack: secrets | a key hides under a name of its own in a variable, an option, a header or a
    /// parameter | no recording has it | Secrets stay with their owner
    #[test]
    fn credentials_are_known_by_the_names_that_they_have() {
        let environment = Environment::from_pairs([
            ("TOKEN", "hunter2-x"),
            ("MYSQL_PWD", "pw1"),
            ("AWS_CREDENTIALS", "c4"),
            ("OPENAI_API_KEY", "ollama"),
            ("SSH_AUTH_SOCK", "/run/agent.1"),
            ("LANG", "en_US.UTF-8"),
        ]);
        assert_eq!(values(&of_environment(&environment)), ["c4", "pw1", "hunter2-x"]);
        let command = ["agent", "--password", "horse9", "--api-key=k1", "-v", "--name", "ada"];
        let command: Vec<_> = command.iter().map(OsString::from).collect();
        assert_eq!(values(&of_command(&command)), ["horse9", "k1"]);
        let mut headers = HeaderMap::new();
        // `ada:sword1`
        headers.insert("authorization", "Basic YWRhOnN3b3JkMQ==".parse().unwrap());
        headers.insert("ocp-apim-subscription-key", "4f9c".parse().unwrap());
        headers.insert("accept", "x1".parse().unwrap());
        let known = of_headers(&headers);
        assert_eq!(
            values(&known),
            ["Basic YWRhOnN3b3JkMQ==", "YWRhOnN3b3JkMQ==", "sword1", "4f9c", "4f9c"]
        );
        let (rest, keys) = split_query("a=1&sig=s%2F1&k%65y=2&code=3&alt=sse");
        assert_eq!(rest.as_deref(), Some("a=1&alt=sse"));
        assert_eq!(values(&of_query(&keys)), ["s%2F1", "s/1", "2", "2", "3", "3"]);
        let url = Url::parse("https://ada:p%4011@h/4f9c1b7ae2d84a0f/v1").unwrap();
        let known = of_base_url(&url);
        let known = values(&known);
        assert_eq!(known[..4], ["ada", "ada", "p%4011", "p@11"]);
        assert_eq!(known[4], "4f9c1b7ae2d84a0f");
    }
}
