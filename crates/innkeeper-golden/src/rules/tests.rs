//! Tests of the file with rules.

use std::error::Error as _;

use proptest::prelude::{any, prop};
use proptest::{prop_assert, proptest};
use serde_json::{Value, json};

use super::{CallOrder, Rules, RulesError};
use crate::{Golden, ReadError};

fn parse(text: &str) -> Result<Rules, RulesError> {
    Rules::from_json(text.as_bytes())
}

fn message(text: &str) -> String {
    let error = parse(text).unwrap_err();
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    format!("{error}{cause}")
}

#[test]
fn rules_that_name_every_member_are_read_and_written_the_same() {
    let text = r#"{"exact":true,"tool_chain":{"order":"superset","arguments":"ignore","tools":{"fs.write":{"ignored_paths":["/stamp","/items/*/id"]},"now":{"arguments":"ignore"}}},"forbidden_tools":["fs.delete"],"allow_new_tools":false,"outcome":true,"errors":"pattern","bounds":{"max_tokens":9000,"max_calls":4,"max_iterations":3,"max_seconds":1.5},"final_text":{"min_similarity":0.8,"contains":["42"]}}"#;
    let rules = parse(text).unwrap();
    assert_eq!(serde_json::to_string(&rules).unwrap(), text);
    assert_eq!(rules.tool_chain.unwrap().order, CallOrder::Superset);
}

#[test]
fn a_tool_chain_without_members_is_strict_with_exact_arguments() {
    let rule = parse(r#"{"tool_chain": {}}"#).unwrap().tool_chain.unwrap();
    assert_eq!(serde_json::to_string(&rule).unwrap(), r#"{"order":"strict","arguments":"exact"}"#);
}

#[test]
fn rules_that_judge_nothing_are_an_error() {
    let nothing = [
        "{}",
        r#"{"exact": false}"#,
        r#"{"outcome": false}"#,
        r#"{"allow_new_tools": true}"#,
        r#"{"forbidden_tools": []}"#,
        r#"{"bounds": null}"#,
    ];
    for text in nothing {
        assert_eq!(message(text), "`/` judges nothing: name at least one rule", "{text}");
    }
    for text in [r#"{"allow_new_tools": false}"#, r#"{"outcome": true}"#, r#"{"exact": true}"#] {
        assert!(parse(text).is_ok(), "{text}");
    }
}

#[test]
fn a_value_that_makes_no_sense_is_an_error_with_its_place() {
    let cases = [
        (r#"{"final_text": {"min_similarity": 1.01}}"#, "`/final_text/min_similarity` is not"),
        (r#"{"final_text": {"min_similarity": 0}}"#, "`/final_text/min_similarity` is not"),
        (r#"{"final_text": {"min_similarity": -0.5}}"#, "`/final_text/min_similarity` is not"),
        (r#"{"final_text": {}}"#, "`/final_text` says nothing"),
        (r#"{"final_text": {"contains": ["a", " "]}}"#, "`/final_text/contains/1` is empty"),
        ("[]", "`/` is not an object"),
        (" [true]", "`/` is not an object"),
        (r#"{"bounds": {}}"#, "`/bounds` has no bound"),
        (r#"{"bounds": {"max_seconds": 0}}"#, "`/bounds/max_seconds` is not above 0"),
        (r#"{"forbidden_tools": [""]}"#, "`/forbidden_tools/0` is empty"),
        (r#"{"tool_chain": {"tools": {"a/b": {}}}}"#, "`/tool_chain/tools/a~1b` says nothing"),
        (
            r#"{"tool_chain": {"tools": {"a": {"arguments": "ignore", "ignored_paths": ["/x"]}}}}"#,
            "`/tool_chain/tools/a` ignores all",
        ),
    ];
    for (text, expected) in cases {
        assert!(message(text).starts_with(expected), "{}", message(text));
    }
}

#[test]
fn a_wrong_member_is_named_with_its_line() {
    let cases = [
        (r#"{"exakt": true}"#, "invalid rules at `/exakt`: unknown field `exakt`"),
        (r#"{"exact": "yes"}"#, "invalid rules at `/exact`: invalid type"),
        (r#"{"tool_chain": {"order": "loose"}}"#, "invalid rules at `/tool_chain/order"),
        (r#"{"bounds": {"max_calls": -1}}"#, "invalid rules at `/bounds/max_calls`"),
        (
            r#"{"tool_chain": {"tools": {"fs.a": {"ignored_paths": ["/x", "stamp"]}}}}"#,
            "invalid rules at `/tool_chain/tools/fs.a/ignored_paths/1`: a path starts with `/`",
        ),
        (
            r#"{"tool_chain": {"tools": {"a": {"ignored_paths": [""]}}}}"#,
            "invalid rules at `/tool_chain/tools/a/ignored_paths/0`: a path must name a field",
        ),
        (r#"{"exact": true} 1"#, "invalid rules at `/`: trailing characters"),
        ("", "invalid rules at `/`: EOF"),
        (r#"{"exact": true, "exact": true}"#, "invalid rules at `/`: duplicate field"),
    ];
    for (text, expected) in cases {
        let message = message(text);
        assert!(message.starts_with(expected), "{message}");
        assert!(message.contains(" at line 1 column "), "{message}");
    }
}

#[test]
fn a_file_of_rules_has_a_limit() {
    let text = format!("{{\"exact\": true}}{}", " ".repeat(super::MAX_RULES_BYTES));
    assert!(matches!(parse(&text), Err(RulesError::TooLarge { .. })));
}

/// Returns the text of a golden with these rules.
fn golden(rules: &Value) -> String {
    let golden = json!({
        "version": 1, "test_name": "t", "origin": "recorded", "recorded_at": "", "program": "p",
        "input": {
            "server_config": {}, "system_prompt": "", "provider": "openai", "model": "m",
            "api": "chat", "base_url": "", "user_prompt": "", "namespace": "", "streaming": true,
            "settings": {},
        },
        "golden_output": {}, "provider_responses": [], "rules": rules,
    });
    golden.to_string()
}

#[test]
fn rules_in_a_golden_are_checked_like_those_in_a_file() {
    let read = Golden::from_json(&golden(&json!({"outcome": true}))).unwrap();
    assert!(read.rules.as_ref().unwrap().outcome);
    assert!(read.to_json().unwrap().contains("\"outcome\": true"));
    let without = Golden::from_json(&golden(&json!(null))).unwrap();
    assert!(!without.to_json().unwrap().contains("\"rules\""));
    let error = Golden::from_json(&golden(&json!({}))).unwrap_err();
    assert!(matches!(error, ReadError::Rules(RulesError::Value { .. })), "{error}");
    let error = Golden::from_json(&golden(&json!({"exakt": true}))).unwrap_err();
    assert!(matches!(error, ReadError::Invalid(_)), "{error}");
}

proptest! {
    #[test]
    fn any_bytes_are_rules_or_an_error_with_a_place(
        bytes in prop::collection::vec(any::<u8>(), 0..64),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let text = br#"{"tool_chain": {"order": "subset"}, "final_text": {"min_similarity": 0.5}}"#;
        let mut changed = text.to_vec();
        changed[at.index(text.len())] = byte;
        for bytes in [bytes, changed] {
            match Rules::from_json(&bytes) {
                Ok(rules) => prop_assert!(rules.check().is_ok()),
                Err(RulesError::Invalid { place, .. } | RulesError::Value { place, .. }) => {
                    prop_assert!(place.starts_with('/'), "{}", place);
                }
                Err(RulesError::TooLarge { bytes }) => prop_assert!(bytes > 64),
            }
        }
    }
}
