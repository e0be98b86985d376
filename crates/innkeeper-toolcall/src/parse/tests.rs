//! Tests of reading: what is repaired, what is refused, and what it costs.

use super::machine::Machine;
use super::*;
use crate::repair::Slip;

/// The value as JSON text, and the repairs without what is common to all.
fn read(text: &str, end: End) -> Result<(String, Vec<(usize, Slip)>), ParseError> {
    let mut repairs = Vec::new();
    let json = lenient(text, end, &mut repairs)?;
    let slips = repairs.into_iter().map(|repair| match repair {
        Repair::Text { at, slip } => (at, slip),
        other @ (Repair::Encoded { .. }
        | Repair::Value { .. }
        | Repair::Name { .. }
        | Repair::More { .. }) => panic!("{other}"),
    });
    Ok((json.to_string(), slips.collect()))
}

fn repaired(text: &str, json: &str, slips: &[(usize, Slip)]) {
    assert!(strict(text).is_err(), "{text} is JSON");
    assert_eq!(read(text, End::Complete), Ok((json.to_owned(), slips.to_vec())), "{text}");
}

fn problem(text: &str, end: End) -> Problem {
    match lenient(text, end, &mut Vec::new()) {
        Ok(json) => panic!("{text} is read as {json}"),
        Err(error) => error.problem,
    }
}

fn refused(text: &str, expected: &Problem) {
    assert_eq!(&problem(text, End::Complete), expected, "{text}");
    assert_eq!(&problem(text, End::Stopped), expected, "{text}");
}

fn wanted(expected: Expected, found: impl Into<Option<char>>) -> Problem {
    Problem::Expected { expected, found: found.into() }
}

/// Proves: S26
#[test]
fn braces_quotes_and_backslashes_in_strings_and_nested_objects_are_kept() {
    let text = r#"{"a": "} \" \\ {", "b": {"c": [{"d": "\\\""}]}, "e": "\\"}"#;
    let json = strict(text).unwrap();
    assert_eq!(json.get("a").unwrap().as_str(), Some(r#"} " \ {"#));
    assert_eq!(json.get("e").unwrap().as_str(), Some(r"\"));
    assert_eq!(json.to_string(), text.replace(": ", ":").replace(", ", ","));
}

#[test]
fn numbers_keep_their_text() {
    let text = "[0,-0,1.50,1E400,123456789012345678901234567890,-2e-07]";
    assert_eq!(strict(text).unwrap().to_string(), text);
}

#[test]
fn every_escape_of_json_is_understood() {
    let text = r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00""#;
    assert_eq!(strict(text).unwrap().as_str(), Some("\"\\/\u{8}\u{c}\n\r\té😀"));
}

#[test]
fn commas_that_trail_are_dropped() {
    repaired(
        r#"{"a": [1, 2, ], }"#,
        r#"{"a":[1,2]}"#,
        &[(11, Slip::TrailingComma), (14, Slip::TrailingComma)],
    );
    refused("[1,,2]", &wanted(Expected::Value, ','));
    refused("[,]", &wanted(Expected::ItemOrEnd, ','));
    refused(r#"{,"a":1}"#, &wanted(Expected::KeyOrEnd, ','));
    refused("[1],", &Problem::Trailing);
}

#[test]
fn a_comma_is_added_between_members_on_lines_of_their_own() {
    repaired(
        "{\"a\": 1\n\"b\": \"x\"\n 'c': 2}",
        r#"{"a":1,"b":"x","c":2}"#,
        &[(8, Slip::MissingComma), (18, Slip::MissingComma), (18, Slip::SingleQuotes)],
    );
    repaired("[{}\n{}]", "[{},{}]", &[(4, Slip::MissingComma)]);
    refused(r#"{"a": 1 "b": 2}"#, &wanted(Expected::CommaOrObjectEnd, '"'));
    refused("[\"a\"\n\"b\"]", &wanted(Expected::CommaOrArrayEnd, '"'));
    refused("[1\n[2]]", &wanted(Expected::CommaOrArrayEnd, '['));
    refused("{\"a\": 1\nb: 2}", &wanted(Expected::CommaOrObjectEnd, 'b'));
}

#[test]
fn other_quotes_may_delimit_a_string() {
    repaired(
        r#"{'a': 'say "hi"', "b": 'it\'s'}"#,
        r#"{"a":"say \"hi\"","b":"it's"}"#,
        &[
            (1, Slip::SingleQuotes),
            (6, Slip::SingleQuotes),
            (23, Slip::SingleQuotes),
            (26, Slip::InvalidEscape),
        ],
    );
    repaired(
        "{“a”: „it's‟“, ‘b’: ‘c’}",
        r#"{"a":"it's‟","b":"c"}"#,
        &[
            (1, Slip::SmartQuotes),
            (10, Slip::SmartQuotes),
            (25, Slip::SmartQuotes),
            (34, Slip::SmartQuotes),
        ],
    );
    assert_eq!(strict(r#""“a” ‘b’""#).unwrap().as_str(), Some("“a” ‘b’"));
}

#[test]
fn a_string_whose_end_is_a_guess_is_refused() {
    refused(r#"{'a": 1, "b': 2}"#, &Problem::MixedQuotes);
    refused("{“a\": 1, \"b”: 2}", &Problem::MixedQuotes);
    refused("{'a': 'it's'}", &wanted(Expected::CommaOrObjectEnd, 's'));
    refused(r#"{"a": "say "hi""}"#, &wanted(Expected::CommaOrObjectEnd, 'h'));
    refused("{‘a’: ‘it’s’}", &wanted(Expected::CommaOrObjectEnd, 's'));
}

#[test]
fn python_literals_are_read_and_other_words_are_not() {
    repaired(
        "[True, False, None]",
        "[true,false,null]",
        &[(1, Slip::PythonLiteral), (7, Slip::PythonLiteral), (14, Slip::PythonLiteral)],
    );
    for word in ["TRUE", "Null", "undefined", "yes", "trues", "_", "é"] {
        refused(word, &Problem::Word);
    }
}

#[test]
fn a_bare_word_is_a_key_but_never_a_value() {
    repaired(
        "{a_1: 1, $b-c: {été: 2}}",
        r#"{"a_1":1,"$b-c":{"été":2}}"#,
        &[(1, Slip::UnquotedKey), (9, Slip::UnquotedKey), (16, Slip::UnquotedKey)],
    );
    refused("{ key: value }", &Problem::Word);
    refused("{None: 1}", &wanted(Expected::Key, 'N'));
    refused("{1: 2}", &wanted(Expected::KeyOrEnd, '1'));
    refused("{a b: 2}", &wanted(Expected::Colon, 'b'));
}

#[test]
fn an_unknown_escape_keeps_its_backslash_unless_it_has_a_meaning_elsewhere() {
    repaired(
        r#"["\d+\.\w", "C:\Users"]"#,
        r#"["\\d+\\.\\w","C:\\Users"]"#,
        &[(2, Slip::InvalidEscape), (15, Slip::InvalidEscape)],
    );
    for text in [r#""\x41""#, r#""\0""#, r#""\u12""#, r#""\users""#, "\"\\\n\""] {
        refused(text, &Problem::Escape);
    }
}

#[test]
fn half_a_surrogate_pair_is_refused_at_every_level() {
    for text in [r#""\ud83d""#, r#""\ude00""#, r#""\ud83dx""#, r#""\ud83d\n""#, r#""\ud83d\ud83d""#]
    {
        assert_eq!(strict(text).unwrap_err().problem, Problem::LoneSurrogate, "{text}");
        refused(text, &Problem::LoneSurrogate);
    }
}

#[test]
fn control_characters_in_strings_are_kept_and_told_once_for_each() {
    repaired(
        "[\"a\n\tb\", \"\u{1}\"]",
        r#"["a\n\tb","\u0001"]"#,
        &[(3, Slip::ControlCharacter), (10, Slip::ControlCharacter)],
    );
}

#[test]
fn comments_are_skipped_outside_strings() {
    repaired(
        "/* x */ {// y\n\"a\": \"// no\" /**/}// end",
        r#"{"a":"// no"}"#,
        &[(0, Slip::Comment), (9, Slip::Comment), (27, Slip::Comment), (32, Slip::Comment)],
    );
    refused("[1 /* 2]", &wanted(Expected::CommentEnd, None));
    refused("[1 # 2\n]", &wanted(Expected::CommaOrArrayEnd, '#'));
}

#[test]
fn a_fence_around_the_whole_and_doubled_braces_are_taken_away() {
    repaired("\n```json\n{\"a\": \"```\"}\n```\n", r#"{"a":"```"}"#, &[(1, Slip::Fence)]);
    repaired("```\n[1]```", "[1]", &[(0, Slip::Fence)]);
    repaired(r#"{{"a": {"b": 1}}}"#, r#"{"a":{"b":1}}"#, &[(0, Slip::DoubledBraces)]);
    refused("```python\n{}\n```", &wanted(Expected::Value, 'p'));
    let both = [(0, Slip::DoubledBraces), (7, Slip::DoubledBraces)];
    repaired(r#"{{"a": {{"b": 1}}}}"#, r#"{"a":{"b":1}}"#, &both);
    repaired(
        r#"[{{}}, {"a": {{"b": 1}}}]"#,
        r#"[{},{"a":{"b":1}}]"#,
        &[(1, Slip::DoubledBraces), (13, Slip::DoubledBraces)],
    );
    refused(r#"{{"a": {{"b": 1}, "c": 2}}"#, &wanted(Expected::DoubledEnd, ','));
    refused(r#"{{{"a": 1}}}"#, &wanted(Expected::KeyOrEnd, '{'));
    refused(r#"{"a": 1}}"#, &Problem::Trailing);
    assert_eq!(problem("```json\n{}", End::Complete), wanted(Expected::FenceEnd, None));
}

#[test]
fn a_number_with_a_leading_zero_is_kept_as_text() {
    repaired(r#"{"zip": 02139}"#, r#"{"zip":"02139"}"#, &[(8, Slip::LeadingZero)]);
    for text in ["+1", ".5", "5.", "0x1F", "1_000", "1e", "2026-10-01", "-"] {
        refused(text, &Problem::Number);
    }
}

#[test]
fn closers_are_added_only_where_the_model_stopped_by_itself() {
    let text = r#"{"a": {"b": [true, "x"]"#;
    let closed = (r#"{"a":{"b":[true,"x"]}}"#.to_owned(), vec![(23, Slip::MissingCloser); 2]);
    assert_eq!(read(text, End::Stopped), Ok(closed));
    for end in [End::Complete, End::Cut] {
        assert_eq!(problem(text, end), wanted(Expected::CommaOrObjectEnd, None));
    }
    let fenced = ("{}".to_owned(), vec![(0, Slip::Fence), (10, Slip::MissingCloser)]);
    assert_eq!(read("```json\n{}", End::Stopped), Ok(fenced));
}

#[test]
fn what_may_go_on_is_never_closed() {
    let open =
        ["", "{", "[", "[1", "[02", "[1,", r#"["a"#, r#"["a\"#, r#"{"a""#, r#"{"a":"#, "[tru"];
    for text in open.into_iter().chain([r#"{"a": "rm -rf /"#, r#"{"a": "x","#, "[1 // "]) {
        problem(text, End::Stopped);
    }
}

#[test]
fn duplicate_keys_and_what_is_not_finite_are_refused_at_every_level() {
    let many: Vec<String> = (0..40).map(|at| format!("\"{at}\": 0")).collect();
    let early = format!("{{{}, \"3\": 1}}", many.join(","));
    let late = format!("{{{}, \"39\": 1}}", many.join(","));
    for text in [r#"{"a": 1, "a": 1}"#, r#"{"x": {"a": 1, "\u0061": 2}}"#, &early, &late] {
        assert_eq!(strict(text).unwrap_err().problem, Problem::DuplicateKey, "{text}");
        refused(text, &Problem::DuplicateKey);
    }
    for text in ["NaN", "[Infinity]", "-Infinity", "nan", "-inf"] {
        assert_eq!(strict(text).unwrap_err().problem, Problem::NotFinite, "{text}");
        refused(text, &Problem::NotFinite);
    }
}

#[test]
fn nesting_at_the_limit_is_read_and_one_past_it_is_refused() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(strict(&nested(DEPTH)).is_ok());
    let error = strict(&nested(DEPTH + 1)).unwrap_err();
    assert_eq!((error.at, error.problem), (DEPTH, Problem::TooDeep));
}

#[test]
fn an_error_tells_place_and_what_was_expected() {
    let told = |text| strict(text).unwrap_err().to_string();
    assert_eq!(
        told("{\n  \"é\" 1}"),
        "line 2, column 7 (byte 9): expected `:` after the key, found `1`"
    );
    assert_eq!(
        told("[1"),
        "line 1, column 3 (byte 2): expected `,` or `]` after the item, but the text ends"
    );
    assert!(told("[a]").ends_with("put text in double quotes, or use true, false or null"));
}

#[test]
fn an_error_leaves_the_repairs_as_they_were() {
    let mut repairs = vec![Repair::More { count: 1 }];
    assert!(lenient("{'a': }", End::Complete, &mut repairs).is_err());
    assert_eq!(repairs, [Repair::More { count: 1 }]);
}

/// Steps for text of a kind that grows tenfold.
#[test]
fn steps_grow_with_the_text_and_no_faster() {
    let kinds: [fn(usize) -> String; 8] = [
        |size| "{".repeat(size),
        |size| "[".repeat(size),
        |size| format!("\"{}", "\\\\".repeat(size / 2)),
        |size| format!("[{}", "\"a\",".repeat(size / 4)),
        |size| format!("[{}", "/**/".repeat(size / 4)),
        |size| format!("[{}", "'\\d\n',".repeat(size / 6)),
        |size| " \n".repeat(size / 2),
        |size| "{\"a\":[".repeat(size / 6),
    ];
    for text in kinds {
        for size in [100_000, 1_000_000] {
            let text = text(size);
            let mut machine = Machine::new(&text, Some(End::Stopped), usize::MAX);
            let _unread = machine.run();
            assert!(machine.steps <= text.len(), "{} for {}", machine.steps, text.len());
        }
    }
}
