//! Tests of the tokens of whole texts, which do not depend on the chunks.

use super::*;

/// The tokens of a text up to its first end: the kind, the depth and the text of each token.
fn tokens_of_chunks(mut scan: JsonScanner, chunks: &[&str]) -> String {
    let mut tokens = Vec::new();
    let mut held = String::new();
    for chunk in chunks {
        held.push_str(chunk);
        let mut at = 0;
        loop {
            let token = match scan.next_token(&held, &mut at) {
                Token::NeedMore => break,
                Token::Open { object: true, depth } => format!("object{depth}"),
                Token::Open { object: false, depth } => format!("list{depth}"),
                Token::Close { depth } => format!("close{depth}"),
                Token::Key { text, depth } => format!("key{depth}:{text}"),
                Token::Text { text, depth } => format!("text{depth}:{text}"),
                Token::Scalar { depth } => format!("scalar{depth}"),
                Token::Marker => "marker".to_owned(),
                Token::Unbalanced => "unbalanced".to_owned(),
            };
            let is_end = matches!(token.as_str(), "marker" | "unbalanced" | "close0");
            tokens.push(token);
            if is_end {
                return tokens.join(" ");
            }
        }
        held.drain(..at);
    }
    tokens.join(" ")
}

fn tokens_after(
    text: &str,
    configure: impl Fn(&mut JsonScanner),
    marker: Option<&'static str>,
) -> String {
    let scan = || {
        let mut scan = JsonScanner::new(marker);
        configure(&mut scan);
        scan
    };
    let whole = tokens_of_chunks(scan(), &[text]);
    let letters: Vec<&str> = text.split_inclusive(|_| true).collect();
    assert_eq!(tokens_of_chunks(scan(), &letters), whole, "letter by letter: {text}");
    whole
}

fn tokens(text: &str) -> String {
    tokens_after(text, |_| {}, None)
}

#[test]
fn json_and_its_common_errors_have_these_tokens() {
    for (text, expected) in [
        ("{}", "object1 close0"),
        ("[ ]", "list1 close0"),
        (
            r#"{"a": 1, "b": [true, "x"], "c": {"d": null}}"#,
            "object1 key1:a scalar1 key1:b list2 scalar2 text2:x close1 key1:c object2 key2:d scalar2 close1 close0",
        ),
        ("{'a':'b','c':'d'}", "object1 key1:a text1:b key1:c text1:d close0"),
        ("{a:1,b:c}", "object1 scalar1 scalar1 close0"),
        ("{a : 1 , b : c}", "object1 scalar1 scalar1 close0"),
        ("[1,2]", "list1 scalar1 scalar1 close0"),
        ("[1 2]", "list1 scalar1 scalar1 close0"),
        ("[12\t3\r\n4]", "list1 scalar1 scalar1 scalar1 close0"),
        ("[it's, 'a']", "list1 scalar1 text1:a close0"),
        ("[it 's']", "list1 scalar1 text1:s close0"),
        ("[x'y'z]", "list1 scalar1 close0"),
        ("[x\"y\"]", "list1 scalar1 text1:y close0"),
        ("[{}x]", "list1 object2 close1 scalar1 close0"),
        ("[1{}'a']", "list1 scalar1 object2 close1 text1:a close0"),
        ("[x:'y']", "list1 scalar1 text1:y close0"),
        ("[é,日]", "list1 scalar1 scalar1 close0"),
        (r#"{"a" "b"}"#, "object1 key1:a text1:b close0"),
        (r#"{"a":"b" "c":1}"#, "object1 key1:a text1:b text1:c scalar1 close0"),
        (r#"{"a":{},"b":1}"#, "object1 key1:a object2 close1 key1:b scalar1 close0"),
        (r#"["a","b"]"#, "list1 text1:a text1:b close0"),
        (r#"["}\"]\\","é\n"]"#, r#"list1 text1:}\"]\\ text1:é\n close0"#),
        ("[\"a\nb\n\nc\"]", "list1 text1:a\nb\n\nc close0"),
        ("[}", "list1 unbalanced"),
        ("{]", "object1 unbalanced"),
        ("[[}]", "list1 list2 unbalanced"),
        ("}", "unbalanced"),
    ] {
        assert_eq!(tokens(text), expected, "{text}");
    }
}

#[test]
fn a_string_longer_than_a_name_has_no_text() {
    for (length, kept) in
        [(MAX_NAME_BYTES - 1, true), (MAX_NAME_BYTES, true), (MAX_NAME_BYTES + 1, false)]
    {
        let long = "x".repeat(length);
        let text = if kept { long.as_str() } else { "" };
        assert_eq!(tokens(&format!("[\"{long}\"]")), format!("list1 text1:{text} close0"));
        let expected = format!("object1 key1:{text} scalar1 close0");
        assert_eq!(tokens(&format!("{{\"{long}\":1}}")), expected);
        let escaped = format!("\\n{}", &long[2..]);
        let text = if kept { escaped.as_str() } else { "" };
        assert_eq!(tokens(&format!("[\"{escaped}\"]")), format!("list1 text1:{text} close0"));
    }
}

#[test]
fn a_missing_key_ends_the_value_down_to_the_strict_depth_only() {
    for (text, depth, expected) in [
        ("{a:1}", 0, "object1 scalar1 close0"),
        ("{a:1}", 1, "object1 unbalanced"),
        ("{ \t\r\n'a':1,\"b\":2}", 1, "object1 key1:a scalar1 key1:b scalar1 close0"),
        ("{}", 1, "object1 close0"),
        ("{\"a\":1,b:2}", 1, "object1 key1:a scalar1 unbalanced"),
        ("{\"a\":1,}", 1, "object1 key1:a scalar1 close0"),
        ("{\"a\":x,\"b\":{c:1}}", 1, "object1 key1:a scalar1 key1:b object2 scalar2 close1 close0"),
        ("[{c:1}]", 1, "list1 object2 scalar2 close1 close0"),
        ("[{c:1}]", 2, "list1 object2 unbalanced"),
        ("[c]", 2, "list1 scalar1 close0"),
        ("{{", 1, "object1 unbalanced"),
    ] {
        let tokens = tokens_after(text, |scan| scan.set_strict_depth(depth), None);
        assert_eq!(tokens, expected, "{text} at {depth}");
    }
}

#[test]
fn a_blank_line_in_a_string_ends_the_value_if_it_is_set() {
    for (text, expected) in [
        ("[\"a\nb\"]", "list1 text1:a\nb close0"),
        ("[\"a\n\nb\"]", "list1 unbalanced"),
        ("[\"\n\n\"]", "list1 unbalanced"),
        ("[\"a\n \nb\"]", "list1 text1:a\n \nb close0"),
        ("[\"a\n\\\nb\"]", "list1 text1:a\n\\\nb close0"),
        ("[\"a\n\"\n\n,\"\nb\"]", "list1 text1:a\n text1:\nb close0"),
    ] {
        assert_eq!(
            tokens_after(text, JsonScanner::set_blank_line_ends, None),
            expected,
            "{text:?}"
        );
    }
}

#[test]
fn a_closing_marker_counts_outside_of_strings_and_after_a_line_end_in_a_string() {
    for (text, expected) in [
        ("{</x>", "object1 marker"),
        ("[1</x>", "list1 scalar1 marker"),
        ("[1 </y>]", "list1 scalar1 scalar1 close0"),
        ("[\"a</x>\"]", "list1 text1:a</x> close0"),
        ("[\"a\n</x>\"]", "list1 marker"),
        ("[\"a\n</y>\"]", "list1 text1:a\n</y> close0"),
        ("[\"a\n </x>\"]", "list1 text1:a\n </x> close0"),
        ("[\"a\\\n</x>\"]", "list1 text1:a\\\n</x> close0"),
    ] {
        assert_eq!(tokens_after(text, |_| {}, Some("</x>")), expected, "{text:?}");
    }
}

#[test]
fn the_deepest_value_has_the_limit_of_levels() {
    let nested = |levels: usize| tokens(&("[".repeat(levels) + &"]".repeat(levels)));
    assert!(nested(MAX_DEPTH).ends_with(" close0"));
    assert!(nested(MAX_DEPTH + 1).ends_with(&format!("list{MAX_DEPTH} unbalanced")));
}
