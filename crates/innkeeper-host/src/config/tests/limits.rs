//! Every limit, at it and one past it.

use std::fmt::Write as _;
use std::path::Path;

use super::super::source::MAX_PROBLEMS;
use super::super::{Config, Environment, MAX_DEPTH, MAX_FILE_BYTES, Severity};
use super::{load, load_with, told, told_of};
use crate::name::NAME_LIMIT;

fn padded(bytes: u64) -> String {
    let text = r#"{"servers": {"a": {"command": "x"}}}"#;
    let padding = usize::try_from(bytes).unwrap() - text.len();
    format!("{text}{}", " ".repeat(padding))
}

#[test]
fn a_file_at_the_size_limit_is_read_and_one_byte_more_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("mcp.json");
    for (bytes, read) in [(MAX_FILE_BYTES, true), (MAX_FILE_BYTES + 1, false)] {
        assert_eq!(load(&padded(bytes)).is_ok(), read);
        std::fs::write(&path, padded(bytes)).unwrap();
        let result = Config::load(std::slice::from_ref(&path), &Environment::default());
        assert_eq!(result.is_ok(), read);
        if !read {
            assert!(told_of(result).ends_with(": larger than 4 MiB"));
        }
    }
}

#[test]
fn a_file_of_variables_at_the_limit_is_read_and_one_byte_more_is_not() {
    use super::super::files::MAX_ENV_FILE_BYTES;

    let directory = tempfile::tempdir().unwrap();
    let config = r#"{"servers": {"a": {"command": "x", "envFile": "a.env"}}}"#;
    for (bytes, read) in [(MAX_ENV_FILE_BYTES, true), (MAX_ENV_FILE_BYTES + 1, false)] {
        let text = format!("A={}", "x".repeat(usize::try_from(bytes).unwrap() - 2));
        std::fs::write(directory.path().join("a.env"), text).unwrap();
        let result =
            Config::from_text(config, "mcp.json", directory.path(), &Environment::default());
        assert_eq!(result.is_ok(), read);
    }
}

#[test]
fn a_value_at_the_limit_of_expansion_is_read_and_one_byte_more_is_not() {
    const LONGEST: usize = 128 << 10;
    for (bytes, message) in [(LONGEST, ""), (LONGEST + 1, "longer than 131072 bytes")] {
        let long = "x".repeat(bytes - 4);
        for text in ["${LONG}four", "four${LONG}"] {
            let file = format!(r#"{{"servers": {{"a": {{"command": "x", "args": ["{text}"]}}}}}}"#);
            let told = told_of(load_with(&file, &[("LONG", &long)]));
            assert!(told.contains(message) && told.len() < 1000, "{told}");
            assert_eq!(told.is_empty(), message.is_empty(), "{told}");
        }
    }
    let endless =
        format!(r#"{{"servers": {{"a": {{"command": "{}"}}}}}}"#, "${LONG}".repeat(100_000));
    let long = "x".repeat(1 << 20);
    assert!(told_of(load_with(&endless, &[("LONG", &long)])).contains("longer than 131072 bytes"));
}

/// A text whose innermost value is at this depth under the root.
fn nested(depth: usize) -> String {
    let lists = depth - 3;
    let (open, close) = ("[".repeat(lists), "]".repeat(lists));
    format!(r#"{{"servers": {{"a": {{"command": "x", "x": {open}1{close}}}}}}}"#)
}

#[test]
fn nesting_at_the_limit_is_read_and_one_deeper_is_not() {
    assert!(load(&nested(MAX_DEPTH)).is_ok());
    let deep = nested(MAX_DEPTH + 1);
    assert!(told(&deep).contains("nested deeper than 64 levels"));
    let value = serde_json::from_str(&deep).unwrap();
    let result = Config::from_value(&value, "config", Path::new("."), &Environment::default());
    assert!(told_of(result).contains("nested deeper than 64 levels"));
}

#[test]
fn nesting_that_would_exhaust_a_stack_is_refused() {
    for open in ["[", "{\"a\":"] {
        assert!(told(&open.repeat(500_000)).contains("nested too deep"));
    }
}

#[test]
fn a_name_at_the_limit_is_read_and_one_letter_more_is_not() {
    let named = |length| {
        let name = "n".repeat(length);
        load(&format!(r#"{{"servers": {{"{name}": {{"command": "x"}}}}}}"#))
    };
    assert!(named(NAME_LIMIT).is_ok());
    assert!(told_of(named(NAME_LIMIT + 1)).contains("longer than 128 characters"));
}

fn with_unknown_keys(count: usize) -> String {
    let mut keys = String::new();
    for index in 0..count {
        write!(keys, r#", "unknown{index}": 1"#).unwrap();
    }
    format!(r#"{{"servers": {{"a": {{"command": "x"{keys}}}}}}}"#)
}

#[test]
fn problems_past_the_limit_are_counted_and_not_listed() {
    assert_eq!(load(&with_unknown_keys(MAX_PROBLEMS)).unwrap().warnings.len(), MAX_PROBLEMS);
    let warnings = load(&with_unknown_keys(MAX_PROBLEMS + 2)).unwrap().warnings;
    assert_eq!(warnings.len(), MAX_PROBLEMS + 1);
    let last = warnings.last().unwrap();
    assert_eq!(last.to_string(), "mcp.json: 2 more problems are not listed");
}

#[test]
fn problems_of_the_file_beside_the_configuration_are_limited_too() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(".env"), "bad\n".repeat(MAX_PROBLEMS + 1)).unwrap();
    let text = r#"{"servers": {"a": {"command": "${NO:-x}"}}}"#;
    let config = Config::from_text(text, "mcp.json", directory.path(), &Environment::default());
    assert_eq!(config.unwrap().warnings.len(), MAX_PROBLEMS);
}

#[test]
fn an_error_behind_too_many_warnings_still_refuses_the_file() {
    let text =
        with_unknown_keys(MAX_PROBLEMS).replace(r#""command": "x""#, r#""command": "${NO}""#);
    let error = load(&text).unwrap_err();
    assert_eq!(error.0.last().map(|problem| problem.severity), Some(Severity::Error));
}

#[test]
fn a_file_with_problems_without_number_is_told_up_to_the_limit() {
    let mut servers = String::new();
    for index in 0..1_000 {
        write!(servers, r#""ü{index}": {{"command": 1, "dependencies": ["s{index}x"]}}, "#)
            .unwrap();
        write!(servers, r#""s{index}": {{"env": {{"{index}": [1]}}, "args": [1, "${{X}}"]}}, "#)
            .unwrap();
    }
    let error = load(&format!(r#"{{"servers": {{{servers}}}}}"#)).unwrap_err();
    assert_eq!(error.0.len(), MAX_PROBLEMS + 1);
}
