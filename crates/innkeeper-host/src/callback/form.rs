//! Detection of secret fields in elicitation forms.

use serde_json::Value;
use serde_json::value::RawValue;

/// Words that mean a secret anywhere in a name.
const SECRET_WORDS: [&str; 18] = [
    "apikey",
    "credential",
    "credentials",
    "cvc",
    "cvv",
    "mnemonic",
    "otp",
    "passcode",
    "passphrase",
    "passwd",
    "password",
    "passwords",
    "pin",
    "privatekey",
    "pwd",
    "secret",
    "secretkey",
    "totp",
];

/// Word sequences that mean a secret anywhere in a name.
const SECRET_PHRASES: [&[&str]; 14] = [
    &["api", "key"],
    &["access", "key"],
    &["private", "key"],
    &["secret", "key"],
    &["card", "number"],
    &["credit", "card"],
    &["debit", "card"],
    &["security", "code"],
    &["verification", "code"],
    &["one", "time", "code"],
    &["seed", "phrase"],
    &["seed", "words"],
    &["recovery", "phrase"],
    &["recovery", "code"],
];

/// Last words of a name that describes a secret but does not ask for one.
const NON_SECRET_SUFFIXES: [&str; 9] =
    ["arn", "count", "file", "hint", "id", "length", "name", "policy", "url"];

/// Words before `token` that make the name a page token or a crypto token.
const NON_SECRET_TOKEN_PREFIXES: [&str; 6] = ["cursor", "from", "next", "page", "sync", "to"];

/// Maximum length of a displayed field name, in characters.
pub(super) const MAX_SHOWN_CHARS: usize = 64;

/// Maximum length of a checked name or title, in bytes. A longer text is not a label.
const MAX_LABEL_BYTES: usize = 1 << 10;

/// Returns the name of the first field that asks for a secret, or `None` for a request without a
/// form.
///
/// A request with fields is a form in any mode because the callback may ignore the mode. The
/// function checks names, titles and the format `password`. Booleans and enumerations are not
/// secrets.
pub(super) fn find_secret_field(params: Option<&RawValue>) -> Option<String> {
    let params: Value = serde_json::from_str(params?.get()).ok()?;
    let fields = params.get("requestedSchema")?.get("properties")?.as_object()?;
    let asks_for_secret = |(name, field): &(&String, &Value)| {
        let free = field.get("type").is_none_or(|kind| kind != "boolean")
            && ["enum", "oneOf", "anyOf", "const"].iter().all(|key| field.get(key).is_none());
        let title = field.get("title").and_then(Value::as_str).unwrap_or_default();
        let format = field.get("format").is_some_and(|format| format == "password");
        free && (format || is_secret_label(name) || is_secret_label(title))
    };
    fields.iter().find(asks_for_secret).map(|(name, _)| name.clone())
}

fn is_secret_label(label: &str) -> bool {
    if label.len() > MAX_LABEL_BYTES {
        return false;
    }
    let words = split_words(label);
    let has_phrase = |phrase: &[&str]| words.windows(phrase.len()).any(|window| window == phrase);
    let ends_with_any =
        |among: &[&str]| words.last().is_some_and(|word| among.contains(&word.as_str()));
    if ends_with_any(&NON_SECRET_SUFFIXES) {
        return false;
    }
    let has_non_secret_prefix = || {
        words
            .iter()
            .rev()
            .nth(1)
            .is_some_and(|word| NON_SECRET_TOKEN_PREFIXES.contains(&word.as_str()))
    };
    // `token` means a secret only as the last word: `tokens` is a count and `token_name` is a name.
    ends_with_any(&["token"]) && !has_non_secret_prefix()
        || words.iter().any(|word| SECRET_WORDS.contains(&word.as_str()))
        || SECRET_PHRASES.iter().any(|phrase| has_phrase(phrase))
}

/// Splits a name into lower-case words: `apiKey`, `API key` and `api_key` give the same two words.
fn split_words(label: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut small = false;
    for letter in label.chars() {
        let begins = letter.is_uppercase() && small;
        if begins || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
        small = letter.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests;
