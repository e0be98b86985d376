//! Tests of the check for secrets in forms.

use serde_json::json;
use serde_json::value::to_raw_value;

use super::*;

fn secret_field_in_params(params: &Value) -> Option<String> {
    find_secret_field(Some(&to_raw_value(params).unwrap()))
}

fn secret_field_in_schema(name: &str, schema: &Value) -> Option<String> {
    secret_field_in_params(
        &json!({ "requestedSchema": { "properties": { "city": {}, (name): schema } } }),
    )
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
        assert_eq!(secret_field_in_schema(name, &text).as_deref(), Some(name));
        let titled = json!({"type": "string", "title": name});
        assert_eq!(secret_field_in_schema("value", &titled).as_deref(), Some("value"), "{name}");
    }
    assert!(
        secret_field_in_schema("value", &json!({"type": "string", "format": "password"})).is_some()
    );
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
        assert_eq!(secret_field_in_schema(name, &text), None, "{name}");
    }
    assert_eq!(secret_field_in_schema("password", &json!({"type": "boolean"})), None);
    assert_eq!(
        secret_field_in_schema("pin", &json!({"type": "string", "enum": ["top", "bottom"]})),
        None
    );
    assert_eq!(secret_field_in_schema(&"password ".repeat(200), &text), None);
}

#[test]
fn what_has_fields_is_a_form_whatever_its_mode_is_called() {
    let mut params = json!({ "requestedSchema": { "properties": { "password": {} } } });
    assert!(secret_field_in_params(&params).is_some());
    params["mode"] = json!("form");
    assert!(secret_field_in_params(&params).is_some());
    params["mode"] = json!("url");
    assert!(secret_field_in_params(&params).is_some());
    assert!(
        secret_field_in_params(&json!({ "mode": "url", "url": "https://a", "message": "?" }))
            .is_none()
    );
    assert!(find_secret_field(None).is_none());
}

#[test]
fn a_label_up_to_its_limit_is_checked_and_a_longer_text_is_no_label() {
    let label = |length: usize| format!("{} password", "x".repeat(length - " password".len()));
    assert!(is_secret_label(&label(MAX_LABEL_BYTES)));
    assert!(!is_secret_label(&label(MAX_LABEL_BYTES + 1)));
}
