//! Detects secrets in public settings and redacts URLs.

use super::secret::MASK;

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
pub(super) fn find_secret_in_argument(
    text: &str,
    before: Option<&str>,
    variables: &[String],
) -> Option<String> {
    if let Some(name) = variables.iter().find(|name| is_secret_name(name)) {
        return Some(format!("variable `{name}` in an argument looks like a secret"));
    }
    if !variables.is_empty() {
        return None;
    }
    let (flag, value) = match text.split_once('=') {
        Some((flag, value)) => (Some(flag), value),
        None => (before, text),
    };
    let secret_flag = flag.is_some_and(|flag| flag.starts_with('-') && is_secret_name(flag))
        && value.len() >= MIN_SECRET_LEN
        && !value.starts_with(['-', '/', '.', '~'])
        && !value.bytes().all(|byte| byte.is_ascii_digit());
    let has_key_prefix =
        value.len() >= MIN_KEY_LEN && KEY_PREFIXES.iter().any(|p| value.starts_with(p));
    (secret_flag || has_key_prefix).then(|| "the argument looks like a secret".to_owned())
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
        return format!("{url}{query}");
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
        ] {
            assert_eq!(find_secret_in_argument(argument, before, none), None, "{argument}");
        }
        assert_eq!(find_secret_in_argument("${HOME}", Some("--dir"), &["HOME".to_owned()]), None);
    }

    #[test]
    fn an_address_is_shown_without_password_and_query() {
        for (url, shown) in [
            ("https://a.example/mcp", "https://a.example/mcp"),
            ("https://me:pw@a.example/mcp?key=1", "https://***@a.example/mcp?***"),
            ("https://a.example?key=1", "https://a.example?***"),
            ("https://${HOST}/mcp", "https://${HOST}/mcp"),
        ] {
            assert_eq!(redact_url(url), shown);
        }
    }
}
