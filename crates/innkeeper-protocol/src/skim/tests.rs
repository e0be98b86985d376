//! Tests of JSON skimming on valid and invalid text.

use proptest::prelude::*;

use super::brackets::{container_end, depth_within};
use super::{
    Token, decode_key, decode_string, elements, has_duplicate_key, member, members,
    recover_top_level_id, tokens,
};
use crate::id::RequestId;

fn recovered_id(line: &str) -> (Option<i64>, bool) {
    let (id, is_response) = recover_top_level_id(line.as_bytes());
    let id = id.map(|id| match id {
        RequestId::Integer(number) => number,
        RequestId::String(text) => panic!("{text} is a string"),
    });
    (id, is_response)
}

#[test]
fn members_and_elements_come_in_order_and_untouched() {
    let object = " { \"a\" : 1.50 , \"b\\n\":[1, {\"x\":\"}\"}],\"\":\"q\\\"\\\\\" , \"c\":null } ";
    let all: Vec<_> = members(object).collect();
    let expected =
        [("a", "1.50"), ("b\\n", "[1, {\"x\":\"}\"}]"), ("", "\"q\\\"\\\\\""), ("c", "null")];
    assert_eq!(all, expected);
    let array = "[ 1 , \"a,]\" ,[[]],{} ,true]";
    assert_eq!(elements(array).collect::<Vec<_>>(), ["1", "\"a,]\"", "[[]]", "{}", "true"]);
}

#[test]
fn empty_containers_and_other_values_have_nothing_in_them() {
    for text in ["{}", " { } ", "[]", "[{}]", "1", "\"{\"", "null", ""] {
        assert_eq!(members(text).count(), 0, "{text}");
    }
    for text in ["[]", "[ ]", "{}", "{\"a\":[1]}", "\"[\"", ""] {
        assert_eq!(elements(text).count(), 0, "{text}");
    }
}

#[test]
fn a_member_is_found_however_its_name_is_escaped_and_the_last_one_counts() {
    assert_eq!(member(r#"{"a":1,"\u0069d":2}"#, "id"), Some("2"));
    assert_eq!(member(r#"{"id":1,"x":{"id":9},"id":3}"#, "id"), Some("3"));
    assert_eq!(member(r#"{"ID":1,"Id":2}"#, "id"), None);
    assert_eq!(member(r#"{"\ud83d":1}"#, "id"), None);
}

#[test]
fn text_that_is_not_json_ends_the_iteration() {
    for text in ["{", "{\"a", "{\"a\"", "{\"a\":", "{\"a\":}", "{\"a\":[1", "{a:1}", "{\"a\"1}"] {
        assert_eq!(members(text).count(), 0, "{text}");
    }
    for text in ["[", "[,]", "[}", "[{", "[\"", "[]]"] {
        assert_eq!(elements(text).count(), 0, "{text}");
    }
}

#[test]
fn every_token_is_read_in_order_and_members_with_the_same_key_are_all_read() {
    let json = r#" {"a" : [1,"x\"", {}, []], "a":{"b":null} } "#;
    let expected = [
        Token::ObjectStart,
        Token::Key("a"),
        Token::ArrayStart,
        Token::Scalar("1"),
        Token::String(r#""x\"""#),
        Token::ObjectStart,
        Token::ObjectEnd,
        Token::ArrayStart,
        Token::ArrayEnd,
        Token::ArrayEnd,
        Token::Key("a"),
        Token::ObjectStart,
        Token::Key("b"),
        Token::Scalar("null"),
        Token::ObjectEnd,
        Token::ObjectEnd,
    ];
    assert_eq!(tokens(json).collect::<Vec<_>>(), expected);
    assert_eq!(tokens("7").collect::<Vec<_>>(), [Token::Scalar("7")]);
    for text in ["", "{\"a\"", "[1", "{\"a\":", "[,", "]", "{:", "[\"", "{\"a\":[{\"b\""] {
        assert!(tokens(text).count() <= 7, "{text}");
    }
}

#[test]
fn a_key_that_occurs_twice_in_one_object_is_found_at_any_level() {
    for json in [
        r#"{"a":1,"a":1}"#,
        r#"[[{"x":{"a":1,"b":2,"\u0061":3}}]]"#,
        r#"{"a":{"a":{}},"b":1,"a":2}"#,
        r#"{"":1,"":2}"#,
    ] {
        assert!(has_duplicate_key(json), "{json}");
    }
    for json in [r#"{"a":{"a":1},"A":[{"a":1},{"a":1}]}"#, "[]", "\"a\"", r#"{"a":"a"}"#] {
        assert!(!has_duplicate_key(json), "{json}");
    }
    for count in [7_u32, 8, 9, 1023, 1024, 1025, 5000] {
        let object = |first: u32| {
            let keys = (1..count).map(|number| format!(r#""{number}":0"#));
            let first = std::iter::once(format!(r#""{first}":0"#));
            format!("{{{}}}", first.chain(keys).collect::<Vec<_>>().join(","))
        };
        assert!(!has_duplicate_key(&object(0)), "{count}");
        assert!(has_duplicate_key(&object(count - 1)), "{count}");
        assert!(has_duplicate_key(&object(1)), "{count}");
    }
}

#[test]
fn strings_and_keys_are_decoded_and_half_characters_are_replaced() {
    assert_eq!(decode_string(r#""a\u0062""#).as_deref(), Some("ab"));
    assert_eq!(decode_string("1"), None);
    assert_eq!(decode_key(r"a\u0062"), "ab");
    assert!(decode_key(r"a\ud800").starts_with("a\u{fffd}"));
    assert_eq!(decode_key(r"a\"), r"a\");
}

#[test]
fn only_an_id_of_the_outermost_object_counts() {
    assert_eq!(recovered_id(r#"{"result":{"id":7},"id":3}"#), (Some(3), true));
    assert_eq!(recovered_id(r#"{"id":3,"error":{"id":7}"#), (Some(3), true));
    assert_eq!(recovered_id(r#"{"id":3,"method":"x","result":1}"#), (Some(3), false));
    assert_eq!(recovered_id(r#"{"result":{"id":7}}"#), (None, true));
    assert_eq!(recovered_id(r#"foo {"id":3}"#), (None, false));
    assert_eq!(recovered_id(r#"[{"id":3,"result":1}]"#), (None, false));
    assert_eq!(recovered_id(r#"{"text":"\"id\":3,","Id":4,"ID":5}"#), (None, false));
}

#[test]
fn an_id_is_found_in_what_cannot_be_parsed() {
    assert_eq!(recovered_id(r#"{"id":3,"result":{"text":"cut o"#), (Some(3), true));
    assert_eq!(recovered_id("\0\0 \u{FEFF}{\"id\":3,\"result\":1}"), (Some(3), true));
    assert_eq!(recovered_id(r#"{"id":3,"result":tru,"#), (Some(3), true));
    assert_eq!(recovered_id(r#"{"result":{"a":nan},"id" : 3 }"#), (Some(3), true));
    assert_eq!(
        recover_top_level_id(b"{\"result\":\"\xFF\",\"id\":3}").0,
        Some(RequestId::Integer(3))
    );
    let deep_message =
        format!("{{\"result\":{}1{},\"id\":3}}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(recovered_id(&deep_message), (Some(3), true));
}

#[test]
fn an_id_is_found_however_its_name_is_escaped_and_whatever_other_names_are() {
    assert_eq!(recovered_id(r#"{"\u0069d":3,"res\u0075lt":cut"#), (Some(3), true));
    assert_eq!(recovered_id(r#"{"\ud83d":1,"id":3,"result":cut"#), (Some(3), true));
    let bytes =
        [&b"{\"\xFF\":1,\"id\":3,\"result\":1}"[..], b"{\"\xFF\\u\":1,\"id\":3,\"error\":1}"];
    for bytes in bytes {
        assert_eq!(recover_top_level_id(bytes), (Some(RequestId::Integer(3)), true));
    }
}

#[test]
fn an_id_that_is_cut_off_or_contradicted_is_none() {
    assert_eq!(recovered_id(r#"{"result":1,"id":12"#), (None, true));
    assert_eq!(recovered_id(r#"{"id":1,"id":2,"result":1}"#), (None, true));
    assert_eq!(recovered_id(r#"{"id":1,"id":1,"result":1}"#), (Some(1), true));
    assert_eq!(recovered_id(r#"{"id":null,"result":1}"#), (None, true));
}

/// Byte-by-byte reference implementation of the block scan.
fn walk(bytes: &[u8], mut each: impl FnMut(usize, i64) -> bool) {
    let (mut depth, mut string, mut escaped) = (0, false, false);
    for (at, byte) in bytes.iter().enumerate() {
        let was_escaped = std::mem::take(&mut escaped);
        match byte {
            b'\\' => escaped = !was_escaped,
            b'"' if !was_escaped => string = !string,
            b'{' | b'[' if !string => depth += 1,
            b'}' | b']' if !string => depth -= 1,
            _ => continue,
        }
        if !each(at, depth) {
            return;
        }
    }
}

/// Text of the bytes that matter, with long runs of bytes that do not end a string.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let byte = (0..6_usize).prop_map(|index| vec![b"\"\\[]{a"[index]]);
    let run = prop::sample::select(b"a\\[".to_vec());
    let run = (run, 0..200_usize).prop_map(|(byte, length)| vec![byte; length]);
    let parts = prop::collection::vec(prop_oneof![20 => byte, 1 => run], 0..200);
    parts.prop_map(|parts| parts.concat())
}

#[test]
fn backslashes_in_a_long_string_escape_as_in_a_short_one() {
    for (before, backslashes, between) in
        (60..200).flat_map(|before| [(before, 1, 200), (before, 2, 64), (before, 200, 0)])
    {
        let (before, between) = ("a".repeat(before), "a".repeat(between));
        let string = format!("{before}{}{between}", "\\".repeat(backslashes));
        for end in ["\"}", "\\\"}\"}", "\\\\\"}"] {
            let object = format!("{{\"{string}{end}");
            assert_eq!(container_end(object.as_bytes()), Some(object.len()), "{object}");
        }
    }
}

proptest! {
    #[test]
    fn the_end_of_a_container_is_where_a_walk_finds_it(mut bytes in text()) {
        bytes.insert(0, b'{');
        let mut end = None;
        walk(&bytes, |at, depth| {
            if depth == 0 {
                end = Some(at + 1);
            }
            depth > 0
        });
        prop_assert_eq!(container_end(&bytes), end);
    }

    #[test]
    fn the_depth_is_what_a_walk_finds(text in text(), past in 0_usize..12) {
        // The prefix has at least as many opening as closing brackets at every position, as valid
        // JSON has.
        let limit = text.len() + past;
        let bytes = [vec![b'['; text.len()], text].concat();
        let mut deepest = 0;
        walk(&bytes, |_, depth| {
            deepest = deepest.max(depth);
            true
        });
        prop_assert_eq!(depth_within(&bytes, limit), usize::try_from(deepest)? <= limit);
    }

    #[test]
    fn tokens_of_bytes_that_are_not_json_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert!(tokens(&text).count() <= 2 * text.len() + 1);
    }

    #[test]
    fn no_bytes_make_the_search_for_an_id_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        recover_top_level_id(&bytes);
        let mut object = b"{\"id\":".to_vec();
        object.extend(bytes);
        recover_top_level_id(&object);
    }
}
