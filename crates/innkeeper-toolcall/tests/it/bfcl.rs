//! Lowers and names all functions of a public benchmark for every provider.
//!
//! The benchmark is the Python package `bfcl-eval`; `cargo xtask test` installs the package under
//! `target`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use innkeeper_toolcall::{Aliases, Dialect, Json, NameRules, lower_schema, lower_schemas};
use serde_json::{Value, json};

use crate::any_schema::{DIALECTS, effective_dialect};
use crate::schema_checker::{count_schema, problems};

/// Number of function documents of the single-turn questions in the installed version.
const FUNCTION_COUNT: usize = 8726;

struct Function {
    name: String,
    parameters: Value,
}

/// Directory in which the test command installs the benchmark.
fn data_dir() -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-servers/bfcl/lib");
    let site_packages = fs::read_dir(&home).into_iter().flatten().flatten().find_map(|python| {
        let data = python.path().join("site-packages/bfcl_eval/data");
        data.is_dir().then_some(data)
    });
    site_packages.expect("`bfcl-eval` is not installed: run `cargo xtask install` once")
}

/// Functions of each question.
fn questions() -> Vec<Vec<Function>> {
    let mut files: Vec<PathBuf> = fs::read_dir(data_dir())
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let mut all = Vec::new();
    for path in files {
        for line in fs::read_to_string(&path).expect("a file of the benchmark").lines() {
            // One file contains only identifiers and no functions.
            let question: Value = serde_json::from_str(line).unwrap_or_default();
            let functions = question["function"].as_array().into_iter().flatten();
            all.push(
                functions
                    .map(|function| Function {
                        name: function["name"].as_str().expect("a function has a name").to_owned(),
                        parameters: function["parameters"].clone(),
                    })
                    .collect::<Vec<_>>(),
            );
        }
    }
    all.retain(|functions| !functions.is_empty());
    let count: usize = all.iter().map(Vec::len).sum();
    assert_eq!(count, FUNCTION_COUNT, "another version of `bfcl-eval` is installed");
    all
}

#[test]
fn every_function_of_the_benchmark_fits_every_provider() {
    let questions = questions();
    let functions: Vec<&Function> = questions.iter().flatten().collect();
    for dialect in DIALECTS {
        let mut strict = 0;
        let mut unique = BTreeSet::new();
        for function in &functions {
            if !unique.insert(function.parameters.to_string()) {
                continue;
            }
            let lowered = lower_schema(&function.parameters, dialect);
            let reported = problems(&lowered.schema, effective_dialect(dialect, lowered.strict));
            assert!(
                reported.is_empty(),
                "{dialect:?} {}: {reported:?}\n{}",
                function.name,
                lowered.schema
            );
            strict += usize::from(lowered.strict);
        }
        let can_be = matches!(dialect, Dialect::OpenAiStrict | Dialect::AnthropicStrict);
        println!("{dialect:?}: {strict} of {} are strict", unique.len());
        assert_eq!(strict > 0, can_be, "{dialect:?}");
    }
}

#[test]
fn every_question_of_the_benchmark_keeps_the_limits_of_a_request() {
    for functions in questions() {
        let schemas: Vec<&Value> = functions.iter().map(|function| &function.parameters).collect();
        let lowered = lower_schemas(schemas, Dialect::AnthropicStrict);
        let strict: Vec<_> = lowered.iter().filter(|schema| schema.strict).collect();
        let spent: Vec<_> = strict.iter().map(|schema| count_schema(&schema.schema)).collect();
        assert!(strict.len() <= 20);
        assert!(spent.iter().map(|it| it.optional).sum::<usize>() <= 24);
        assert!(spent.iter().map(|it| it.unions).sum::<usize>() <= 16);
    }
}

#[test]
fn every_name_of_the_benchmark_goes_there_and_back() {
    let questions = questions();
    let names: Vec<&str> =
        questions.iter().flatten().map(|function| function.name.as_str()).collect();
    let illegal = |name: &&&str| !NameRules::OPENAI.allows(name);
    assert!(names.iter().filter(illegal).count() > 2000, "the benchmark has dots in its names");
    for rules in [NameRules::OPENAI, NameRules::ANTHROPIC, NameRules::GEMINI, NameRules::OLLAMA] {
        let aliases = Aliases::new(names.iter().copied(), rules);
        let mut unique = BTreeSet::new();
        for name in names.iter().copied().collect::<BTreeSet<_>>() {
            let alias = aliases.alias(name).unwrap();
            assert_eq!(aliases.canonical(alias), Some(name));
            assert!(alias.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it)));
            let longest = if rules == NameRules::GEMINI { 63 } else { 64 };
            assert!((1..=longest).contains(&alias.len()), "{alias}");
            assert!(unique.insert(alias.to_ascii_lowercase()), "{alias}");
        }
    }
}

#[test]
fn arguments_without_what_may_be_absent_come_back_without_it() {
    let questions = questions();
    let functions: Vec<&Function> = questions.iter().flatten().collect();
    let mut strict = 0;
    for function in &functions {
        let lowered = lower_schema(&function.parameters, Dialect::OpenAiStrict);
        if !lowered.strict {
            continue;
        }
        strict += 1;
        let required = function.parameters["required"].as_array().cloned().unwrap_or_default();
        let properties = lowered.schema["properties"].as_object().unwrap();
        let members = properties.keys().map(|name| {
            let value = if required.contains(&json!(name)) { json!(1) } else { Value::Null };
            (name.clone(), value)
        });
        let restored = lowered.restore_arguments(Json::from(&Value::Object(members.collect())));
        let Json::Object(restored_members) = restored else { panic!("no object") };
        let required_names = properties.keys().filter(|name| required.contains(&json!(name)));
        assert!(
            restored_members.iter().map(|(name, _)| name).eq(required_names),
            "{}",
            function.name
        );
    }
    assert!(strict * 2 > functions.len(), "{strict} of {} are strict", functions.len());
}
