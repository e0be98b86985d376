//! Tests of the `serve` object through the public API.

use std::path::Path;
use std::time::Duration;

use super::*;
use crate::Config;
use crate::diagnostic::ConfigError;
use crate::form::schema;
use crate::variables::environment::Environment;

const HASH: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
const VARIABLES: [(&str, &str); 4] = [
    ("API_KEY", "canary-0123456789-0123456789"),
    ("SHORT_KEY", "canary-0123456789-012"),
    ("KEY_HASH", HASH),
    ("HOST", "mcp.example.com"),
];

fn load(serve: &str) -> Result<Config, ConfigError> {
    let text =
        format!("{{\"servers\": {{\"files\": {{\"command\": \"f\"}}}},\n\"serve\": {serve}}}");
    let environment = Environment::from_pairs(VARIABLES);
    Config::from_text(&text, "mcp.json", Path::new("/nowhere"), &environment)
}

fn serve(keys: &str) -> ServeConfig {
    load(keys).unwrap_or_else(|error| panic!("{keys}: {error}")).serve.unwrap()
}

fn problems(keys: &str) -> String {
    load(keys).map(|_| ()).expect_err(keys).to_string()
}

#[test]
fn an_empty_object_has_every_documented_default_and_no_object_has_no_settings() {
    assert_eq!(serve("{}"), ServeConfig::default());
    let file = serde_json::json!({"servers": {}});
    let config = Config::from_value(&file, "a", Path::new("/"), &Environment::default());
    assert_eq!(config.unwrap().serve, None);
}

#[test]
fn the_defaults_in_the_schema_are_the_ones_that_count() {
    let defaults = serde_json::to_value(ServeConfig::default()).unwrap();
    let schema = &schema::SERVE_SCHEMA["properties"];
    let mut compared = 0;
    for (properties, values) in
        [(schema, &defaults), (&schema["limits"]["properties"], &defaults["limits"])]
    {
        for (key, property) in properties.as_object().unwrap() {
            let Some(default) = property.get("default") else { continue };
            assert_eq!(default.as_f64(), values[key].as_f64(), "{key}");
            assert_eq!(default.as_str(), values[key].as_str(), "{key}");
            assert_eq!(default.as_bool(), values[key].as_bool(), "{key}");
            compared += 1;
        }
    }
    assert_eq!(compared, 10);
    let approval = &schema["approval"]["properties"];
    let defaults = ApprovalConfig::default();
    assert_eq!(approval["expirySeconds"]["default"], defaults.expiry.as_secs());
    assert_eq!(approval["elicitations"]["default"], defaults.elicitations);
    assert!(!defaults.is_configured());
    let endpoint = &schema["endpoints"]["additionalProperties"]["properties"];
    let large = &endpoint["largeResults"]["properties"];
    let defaults = LargeResults::default();
    assert_eq!(large["bytes"]["default"], defaults.bytes);
    assert_eq!(large["ttl"]["default"], defaults.ttl.as_secs());
}

#[test]
fn every_key_reaches_the_settings() {
    let serve = serve(&format!(
        r#"{{
            "listen": "0.0.0.0:80", "allowUnauthenticated": true, "names": "flat",
            "allowedOrigins": ["HTTPS://App.Example.com:443/", "chrome-extension://abc"],
            "allowedHosts": ["${{HOST}}", "MCP.example.com:8443", "[::1]:1"],
            "auth": {{
                "apiKeys": [
                    {{"principal": "ci", "sha256": "{HASH}", "allow": ["a*"], "deny": ["ab"],
                      "rate": {{"perMinute": 6, "burst": 2}}}},
                    {{"principal": "ann", "key": "${{API_KEY}}"}}
                ],
                "oauth": {{"issuer": "https://idp.example", "audience": "https://${{HOST}}/mcp",
                    "jwksUrl": "http://127.0.0.1:1/keys?v=1", "algorithms": ["EdDSA"],
                    "requiredScopes": ["mcp:tools"], "principalClaim": "email",
                    "allow": ["files.*"], "deny": ["*write*"], "rate": {{"perMinute": 7}}}}
            }},
            "rate": {{"perMinute": 60, "tools": {{"write_*": {{"perMinute": 5, "burst": 1}}}}}},
            "approval": {{"tools": ["files.write*"], "expirySeconds": 90, "elicitations": true}},
            "limits": {{"bodyBytes": "1 MiB", "headerBytes": 4096, "requestSeconds": 0.5,
                "idleSessionSeconds": 60, "sessions": 5, "connectionsPerAddress": 7,
                "processes": 6, "memory": "2 GiB"}},
            "console": {{"enabled": false, "operators": ["ann", "oauth:eve@example.com"]}},
            "endpoints": {{"docs": {{"servers": ["files"], "tools": {{"deny": ["x"]}}, "search": true,
                "pinned": ["y"], "largeResults": {{"bytes": "64 KiB", "ttl": 5}}}}}}
        }}"#
    ));
    assert_eq!(
        (serve.listen.to_string().as_str(), serve.allow_unauthenticated),
        ("0.0.0.0:80", true)
    );
    assert_eq!(serve.allowed_origins, ["https://app.example.com", "chrome-extension://abc"]);
    assert_eq!(serve.allowed_hosts, ["mcp.example.com", "mcp.example.com:8443", "[::1]:1"]);
    let [ci, ann] = serve.auth.api_keys.as_slice() else { panic!("{serve:?}") };
    assert_eq!((ci.principal.as_str(), ann.principal.as_str()), ("ci", "ann"));
    assert_eq!(ci.sha256.as_bytes()[..2], [0x2b, 0xb8]);
    assert!(ci.tools.permits("ac") && !ci.tools.permits("ab") && ann.tools.permits("b"));
    let rate =
        RateConfig { requests: Some(Rate { per_minute: 6, burst: 2 }), ..RateConfig::default() };
    assert_eq!((ci.rate.as_ref(), ann.rate.as_ref()), (Some(&rate), None));
    let oauth = serve.auth.oauth.as_ref().unwrap();
    assert_eq!(oauth.audience, "https://mcp.example.com/mcp");
    assert_eq!(
        (oauth.algorithms.as_slice(), oauth.principal_claim.as_str()),
        (&[TokenAlgorithm::EdDsa][..], "email")
    );
    assert!(oauth.tools.permits("files.read") && !oauth.tools.permits("files.write"));
    let rate = oauth.rate.as_ref().and_then(|rate| rate.requests);
    assert_eq!(rate, Some(Rate { per_minute: 7, burst: 7 }));
    assert_eq!(serve.rate.requests, Some(Rate { per_minute: 60, burst: 60 }));
    assert_eq!(serve.rate.tools["write_*"], Rate { per_minute: 5, burst: 1 });
    let limits = ServeLimits {
        body_bytes: 1 << 20,
        header_bytes: 4096,
        request_time: Duration::from_millis(500),
        idle_session_time: Duration::from_secs(60),
        sessions: 5,
        connections_per_address: 7,
        processes: 6,
        memory: Some(2 << 30),
    };
    assert_eq!(serve.limits, limits);
    let tools = vec!["files.write*".to_owned()];
    let approval = ApprovalConfig { tools, expiry: Duration::from_secs(90), elicitations: true };
    assert_eq!(serve.approval, approval);
    let operators = vec!["ann".to_owned(), "oauth:eve@example.com".to_owned()];
    assert_eq!(serve.console, ConsoleConfig { enabled: false, operators });
    let docs = &serve.endpoints["docs"];
    assert_eq!(
        (docs.names, docs.search, docs.pinned.as_slice()),
        (NameStyle::Flat, true, &["y".to_owned()][..])
    );
    assert_eq!(
        docs.large_results,
        Some(LargeResults { bytes: 64 << 10, ttl: Duration::from_secs(5) })
    );
}

#[test]
fn an_operator_of_the_console_is_a_client_that_can_exist() {
    assert_eq!(serve("{}").console, ConsoleConfig { enabled: true, operators: Vec::new() });
    assert_eq!(serve(r#"{"console": {"operators": ["local"]}}"#).console.operators, ["local"]);
    let keys = format!(r#""auth": {{"apiKeys": [{{"principal": "anna", "sha256": "{HASH}"}}]}}"#);
    for (keys, operator, expected) in [
        (
            &*keys,
            "ana",
            "no key of `serve.auth.apiKeys` has the principal `ana`\n    hint: did you mean `anna`?",
        ),
        (&*keys, "local", "no key of `serve.auth.apiKeys` has the principal `local`"),
        (&*keys, "oauth:ann", "no client is `oauth:ann`: `serve.auth.oauth` is not set"),
        ("\"names\": \"flat\"", "ann", "no key of `serve.auth.apiKeys` has the principal `ann`"),
    ] {
        let text = format!(r#"{{{keys}, "console": {{"operators": ["{operator}"]}}}}"#);
        let error = load(&text).unwrap_err().to_string();
        let expected = format!("serve.console.operators[0]: {expected}");
        assert!(error.contains(&expected), "{error}");
    }
}

/// Attack: files | a key of `serve` that turns a check on is misspelled, at any level | the
/// file is rejected, and the error names the key | Complete checks
#[test]
fn an_unknown_key_at_any_level_is_an_error_with_the_key_and_a_suggestion() {
    for (keys, expected) in [
        (
            r#"{"alowedHosts": []}"#,
            "mcp.json:2:26 serve.alowedHosts: unknown key\n    hint: did you mean `allowedHosts`?",
        ),
        (
            r#"{"auth": {"apikeys": []}}"#,
            "serve.auth.apikeys: unknown key\n    hint: did you mean `apiKeys`?",
        ),
        (
            r#"{"auth": {"apiKeys": [{"principal": "a", "sha256": "HASH", "denied": ["x"]}]}}"#,
            "serve.auth.apiKeys[0].denied: unknown key",
        ),
        (
            r#"{"auth": {"oauth": {"issuer": "https://a.b", "audience": "https://a.b", "jwksUrl": "https://a.b", "requiredScope": ["x"]}}}"#,
            "serve.auth.oauth.requiredScope: unknown key\n    hint: did you mean `requiredScopes`?",
        ),
        (r#"{"rate": {"perminute": 1}}"#, "serve.rate.perminute: unknown key"),
        (
            r#"{"rate": {"tools": {"x": {"perMinute": 1, "bursts": 2}}}}"#,
            "serve.rate.tools.x.bursts: unknown key",
        ),
        (r#"{"console": {"operator": ["x"]}}"#, "serve.console.operator: unknown key"),
        (r#"{"limits": {"bodySize": 1024}}"#, "serve.limits.bodySize: unknown key"),
        (
            r#"{"approval": {"tool": ["x"]}}"#,
            "serve.approval.tool: unknown key\n    hint: did you mean `tools`?",
        ),
        (
            r#"{"endpoints": {"a": {"tool": {"deny": ["x"]}}}}"#,
            "serve.endpoints.a.tool: unknown key",
        ),
        (
            r#"{"endpoints": {"a": {"tools": {"denied": ["x"]}}}}"#,
            "serve.endpoints.a.tools.denied: unknown key",
        ),
        (
            r#"{"endpoints": {"a": {"largeResults": {"size": 1024}}}}"#,
            "serve.endpoints.a.largeResults.size: unknown key",
        ),
    ] {
        let problems = problems(&keys.replace("HASH", HASH));
        assert!(problems.contains(expected), "{keys}: {problems}");
        assert_eq!(problems.matches("mcp.json:2").count(), 1, "one error: {problems}");
    }
}

#[test]
fn a_wrong_value_is_an_error_with_its_line_and_key() {
    for (keys, expected) in [
        (
            r#"{"listen": "localhost:80"}"#,
            "mcp.json:2:21 serve.listen: expected an IP address with a port",
        ),
        (r#"{"listen": "127.0.0.1"}"#, "serve.listen: expected an IP address with a port"),
        (r#"{"names": "short"}"#, "serve.names: expected `prefixed` or `flat`"),
        (r#"{"allowUnauthenticated": "yes"}"#, "serve.allowUnauthenticated: expected boolean"),
        (r#"{"rate": {"burst": 5}}"#, "serve.rate: needs `perMinute`"),
        (r#"{"rate": {"perMinute": 0}}"#, "serve.rate.perMinute: expected 1 or more"),
        (r#"{"rate": {"tools": {"x": {}}}}"#, "serve.rate.tools.x: needs `perMinute`"),
        (r#"{"limits": {"bodyBytes": "2 TB"}}"#, "serve.limits.bodyBytes: expected a size such as"),
        (
            r#"{"limits": {"bodyBytes": "2000 GiB"}}"#,
            "serve.limits.bodyBytes: expected a size from 1 KiB to 1 TiB",
        ),
        (
            r#"{"approval": {"tools": ["a.b", "a.c "]}}"#,
            "mcp.json:2:41 serve.approval.tools[1]: expected the name of a tool, such as",
        ),
        (r#"{"approval": {"tools": "a.b"}}"#, "serve.approval.tools: expected array"),
        (
            r#"{"approval": {"expirySeconds": 0}}"#,
            "serve.approval.expirySeconds: expected 1 or more",
        ),
        (
            r#"{"limits": {"requestSeconds": 0}}"#,
            "serve.limits.requestSeconds: expected 0.001 or more",
        ),
        (
            r#"{"endpoints": {"a/b": {}}}"#,
            "serve.endpoints[\"a/b\"]: the name of an endpoint has letters",
        ),
        (
            r#"{"endpoints": {"a": {"servers": ["file"]}}}"#,
            "serve.endpoints.a.servers[0]: no server `file`\n    hint: did you mean `files`?",
        ),
        (
            r#"{"endpoints": {"a": {"pinned": ["x"]}}}"#,
            "serve.endpoints.a.pinned: needs `\"search\": true`",
        ),
        (r#""on""#, "serve: expected object"),
    ] {
        let problems = problems(keys);
        assert!(problems.contains(expected), "{keys}: {problems}");
        assert!(!problems.contains("does not match"), "{problems}");
    }
}

#[test]
fn a_tool_with_a_space_in_its_name_can_wait_for_an_approval() {
    let serve = serve(r#"{"approval": {"tools": ["files.delete note"]}}"#);
    assert_eq!(serve.approval.tools, ["files.delete note"]);
}

#[test]
fn an_origin_or_host_that_would_allow_more_than_one_is_an_error() {
    for origin in [
        "*",
        "null",
        "https://*.example.com",
        "https://a.example/path",
        "a.example",
        "https://u@a.example",
        "file:///x",
        "file://localhost",
        "data:text/html,x",
    ] {
        let problems =
            problems(&format!(r#"{{"allowedOrigins": ["https://ok.example", "{origin}"]}}"#));
        assert!(problems.contains("serve.allowedOrigins[1]: expected a scheme"), "{problems}");
    }
    for host in [
        "*",
        "*.example.com",
        "https://a.example",
        "a.example/",
        "a.example:0",
        "a.example:port",
        "a.example.",
        "::1",
        "",
    ] {
        let problems = problems(&format!(r#"{{"allowedHosts": ["{host}"]}}"#));
        assert!(problems.contains("serve.allowedHosts[0]: expected a host"), "{host}: {problems}");
    }
}

#[test]
fn a_principal_is_a_name_that_no_other_kind_of_client_has() {
    let long = "p".repeat(129);
    for name in ["", "local", "oauth:ann", "a b", "a\\n", &long] {
        let keys = format!(
            r#"{{"auth": {{"apiKeys": [{{"principal": "{name}", "sha256": "{HASH}"}}]}}}}"#
        );
        let problems = problems(&keys);
        assert!(problems.contains("serve.auth.apiKeys[0]: needs a `principal`"), "{problems}");
    }
    serve(&format!(
        r#"{{"auth": {{"apiKeys": [{{"principal": "{}", "sha256": "{HASH}"}}]}}}}"#,
        &long[1..]
    ));
}

#[test]
fn a_key_is_a_hash_or_a_long_value_of_a_variable() {
    for (key, expected) in [
        (r#""sha256": "abc""#, "apiKeys[0].sha256: expected the 64 hexadecimal digits"),
        (
            r#""sha256": "+b80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b0""#,
            "expected the 64",
        ),
        (
            r#""key": "canary-0123456789-0123456789""#,
            "apiKeys[0].key: a key in the file is readable",
        ),
        (r#""key": "${SHORT_KEY}""#, "apiKeys[0].key: expected a key of at least 22 characters"),
        (r#""key": "${UNSET}""#, "apiKeys[0].key: variable `UNSET` is not set"),
        (r#""key": "${API_KEY}", "sha256": "x""#, "apiKeys[0]: has both `sha256` and `key`"),
        (r#""allow": []"#, "apiKeys[0]: has neither `sha256` nor `key`"),
    ] {
        let keys = format!(r#"{{"auth": {{"apiKeys": [{{"principal": "a", {key}}}]}}}}"#);
        let problems = problems(&keys);
        assert!(problems.contains(expected), "{problems}");
        assert!(!problems.contains("canary"), "{problems}");
    }
    let auth = r#"{"auth": {"apiKeys": [{"principal": "a", "key": "${API_KEY}"}, {"principal": "b", "sha256": "${KEY_HASH}"}]}}"#;
    let config = load(auth).unwrap();
    let printed = format!("{config:?}{}", serde_json::to_string(&config).unwrap());
    assert!(!printed.contains("canary") && !printed.contains(&HASH[..8]), "{printed}");
}

#[test]
fn two_entries_of_one_key_or_two_rules_of_one_client_are_an_error() {
    let two = |one: &str, other: &str| {
        problems(&format!(r#"{{"auth": {{"apiKeys": [{{{one}}}, {{{other}}}]}}}}"#))
    };
    let one = format!(r#""principal": "a", "sha256": "{HASH}""#);
    let same = two(&one, &one.replace("\"a\"", "\"b\""));
    assert!(same.contains("apiKeys[1]: the same key as an earlier entry"), "{same}");
    let other = two(&one, r#""principal": "a", "key": "${API_KEY}", "deny": ["x"]"#);
    assert!(
        other.contains(
            "apiKeys[1]: `a` has other values of `allow`, `deny`, `servers`, `endpoints` or `rate`"
        ),
        "{other}"
    );
}

#[test]
fn a_client_is_bound_to_servers_and_endpoints_that_exist() {
    let key = format!(r#""principal": "a", "sha256": "{HASH}""#);
    let with_endpoint =
        |auth: &str| format!(r#"{{"auth": {auth}, "endpoints": {{"docs": {{}}}}}}"#);
    let oauth = |keys: &str| {
        with_endpoint(&format!(
            r#"{{"oauth": {{"issuer": "https://a.b", "audience": "https://a.b/mcp",
                "jwksUrl": "https://a.b/k", {keys}}}}}"#
        ))
    };
    let api_key = |keys: &str| with_endpoint(&format!(r#"{{"apiKeys": [{{{key}, {keys}}}]}}"#));
    let binding = r#""servers": ["files"], "endpoints": ["/mcp", "docs"]"#;
    let owned = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let expected =
        BindingConfig { servers: owned(&["files"]), endpoints: owned(&["/mcp", "docs"]) };
    assert_eq!(serve(&api_key(binding)).auth.api_keys[0].binding, expected);
    assert_eq!(serve(&oauth(binding)).auth.oauth.unwrap().binding, expected);
    assert!(!serve(&api_key(r#""deny": []"#)).auth.api_keys[0].binding.is_bound());
    for (keys, place, hint) in [
        (
            r#""servers": ["files", "fils"]"#,
            "servers[1]: no server `fils`",
            "did you mean `files`?",
        ),
        (r#""endpoints": ["dosc"]"#, "endpoints[0]: no endpoint `dosc`", "did you mean `docs`?"),
        (r#""endpoints": ["mcp"]"#, "endpoints[0]: no endpoint `mcp`", "did you mean `/mcp`?"),
    ] {
        for (text, parent) in [(api_key(keys), "apiKeys[0]"), (oauth(keys), "oauth")] {
            let problems = problems(&text);
            let place = format!("serve.auth.{parent}.{place}");
            assert!(problems.contains(&place) && problems.contains(hint), "{problems}");
        }
    }
    let two = format!(
        r#"{{"auth": {{"apiKeys": [{{{key}}},
            {{"principal": "a", "key": "${{API_KEY}}", "servers": []}}]}}}}"#
    );
    assert!(problems(&two).contains("apiKeys[1]: `a` has other values"), "{}", problems(&two));
}

#[test]
fn an_operator_who_is_bound_is_a_warning() {
    let text = format!(
        r#"{{"auth": {{"apiKeys": [{{"principal": "a", "sha256": "{HASH}", "servers": []}}]}},
            "console": {{"operators": ["a"]}}}}"#
    );
    let warnings: Vec<String> =
        load(&text).unwrap().warnings.iter().map(ToString::to_string).collect();
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(warning.contains("serve.console.operators[0]: the console refuses `a`"), "{warning}");
}

/// Attack: files | the settings of the tokens name no audience, a plain `http` address or an
/// algorithm without a signature | the file is rejected | Secrets stay with their owner
#[test]
fn settings_of_tokens_that_would_accept_forged_tokens_are_errors() {
    let complete =
        r#""issuer": "https://a.b", "audience": "https://a.b/mcp", "jwksUrl": "https://a.b/k""#;
    let oauth = |keys: &str| problems(&format!(r#"{{"auth": {{"oauth": {{{keys}}}}}}}"#));
    for (keys, expected) in [
        (complete.replace(r#""audience": "https://a.b/mcp", "#, ""), "oauth: needs `audience`"),
        (complete.replace(r#""issuer": "https://a.b", "#, ""), "oauth: needs `issuer`"),
        (complete.replace("https://a.b/k", "http://a.b/k"), "oauth.jwksUrl: expected `https://`"),
        (
            complete.replace("https://a.b/k", "https://u:p@a.b/k"),
            "oauth.jwksUrl: expected `https://`",
        ),
        (
            complete.replace("https://a.b/mcp", "https://a.b/mcp#x"),
            "oauth.audience: expected `https://`",
        ),
        (format!(r#"{complete}, "algorithms": []"#), "oauth.algorithms: is empty"),
        (format!(r#"{complete}, "algorithms": ["none"]"#), "oauth.algorithms[0]: expected `RS256`"),
        (
            format!(r#"{complete}, "algorithms": ["HS256"]"#),
            "oauth.algorithms[0]: expected `RS256`",
        ),
        (
            format!(r#"{complete}, "requiredScopes": ["a b"]"#),
            "oauth.requiredScopes[0]: not a valid scope",
        ),
        (format!(r#"{complete}, "principalClaim": """#), "oauth.principalClaim: is empty"),
    ] {
        let problems = oauth(&keys);
        assert!(problems.contains(expected), "{keys}: {problems}");
    }
}

#[test]
fn an_error_rejects_the_configuration_also_if_servers_are_set_aside() {
    let file = serde_json::json!({"servers": {"a": {"command": "f"}}, "serve": {"listen": 1}});
    let env = Environment::default();
    let error = Config::from_value_partial(&file, "a", Path::new("/"), &env).unwrap_err();
    assert!(error.to_string().contains("serve.listen"), "{error}");
}

#[test]
fn two_files_cannot_both_have_settings_of_the_gateway() {
    let directory = tempfile::tempdir().unwrap();
    let files = ["a.json", "b.json"].map(|name| directory.path().join(name));
    for file in &files {
        std::fs::write(file, r#"{"servers": {}, "serve": {}}"#).unwrap();
    }
    let error = Config::load(&files, &Environment::default()).unwrap_err().to_string();
    assert!(error.contains("b.json:1:17 serve: already set at"), "{error}");
}
