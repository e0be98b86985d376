//! Properties of every file: no panics, and files that the required schema accepts load.

use std::sync::LazyLock;

use jsonschema::Validator;
use proptest::collection::{btree_map, btree_set, vec};
use proptest::prelude::{
    Just, ProptestConfig, Strategy, any, prop, prop_assert, prop_assert_eq, prop_oneof, proptest,
};
use serde_json::{Map, Value, json};

use super::load;
use crate::form::schema_match::matches_schema;
use crate::form::{raw, schema};
use crate::json_schema;
use crate::text::source_text::{Diagnostics, SourceText};
use crate::text::tree::JsonNode;

/// The schema of requirement TR8.1, with equal meaning.
fn required_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"servers": {
            "type": "object",
            "patternProperties": {".*": {
                "type": "object",
                "properties": {
                    "type": {"type": "string", "enum": ["stdio", "sse", "websocket"]},
                    "command": {"type": "string"},
                    "args": {"type": "array", "items": {"type": "string"}},
                    "env": {"type": "object"},
                    "timeout": {"type": "number"},
                    "dependencies": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["type", "command"],
            }},
        }},
        "required": ["servers"],
    })
}

/// Generates non-empty text without NUL and without `${`.
fn text() -> impl Strategy<Value = String> {
    // `~` at the start of a command is an error, because no shell replaces it.
    "[^\0${}~\\s]([^\0$]{0,20}[^\0$\\s])?"
}

fn environment() -> impl Strategy<Value = Value> {
    let value = prop_oneof![
        text().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(Value::Null),
    ];
    btree_map("[A-Za-z_][A-Za-z0-9_]{0,8}", value, 0..4)
        .prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// Generates an entry that the required schema accepts and that has the keys of its transport.
fn entry() -> impl Strategy<Value = Map<String, Value>> {
    let rest = (
        prop::option::of(vec(text(), 0..4)),
        prop::option::of(environment()),
        prop::option::of(prop_oneof![
            (1_u32..=86_400).prop_map(Value::from),
            (0.001_f64..86_400.0).prop_map(Value::from),
        ]),
        btree_map("x-[a-z]{1,8}", text().prop_map(Value::from), 0..3),
    );
    let kind = prop_oneof![Just("stdio"), Just("sse"), Just("websocket")];
    (kind, text(), "[a-z]{1,10}(:[1-9][0-9]{0,3})?(/[a-z]{0,5})?", rest).prop_map(
        |(kind, command, address, (args, env, timeout, extra))| {
            let mut entry: Map<String, Value> = extra.into_iter().collect();
            entry.insert("type".to_owned(), kind.into());
            entry.insert("command".to_owned(), command.into());
            match kind {
                "sse" => drop(entry.insert("url".to_owned(), format!("http://{address}").into())),
                "websocket" => {
                    let _ = entry.insert("url".to_owned(), format!("ws://{address}").into());
                }
                _ => {}
            }
            let optional = [("args", args.map(Value::from)), ("env", env), ("timeout", timeout)];
            for (key, value) in optional {
                entry.extend(value.map(|value| (key.to_owned(), value)));
            }
            entry
        },
    )
}

/// Generates names as registries, galleries and people write them: with a scope, spaces, letters
/// of any language. Lower case, because two names must not differ only in case.
fn server_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9_.-]{1,12}",
        "(@[a-z]{1,8}/|[a-z]{2,3}\\.[a-z]{1,8}/)[a-z0-9.-]{1,12}",
        "[a-z0-9]{1,6}( [a-z0-9()&:+#'-]{1,6}){1,3}",
        "[\\p{Ll}\\p{Lo}\\p{So}]{1,12}",
    ]
}

/// Generates a whole file; each server may depend on earlier servers.
fn file() -> impl Strategy<Value = Value> {
    let entries = btree_map(server_name(), entry(), 0..5);
    (entries, vec(any::<prop::sample::Index>(), 0..8)).prop_map(|(entries, picks)| {
        let mut servers = Map::new();
        let mut names: Vec<String> = Vec::new();
        for (name, mut entry) in entries {
            if !names.is_empty() {
                let needs = picks.iter().take(2).map(|pick| names[pick.index(names.len())].clone());
                entry.insert("dependencies".to_owned(), needs.collect());
            }
            names.push(name.clone());
            servers.insert(name, Value::Object(entry));
        }
        json!({"servers": servers})
    })
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}|\\$\\{[A-Za-z:]{0,6}\\}?|[0-9]{1,4} ?(KiB|GB)".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map(key(), inner, 0..5).prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Generates keys, most of them known somewhere.
fn key() -> impl Strategy<Value = String> {
    let known_keys: Vec<String> = json_schema()["$defs"]
        .as_object()
        .into_iter()
        .flat_map(Map::values)
        .filter_map(|definition| definition["properties"].as_object())
        .flat_map(Map::keys)
        .cloned()
        .collect();
    prop_oneof![4 => prop::sample::select(known_keys), 1 => "\\PC{0,6}"]
}

static REQUIRED_VALIDATOR: LazyLock<Validator> = LazyLock::new(|| compile(&required_schema()));
static OUR_VALIDATOR: LazyLock<Validator> = LazyLock::new(|| compile(&json_schema()));
static SERVER_VALIDATOR: LazyLock<Validator> = LazyLock::new(|| compile(&schema::SERVER_SCHEMA));
static HOST_VALIDATOR: LazyLock<Validator> = LazyLock::new(|| compile(&schema::HOST_SCHEMA));

fn compile(schema: &Value) -> Validator {
    jsonschema::draft202012::new(schema).unwrap()
}

/// Uses fewer cases, because generating a whole file is slow in a debug build.
fn whole_files() -> ProptestConfig {
    ProptestConfig::with_cases(64)
}

proptest! {
    #![proptest_config(whole_files())]

    /// Proves: TR8.1
    #[test]
    fn what_the_required_schema_accepts_and_can_be_started_is_accepted(file in file()) {
        prop_assert!(REQUIRED_VALIDATOR.is_valid(&file), "{file}");
        prop_assert!(OUR_VALIDATOR.is_valid(&file), "{file}");
        if let Err(error) = load(&file.to_string()) {
            prop_assert!(false, "{error}\n{file:#}");
        }
    }

    #[test]
    fn no_value_makes_the_reader_panic(
        servers in btree_map("[a-z]{1,2}", any_json(), 0..4),
        host in any_json(),
    ) {
        let text = json!({"servers": servers, "host": host}).to_string();
        if let Err(error) = load(&text) {
            prop_assert!(error.errors().next().is_some(), "an error without a reason: {text}");
        }
    }

    #[test]
    fn an_entry_that_starts_a_program_fits_beyond_doubt(right in entry()) {
        prop_assert!(matches_schema(&schema::SERVER_SCHEMA, &Value::Object(right)));
    }

    #[test]
    fn what_fits_beyond_doubt_is_what_the_schema_accepts(
        server in any_json(),
        host in any_json(),
        right in entry(),
    ) {
        for (schema, validator, value) in [
            (&schema::SERVER_SCHEMA, &SERVER_VALIDATOR, server),
            (&schema::SERVER_SCHEMA, &SERVER_VALIDATOR, Value::Object(right)),
            (&schema::HOST_SCHEMA, &HOST_VALIDATOR, host),
        ] {
            prop_assert!(!matches_schema(schema, &value) || validator.is_valid(&value), "{value}");
        }
    }

    #[test]
    fn what_the_schema_accepts_the_types_can_hold(value in any_json()) {
        if HOST_VALIDATOR.is_valid(&value) {
            let mut report = Diagnostics::new(SourceText::without_text("value"));
            let read = JsonNode::from_value(&value, &mut report).to_value();
            prop_assert!(serde_json::from_value::<raw::Host>(read).is_ok(), "{value}");
        }
    }

    #[test]
    fn waves_hold_every_server_once_and_after_what_it_needs(file in file()) {
        let config = load(&file.to_string()).unwrap();
        let waves = config.waves();
        let mut before = std::collections::HashSet::new();
        for wave in &waves {
            for name in wave {
                let needs = &config.servers[*name].dependencies;
                prop_assert!(needs.iter().all(|need| before.contains(need.as_str())), "{waves:?}");
            }
            before.extend(wave.iter().copied());
        }
        prop_assert_eq!(before.len(), config.servers.len());
        prop_assert_eq!(waves.iter().map(Vec::len).sum::<usize>(), config.servers.len());
    }

    #[test]
    fn a_selection_is_whole(file in file(), pick in any::<prop::sample::Index>()) {
        let config = load(&file.to_string()).unwrap();
        if config.servers.is_empty() {
            return Ok(());
        }
        let (name, _) = config.servers.get_index(pick.index(config.servers.len())).unwrap();
        let only = config.select(&[name]).unwrap();
        prop_assert!(only.servers.contains_key(name));
        for server in only.servers.values() {
            prop_assert!(server.dependencies.iter().all(|need| only.servers.contains_key(need)));
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "\\PC{0,200}|[\\[\\]{}\":,a-z0-9 /*\\\\.\n-]{0,200}") {
        drop(load(&text));
    }
}

#[test]
fn names_that_differ_in_case_only_never_load() {
    let names = btree_set("[a-zA-Z]{1,3}", 2..6);
    let mut runner = proptest::test_runner::TestRunner::default();
    let run = runner.run(&names, |names| {
        let folded: std::collections::HashSet<_> =
            names.iter().map(|name| name.to_ascii_lowercase()).collect();
        let servers: Map<String, Value> =
            names.iter().map(|name| (name.clone(), json!({"command": "x"}))).collect();
        let loaded = load(&json!({"servers": servers}).to_string()).is_ok();
        prop_assert!(loaded == (folded.len() == names.len()), "{names:?}");
        Ok(())
    });
    run.unwrap();
}
