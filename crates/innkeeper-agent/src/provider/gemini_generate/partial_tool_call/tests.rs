//! Tests of paths and values of streamed arguments.

use super::*;

fn call_with(arguments: &[&str]) -> Result<PartialToolCall, ApiError> {
    let mut call = PartialToolCall::new(&ObjectView::default(), &ObjectView::default());
    for argument in arguments {
        let text = format!(r#"{{"partialArgs":[{argument}]}}"#);
        call.feed_arguments(&ObjectView::parse(&text).unwrap())?;
    }
    Ok(call)
}

fn arguments_after(arguments: &[&str]) -> Result<String, ApiError> {
    call_with(arguments).map(|call| call.arguments())
}

#[test]
fn values_come_to_the_place_that_their_path_names() {
    let result = arguments_after(&[
        r#"{"jsonPath":"$.city","stringValue":"Par","willContinue":true}"#,
        r#"{"jsonPath":"$.city","stringValue":"is"}"#,
        r#"{"jsonPath":"$.days[0].n","numberValue":1.5}"#,
        r#"{"jsonPath":"$.days[0]['a.b']","boolValue":true}"#,
        r#"{"jsonPath":"$.days[1]","nullValue":"NULL_VALUE"}"#,
        r#"{"jsonPath":"$[\"x\"]","numberValue":3}"#,
    ]);
    let expected = r#"{"city":"Paris","days":[{"n":1.5,"a.b":true},null],"x":3}"#;
    assert_eq!(result.unwrap(), expected);
}

#[test]
fn a_number_keeps_the_digits_of_the_response() {
    for number in ["123456789012345678901234567890", "1.50", "1E2", "-0"] {
        let text = format!(r#"{{"partialArgs":[{{"jsonPath":"$.n","numberValue":{number}}}]}}"#);
        let mut call = PartialToolCall::new(&ObjectView::default(), &ObjectView::default());
        call.feed_arguments(&ObjectView::parse(&text).unwrap()).unwrap();
        let arguments = call.arguments();
        assert_eq!(arguments, format!(r#"{{"n":{number}}}"#));
        let part = format!(r#"{{"functionCall":{{"name":"","args":{arguments}}}}}"#);
        assert_eq!(call.to_raw_part().unwrap().get(), part, "{number}");
    }
}

#[test]
fn an_unreadable_value_is_an_error() {
    for value in [
        r#""numberValue":1e400"#,
        r#""numberValue":"3""#,
        r#""boolValue":1"#,
        r#""stringValue":1"#,
        r#""listValue":[]"#,
        r#""stringValue":"x","numberValue":1"#,
    ] {
        let argument = format!(r#"{{"jsonPath":"$.a",{value}}}"#);
        assert!(arguments_after(&[&argument]).is_err(), "{value}");
    }
}

#[test]
fn a_second_value_of_an_argument_is_an_error() {
    let one = r#"{"jsonPath":"$.a","numberValue":1}"#;
    let text = r#"{"jsonPath":"$.a","stringValue":"x"}"#;
    let null = r#"{"jsonPath":"$.a","nullValue":null}"#;
    let member = r#"{"jsonPath":"$.a.b","boolValue":true}"#;
    let item = r#"{"jsonPath":"$.a[0]","boolValue":true}"#;
    let values = [one, text, null, member, item];
    for first in values {
        assert!(arguments_after(&[first]).is_ok(), "{first}");
        for second in values {
            assert!(arguments_after(&[first, second]).is_err(), "{first} {second}");
        }
    }
    let open = r#"{"jsonPath":"$.a","stringValue":"x","willContinue":true}"#;
    assert!(arguments_after(&[open, one]).is_err());
}

#[test]
fn a_chunk_without_a_value_ends_a_string() {
    let open = r#"{"jsonPath":"$.a","stringValue":"x","willContinue":true}"#;
    let end = r#"{"jsonPath":"$.a"}"#;
    assert_eq!(arguments_after(&[open, end]).unwrap(), r#"{"a":"x"}"#);
    assert!(arguments_after(&[open, end, open]).is_err());
    let unreadable = r#"{"jsonPath":"$.a","stringValue":1}"#;
    assert!(arguments_after(&[end]).is_err() && arguments_after(&[open, unreadable]).is_err());
}

#[test]
fn an_invalid_path_is_an_error() {
    let nested_path = |depth: usize| {
        let path = ".a".repeat(depth);
        arguments_after(&[&format!(r#"{{"jsonPath":"${path}","stringValue":"x"}}"#)])
    };
    assert!(
        nested_path(MAX_ARGUMENT_DEPTH).is_ok() && nested_path(MAX_ARGUMENT_DEPTH + 1).is_err()
    );
    for path in ["", "$", "a", "$a", "$.", "$..a", "$[", "$[x]", "$[1]", "$['a", "$['a'", "$[']"] {
        let argument = format!(r#"{{"jsonPath":"{path}","stringValue":"x"}}"#);
        assert!(arguments_after(&[&argument]).is_err(), "{path}");
    }
}
