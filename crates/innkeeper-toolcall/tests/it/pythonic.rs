//! Calls in Python syntax: literals, escapes, limits and errors.

use innkeeper_toolcall::TextEnd;

use crate::call_forms::{expected_output, parse, parse_at_every_cut};

/// The arguments of the only call in the text.
fn arguments(value: &str) -> String {
    let text = format!("[echo(a={value})]");
    let output = parse_at_every_cut(&text);
    let [call] = output.calls.as_slice() else { panic!("{text}: {output:?}") };
    let value = call.strip_prefix(r#"echo{"a":"#).and_then(|rest| rest.strip_suffix('}'));
    value.unwrap_or_else(|| panic!("{call}")).to_owned()
}

#[test]
fn each_python_literal_is_json() {
    for (python, json) in [
        ("'x'", r#""x""#),
        (r#""it's""#, r#""it's""#),
        (r#"'say "x"'"#, r#""say \"x\"""#),
        (r"'a\'b'", r#""a'b""#),
        (r#""a\"b""#, r#""a\"b""#),
        (r"'a\\b'", r#""a\\b""#),
        (r"'\\'", r#""\\""#),
        (r"'1\n2\t3\r4'", r#""1\n2\t3\r4""#),
        (r"'\x41\x7a'", r#""Az""#),
        (r"'\u00e9\u65E5'", r#""é日""#),
        (r"'\U0001F600!'", r#""😀!""#),
        (r"'\d+\.'", r#""\\d+\\.""#),
        ("'a\\\nb'", r#""ab""#),
        ("')]}'", r#"")]}""#),
        ("True", "true"),
        ("true", "true"),
        ("False", "false"),
        ("false", "false"),
        ("None", "null"),
        ("null", "null"),
        ("12", "12"),
        ("-2.50", "-2.50"),
        ("1e3", "1e3"),
        ("[]", "[]"),
        ("[1, 'x', [2]]", r#"[1,"x",[2]]"#),
        ("[ 1 , 2 , ]", "[1,2]"),
        ("()", "[]"),
        ("(1, 2)", "[1,2]"),
        ("(1,)", "[1]"),
        ("{}", "{}"),
        ("{'k': 1, \"l\": {'m': None}}", r#"{"k":1,"l":{"m":null}}"#),
        ("{ 'k' : 1 , }", r#"{"k":1}"#),
        ("{k: 1}", r#"{"k":1}"#),
    ] {
        assert_eq!(arguments(python), json, "{python}");
    }
}

#[test]
fn what_is_no_python_literal_makes_the_call_malformed() {
    for value in [
        r"'\xZ1'",
        r"'\x4'",
        r"'\u12'",
        r"'\ud800'",
        r"'\U00110000'",
        "x",
        "01",
        "+1",
        "nan",
        "1 2",
        "'a' 'b'",
        "[1 2]",
        "[1,,2]",
        "[,]",
        "(1 2)",
        "{'k' 1}",
        "{'k'=1}",
        "{'k': 1 'l': 2}",
        "{'k'}",
        "{'': 1}",
        "{'k': 1, 'k': 2}",
        "1, a=2",
        "1, b",
        "1, =2",
        "1, b=",
        "",
        "1, b:2",
        "1 b=2",
    ] {
        let text = format!("[echo(a={value})]");
        assert_eq!(
            parse_at_every_cut(&text),
            expected_output(&text, &[], &["malformed"]),
            "{text}"
        );
    }
}

#[test]
fn several_calls_are_separated_by_commas_and_white_space() {
    let calls = [r#"echo{"a":1}"#, "echo{}", r#"write_file{"b":"x"}"#];
    for text in [
        "[echo(a=1),echo(),write_file(b='x')]",
        "[echo(a=1), echo(), write_file(b='x')]",
        "[ echo(a=1) ,\n echo( ) ,\n write_file( b = 'x' , ) ,\n]",
        "[\n\techo ( a=1 ), echo(), write_file(b='x')\n]",
    ] {
        let output = parse_at_every_cut(text);
        if text.contains("echo (") {
            assert_eq!(output, expected_output(text, &[], &[]), "{text}");
        } else {
            assert_eq!(output, expected_output("", &calls, &[]), "{text}");
        }
    }
    for text in ["[echo(), 1]", "[echo(), 'x']", "[echo(), ()]", "[echo(), write_file]"] {
        assert_eq!(parse_at_every_cut(text), expected_output(text, &[], &["malformed"]), "{text}");
    }
}

/// The limit counts the levels of a value, not the values.
#[test]
fn many_values_and_127_nested_lists_are_accepted_and_one_list_more_is_not() {
    let calls = |value: &str| parse(&[&format!("[echo(a={value})]")], TextEnd::Stop);
    let many = format!("[{}]", vec!["[1],2"; 150].join(","));
    assert_eq!(calls(&many).calls, [format!(r#"echo{{"a":{many}}}"#)]);
    let nested = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(calls(&nested(127)).calls.len(), 1);
    assert_eq!(calls(&nested(128)).calls.len(), 0);
}
