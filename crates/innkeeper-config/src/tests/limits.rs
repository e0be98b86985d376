//! Tests of every limit: at the limit and one above.

use std::fmt::Write as _;
use std::path::Path;

use super::{diagnostics, diagnostics_for, load, load_with};
use crate::diagnostic::Severity;
use crate::name::MAX_NAME_CHARS;
use crate::text::source_text::MAX_DIAGNOSTICS;
use crate::variables::environment::Environment;
use crate::{Config, MAX_DEPTH, MAX_FILE_BYTES};

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
            assert!(diagnostics_for(result).ends_with(": larger than 4 MiB"));
        }
    }
}

#[test]
fn a_file_of_variables_at_the_limit_is_read_and_one_byte_more_is_not() {
    use crate::variables::files::MAX_ENV_FILE_BYTES;

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
    const MAX_EXPANDED_BYTES: usize = 128 << 10;
    for (bytes, message) in
        [(MAX_EXPANDED_BYTES, ""), (MAX_EXPANDED_BYTES + 1, "longer than 131072 bytes")]
    {
        let long = "x".repeat(bytes - 4);
        for text in ["${LONG}four", "four${LONG}"] {
            let file = format!(r#"{{"servers": {{"a": {{"command": "x", "args": ["{text}"]}}}}}}"#);
            let diagnostics = diagnostics_for(load_with(&file, &[("LONG", &long)]));
            assert!(diagnostics.contains(message) && diagnostics.len() < 1000, "{diagnostics}");
            assert_eq!(diagnostics.is_empty(), message.is_empty(), "{diagnostics}");
        }
    }
    let unbounded =
        format!(r#"{{"servers": {{"a": {{"command": "{}"}}}}}}"#, "${LONG}".repeat(100_000));
    let long = "x".repeat(1 << 20);
    assert!(
        diagnostics_for(load_with(&unbounded, &[("LONG", &long)]))
            .contains("longer than 131072 bytes")
    );
}

/// Returns a text whose innermost value is at this depth below the root.
fn nested(depth: usize) -> String {
    let lists = depth - 3;
    let (open, close) = ("[".repeat(lists), "]".repeat(lists));
    format!(r#"{{"servers": {{"a": {{"command": "x", "x": {open}1{close}}}}}}}"#)
}

#[test]
fn nesting_at_the_limit_is_read_and_one_deeper_is_not() {
    assert!(load(&nested(MAX_DEPTH)).is_ok());
    let too_deep = nested(MAX_DEPTH + 1);
    assert!(diagnostics(&too_deep).contains("nested deeper than 64 levels"));
    let value = serde_json::from_str(&too_deep).unwrap();
    let result = Config::from_value(&value, "config", Path::new("."), &Environment::default());
    assert!(diagnostics_for(result).contains("nested deeper than 64 levels"));
}

#[test]
fn nesting_that_would_exhaust_a_stack_is_refused() {
    for open in ["[", "{\"a\":"] {
        assert!(diagnostics(&open.repeat(500_000)).contains("nested too deeply"));
    }
}

#[test]
fn a_name_at_the_limit_is_read_and_one_letter_more_is_not() {
    let named = |length| {
        let name = "n".repeat(length);
        load(&format!(r#"{{"servers": {{"{name}": {{"command": "x"}}}}}}"#))
    };
    assert!(named(MAX_NAME_CHARS).is_ok());
    assert!(diagnostics_for(named(MAX_NAME_CHARS + 1)).contains("longer than 128 characters"));
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
    assert_eq!(load(&with_unknown_keys(MAX_DIAGNOSTICS)).unwrap().warnings.len(), MAX_DIAGNOSTICS);
    let warnings = load(&with_unknown_keys(MAX_DIAGNOSTICS + 2)).unwrap().warnings;
    assert_eq!(warnings.len(), MAX_DIAGNOSTICS + 1);
    let last = warnings.last().unwrap();
    assert_eq!(last.to_string(), "mcp.json: 2 more problems omitted");
}

#[test]
fn problems_of_the_file_beside_the_configuration_are_limited_too() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(".env"), "bad\n".repeat(MAX_DIAGNOSTICS + 1)).unwrap();
    let text = r#"{"servers": {"a": {"command": "${NO:-x}"}}}"#;
    let config = Config::from_text(text, "mcp.json", directory.path(), &Environment::default());
    assert_eq!(config.unwrap().warnings.len(), MAX_DIAGNOSTICS);
}

#[test]
fn an_error_behind_too_many_warnings_still_refuses_the_file() {
    let text =
        with_unknown_keys(MAX_DIAGNOSTICS).replace(r#""command": "x""#, r#""command": "${NO}""#);
    let error = load(&text).unwrap_err();
    assert_eq!(error.0.last().map(|problem| problem.severity), Some(Severity::Error));
}

#[test]
fn countless_problems_of_a_file_are_reported_up_to_the_limit() {
    let mut servers = String::new();
    for index in 0..1_000 {
        write!(servers, r#""ü{index}": {{"command": 1, "dependencies": ["s{index}x"]}}, "#)
            .unwrap();
        write!(servers, r#""s{index}": {{"env": {{"{index}": [1]}}, "args": [1, "${{X}}"]}}, "#)
            .unwrap();
    }
    let error = load(&format!(r#"{{"servers": {{{servers}}}}}"#)).unwrap_err();
    assert_eq!(error.0.len(), MAX_DIAGNOSTICS + 1);
}
