//! Tests of the checked cursor: it accepts what `serde_json` accepts.

use proptest::prelude::*;
use serde::de::IgnoredAny;

use super::*;

/// Text with every token of the grammar, from which the mutations start.
const DOCUMENT: &str = r#"{"a b": [ -1.50e+10 , 0, true,false,null, "x\u00e9\\ \"long text of more than forty bytes in all\"" ],
    "":{"c":{} , "d" : [] , "e":[[{"f":1E-3}]]} }"#;

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn is_accepted(text: &str) -> bool {
    let mut cursor = CheckedCursor::new(text);
    cursor.value(127).is_some() && cursor.peek().is_none()
}

#[test]
fn exactly_the_values_of_the_json_grammar_are_accepted() {
    let long = "x".repeat(100);
    let values = [
        "{}",
        "[]",
        " [ ] ",
        "{ }",
        "[1]",
        "[[],{}]",
        r#"{"a":1}"#,
        r#"{ "a" : [ 1 , {} ] }"#,
        "null",
        "true",
        "false",
        "0",
        "-0",
        "10",
        "-1.5e+3",
        "1E9",
        "1e999",
        r#""""#,
        r#""ä\n""#,
        r#""\ud83d""#,
        r#""\/\b\f\r\t\\\"""#,
        "\u{7f}",
        "nul",
        "tru",
        "falsy",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "[1,]",
        "{,}",
        r#"{"a"}"#,
        r#"{"a":}"#,
        r#"{"a":1,}"#,
        r#"{a:1}"#,
        "[1 2]",
        r#"{"a":1]"#,
        "[1}",
        r#"""#,
        r#""\x""#,
        r#""\u12g4""#,
        r#""\u123"#,
        "\"\n\"",
        "\"\u{1}\"",
        "",
        " ",
        "1 1",
        "{}{}",
        "]",
        "[",
        "{",
        "[,1]",
        "NaN",
        "\u{feff}1",
        r#"{"a":1 "b":2}"#,
        r#"{"a":1,"a":2}"#,
        r#"["a" "b"]"#,
        "\u{a0}1",
        "[\u{b}]",
    ];
    for value in values {
        let expected = is_json(value);
        assert_eq!(is_accepted(value), expected, "{value}");
    }
    for special in ['"', '\\', '\n', '\u{1f}', ' ', '\u{7f}', 'é'] {
        for at in 0..long.len() {
            let mut text = long.clone();
            text.replace_range(at..=at, &special.to_string());
            let value = format!("\"{text}\"");
            let expected = is_json(&value);
            assert_eq!(is_accepted(&value), expected, "{value}");
        }
    }
}

#[test]
fn the_maximum_depth_is_accepted_and_one_more_is_not() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(is_accepted(&nested(127)) && !is_accepted(&nested(128)));
    let members = |depth: usize| "{\"\":".repeat(depth) + "1" + &"}".repeat(depth);
    assert!(is_accepted(&members(127)) && !is_accepted(&members(128)));
    // Containers that are closed do not count.
    assert!(is_accepted(&format!("[{}{{}}]", "[[]],".repeat(200))));
}

proptest! {
    #[test]
    fn tokens_in_any_order_are_accepted_if_they_are_json(
        tokens in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"a\"", "\"", "\\", "0", "1", "-", ".5", "e9", "null", " ",
        ]), 0..9)
    ) {
        let text = tokens.concat();
        prop_assert_eq!(is_accepted(&text), is_json(&text), "{}", text);
    }

    #[test]
    fn a_changed_byte_is_accepted_if_the_text_is_still_json(
        at in 0..DOCUMENT.len(), end in 0..2_usize, byte in 0..0x80_u8
    ) {
        let mut text = DOCUMENT.to_owned();
        text.replace_range(at..(at + end).min(DOCUMENT.len()), &char::from(byte).to_string());
        prop_assert_eq!(is_accepted(&text), is_json(&text), "{}", text);
    }
}
