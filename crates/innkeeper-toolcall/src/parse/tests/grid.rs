//! Tests of all short sequences of tokens, judged by another parser.

use serde_json::Value;

use super::*;

const TOKENS: [&str; 7] = ["[", "]", "{", "}", ",", ":", "\"a\""];

/// Calls `check` with every sequence of at most `max_tokens` tokens.
fn for_all_texts(max_tokens: usize, check: &mut dyn FnMut(&str)) {
    fn extend(text: &mut String, remaining: usize, check: &mut dyn FnMut(&str)) {
        check(text);
        for token in TOKENS.iter().filter(|_| remaining > 0) {
            text.push_str(token);
            extend(text, remaining - 1, check);
            text.truncate(text.len() - token.len());
        }
    }
    extend(&mut String::new(), max_tokens, check);
}

fn parsed_by_the_library(text: &str) -> Option<String> {
    serde_json::from_str::<Value>(text).ok().map(|value| value.to_string())
}

#[test]
fn strict_parsing_accepts_exactly_json() {
    let mut accepted = 0;
    for_all_texts(6, &mut |text| {
        let parsed = parse_strict(text).ok().map(|json| json.to_string());
        accepted += usize::from(parsed.is_some());
        assert_eq!(parsed, parsed_by_the_library(text), "{text}");
    });
    assert_eq!(accepted, 17);
}

/// Removes each comma between a value and a closing bracket.
fn without_trailing_commas(text: &str) -> String {
    let bytes = text.as_bytes();
    let is_trailing = |at: usize| {
        bytes[at] == b','
            && bytes.get(at + 1).is_some_and(|next| b"]}".contains(next))
            && at.checked_sub(1).is_some_and(|before| b"]}\"".contains(&bytes[before]))
    };
    text.char_indices().filter(|(at, _)| !is_trailing(*at)).map(|(_, letter)| letter).collect()
}

/// Adds the missing closing brackets.
fn with_closers(text: &str) -> String {
    let mut closers = Vec::new();
    for letter in text.chars() {
        match letter {
            '[' => closers.push(']'),
            '{' => closers.push('}'),
            ']' | '}' => drop(closers.pop()),
            _ => {}
        }
    }
    text.chars().chain(closers.into_iter().rev()).collect()
}

#[test]
fn lenient_parsing_also_accepts_trailing_commas_and_missing_closers_after_a_stop() {
    for_all_texts(6, &mut |text| {
        // Doubled braces are a different repair.
        if text.contains("{{") {
            return;
        }
        let parsed = |completeness| parse_with_slips(text, completeness).ok().map(|(json, _)| json);
        let complete = without_trailing_commas(text);
        let expected = parsed_by_the_library(&complete);
        assert_eq!(parsed(Completeness::Complete), expected, "{text}");
        assert_eq!(parsed(Completeness::Truncated), expected, "{text}");
        let is_closed = text.ends_with(['"', ']', '}']);
        let stopped = parsed_by_the_library(&with_closers(&complete)).filter(|_| is_closed);
        assert_eq!(parsed(Completeness::Stopped), stopped, "{text}");
    });
}

#[test]
fn an_object_in_doubled_braces_needs_both_closing_braces_unless_the_model_stopped() {
    for (text, complete, stopped) in [
        (r#"{{"a": 1}}"#, true, true),
        (r#"{{"a": {"b": 1}}}"#, true, true),
        (r#"{{"a": 1}"#, false, true),
        (r#"{{"a": 1} }"#, false, false),
        (r#"{{"a": 1}]"#, false, false),
        (r#"{{"a": "b""#, false, true),
        (r#"[{{"a": 1}]"#, false, false),
    ] {
        for (completeness, accepted) in [
            (Completeness::Complete, complete),
            (Completeness::Truncated, complete),
            (Completeness::Stopped, stopped),
        ] {
            let parsed = parse_with_slips(text, completeness);
            assert_eq!(parsed.is_ok(), accepted, "{text} {completeness:?}: {parsed:?}");
        }
        assert!(parse_strict(text).is_err());
    }
}

#[test]
fn a_comma_may_be_missing_only_between_lines_and_between_containers_or_before_a_key() {
    for (text, accepted) in [
        ("[[1]\n[2]]", true),
        ("[{\"a\": 1}\n{\"b\": 2}]", true),
        ("[[1]\n{}]", true),
        ("[[1] [2]]", false),
        ("[\"a\"\n[1]]", false),
        ("[\"a\"\n{}]", false),
        ("[1\n2]", false),
        ("[[1]\n2]", false),
        ("[[1]\n\"a\"]", false),
        ("{\"a\": 1\n\"b\": 2}", true),
        ("{\"a\": [1]\n\"b\": 2}", true),
        ("{\"a\": 1 \"b\": 2}", false),
        ("{\"a\": [1]\n[2]}", false),
    ] {
        let parsed = parse_with_slips(text, Completeness::Complete);
        assert_eq!(parsed.is_ok(), accepted, "{text}: {parsed:?}");
        assert!(parse_strict(text).is_err());
    }
}

#[test]
fn a_pair_of_surrogates_is_one_character_and_any_other_surrogate_is_an_error() {
    for (text, character) in [
        (r#""\ud800\udc00""#, Some("\u{10000}")),
        (r#""\udbff\udfff""#, Some("\u{10ffff}")),
        (r#""\ud7ff""#, Some("\u{d7ff}")),
        (r#""\ue000""#, Some("\u{e000}")),
        (r#""\ud800""#, None),
        (r#""\ud800x""#, None),
        (r#""\ud800\n""#, None),
        (r#""\ud800\udbff""#, None),
        (r#""\ud800\ue000""#, None),
        (r#""\udc00\udc00""#, None),
        (r#""\udfff""#, None),
    ] {
        let parsed = parse_strict(text).ok();
        assert_eq!(parsed.as_ref().and_then(Json::as_str), character, "{text}");
        let library = serde_json::from_str::<String>(text).ok();
        assert_eq!(library.as_deref(), character, "{text}");
    }
}

#[test]
fn a_duplicate_of_any_key_is_an_error_in_objects_of_any_size() {
    for size in 1..40 {
        let member = |at: usize| format!("\"k{at}\":{at}");
        let members: Vec<String> = (0..size).map(member).collect();
        let text = |more: &str| format!("{{{}{more}}}", members.join(","));
        assert!(parse_strict(&text("")).is_ok());
        for at in 0..size {
            let error = parse_strict(&text(&format!(",{}", member(at)))).unwrap_err();
            assert_eq!(error.kind, ParseErrorKind::DuplicateKey, "{at} of {size}");
        }
    }
}
