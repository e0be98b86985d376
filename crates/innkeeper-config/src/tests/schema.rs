//! Tests of the generated schema: valid, matches the samples, not wider than the parser.

use std::path::Path;

use serde_json::{Value, json};

use super::load_with;
use crate::form::{raw, schema};
use crate::json_schema;
use crate::settings::host::HostConfig;
use crate::text::source_text::{Diagnostics, SourceText};
use crate::text::tree;

fn validator() -> jsonschema::Validator {
    jsonschema::draft202012::new(&json_schema()).unwrap()
}

/// Returns the `json` and `jsonc` blocks of the reference page.
fn samples() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    let page = std::fs::read_to_string(page).unwrap();
    let mut samples = Vec::new();
    let mut open: Option<String> = None;
    for line in page.lines() {
        match (&mut open, line) {
            (None, "```json" | "```jsonc") => open = Some(String::new()),
            (Some(sample), "```") => {
                samples.push(std::mem::take(sample));
                open = None;
            }
            (Some(sample), line) => {
                sample.push_str(line);
                sample.push('\n');
            }
            (None, _) => {}
        }
    }
    assert_eq!(open, None, "a block of the page is not closed");
    samples
}

fn without_comments(text: &str) -> Value {
    let mut report = Diagnostics::new(SourceText::from_text("sample", text));
    tree::parse(text, &mut report).unwrap().to_value()
}

/// Rewrites the files if `UPDATE_SCHEMA` is set.
#[test]
fn the_schemas_read_at_a_start_are_what_the_types_generate() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/schema");
    let generated = [
        ("server.json", schema::generate::<raw::Server>(), &*schema::SERVER_SCHEMA),
        ("host.json", schema::generate::<raw::Host>(), &*schema::HOST_SCHEMA),
        ("serve.json", schema::generate::<raw::Serve>(), &*schema::SERVE_SCHEMA),
    ];
    for (name, generated, read) in generated {
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            let text = serde_json::to_string_pretty(&generated).unwrap() + "\n";
            std::fs::write(home.join(name), text).unwrap();
        } else {
            let hint = "run `UPDATE_SCHEMA=1 cargo test -p innkeeper-config schemas_read`";
            assert_eq!(&generated, read, "`schema/{name}` is not what the types say: {hint}");
        }
    }
}

#[test]
fn the_generated_schemas_are_valid_2020_12() {
    let stored = [&*schema::SERVER_SCHEMA, &*schema::HOST_SCHEMA, &*schema::SERVE_SCHEMA];
    for schema in [&json_schema()].into_iter().chain(stored) {
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        jsonschema::draft202012::meta::validate(schema).unwrap();
        jsonschema::draft202012::new(schema).unwrap();
    }
}

/// Proves: TR6.2
#[test]
fn every_sample_of_the_reference_page_is_accepted_by_the_schema_and_by_the_host() {
    let validator = validator();
    let variables = [("BRAVE_API_KEY", "k"), ("GITHUB_TOKEN", "t"), ("HOME", "/home/me")];
    let samples = samples();
    assert!(samples.len() >= 4, "{} samples", samples.len());
    for sample in samples {
        let value = without_comments(&sample);
        let errors: Vec<_> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{errors:?}\n{sample}");
        load_with(&sample, &variables).unwrap_or_else(|error| panic!("{error}\n{sample}"));
    }
}

/// Proves: TR6.2
#[test]
fn the_schema_refuses_what_the_host_refuses() {
    let validator = validator();
    for rejected in [
        json!({}),
        json!({"servers": []}),
        json!({"servers": {"a\nb": {"command": "x"}}}),
        json!({"servers": {"a": {"command": 1}}}),
        json!({"servers": {"a": {"command": "x", "args": [1]}}}),
        json!({"servers": {"a": {"command": "x", "timeout": 0}}}),
        json!({"servers": {"a": {"command": "x", "type": "carrier-pigeon"}}}),
        json!({"servers": {"a": {"command": "x", "cwd": null}}}),
        json!({"servers": {"a": {"command": "x", "restart": "always"}}}),
        json!({"servers": {"a": {"command": "x", "limits": {"memory": "5 parsecs"}}}}),
    ] {
        assert!(!validator.is_valid(&rejected), "accepted: {rejected}");
        let text = rejected.to_string();
        assert!(load_with(&text, &[]).is_err(), "loaded: {rejected}");
    }
}

#[test]
fn the_schema_knows_the_spellings_of_other_hosts() {
    let value = json!({"mcpServers": {
        "a": {"httpUrl": "http://a", "headers": ["X: y"], "includeTools": ["a"]},
        "b": {"type": "streamable-http", "serverUrl": "http://b", "enabled": false},
        "c": {"transport": "local", "command": "x", "tools": ["*"]},
    }});
    assert!(validator().is_valid(&value));
    let wrong = json!({"mcpServers": {"a": {"httpUrl": 1}}});
    assert!(!validator().is_valid(&wrong));
}

#[test]
fn the_defaults_that_the_schema_names_are_the_ones_that_count() {
    let host = json!(HostConfig::default());
    let named = &schema::HOST_SCHEMA["properties"];
    let mut compared = 0;
    for (key, default) in host.as_object().unwrap() {
        if let Some(documented) = named[key].get("default") {
            assert_eq!(documented.as_f64(), default.as_f64(), "{key}");
            assert_eq!(documented.as_bool(), default.as_bool(), "{key}");
            assert_eq!(documented.as_str(), default.as_str(), "{key}");
            compared += 1;
        }
    }
    assert_eq!(compared, 12);
    for (name, key) in [("Retry", "retry"), ("Cache", "cache")] {
        for (inner, schema) in schema::HOST_SCHEMA["$defs"][name]["properties"].as_object().unwrap()
        {
            assert_eq!(schema["default"].as_f64(), host[key][inner].as_f64(), "{key}.{inner}");
        }
    }
}

#[test]
fn the_keys_at_the_top_are_the_ones_that_the_schema_has() {
    let schema = json_schema();
    let keys: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys, raw::TOP_LEVEL_KEYS);
}

#[test]
fn every_key_of_the_schema_is_described() {
    fn walk(schema: &Value, path: &str) {
        for (key, property) in schema["properties"].as_object().into_iter().flatten() {
            let described = property["description"].is_string() || property["anyOf"].is_array();
            assert!(described, "{path}.{key}");
            walk(property, &format!("{path}.{key}"));
        }
    }
    let schema = json_schema();
    walk(&schema, "");
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        walk(definition, name);
    }
}
