//! Secrets in places that others can read, and addresses shown without theirs.

use super::secret::MASK;

/// Parts of a name that say its value is secret.
const TELLING: [&str; 9] = [
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

/// How the keys of well-known services begin.
const PREFIXES: [&str; 12] = [
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

/// Shorter texts are words that only look like a key.
const SHORTEST_KEY: usize = 16;

/// Shorter texts are no secret worth the name, whatever the flag before them says.
const SHORTEST_SECRET: usize = 6;

/// Why an argument looks as if it held a secret, if it does. `before` is the argument before it.
pub(super) fn in_argument(
    written: &str,
    before: Option<&str>,
    variables: &[String],
) -> Option<String> {
    if let Some(name) = variables.iter().find(|name| is_telling(name)) {
        return Some(format!("variable `{name}` in an argument looks like a secret"));
    }
    if !variables.is_empty() {
        return None;
    }
    let (flag, value) = match written.split_once('=') {
        Some((flag, value)) => (Some(flag), value),
        None => (before, written),
    };
    let named = flag.is_some_and(|flag| flag.starts_with('-') && is_telling(flag))
        && value.len() >= SHORTEST_SECRET
        && !value.starts_with(['-', '/', '.', '~'])
        && !value.bytes().all(|byte| byte.is_ascii_digit());
    let known = value.len() >= SHORTEST_KEY && PREFIXES.iter().any(|p| value.starts_with(p));
    (named || known).then(|| "the argument looks like a secret".to_owned())
}

/// Whether something in a text is called what secrets are called.
pub(crate) fn names_secret(text: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && !"_-".contains(c)).any(is_telling)
}

fn is_telling(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TELLING.iter().any(|part| name.contains(part)) || name.ends_with("_key") || name == "key"
}

/// An address as it may be shown: without what stands before `@` and without its query.
pub(crate) fn without_secrets(url: &str) -> String {
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
        assert!(in_argument("--api-key=abcdef", None, none).is_some());
        assert!(in_argument("abcdef", Some("--token"), none).is_some());
        assert!(in_argument("ghp_0123456789abcdef", None, none).is_some());
        assert!(in_argument("${GITHUB_TOKEN}", None, &["GITHUB_TOKEN".to_owned()]).is_some());
    }

    #[test]
    fn ordinary_arguments_are_let_alone() {
        let none: &[String] = &[];
        for (argument, before) in [
            ("-y", None),
            ("--tokens", None),
            ("--verbose", Some("--token")),
            ("--max-tokens=1000000", None),
            ("--token-file=/run/token", None),
            ("directory", Some("-y")),
        ] {
            assert_eq!(in_argument(argument, before, none), None, "{argument}");
        }
        assert_eq!(in_argument("${HOME}", Some("--dir"), &["HOME".to_owned()]), None);
    }

    #[test]
    fn an_address_is_shown_without_password_and_query() {
        for (url, shown) in [
            ("https://a.example/mcp", "https://a.example/mcp"),
            ("https://me:pw@a.example/mcp?key=1", "https://***@a.example/mcp?***"),
            ("https://a.example?key=1", "https://a.example?***"),
            ("https://${HOST}/mcp", "https://${HOST}/mcp"),
        ] {
            assert_eq!(without_secrets(url), shown);
        }
    }
}
