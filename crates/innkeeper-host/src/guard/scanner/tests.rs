//! Tests of path and prose detection by argument name.

use super::*;
use crate::text::PathSegment;

#[test]
fn tags_and_overrides_of_direction_hide_something_flags_and_marks_do_not() {
    assert!(has_smuggled_text("a\u{e0061}\u{e0062}"));
    assert!(has_smuggled_text("x\u{e0139}\u{e015d}\u{e014a}"));
    assert!(!has_smuggled_text("❤\u{fe0f} 葛\u{e0100}"));
    assert!(has_smuggled_text("user\u{202e}txt.exe"));
    let wales = "\u{1f3f4}\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}";
    assert!(!has_smuggled_text(wales));
    assert!(!has_smuggled_text("soft\u{ad}hyphen zero\u{200b}width \u{200f}mark"));
}

#[test]
fn a_value_is_a_path_by_its_name_or_since_it_is_an_address_of_a_file() {
    let is = |names: &str, text: &str| {
        let name = |name: &str| PathSegment::Name(name.to_owned().into());
        let segments: Vec<PathSegment<'_>> = names.split(' ').map(name).collect();
        is_path(&TextNode { steps: &segments, text, is_name: false })
    };
    for (names, text) in [
        ("path", "a"),
        ("sourceFile", "/x"),
        ("a paths 0", "b"),
        ("x", "file:///x"),
        ("x", "File:/x"),
    ] {
        assert!(is(names, text), "{names} {text}");
    }
    for (names, text) in
        [("x", "/x"), ("path", "https://a.example/"), ("xpath", "//a"), ("profile", "../x")]
    {
        assert!(!is(names, text), "{names} {text}");
    }
    let segments = [PathSegment::Name("path".into())];
    assert!(
        !is_path(&TextNode { steps: &segments, text: "../x", is_name: true }),
        "a name is no value"
    );
}
