//! Tests of the JSON parser: repairs, errors and running time.

mod grid;

use super::parser::Parser;
use super::*;
use crate::repair::SyntaxSlip;

/// Returns the value as JSON text, and the position and the kind of each repair.
fn parse_with_slips(
    text: &str,
    completeness: Completeness,
) -> Result<(String, Vec<(usize, SyntaxSlip)>), ParseError> {
    let mut repairs = Vec::new();
    let json = parse_lenient(text, completeness, &mut repairs)?;
    let slips = repairs.into_iter().map(|repair| match repair {
        Repair::Syntax { at, slip } => (at, slip),
        other @ (Repair::EmbeddedSyntax { .. }
        | Repair::Coercion { .. }
        | Repair::Name { .. }
        | Repair::Omitted { .. }) => panic!("{other}"),
    });
    Ok((json.to_string(), slips.collect()))
}

fn assert_repaired(text: &str, json: &str, slips: &[(usize, SyntaxSlip)]) {
    assert!(parse_strict(text).is_err(), "{text} is JSON");
    assert_eq!(
        parse_with_slips(text, Completeness::Complete),
        Ok((json.to_owned(), slips.to_vec())),
        "{text}"
    );
}

fn error_kind(text: &str, completeness: Completeness) -> ParseErrorKind {
    match parse_lenient(text, completeness, &mut Vec::new()) {
        Ok(json) => panic!("{text} is read as {json}"),
        Err(error) => error.kind,
    }
}

fn assert_rejected(text: &str, expected: &ParseErrorKind) {
    assert_eq!(&error_kind(text, Completeness::Complete), expected, "{text}");
    assert_eq!(&error_kind(text, Completeness::Stopped), expected, "{text}");
}

fn expected_error(expected: ExpectedSyntax, found: impl Into<Option<char>>) -> ParseErrorKind {
    ParseErrorKind::Expected { expected, found: found.into() }
}

/// Proves: S26
#[test]
fn braces_quotes_and_backslashes_in_strings_and_nested_objects_are_kept() {
    let text = r#"{"a": "} \" \\ {", "b": {"c": [{"d": "\\\""}]}, "e": "\\"}"#;
    let json = parse_strict(text).unwrap();
    assert_eq!(json.get("a").unwrap().as_str(), Some(r#"} " \ {"#));
    assert_eq!(json.get("e").unwrap().as_str(), Some(r"\"));
    assert_eq!(json.to_string(), text.replace(": ", ":").replace(", ", ","));
}

#[test]
fn numbers_keep_their_text() {
    let text = "[0,-0,1.50,1E400,123456789012345678901234567890,-2e-07]";
    assert_eq!(parse_strict(text).unwrap().to_string(), text);
}

#[test]
fn every_escape_of_json_is_understood() {
    let text = r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00""#;
    assert_eq!(parse_strict(text).unwrap().as_str(), Some("\"\\/\u{8}\u{c}\n\r\té😀"));
}

#[test]
fn commas_that_trail_are_dropped() {
    assert_repaired(
        r#"{"a": [1, 2, ], }"#,
        r#"{"a":[1,2]}"#,
        &[(11, SyntaxSlip::TrailingComma), (14, SyntaxSlip::TrailingComma)],
    );
    assert_rejected("[1,,2]", &expected_error(ExpectedSyntax::Value, ','));
    assert_rejected("[,]", &expected_error(ExpectedSyntax::ItemOrEnd, ','));
    assert_rejected(r#"{,"a":1}"#, &expected_error(ExpectedSyntax::KeyOrEnd, ','));
    assert_rejected("[1],", &ParseErrorKind::TrailingText);
}

#[test]
fn a_comma_is_added_between_members_on_lines_of_their_own() {
    assert_repaired(
        "{\"a\": 1\n\"b\": \"x\"\n 'c': 2}",
        r#"{"a":1,"b":"x","c":2}"#,
        &[
            (8, SyntaxSlip::MissingComma),
            (18, SyntaxSlip::MissingComma),
            (18, SyntaxSlip::SingleQuotes),
        ],
    );
    assert_repaired("[{}\n{}]", "[{},{}]", &[(4, SyntaxSlip::MissingComma)]);
    assert_rejected(r#"{"a": 1 "b": 2}"#, &expected_error(ExpectedSyntax::CommaOrObjectEnd, '"'));
    assert_rejected("[\"a\"\n\"b\"]", &expected_error(ExpectedSyntax::CommaOrArrayEnd, '"'));
    assert_rejected("[1\n[2]]", &expected_error(ExpectedSyntax::CommaOrArrayEnd, '['));
    assert_rejected("{\"a\": 1\nb: 2}", &expected_error(ExpectedSyntax::CommaOrObjectEnd, 'b'));
}

#[test]
fn other_quotes_may_delimit_a_string() {
    assert_repaired(
        r#"{'a': 'say "hi"', "b": 'it\'s'}"#,
        r#"{"a":"say \"hi\"","b":"it's"}"#,
        &[
            (1, SyntaxSlip::SingleQuotes),
            (6, SyntaxSlip::SingleQuotes),
            (23, SyntaxSlip::SingleQuotes),
            (26, SyntaxSlip::InvalidEscape),
        ],
    );
    assert_repaired(
        "{“a”: „it's‟“, ‘b’: ‘c’}",
        r#"{"a":"it's‟","b":"c"}"#,
        &[
            (1, SyntaxSlip::SmartQuotes),
            (10, SyntaxSlip::SmartQuotes),
            (25, SyntaxSlip::SmartQuotes),
            (34, SyntaxSlip::SmartQuotes),
        ],
    );
    assert_eq!(parse_strict(r#""“a” ‘b’""#).unwrap().as_str(), Some("“a” ‘b’"));
}

/// Attack: model | quotes inside a string make its end ambiguous | the arguments are rejected | No
/// guessed call
#[test]
fn a_string_whose_end_is_a_guess_is_rejected() {
    assert_rejected(r#"{'a": 1, "b': 2}"#, &ParseErrorKind::MixedQuotes);
    assert_rejected("{“a\": 1, \"b”: 2}", &ParseErrorKind::MixedQuotes);
    assert_rejected("{'a': 'it's'}", &expected_error(ExpectedSyntax::CommaOrObjectEnd, 's'));
    assert_rejected(r#"{"a": "say "hi""}"#, &expected_error(ExpectedSyntax::CommaOrObjectEnd, 'h'));
    assert_rejected("{‘a’: ‘it’s’}", &expected_error(ExpectedSyntax::CommaOrObjectEnd, 's'));
}

#[test]
fn python_literals_are_read_and_other_words_are_not() {
    assert_repaired(
        "[True, False, None]",
        "[true,false,null]",
        &[
            (1, SyntaxSlip::PythonLiteral),
            (7, SyntaxSlip::PythonLiteral),
            (14, SyntaxSlip::PythonLiteral),
        ],
    );
    for word in ["TRUE", "Null", "undefined", "yes", "trues", "_", "é"] {
        assert_rejected(word, &ParseErrorKind::BareWord);
    }
}

#[test]
fn a_bare_word_is_a_key_but_never_a_value() {
    assert_repaired(
        "{a_1: 1, $b-c: {été: 2}}",
        r#"{"a_1":1,"$b-c":{"été":2}}"#,
        &[
            (1, SyntaxSlip::UnquotedKey),
            (9, SyntaxSlip::UnquotedKey),
            (16, SyntaxSlip::UnquotedKey),
        ],
    );
    assert_rejected("{ key: value }", &ParseErrorKind::BareWord);
    assert_rejected("{None: 1}", &expected_error(ExpectedSyntax::Key, 'N'));
    assert_rejected("{1: 2}", &expected_error(ExpectedSyntax::KeyOrEnd, '1'));
    assert_rejected("{a b: 2}", &expected_error(ExpectedSyntax::Colon, 'b'));
}

#[test]
fn an_unknown_escape_keeps_its_backslash_unless_it_has_a_meaning_elsewhere() {
    assert_repaired(
        r#"["\d+\.\w", "C:\Users"]"#,
        r#"["\\d+\\.\\w","C:\\Users"]"#,
        &[(2, SyntaxSlip::InvalidEscape), (15, SyntaxSlip::InvalidEscape)],
    );
    for text in [r#""\x41""#, r#""\0""#, r#""\u12""#, r#""\users""#, "\"\\\n\""] {
        assert_rejected(text, &ParseErrorKind::InvalidEscape);
    }
}

#[test]
fn half_a_surrogate_pair_is_rejected_at_every_level() {
    for text in [r#""\ud83d""#, r#""\ude00""#, r#""\ud83dx""#, r#""\ud83d\n""#, r#""\ud83d\ud83d""#]
    {
        assert_eq!(parse_strict(text).unwrap_err().kind, ParseErrorKind::LoneSurrogate, "{text}");
        assert_rejected(text, &ParseErrorKind::LoneSurrogate);
    }
}

#[test]
fn control_characters_in_strings_are_kept_and_reported_once_per_string() {
    assert_repaired(
        "[\"a\n\tb\", \"\u{1}\"]",
        r#"["a\n\tb","\u0001"]"#,
        &[(3, SyntaxSlip::ControlCharacter), (10, SyntaxSlip::ControlCharacter)],
    );
}

#[test]
fn comments_are_skipped_outside_strings() {
    assert_repaired(
        "/* x */ {// y\n\"a\": \"// no\" /**/}// end",
        r#"{"a":"// no"}"#,
        &[
            (0, SyntaxSlip::Comment),
            (9, SyntaxSlip::Comment),
            (27, SyntaxSlip::Comment),
            (32, SyntaxSlip::Comment),
        ],
    );
    assert_rejected("[1 /* 2]", &expected_error(ExpectedSyntax::CommentEnd, None));
    assert_rejected("[1 # 2\n]", &expected_error(ExpectedSyntax::CommaOrArrayEnd, '#'));
}

#[test]
fn a_fence_around_the_whole_and_doubled_braces_are_taken_away() {
    assert_repaired(
        "\n```json\n{\"a\": \"```\"}\n```\n",
        r#"{"a":"```"}"#,
        &[(1, SyntaxSlip::Fence)],
    );
    assert_repaired("```\n[1]```", "[1]", &[(0, SyntaxSlip::Fence)]);
    assert_repaired(r#"{{"a": {"b": 1}}}"#, r#"{"a":{"b":1}}"#, &[(0, SyntaxSlip::DoubledBraces)]);
    assert_rejected("```python\n{}\n```", &expected_error(ExpectedSyntax::Value, 'p'));
    let both = [(0, SyntaxSlip::DoubledBraces), (7, SyntaxSlip::DoubledBraces)];
    assert_repaired(r#"{{"a": {{"b": 1}}}}"#, r#"{"a":{"b":1}}"#, &both);
    assert_repaired(
        r#"[{{}}, {"a": {{"b": 1}}}]"#,
        r#"[{},{"a":{"b":1}}]"#,
        &[(1, SyntaxSlip::DoubledBraces), (13, SyntaxSlip::DoubledBraces)],
    );
    assert_rejected(
        r#"{{"a": {{"b": 1}, "c": 2}}"#,
        &expected_error(ExpectedSyntax::DoubleBraceEnd, ','),
    );
    assert_rejected(r#"{{{"a": 1}}}"#, &expected_error(ExpectedSyntax::KeyOrEnd, '{'));
    assert_rejected(r#"{"a": 1}}"#, &ParseErrorKind::TrailingText);
    assert_eq!(
        error_kind("```json\n{}", Completeness::Complete),
        expected_error(ExpectedSyntax::FenceEnd, None)
    );
}

#[test]
fn a_number_with_a_leading_zero_is_kept_as_text() {
    assert_repaired(r#"{"zip": 02139}"#, r#"{"zip":"02139"}"#, &[(8, SyntaxSlip::LeadingZero)]);
    for text in ["+1", ".5", "5.", "0x1F", "1_000", "1e", "2026-10-01", "-"] {
        assert_rejected(text, &ParseErrorKind::InvalidNumber);
    }
}

#[test]
fn closers_are_added_only_where_the_model_stopped_by_itself() {
    let text = r#"{"a": {"b": [true, "x"]"#;
    let closed = (r#"{"a":{"b":[true,"x"]}}"#.to_owned(), vec![(23, SyntaxSlip::MissingCloser); 2]);
    assert_eq!(parse_with_slips(text, Completeness::Stopped), Ok(closed));
    for completeness in [Completeness::Complete, Completeness::Truncated] {
        assert_eq!(
            error_kind(text, completeness),
            expected_error(ExpectedSyntax::CommaOrObjectEnd, None)
        );
    }
    let fenced = ("{}".to_owned(), vec![(0, SyntaxSlip::Fence), (10, SyntaxSlip::MissingCloser)]);
    assert_eq!(parse_with_slips("```json\n{}", Completeness::Stopped), Ok(fenced));
}

/// Attack: model | `]` stands in place of `}` | the arguments are rejected | No guessed call
#[test]
fn a_bracket_of_the_other_kind_closes_nothing() {
    let object_end = |at| expected_error(ExpectedSyntax::CommaOrObjectEnd, at);
    let array_end = |at| expected_error(ExpectedSyntax::CommaOrArrayEnd, at);
    for (text, expected) in [
        (r#"{"a":1]"#, object_end(']')),
        (r#"{"a":"x"]"#, object_end(']')),
        (r#"{"a":{"b":[]]"#, object_end(']')),
        ("[1}", array_end('}')),
        (r#"[{"a":1}}"#, array_end('}')),
        (r#"{"a":[1}}"#, array_end('}')),
    ] {
        assert_eq!(parse_strict(text).unwrap_err().kind, expected, "{text}");
        assert_rejected(text, &expected);
        assert_eq!(error_kind(text, Completeness::Stopped), expected, "{text}");
    }
}

#[test]
fn an_unfinished_value_is_never_closed() {
    let open =
        ["", "{", "[", "[1", "[02", "[1,", r#"["a"#, r#"["a\"#, r#"{"a""#, r#"{"a":"#, "[tru"];
    for text in open.into_iter().chain([r#"{"a": "rm -rf /"#, r#"{"a": "x","#, "[1 // "]) {
        error_kind(text, Completeness::Stopped);
    }
}

/// Attack: model | arguments with duplicate keys, also as escapes, or with `NaN` | the arguments
/// are rejected | No guessed call
#[test]
fn duplicate_keys_and_non_finite_numbers_are_rejected_at_every_level() {
    let many: Vec<String> = (0..40).map(|at| format!("\"{at}\": 0")).collect();
    let early = format!("{{{}, \"3\": 1}}", many.join(","));
    let duplicate_at_end = format!("{{{}, \"39\": 1}}", many.join(","));
    for text in
        [r#"{"a": 1, "a": 1}"#, r#"{"x": {"a": 1, "\u0061": 2}}"#, &early, &duplicate_at_end]
    {
        assert_eq!(parse_strict(text).unwrap_err().kind, ParseErrorKind::DuplicateKey, "{text}");
        assert_rejected(text, &ParseErrorKind::DuplicateKey);
    }
    for text in ["NaN", "[Infinity]", "-Infinity", "nan", "-inf"] {
        assert_eq!(parse_strict(text).unwrap_err().kind, ParseErrorKind::NotFinite, "{text}");
        assert_rejected(text, &ParseErrorKind::NotFinite);
    }
}

#[test]
fn nesting_at_the_limit_is_read_and_one_past_it_is_rejected() {
    let nested = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
    assert!(parse_strict(&nested(MAX_DEPTH)).is_ok());
    let error = parse_strict(&nested(MAX_DEPTH + 1)).unwrap_err();
    assert_eq!((error.at, error.kind), (MAX_DEPTH, ParseErrorKind::TooDeep));
}

#[test]
fn an_error_names_the_position_and_what_was_expected() {
    let message = |text| parse_strict(text).unwrap_err().to_string();
    assert_eq!(
        message("{\n  \"é\" 1}"),
        "line 2, column 7 (byte 9): expected `:` after the key, found `1`"
    );
    assert_eq!(
        message("[1"),
        "line 1, column 3 (byte 2): expected `,` or `]` after the item, found the end of the text"
    );
    assert!(message("[a]").ends_with("put text in double quotes, or use true, false or null"));
}

#[test]
fn an_error_leaves_the_repairs_as_they_were() {
    let mut repairs = vec![Repair::Omitted { count: 1 }];
    assert!(parse_lenient("{'a': }", Completeness::Complete, &mut repairs).is_err());
    assert_eq!(repairs, [Repair::Omitted { count: 1 }]);
}

/// The number of parser steps is at most the length of the text, at two sizes.
/// Attack: model | 1 MB of open brackets, quotes, comments or escapes | the steps of the parser do
/// not exceed the bytes | No unbounded wait
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
            let mut parser = Parser::new(&text, Some(Completeness::Stopped), usize::MAX);
            let _unread = parser.parse_document();
            assert!(parser.steps <= text.len(), "{} for {}", parser.steps, text.len());
            // White space around the value takes no step.
            assert_eq!(parser.steps == 0, text.trim().is_empty());
        }
    }
}
