//! Tests of elicitations.

use super::*;

fn parse(params: &Value) -> Result<ParsedMode, String> {
    ElicitationParams::parse(&params.to_string()).map(|params| params.mode)
}

/// Attack: data | the URL of an elicitation has a foreign scheme, a user name, or an address in
/// place of a name | the user never sees the URL | Foreign text stays text
#[test]
fn a_url_that_could_deceive_the_user_is_rejected() {
    let parse = |url: &str| parse(&json!({"message": "?", "mode": "url", "url": url}));
    for (url, shown, host) in [
        ("https://Example.COM/a?b", "https://example.com/a?b", "example.com"),
        ("https://bücher.example", "https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
        ("http://localhost:8080/x", "http://localhost:8080/x", "localhost"),
        ("http://127.0.0.1/", "http://127.0.0.1/", "127.0.0.1"),
        ("https://[::1]/", "https://[::1]/", "[::1]"),
    ] {
        let expected = ParsedMode::Url { url: shown.to_owned(), host: host.to_owned() };
        assert_eq!(parse(url), Ok(expected));
    }
    for url in [
        "http://example.com/",
        "https://bank.example@evil.example/",
        "https://:pw@evil.example/",
        "https://192.0.2.1/",
        "https://[2001:db8::1]/",
        "http://localhost.evil.example/",
        "javascript:alert(1)",
        "file:///etc/passwd",
        "data:text/html,x",
        "/relative",
        "https://",
    ] {
        assert!(parse(url).is_err(), "{url}");
    }
}

#[test]
fn an_elicitation_without_its_parts_is_rejected() {
    let form = json!({"type": "object", "properties": {}});
    let valid = json!({"message": "?", "requestedSchema": form});
    for mode in [Value::Null, json!("form")] {
        let mut params = valid.clone();
        params["mode"] = mode;
        assert_eq!(parse(&params), Ok(ParsedMode::Form(Form::default())));
    }
    for params in [
        json!([]),
        json!({"requestedSchema": form}),
        json!({"message": 1, "requestedSchema": form}),
        json!({"message": "?"}),
        json!({"message": "?", "mode": "voice", "requestedSchema": form}),
        json!({"message": "?", "mode": 1, "requestedSchema": form}),
        json!({"message": "?", "mode": "url"}),
        json!({"message": "?", "requestedSchema": {"type": "array"}}),
    ] {
        assert!(parse(&params).is_err(), "{params}");
    }
}
