//! Detects secrets in public settings and redacts URLs.

use crate::secret::MASK;

/// Parts of names whose values are secret.
const SECRET_NAME_PARTS: [&str; 9] = [
    "token",
    "secret",
    "password",
    "passwd",
    "apikey",
    "api_key",
    "api-key",
    "credential",
    "private_key",
];

/// Key prefixes of well-known services.
const KEY_PREFIXES: [&str; 12] = [
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "AIza",
    "hf_",
    "npm_",
];

/// Minimum length of a key in bytes: shorter strings are words with the same prefix.
const MIN_KEY_LEN: usize = 16;

/// Minimum length of a secret in bytes, for any preceding flag.
const MIN_SECRET_LEN: usize = 6;

/// Returns why an argument looks like a secret. `before` is the previous argument.
pub(crate) fn find_secret_in_argument(
    text: &str,
    before: Option<&str>,
    variables: &[String],
) -> Option<String> {
    if let Some(name) = variables.iter().find(|name| is_secret_name(name)) {
        return Some(format!("variable `{name}` in an argument looks like a secret"));
    }
    has_literal_secret(text, before).then(|| "the argument looks like a secret".to_owned())
}

/// Returns an argument for display: a mask if the argument looks like a secret, else the argument
/// with redacted URLs. `before` is the previous argument.
pub fn redact_argument(text: &str, before: Option<&str>) -> String {
    if has_literal_secret(text, before) { MASK.to_owned() } else { redact_urls(text) }
}

/// Returns whether an argument contains a secret as text, and not as a reference.
fn has_literal_secret(text: &str, before: Option<&str>) -> bool {
    let text = without_references(text);
    let (flag, value) = match text.split_once('=') {
        Some((flag, value)) => (Some(flag), value),
        None => (before, &*text),
    };
    let secret_flag = flag.is_some_and(|flag| flag.starts_with('-') && is_secret_name(flag))
        && value.len() >= MIN_SECRET_LEN
        && !value.starts_with(['-', '/', '.', '~'])
        && !value.bytes().all(|byte| byte.is_ascii_digit());
    secret_flag || has_key(&text) || has_credentials_header(&text)
}

/// Returns whether a word of a text has the prefix and the length of a key.
fn has_key(text: &str) -> bool {
    text.split(|c: char| c.is_whitespace() || "\"'`=:,;/?&@()[]{}<>".contains(c)).any(|word| {
        word.len() >= MIN_KEY_LEN && KEY_PREFIXES.iter().any(|prefix| word.starts_with(prefix))
    })
}

fn is_scheme(word: &str) -> bool {
    ["bearer", "basic"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

fn is_credential(word: &str) -> bool {
    word.len() >= MIN_SECRET_LEN && !is_scheme(word)
}

/// Returns whether a text contains the credentials of an authentication scheme (`Bearer …`), or is
/// a header with the name of a secret.
fn has_credentials_header(text: &str) -> bool {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || "\"'`=:,".contains(c))
        .filter(|word| !word.is_empty())
        .collect();
    let has_scheme = words.windows(2).any(|pair| is_scheme(pair[0]) && is_credential(pair[1]));
    let is_header = text.split_once(':').is_some_and(|(before, value)| {
        let name = before.rsplit('=').next().unwrap_or_default();
        let is_name =
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
        is_name
            && (is_secret_name(name) || name.eq_ignore_ascii_case("authorization"))
            && value.split_whitespace().any(is_credential)
    });
    has_scheme || is_header
}

/// Removes the references `${…}` from a text.
fn without_references(text: &str) -> String {
    let mut output = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((_, after)) = after.split_once('}') else { break };
        output.push_str(before);
        rest = after;
    }
    output.push_str(rest);
    output
}

/// Redacts each URL of a text that has user information or a secret in its query.
fn redact_urls(text: &str) -> String {
    let words = text.split_inclusive(char::is_whitespace).map(|word| {
        let Some(scheme_end) = word.find("://") else { return word.to_owned() };
        let (url, space) = word.split_at(word.trim_end().len());
        let scheme = url[..scheme_end]
            .trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "+-.".contains(c))
            .len();
        let (before, url) = url.split_at(scheme);
        if !has_credentials(url) {
            return word.to_owned();
        }
        format!("{before}{}{space}", redact_url(url))
    });
    words.collect()
}

/// Returns whether a URL has user information or a secret in its query.
fn has_credentials(url: &str) -> bool {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    authority.contains('@') || query.contains('@') || mentions_secret(query)
}

/// Returns whether a text contains a name of a secret.
pub fn mentions_secret(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && !"_-".contains(c)).any(is_secret_name)
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAME_PARTS.iter().any(|part| name.contains(part))
        || name.ends_with("_key")
        || name == "key"
}

/// Returns a URL for display, without the user information before `@` and without the query.
pub fn redact_url(url: &str) -> String {
    let (url, query) = match url.split_once('?') {
        Some((url, _)) => (url, format!("?{MASK}")),
        None => (url, String::new()),
    };
    let Some((scheme, rest)) = url.split_once("://") else {
        // The text before `@` may be a scheme with a typo and a password.
        return match url.rsplit_once('@') {
            Some((_, host)) => format!("{MASK}@{host}{query}"),
            None => format!("{url}{query}"),
        };
    };
    let (authority, path) = match rest.find('/') {
        Some(end) => rest.split_at(end),
        None => (rest, ""),
    };
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{MASK}@{host}{path}{query}"),
        None => format!("{url}{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_an_argument_is_seen_by_its_flag_its_shape_or_its_variable() {
        let none: &[String] = &[];
        assert!(find_secret_in_argument("--api-key=abcdef", None, none).is_some());
        assert!(find_secret_in_argument("abcdef", Some("--token"), none).is_some());
        assert!(find_secret_in_argument("ghp_0123456789abcdef", None, none).is_some());
        for argument in [
            "Authorization: Bearer sk-0123456789abcdef",
            "--header=Authorization: Bearer opaque-value",
            "X-Api-Key: opaque-value",
            "Authorization:opaque-value",
            "{\"key\":\"ghp_0123456789abcdef\"}",
        ] {
            assert!(find_secret_in_argument(argument, None, none).is_some(), "{argument}");
        }
        let host = ["HOST".to_owned()];
        assert!(find_secret_in_argument("${HOST} ghp_0123456789abcdef", None, &host).is_some());
        assert!(
            find_secret_in_argument("${GITHUB_TOKEN}", None, &["GITHUB_TOKEN".to_owned()])
                .is_some()
        );
    }

    #[test]
    fn ordinary_arguments_are_not_reported() {
        let none: &[String] = &[];
        for (argument, before) in [
            ("-y", None),
            ("--tokens", None),
            ("--verbose", Some("--token")),
            ("--max-tokens=1000000", None),
            ("--token-file=/run/token", None),
            ("directory", Some("-y")),
            ("Authorization: Bearer ${GITHUB}", Some("--header")),
            ("--basic layout", None),
            ("https://a.example/mcp", None),
        ] {
            assert_eq!(find_secret_in_argument(argument, before, none), None, "{argument}");
        }
        assert_eq!(find_secret_in_argument("${HOME}", Some("--dir"), &["HOME".to_owned()]), None);
    }

    #[test]
    fn a_url_in_an_argument_is_redacted_if_it_has_a_password_or_a_secret_in_its_query() {
        for (argument, shown) in [
            ("--url=https://u:pw@h/mcp?token=x", "--url=https://***@h/mcp?***"),
            ("at https://h/mcp?api_key=abc now", "at https://h/mcp?*** now"),
            ("postgres://u:pw@${HOST}/db", "postgres://***@${HOST}/db"),
            ("https://h/?to=https://u:pw@i", "https://h/?***"),
            ("https://h/mcp?page=2", "https://h/mcp?page=2"),
            ("pkg@1.2.3", "pkg@1.2.3"),
            ("Authorization: Bearer sk-0123456789abcdef", "***"),
        ] {
            assert_eq!(redact_argument(argument, None), shown);
        }
        assert_eq!(redact_argument("abcdef", Some("--token")), "***");
        assert_eq!(redact_argument("${TOKEN}", Some("--token")), "${TOKEN}");
    }

    #[test]
    fn an_address_is_shown_without_password_and_query() {
        for (url, shown) in [
            ("https://a.example/mcp", "https://a.example/mcp"),
            ("https://me:pw@a.example/mcp?key=1", "https://***@a.example/mcp?***"),
            ("https://a.example?key=1", "https://a.example?***"),
            ("https://${HOST}/mcp", "https://${HOST}/mcp"),
            ("a.example/mcp?key=1", "a.example/mcp?***"),
            ("me:pw@a.example/mcp", "***@a.example/mcp"),
            ("https:/me:pw@a.example/mcp", "***@a.example/mcp"),
        ] {
            assert_eq!(redact_url(url), shown);
        }
    }
}
