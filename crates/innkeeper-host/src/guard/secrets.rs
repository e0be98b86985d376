//! Detects secrets: published token formats, private keys, JSON Web Tokens, values of secret names.
//!
//! The family is OWASP MCP01.

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

/// Maximum number of secrets searched in a text.
const MAX_SECRETS: usize = 32;

/// Minimum number of letters and digits in a secret without a known format.
const MIN_RANDOM_CHARS: usize = 16;

/// Minimum number of distinct characters in a secret without a known format.
const MIN_DISTINCT_CHARS: usize = 10;

/// Words in placeholders, which secrets do not contain.
const PLACEHOLDER_WORDS: [&str; 16] = [
    "xxxx",
    "your",
    "placeholder",
    "redacted",
    "changeme",
    "change_me",
    "dummy",
    "sample",
    "insert",
    "<",
    "${",
    "{{",
    "...",
    "****",
    "0000000",
    "process.env",
];

/// Known token formats.
const TOKEN_PATTERN: &str = concat!(
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|",
    r"\bgh[pousr]_[A-Za-z0-9]{30,255}|\bgithub_pat_[A-Za-z0-9_]{40,255}|\bglpat-[A-Za-z0-9_-]{20,64}|",
    r"\bxox[abeprs]-[A-Za-z0-9-]{10,255}|\bxapp-[A-Za-z0-9-]{20,255}|",
    r"\bsk-(?:proj-|ant-|or-|svcacct-)?[A-Za-z0-9_-]{20,255}|\b[sr]k_(?:live|test)_[A-Za-z0-9]{16,255}|",
    r"\bAIza[A-Za-z0-9_-]{35}|\bya29\.[A-Za-z0-9_-]{20,512}|\bnpm_[A-Za-z0-9]{36}\b|\bpypi-[A-Za-z0-9_-]{50,512}|",
    r"\bhf_[A-Za-z0-9]{30,64}|\bSG\.[A-Za-z0-9_-]{16,64}\.[A-Za-z0-9_-]{16,64}|\bdo[oprt]_v1_[a-f0-9]{64}|",
    r"\bshp(?:at|ss|pa|ca)_[a-fA-F0-9]{32}|\bAGE-SECRET-KEY-1[A-Z0-9]{50,64}|",
    r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\s|\\n|\\r)*[A-Za-z0-9+/=:,\s\\-]{16,4096}|",
    r"\beyJ[A-Za-z0-9_-]{8,2048}\.eyJ[A-Za-z0-9_-]{4,4096}\.[A-Za-z0-9_-]{8,2048}|",
    r"\b[Bb]earer\s+[A-Za-z0-9._~+/-]{20,1024}=*|",
    r"\b[a-z][a-z0-9+.-]{1,20}://[!-.0-9;-?A-~]{1,64}:[!-.0-9;-?A-~]{6,128}@[A-Za-z0-9.-]+",
);

/// A name of a secret with its value.
const NAMED_SECRET_PATTERN: &str = concat!(
    r#"(?i:\b[a-z0-9_.-]{0,40}(?:secret|token|passw(?:or)?d|pwd|api[_-]?key|access[_-]?key|private[_-]?key|"#,
    r#"credential)[a-z0-9_.-]{0,20}\\?["']?\s*(?:=|:|=>)\s*\\?["']?)([A-Za-z0-9+/_.~!@#%^&$-]{12,512}=*)"#,
);

struct SecretPatterns {
    tokens: Regex,
    named_secrets: Regex,
}

static SECRET_PATTERNS: LazyLock<SecretPatterns> = LazyLock::new(|| SecretPatterns {
    tokens: compile(TOKEN_PATTERN),
    named_secrets: compile(NAMED_SECRET_PATTERN),
});

fn compile(pattern: &str) -> Regex {
    let made = RegexBuilder::new(pattern).unicode(false).build();
    made.expect("a test compiles every pattern")
}

/// Compiles the patterns.
pub(super) fn prepare() {
    LazyLock::force(&SECRET_PATTERNS);
}

/// Returns whether the patterns are compiled.
#[cfg(test)]
pub(super) fn is_ready() -> bool {
    LazyLock::get(&SECRET_PATTERNS).is_some()
}

/// Returns the secrets in a text, as written.
pub(super) fn find_secrets(exact: &str) -> Vec<&str> {
    let ready = &*SECRET_PATTERNS;
    // Both patterns match only ASCII, so that a match starts and ends at a character boundary.
    let formed = ready.tokens.find_iter(exact.as_bytes()).map(|token| &exact[token.range()]);
    let formed =
        formed.filter(|text| !is_placeholder(text) && random_part(text).is_none_or(looks_random));
    let values = ready.named_secrets.captures_iter(exact.as_bytes());
    let values = values.filter_map(|captures| Some(&exact[captures.get(1)?.range()]));
    let values = values.filter(|text| !is_placeholder(text) && looks_random(text));
    formed.chain(values).take(MAX_SECRETS).collect()
}

fn is_placeholder(text: &str) -> bool {
    let small = text.to_ascii_lowercase();
    PLACEHOLDER_WORDS.iter().any(|word| small.contains(word))
}

/// Returns whether a value looks random: mixed letters and digits, few repetitions.
fn looks_random(text: &str) -> bool {
    let letters: Vec<u8> = text.bytes().filter(u8::is_ascii_alphanumeric).collect();
    let varied: std::collections::BTreeSet<u8> = letters.iter().copied().collect();
    let digits = letters.iter().filter(|byte| byte.is_ascii_digit()).count();
    letters.len() >= MIN_RANDOM_CHARS
        && varied.len() >= MIN_DISTINCT_CHARS
        && digits >= 2
        && letters.len() - digits >= 4
}

/// Returns the part of a token that must look random; `None` for formats that are specific enough.
fn random_part(text: &str) -> Option<&str> {
    let key = ["sk-", "Bearer", "bearer"].iter().find_map(|prefix| text.strip_prefix(prefix));
    // The password of a URL.
    let password = text.split_once("://").and_then(|(_, rest)| {
        let (user, _) = rest.split_once('@')?;
        Some(user.split_once(':')?.1)
    });
    key.or(password)
}

/// Returns the parts of a secret that identify it in other texts.
pub(super) fn fingerprint_parts(secret: &str) -> Vec<&str> {
    // The host of a URL is not part of its password.
    let random: Vec<&str> = split_parts(secret).filter(|part| looks_random(part)).collect();
    if random.is_empty() {
        split_parts(secret).max_by_key(|part| part.len()).into_iter().collect()
    } else {
        random
    }
}

/// Returns the words of a text that may be such parts.
pub(super) fn split_parts(text: &str) -> impl Iterator<Item = &str> {
    let words = text
        .split(|c: char| c.is_whitespace() || "\"'`,;=&?<>()[]{}|\\/@:".contains(c))
        .map(|word| word.trim_matches('.'));
    words.filter(|word| word.len() >= MIN_PART_LEN)
}

/// Minimum length of a part in bytes: shorter words match by chance.
pub(super) const MIN_PART_LEN: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds keys at run time, so that no secret scanner reports this file.
    fn key(start: &str, rest: &str) -> String {
        format!("{start}{rest}")
    }

    #[test]
    fn keys_with_a_form_private_keys_and_values_behind_telling_names_are_found() {
        let random = "a8Kd02LmQz91XcVb73NwErTy64UiOp5sDf";
        for text in [
            key("AKI", "AQ7H2LM4PXW9ZTR5V"),
            key("gh", &format!("p_{random}Qa")),
            key("sk-", &format!("proj-{random}")),
            key("-----BEGIN RSA PRIVATE ", "KEY-----\nMIIEowIBAAKCAQEAx7h3"),
            key("eyJ", "hbGciOiJIUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJlaGVyZQ"),
            format!("postgres://app:{random}@db.internal/x"),
            format!("{{\"client_secret\": \"{random}\"}}"),
            format!("DB_PASSWORD={random}"),
            format!("Authorization: Bearer {random}"),
        ] {
            assert_eq!(find_secrets(&text).len().min(1), 1, "{text}");
        }
    }

    #[test]
    fn samples_hashes_and_words_are_none() {
        for text in [
            "export API_KEY=<your key>",
            "token: YOUR_TOKEN_GOES_HERE_1234",
            "AKIAXXXXXXXXXXXXXXXX",
            "commit 3f786850e387550fdab836ed7e6dc881de23001b",
            "password: must have at least twelve characters",
            "nextPageToken: next-page-of-the-results",
            "-----BEGIN PUBLIC KEY-----",
            "sk-learn and scikit",
            "sk-a-class-of-a-stylesheet-that-is-long",
            "Bearer authentication-is-required-here",
            "postgres://app:password@db.internal.example/x",
        ] {
            assert!(find_secrets(text).is_empty(), "{text} {:?}", find_secrets(text));
        }
    }

    #[test]
    fn as_many_secrets_are_looked_for_in_a_text_as_the_limit() {
        let many = |count: usize| {
            (0..count)
                .map(|number| format!("token={number:05}aBcDeFgHiJkLmNoPq\n"))
                .collect::<String>()
        };
        assert_eq!(find_secrets(&many(MAX_SECRETS)).len(), MAX_SECRETS);
        assert_eq!(find_secrets(&many(MAX_SECRETS + 1)).len(), MAX_SECRETS);
    }

    #[test]
    fn a_secret_is_recognised_by_its_random_part() {
        let random = "a8Kd02LmQz91XcVb73NwErTy64UiOp5sDf";
        let address = format!("postgres://app:{random}@database.internal.example/things");
        assert_eq!(
            find_secrets(&address).iter().flat_map(|it| fingerprint_parts(it)).collect::<Vec<_>>(),
            [random]
        );
        for text in [
            format!("https://a.example/{random}/x"),
            format!("me:{random}@a"),
            format!("It is {random}."),
        ] {
            assert!(split_parts(&text).any(|part| part == random), "{text}");
        }
    }
}
