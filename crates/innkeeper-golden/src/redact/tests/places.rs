//! What is replaced by its place, what must be found, and what stays.

use serde_json::json;
use serde_json::value::RawValue;

use super::*;

#[test]
fn a_golden_without_secrets_stays_byte_for_byte() {
    let config = json!({"servers": {"a": {"command": "x", "env": {"A": "${A}"}, "port": 1.0}}});
    let before = golden("ordinary \"text\" \\ with é", &config);
    let after = redact_with(before.clone(), &[anywhere("key", "sk-0123456789")], find_tokens);
    assert_eq!(json_text(&after), json_text(&before));
    assert_eq!(after.to_json().unwrap(), before.to_json().unwrap());
}

#[test]
fn literals_of_the_server_configuration_are_replaced_by_their_place() {
    let config = r#"{ "mcpServers": {"a": {"command": "x", "args": [1.50, "--url=https://u:pw@h/?x=1&api_key=ab%20c"],
        "env": {"A": "1", "B": "${B}", "C": "${C:-d\u0065fault}", "D": 10, "E": "${env:E}-${input:x}", "F": "$${F}"},
        "headers": {"Authorization": "Bearer ${T}", "X-Key": "Bearer abc", "Accept": "application/json"},
        "url": "https://${HOST}/?token=${T}", "oauth": {"clientId": "me", "clientSecret": "s"}}},
        "env": {"A": "1"}}"#;
    let expected = r#"{ "mcpServers": {"a": {"command": "x", "args": [1.50, "--url=https://[redacted:url]:[redacted:url]@h/?x=1&api_key=[redacted:url]"],
        "env": {"A": "[redacted:env:A]", "B": "${B}", "C": "${C:-[redacted:env:C]}", "D": "[redacted:env:D]", "E": "${env:E}[redacted:env:E]${input:x}", "F": "[redacted:env:F]"},
        "headers": {"Authorization": "Bearer ${T}", "X-Key": "[redacted:header:X-Key]", "Accept": "[redacted:header:Accept]"},
        "url": "https://${HOST}/?token=${T}", "oauth": {"clientId": "me", "clientSecret": "[redacted:client-secret]"}}},
        "env": {"A": "1"}}"#;
    let mut golden = golden("default application/json", &json!({}));
    golden.input.server_config = RawValue::from_string(config.to_owned()).unwrap();
    redact(&mut golden, &[], find_nothing).unwrap();
    assert_eq!(golden.input.server_config.get(), expected);
    assert_eq!(golden.test_name, "[redacted:env:C] application/json");
}

#[test]
fn a_literal_of_a_known_secret_has_its_name() {
    let config = json!({"servers": {"a": {"env": {"A": "sk-0123456789"}}}});
    let golden =
        redact_with(golden("", &config), &[anywhere("api-key", "sk-0123456789")], find_nothing);
    let expected = r#"{"servers":{"a":{"env":{"A":"[redacted:api-key]"}}}}"#;
    assert_eq!(golden.input.server_config.get(), expected);
}

#[test]
fn a_short_secret_stays_outside_of_its_place() {
    let golden =
        redact_with(golden("true 12345", &json!({})), &[anywhere("a", "12345")], find_nothing);
    assert_eq!(golden.test_name, "true 12345");
}

#[test]
fn the_words_of_a_header_are_secrets() {
    let secrets = [
        anywhere("header:Authorization", "Bearer abcdefgh12"),
        anywhere("header:Cookie", "session=0123456789abc; a=b"),
        anywhere("header:Proxy-Authorization", "Basic dXNlcjpwYXNzd29yZDEyMw=="),
    ];
    let text = "abcdefgh12, 0123456789abc, password123, Bearer abcdefgh12";
    let golden = redact_with(golden(text, &json!({})), &secrets, find_nothing);
    let expected = "[redacted:header:Authorization], [redacted:header:Cookie], \
                    [redacted:header:Proxy-Authorization], [redacted:header:Authorization]";
    assert_eq!(golden.test_name, expected);
}

#[test]
fn a_changed_definition_has_its_new_hash() {
    let golden =
        redact_with(golden("abcdef", &json!({})), &[anywhere("a", "abcdef")], find_nothing);
    assert_eq!(golden.tools[0].hash, ToolRecord::hash_of(&golden.tools[0].definition));
    Golden::from_json(&golden.to_json().unwrap()).unwrap();
}

#[test]
fn a_secret_of_the_base_url_must_be_in_each_url() {
    let good = redact_with(golden("k%65y", &json!({})), &[of_url("key")], find_nothing);
    assert_eq!(good.input.base_url, "http://h/[redacted:api-key]");
    assert_eq!(good.provider_responses[1].request.url, "http://h/[redacted:api-key]");
    assert_eq!(good.test_name, "k%65y");

    let mut bad = golden("key-0123", &json!({}));
    bad.provider_responses[1].request.url = "http://h/".to_owned();
    let error = redact(&mut bad, &[of_url("key-0123")], find_nothing).unwrap_err();
    let place = "/provider_responses/1/request/url".to_owned();
    assert_eq!(error, RedactError::NotFound { name: "api-key".to_owned(), place });
}

#[test]
fn a_number_that_is_a_secret_becomes_a_placeholder() {
    let text = r#"{"pin":12345678,"other":123456789,"list":[12345678]}"#;
    let expected = r#"{"pin":"[redacted:pin]","other":123456789,"list":["[redacted:pin]"]}"#;
    assert_eq!(redact_body(text, &[anywhere("pin", "12345678")]).unwrap(), expected);
}

#[test]
fn a_secret_across_json_tokens_fails() {
    let secret = [anywhere("env:KEY_FILE", r#"{"type":"account","id":1}"#)];
    let error = redact_body(r#"{"a":{"type":"account","id":1}}"#, &secret).unwrap_err();
    let place = "/provider_responses/0/response/http/chunks".to_owned();
    assert_eq!(error, RedactError::Leaked { name: "env:KEY_FILE".to_owned(), place });
}

#[test]
fn what_the_detector_finds_once_is_replaced_everywhere() {
    let token = "ghp_0123456789abcdefghij";
    let mut before = golden("%67hp_0123456789abcdefghij", &json!({}));
    before.test_name = format!("a {token}.");
    let golden = redact_with(before, &[], find_tokens);
    assert_eq!(golden.test_name, "a [redacted:credential].");
    assert_eq!(golden.program, "[redacted:credential]");
    assert!(!json_text(&golden).contains("0123456789abcdefghij"));
}

#[test]
fn the_detector_sees_the_name_of_a_value() {
    let text = r#"{"user":"hunter2","password":"hunter2"}"#;
    let mut golden = golden_with_chunks(&[text.as_bytes()]);
    redact(&mut golden, &[], find_passwords).unwrap();
    let expected = r#"{"user":"[redacted:credential]","password":"[redacted:credential]"}"#;
    assert_eq!(body(&golden), expected);
}

#[test]
fn a_detector_that_takes_everything_for_a_credential_leaves_nothing() {
    let everything: FindCredentials = |text| vec![text];
    let golden = redact_with(golden("abcdefgh", &json!({})), &[], everything);
    assert!(!json_text(&golden).contains("abcdefgh"));
}

#[test]
fn ordinary_text_stays() {
    let text =
        "The quick brown fox jumps over the lazy dog, 100% of the time & more: \\d+ C:\\new. ";
    let long = text.repeat(500);
    let secrets: Vec<KnownSecret> =
        (0..50).map(|at| anywhere(&format!("s{at}"), &format!("sk-{at:06}"))).collect();
    let before = golden_with_chunks(&[long.as_bytes()]);
    let after = redact_with(before.clone(), &secrets, find_tokens);
    assert_eq!(json_text(&after), json_text(&before));
}

#[test]
fn neither_errors_nor_secrets_show_a_value() {
    let secret = anywhere("api-key", "sk-0123456789");
    assert!(!format!("{secret:?}").contains("0123456789"));
    let mut golden = golden_with_chunks(&[b"\xff sk-0123456789 \xff".as_slice()]);
    let error = redact(&mut golden, &[secret], find_nothing).unwrap_err();
    assert!(matches!(error, RedactError::Binary { .. }));
    assert!(!format!("{error} {error:?}").contains("0123456789"));
}

#[test]
fn parts_of_a_value_with_letters_and_digits_are_secrets() {
    for (value, part) in [
        ("Host=db;Username=app;Password=hunter2hunter2;", "hunter2hunter2"),
        ("{\"Authorization\":\"Bearer qwx7788aabbccdd99\"}", "qwx7788aabbccdd99"),
        ("-----BEGIN KEY-----\nMIIEv9IBADANB\nkqhkiG9w0BAQ\n-----END KEY-----", "kqhkiG9w0BAQ"),
        ("postgres://u:pa55wrd@h/db", "pa55wrd"),
        ("postgres://u:pa%+5s%21w0rd@h/db", "pa%+5s!w0rd"),
        ("Bearer tok1234", "tok1234"),
    ] {
        let redacted = redact_body(&format!("It is {part}."), &[anywhere("env:A", value)]).unwrap();
        assert_eq!(redacted, "It is [redacted:env:A].", "{value}");
    }
    let ordinary =
        redact_body("The Username is app.", &[anywhere("env:A", "Username=app;x=12345678y")]);
    assert_eq!(ordinary.unwrap(), "The Username is app.");
}

#[test]
fn a_quote_that_was_escaped_three_times_hides_nothing() {
    let escape = |text: &str| serde_json::Value::from(text).to_string();
    let text = escape(&escape(&escape("pa\"ssw0rd12")));
    let redacted = redact_body(&text, &[anywhere("pw", "pa\"ssw0rd12")]).unwrap();
    assert!(!redacted.contains("ssw0rd"), "{redacted}");
}

#[test]
fn a_token_in_the_path_of_a_url_is_a_secret() {
    let servers = json!({"mcpServers": {"s": {"url": "https://h.example/api/mcp/s/ZmFrZXNlY3JldDEyMzQ1/mcp"}}});
    let golden = redact_with(golden("It is ZmFrZXNlY3JldDEyMzQ1.", &servers), &[], find_nothing);
    let text = json_text(&golden);
    assert!(!text.contains("ZmFrZXNlY3JldDEyMzQ1"), "{text}");
    assert!(text.contains("https://h.example/api/mcp/s/[redacted:url]/mcp"), "{text}");
}
