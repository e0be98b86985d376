//! Keys and tokens by the forms their makers publish, private keys, JSON Web Tokens, and what stands
//! behind a telling name (OWASP MCP01).

use std::sync::LazyLock;

use regex::bytes::{Regex, RegexBuilder};

/// Secrets that are looked for in one text.
const MOST: usize = 32;

/// The letters and digits that a secret without a form has at least.
const SHORTEST_UNKNOWN: usize = 16;

/// Different characters that a secret without a form has at least.
const LEAST_VARIED: usize = 10;

/// Words that a sample has and a secret has not.
const SAMPLES: [&str; 16] = [
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

/// Forms that say by themselves what they are.
const FORMS: &str = concat!(
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

/// A telling name and its value.
const NAMED: &str = concat!(
    r#"(?i:\b[a-z0-9_.-]{0,40}(?:secret|token|passw(?:or)?d|pwd|api[_-]?key|access[_-]?key|private[_-]?key|"#,
    r#"credential)[a-z0-9_.-]{0,20}\\?["']?\s*(?:=|:|=>)\s*\\?["']?)([A-Za-z0-9+/_.~!@#%^&$-]{12,512}=*)"#,
);

struct Ready {
    forms: Regex,
    named: Regex,
}

static READY: LazyLock<Ready> = LazyLock::new(|| {
    let one = |pattern: &str| {
        let made = RegexBuilder::new(pattern).unicode(false).build();
        made.expect("a test makes every pattern")
    };
    Ready { forms: one(FORMS), named: one(NAMED) }
});

/// Makes the patterns ready.
pub(super) fn prepare() {
    LazyLock::force(&READY);
}

/// Whether that was done.
#[cfg(test)]
pub(super) fn is_ready() -> bool {
    LazyLock::get(&READY).is_some()
}

/// The secrets in a text, as they are spelled.
pub(super) fn secrets(exact: &str) -> Vec<&str> {
    let ready = &*READY;
    // Both match ASCII only, so that what they find begins and ends with a whole character.
    let formed = ready.forms.find_iter(exact.as_bytes()).map(|found| &exact[found.range()]);
    let formed = formed.filter(|text| !is_sample(text) && lot(text).is_none_or(is_random));
    let named = ready.named.captures_iter(exact.as_bytes());
    let named = named.filter_map(|found| Some(&exact[found.get(1)?.range()]));
    let named = named.filter(|text| !is_sample(text) && is_random(text));
    formed.chain(named).take(MOST).collect()
}

fn is_sample(text: &str) -> bool {
    let small = text.to_ascii_lowercase();
    SAMPLES.iter().any(|word| small.contains(word))
}

/// Whether a value looks drawn by lot: letters and digits mixed, hardly one twice.
fn is_random(text: &str) -> bool {
    let letters: Vec<u8> = text.bytes().filter(u8::is_ascii_alphanumeric).collect();
    let varied: std::collections::BTreeSet<u8> = letters.iter().copied().collect();
    let has = |test: fn(&u8) -> bool| letters.iter().filter(|byte| test(byte)).count();
    letters.len() >= SHORTEST_UNKNOWN
        && varied.len() >= LEAST_VARIED
        && has(u8::is_ascii_digit) >= 2
        && has(u8::is_ascii_alphabetic) >= 4
}

/// What of a formed secret has to look drawn by lot; other forms say enough by themselves.
fn lot(text: &str) -> Option<&str> {
    let behind = |start: &str| text.get(start.len()..).filter(|_| text.starts_with(start));
    let key = behind("sk-").or_else(|| behind("Bearer")).or_else(|| behind("bearer"));
    // Of an address its password.
    let password = text.split_once("://").and_then(|(_, rest)| {
        let (user, _) = rest.split_once('@')?;
        Some(user.split_once(':')?.1)
    });
    key.or(password)
}

/// The parts of a secret by which it is known again, wherever it is put.
pub(super) fn known_by(secret: &str) -> Vec<&str> {
    // The host in an address is no part of its password.
    let random: Vec<&str> = parts(secret).filter(|part| is_random(part)).collect();
    if random.is_empty() {
        parts(secret).max_by_key(|part| part.len()).into_iter().collect()
    } else {
        random
    }
}

/// The words of a text that may be such parts.
pub(super) fn parts(text: &str) -> impl Iterator<Item = &str> {
    let cut = |c: char| c.is_whitespace() || "\"'`,;=&?<>()[]{}|\\/@:".contains(c);
    let words = text.split(cut).map(|word| word.trim_matches('.'));
    words.filter(|word| word.len() >= SHORTEST_PART)
}

/// Shorter words are known by chance.
pub(super) const SHORTEST_PART: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    /// Put together here, so that no scanner of this repository finds a key.
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
            assert_eq!(secrets(&text).len().min(1), 1, "{text}");
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
            assert!(secrets(text).is_empty(), "{text} {:?}", secrets(text));
        }
    }

    #[test]
    fn as_many_secrets_are_looked_for_in_a_text_as_the_limit() {
        let many = |count: usize| {
            let one = |number| format!("token={number:05}aBcDeFgHiJkLmNoPq\n");
            (0..count).map(one).collect::<String>()
        };
        assert_eq!(secrets(&many(MOST)).len(), MOST);
        assert_eq!(secrets(&many(MOST + 1)).len(), MOST);
    }

    #[test]
    fn a_secret_is_known_by_what_of_it_was_drawn_by_lot() {
        let random = "a8Kd02LmQz91XcVb73NwErTy64UiOp5sDf";
        let address = format!("postgres://app:{random}@database.internal.example/things");
        assert_eq!(
            secrets(&address).iter().flat_map(|it| known_by(it)).collect::<Vec<_>>(),
            [random]
        );
        for text in [
            format!("https://a.example/{random}/x"),
            format!("me:{random}@a"),
            format!("It is {random}."),
        ] {
            assert!(parts(&text).any(|part| part == random), "{text}");
        }
    }
}
