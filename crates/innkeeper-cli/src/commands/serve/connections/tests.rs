//! Tests of the settings of the connection service.

use super::*;

fn settings(variables: &[(&str, &str)], store: Option<&str>) -> Result<Value, CliError> {
    let environment = Environment::from_pairs(variables.iter().copied());
    let store = StoreSettings::new(&environment, store)?;
    Ok(shown_settings(&ConnectionSettings::new(&environment)?, &store))
}

/// Proves: B12, B13, B14
#[test]
fn without_variables_the_values_are_those_of_the_specification() {
    let default = |value: Value| json!({ "value": value, "source": "default" });
    let expected = json!({
        "enabled": default(json!(true)),
        "store": default(json!("memory")),
        "redisUrl": default(json!("redis://localhost:6379/0")),
        "serverName": default(json!("beam-mcp-server")),
        "serverVersion": default(json!("1.0.0")),
        "prefix": default(json!("/api/v1/mcp")),
        "connectionExpiry": default(json!(1_800)),
        "cookieSecure": default(json!("auto")),
        "storeTimeout": default(json!(30)),
    });
    assert_eq!(settings(&[], None).unwrap(), expected);
    assert_eq!(settings(&[("MCP_PREFIX", "")], None).unwrap(), expected);
}

/// Proves: B50
#[test]
fn the_page_has_each_variable_with_its_default() {
    let page = include_str!("../../../../../../docs/connections.md");
    let shown = settings(&[], None).unwrap();
    for (variable, key) in [
        ("MCP_ENABLED", "enabled"),
        ("MCP_REDIS_URL", "redisUrl"),
        ("MCP_SERVER_NAME", "serverName"),
        ("MCP_SERVER_VERSION", "serverVersion"),
        ("MCP_PREFIX", "prefix"),
        ("MCP_CONNECTION_EXPIRY", "connectionExpiry"),
        ("MCP_STORE_TIMEOUT", "storeTimeout"),
        ("MCP_COOKIE_SECURE", "cookieSecure"),
    ] {
        let default = &shown[key]["value"];
        let default = default.as_str().map_or_else(|| default.to_string(), ToOwned::to_owned);
        let row = format!("| `{variable}` | `{default}` |");
        assert!(page.lines().any(|line| line.starts_with(&row)), "{row}");
    }
}

/// Proves: B15, B16
#[test]
fn each_variable_replaces_its_default_and_is_named() {
    let shown = settings(
        &[
            ("MCP_ENABLED", "Off"),
            ("MCP_REDIS_URL", "redis://me:secret@host:1/2"),
            ("MCP_SERVER_NAME", "jobs"),
            ("MCP_SERVER_VERSION", "2.1"),
            ("MCP_PREFIX", "/service"),
            ("MCP_CONNECTION_EXPIRY", "60"),
            ("MCP_COOKIE_SECURE", "TRUE"),
        ],
        None,
    );
    let shown = shown.unwrap();
    let from = |value: Value, name: &str| json!({ "value": value, "source": name });
    assert_eq!(shown["enabled"], from(json!(false), "MCP_ENABLED"));
    assert_eq!(shown["serverName"], from(json!("jobs"), "MCP_SERVER_NAME"));
    assert_eq!(shown["serverVersion"], from(json!("2.1"), "MCP_SERVER_VERSION"));
    assert_eq!(shown["prefix"], from(json!("/service"), "MCP_PREFIX"));
    assert_eq!(shown["connectionExpiry"], from(json!(60), "MCP_CONNECTION_EXPIRY"));
    assert_eq!(shown["cookieSecure"], from(json!("true"), "MCP_COOKIE_SECURE"));
    assert_eq!(shown["store"]["source"], "MCP_REDIS_URL", "Redis, if it is named");
    assert!(!shown.to_string().contains("secret"), "{shown}");
}

#[test]
fn the_option_has_precedence_over_the_variables() {
    let url = ("MCP_REDIS_URL", "redis://host/0");
    let store = |variables: &[(&str, &str)], option| {
        let shown = settings(variables, option).unwrap();
        (shown["store"]["value"].clone(), shown["store"]["source"].clone())
    };
    let memory = ("MCP_STORE", "memory");
    assert_eq!(store(&[url, memory], None), (json!("memory"), json!("MCP_STORE")));
    let option = Some("redis://other/1");
    let expected = (json!("redis://other/1"), json!("--store"));
    assert_eq!(store(&[url, memory], option), expected);
    assert_eq!(store(&[url], Some("memory")), (json!("memory"), json!("--store")));
    let files = ("MCP_STORE", "file:state/connections");
    assert_eq!(store(&[url, files], None), (json!(files.1), json!("MCP_STORE")));
}

/// Proves: B11
#[test]
fn words_for_true_and_false_are_read_in_any_case_and_no_others() {
    for (text, expected) in
        [("True", true), ("1", true), ("YES", true), ("on", true), ("False", false), ("0", false)]
    {
        let shown = settings(&[("MCP_ENABLED", text)], None).unwrap();
        assert_eq!(shown["enabled"]["value"], expected, "{text}");
    }
    for (name, value) in [
        ("MCP_ENABLED", "maybe"),
        ("MCP_REDIS_URL", "http://user:secret@host"),
        ("MCP_STORE", "disk"),
        ("MCP_STORE", "file:"),
        ("MCP_REDIS_URL", "file:state"),
        ("MCP_PREFIX", "api"),
        ("MCP_CONNECTION_EXPIRY", "0"),
        ("MCP_CONNECTION_EXPIRY", "31536001"),
        ("MCP_CONNECTION_EXPIRY", "1.5"),
        ("MCP_COOKIE_SECURE", "sometimes"),
        ("MCP_STORE_TIMEOUT", "-1"),
    ] {
        let error = format!("{:?}", settings(&[(name, value)], None).unwrap_err());
        assert!(error.contains(&format!("`{name}`")), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }
}

/// Attack: secrets | the password in the URL of Redis has characters that end it, such as `/` | the
/// start fails at once, and the error does not contain the URL | Secrets do not print
#[test]
fn a_url_that_is_not_valid_is_an_error_that_does_not_contain_it() {
    for url in [
        "redis://",
        "redis://host:99999/0",
        "redis://ann:first/second@host:6379/0",
        "redis://ann:first?second@host:6379/0",
        "redis://ann:first#second@host:6379/0",
        "redis://:second@host/database",
    ] {
        let errors = [
            settings(&[], Some(url)),
            settings(&[("MCP_STORE", url)], None),
            settings(&[("MCP_REDIS_URL", url)], None),
        ];
        for error in errors.map(Result::unwrap_err) {
            let error = format!("{error:?}");
            assert!(error.contains("redis://[USER:PASSWORD@]HOST:PORT/DATABASE"), "{error}");
            assert!(!error.contains("first") && !error.contains("second"), "{error}");
        }
    }
}
