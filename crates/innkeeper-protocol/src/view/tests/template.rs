//! Tests of URI template matching.

use crate::view::{MAX_TEMPLATE_BYTES, MAX_URI_BYTES, uri_matches};

#[test]
fn uris_of_a_template_match_and_others_do_not() {
    let cases = [
        ("file:///a", "file:///a", "file:///b"),
        ("file:///{name}", "file:///a%20b.txt", "file:///a/b"),
        ("file:///{name}", "file:///ä", "file:///"),
        ("db://{table}/{id}", "db://users/7", "db://users"),
        ("{scheme}://x", "http://x", "http://y"),
        ("file:///{+path}", "file:///a/b?c#d", "file:///"),
        ("file:///{+dir}/end{x}", "file:///a/end/b/end1", "file:///a/end/b"),
        ("x:{a}b{+c}b{d}", "x:1b/b/b2", "x:1b/2"),
        ("repo://{owner}{/path*}", "repo://me/a/b", "repo://me?x"),
        ("repo://{owner}{/path*}", "repo://me/a", "repo://me/a?x"),
        ("repo://{owner}{/path,more}", "repo://me/a/b", "repo://me/a#x"),
        ("repo://{owner}{/path}", "repo://me", "repo://me/a/b"),
        ("list://all{?page,size}", "list://all?page=1&size=2", "list://all/1"),
        ("list://all?x=1{&page}", "list://all?x=1&page=2", "list://all?x=1#page"),
        ("doc://{name}{.ext}", "doc://a.txt", "doc://a/b"),
        ("doc://{name}{#part}", "doc://a#b/c", "doc://a/b"),
        ("p:{a:3},{b}", "p:abc,d", "p:abc"),
        ("", "", "x"),
    ];
    for (template, matching, other) in cases {
        assert!(uri_matches(template, matching), "{template} {matching}");
        assert!(!uri_matches(template, other), "{template} {other}");
    }
}

#[test]
fn a_broken_template_matches_nothing() {
    for template in ["{", "x{y", "x}y", "{}", "{+}", "{{x}}", "}{"] {
        assert!(!uri_matches(template, "x"), "{template}");
        assert!(!uri_matches(template, template), "{template}");
    }
}

#[test]
fn strings_at_the_limits_are_compared_and_one_past_them_match_nothing() {
    let (template, uri) = ("x".repeat(MAX_TEMPLATE_BYTES), "x".repeat(MAX_URI_BYTES));
    assert!(uri_matches(&template, &template));
    assert!(uri_matches("{x}", &uri));
    assert!(!uri_matches(&format!("{template}x"), &format!("{template}x")));
    assert!(!uri_matches("{x}", &format!("{uri}x")));
}

/// Attack: data | a resource template with as many expressions as its limit permits | the
/// comparison with a URI of maximum length ends | No unbounded wait
#[test]
fn the_worst_template_ends_soon() {
    let template = "{+a}x".repeat(MAX_TEMPLATE_BYTES / 5);
    assert!(!uri_matches(&template, &("x".repeat(MAX_URI_BYTES - 1) + "y")));
}
