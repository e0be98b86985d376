//! What is no golden is refused with its place.

use serde_json::Value;

use super::*;

const LIBRARY: &str = include_str!("../../../../tests/goldens/ollama/edge_case_calls_in_text.json");

fn changed(from: &str, to: &str) -> String {
    assert!(LIBRARY.contains(from), "{from}");
    LIBRARY.replacen(from, to, 1)
}

fn refusal(text: &str) -> String {
    let error = Golden::from_json(text).unwrap_err();
    match std::error::Error::source(&error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Proves: G64
#[test]
fn another_version_is_refused_by_its_number() {
    for (version, number) in
        [("0", "0"), ("2", "2"), ("18446744073709551615", "18446744073709551615")]
    {
        let text = changed("\"version\": 1", &format!("\"version\": {version}"));
        assert_eq!(
            refusal(&text),
            format!("the golden has version {number}; this program reads version 1")
        );
    }
    let newer = changed("\"version\": 1", "\"version\": 2, \"new_member\": {}");
    assert!(refusal(&newer).contains("version 2"), "a newer form is not read as this one");
}

#[test]
fn a_wrong_value_is_refused_with_its_line_and_an_unknown_member_with_its_name() {
    let unknown = refusal(&changed("\"version\": 1,", "\"version\": 1,\n  \"tst_name\": \"x\","));
    assert!(
        unknown.contains("unknown field `tst_name`") && unknown.contains("line 3"),
        "{unknown}"
    );
    let wrong = refusal(&changed("\"status\": 200", "\"status\": \"200\""));
    assert!(wrong.contains("expected u16"), "{wrong}");
    assert!(refusal("").contains("invalid golden"), "{}", refusal(""));
    assert!(refusal("[1]").contains("invalid golden"), "{}", refusal("[1]"));
}

#[test]
fn a_definition_that_does_not_fit_its_hash_and_an_offer_without_its_tool_are_refused() {
    let edited = refusal(&changed("\"Lists the tables.\"", "\"Deletes the tables.\""));
    assert!(edited.contains("hash` is not that of `definition`"), "{edited}");
    let mut golden = Golden::from_json(LIBRARY).unwrap();
    golden.offers[0].tools.push(99);
    let error = golden.to_json().unwrap_err().to_string();
    assert_eq!(error, "`/offers/0/tools` names a tool that is not in `tools`");
}

#[test]
fn a_chunk_has_text_or_base64_and_its_base64_is_checked() {
    let both = "\"text\": \"\",\n            \"base64\": \"\"";
    let chunks = LIBRARY.find("\"chunks\": [").unwrap();
    let first = chunks + LIBRARY[chunks..].find("\"text\": ").unwrap();
    let end = first + LIBRARY[first..].find('\n').unwrap();
    let with = |chunk: &str| format!("{}{chunk}{}", &LIBRARY[..first], &LIBRARY[end..]);
    assert!(refusal(&with(both)).contains("a chunk has `text` or `base64`"));
    let broken = refusal(&with("\"base64\": \"?\""));
    assert!(broken.contains("/chunks/0/base64` is no Base64"), "{broken}");
}

#[test]
fn parts_have_limits() {
    let mut golden = Golden::from_json(LIBRARY).unwrap();
    let call = golden.tool_calls[0].clone();
    golden.tool_calls = vec![call; MAX_ITEMS + 1];
    let error = golden.to_json().unwrap_err().to_string();
    assert_eq!(error, "`tool_calls` has 10001 items; the limit is 10000");
    let long = format!("{LIBRARY}{}", " ".repeat(MAX_FILE_BYTES));
    assert!(refusal(&long).contains("the limit is 64 MiB"));
}

#[test]
fn a_golden_is_written_as_it_was_read() {
    let golden = Golden::from_json(LIBRARY).unwrap();
    assert_eq!(golden.to_json().unwrap(), LIBRARY);
    let mut later = golden.clone();
    later.recorded_at = "2027-01-01T00:00:00Z".to_owned();
    assert!(golden.is_same_recording(&later));
    later.test_name.push('x');
    assert!(!golden.is_same_recording(&later));
    let parsed: Value = serde_json::from_str(LIBRARY).unwrap();
    assert_eq!(parsed.as_object().unwrap().keys().next().unwrap(), "version");
}
