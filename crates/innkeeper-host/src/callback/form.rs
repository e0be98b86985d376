//! Forms that servers have a user fill in: which of their fields ask for a secret.

use serde_json::Value;
use serde_json::value::RawValue;

/// Words that name a secret wherever they stand in a name.
const SECRETS: [&str; 18] = [
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

/// Words that do so together.
const TOGETHER: [&[&str]; 14] = [
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

/// Words at the end of a name by which it is about a secret and not one.
const ABOUT: [&str; 9] = ["arn", "count", "file", "hint", "id", "length", "name", "policy", "url"];

/// Words before `token` by which it is a place in a list or a coin.
const PLACES: [&str; 6] = ["cursor", "from", "next", "page", "sync", "to"];

/// How much of a field's name is shown, in characters.
pub(super) const SHOWN: usize = 64;

/// The longest name or title that is looked at, in bytes; a longer one is no label of a field.
const LABEL: usize = 1 << 10;

/// The first field of a form that asks for a secret, by its name; `None` for what is no form. Whatever
/// its mode is called, a request with fields is one: who answers may not look at the mode.
///
/// Names and titles are read, and the format `password`. Yes or no and a choice among given values
/// are no secrets.
pub(super) fn secret_field(params: Option<&RawValue>) -> Option<String> {
    let params: Value = serde_json::from_str(params?.get()).ok()?;
    let fields = params.get("requestedSchema")?.get("properties")?.as_object()?;
    let asks = |(name, field): &(&String, &Value)| {
        let free = field.get("type").is_none_or(|kind| kind != "boolean")
            && ["enum", "oneOf", "anyOf", "const"].iter().all(|key| field.get(key).is_none());
        let title = field.get("title").and_then(Value::as_str).unwrap_or_default();
        let format = field.get("format").is_some_and(|format| format == "password");
        free && (format || names_secret(name) || names_secret(title))
    };
    fields.iter().find(asks).map(|(name, _)| name.clone())
}

fn names_secret(label: &str) -> bool {
    if label.len() > LABEL {
        return false;
    }
    let words = words(label);
    let has = |wanted: &[&str]| words.windows(wanted.len()).any(|found| found == wanted);
    let ends = |among: &[&str]| words.last().is_some_and(|word| among.contains(&word.as_str()));
    if ends(&ABOUT) {
        return false;
    }
    let place = || words.iter().rev().nth(1).is_some_and(|word| PLACES.contains(&word.as_str()));
    // A token is one where the word ends the name: a number of tokens and a token's name are none.
    ends(&["token"]) && !place()
        || words.iter().any(|word| SECRETS.contains(&word.as_str()))
        || TOGETHER.iter().any(|wanted| has(wanted))
}

/// The words of a name, small: `apiKey`, `API key` and `api_key` are the same two.
fn words(label: &str) -> Vec<String> {
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
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    fn asked(params: &Value) -> Option<String> {
        secret_field(Some(&to_raw_value(params).unwrap()))
    }

    fn field(name: &str, schema: &Value) -> Option<String> {
        asked(&json!({ "requestedSchema": { "properties": { "city": {}, (name): schema } } }))
    }

    #[test]
    fn a_field_whose_name_title_or_format_is_that_of_a_secret_is_found() {
        let text = json!({"type": "string"});
        for name in [
            "password",
            "userPassword",
            "API key",
            "api_key",
            "apikey",
            "accessToken",
            "token",
            "otp",
            "one-time code",
            "card_number",
            "creditCard",
            "cvv",
            "seedPhrase",
            "recovery phrase",
            "PIN",
            "client_secret",
            "private-key",
        ] {
            assert_eq!(field(name, &text).as_deref(), Some(name));
            let titled = json!({"type": "string", "title": name});
            assert_eq!(field("value", &titled).as_deref(), Some("value"), "{name}");
        }
        assert!(field("value", &json!({"type": "string", "format": "password"})).is_some());
    }

    #[test]
    fn other_fields_choices_and_questions_of_yes_or_no_are_none() {
        let text = json!({"type": "string"});
        for name in [
            "city",
            "max_tokens",
            "token_count",
            "next_page_token",
            "fromToken",
            "secret_name",
            "api_key_id",
            "passwordLength",
            "tokenName",
            "postcard",
            "spinner",
            "key",
            "passport",
            "secretary",
            "code",
            "zip code",
            "keyboard",
            "card",
            "opinion",
        ] {
            assert_eq!(field(name, &text), None, "{name}");
        }
        assert_eq!(field("password", &json!({"type": "boolean"})), None);
        assert_eq!(field("pin", &json!({"type": "string", "enum": ["top", "bottom"]})), None);
        assert_eq!(field(&"password ".repeat(200), &text), None);
    }

    #[test]
    fn what_has_fields_is_a_form_whatever_its_mode_is_called() {
        let mut params = json!({ "requestedSchema": { "properties": { "password": {} } } });
        assert!(asked(&params).is_some());
        params["mode"] = json!("form");
        assert!(asked(&params).is_some());
        params["mode"] = json!("url");
        assert!(asked(&params).is_some());
        assert!(asked(&json!({ "mode": "url", "url": "https://a", "message": "?" })).is_none());
        assert!(secret_field(None).is_none());
    }
}
