//! Tests of malformed lines: error kinds and recovered ids.

use crate::envelope::{
    MAX_BATCH_MESSAGES, MAX_MESSAGE_DEPTH, MalformedKind, MalformedMessage, Message, parse,
};
use crate::id::RequestId;

fn parse_malformed(line: &[u8]) -> MalformedMessage {
    match parse(line) {
        Err(malformed) => malformed,
        Ok(message) => panic!("{} is {message:?}", String::from_utf8_lossy(line)),
    }
}

fn malformed_summary(line: &[u8]) -> (MalformedKind, Option<i64>, bool) {
    let malformed = parse_malformed(line);
    let id = malformed.id.map(|id| match id {
        RequestId::Integer(number) => number,
        RequestId::String(text) => panic!("{text} is a string"),
    });
    (malformed.kind, id, malformed.looks_like_response)
}

/// Attack: framing | a response is not UTF-8, contains NUL, has two results, two ids or no version
/// | the response is malformed, and the readable id selects the call that fails | No unbounded wait
/// Proves: FR7.6, TR3.1, TR3.6
#[test]
fn a_malformed_response_fails_the_call_it_was_for() {
    use MalformedKind as Kind;
    let cases: [(&[u8], Kind, Option<i64>); 16] = [
        (b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":\"\xFF\"}", Kind::NotUtf8, Some(3)),
        (b"\0{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":1}", Kind::NotJson, Some(3)),
        (br#"{"jsonrpc":"2.0","id":3,"result":{"a":1"#, Kind::NotJson, Some(3)),
        (br#"{"jsonrpc":"2.0","id":3,"result":{}}{"#, Kind::NotJson, Some(3)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{},\"\0\":1}", Kind::NotJson, Some(3)),
        (br#"{"id":3,"result":{}}"#, Kind::MissingVersion, Some(3)),
        (br#"{"jsonrpc":2.0,"id":3,"result":{}}"#, Kind::WrongVersion, Some(3)),
        (br#"{"jsonrpc":"1.0","id":3,"result":{}}"#, Kind::WrongVersion, Some(3)),
        (br#"{"jsonrpc":"2.0","id":3,"result":1,"result":2}"#, Kind::DuplicateKey, Some(3)),
        (br#"{"jsonrpc":"2.0","id":3,"id":3,"result":2}"#, Kind::DuplicateKey, Some(3)),
        (br#"{"jsonrpc":"2.0","id":3,"id":4,"result":2}"#, Kind::DuplicateKey, None),
        (br#"{"jsonrpc":"2.0","id":null,"result":{}}"#, Kind::BadId, None),
        (br#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#, Kind::BadId, None),
        (br#"{"jsonrpc":"2.0","result":{}}"#, Kind::BadId, None),
        (br#"{"jsonrpc":"2.0","id":3,"error":"no"}"#, Kind::BadError, Some(3)),
        (
            br#"{"jsonrpc":"2.0","id":3,"result":{},"error":{"code":1,"message":""}}"#,
            Kind::BothResultAndError,
            Some(3),
        ),
    ];
    for (line, kind, id) in cases {
        assert_eq!(malformed_summary(line), (kind, id, true), "{}", String::from_utf8_lossy(line));
    }
}

/// Attack: framing | log lines and JSON without an envelope contain ids and results | no line
/// counts as a response | Own response
/// Proves: FR7.6
#[test]
fn what_is_no_response_is_not_taken_for_one() {
    use MalformedKind as Kind;
    let cases: [(&[u8], Kind, Option<i64>); 16] = [
        (b"\x1b[33mnpm WARN\x1b[0m deprecated", Kind::NotJson, None),
        (b"2026-11-21 12:00:00 INFO ready {\"id\":3}", Kind::NotJson, None),
        (b"[info] listening", Kind::NotJson, None),
        (b"", Kind::NotJson, None),
        (b"{", Kind::MultiLineJson, None),
        (b"[ \t", Kind::MultiLineJson, None),
        (b"\"id\": 3,", Kind::NotJson, None),
        (b"42", Kind::NotAnObject, None),
        (b"null", Kind::NotAnObject, None),
        (b"[]", Kind::EmptyBatch, None),
        (br#"{"level":"info","msg":"started"}"#, Kind::MissingVersion, None),
        (br#"{"jsonrpc":"2.0"}"#, Kind::MissingMethod, None),
        (br#"{"jsonrpc":"2.0","ID":3,"Result":{}}"#, Kind::MissingMethod, None),
        (br#"{"jsonrpc":"2.0","id":3}"#, Kind::NeitherResultNorError, Some(3)),
        (br#"{"jsonrpc":"2.0","id":3,"method":5}"#, Kind::MissingMethod, Some(3)),
        (
            br#"{"jsonrpc":"2.0","id":3,"method":"x","result":{}}"#,
            Kind::BothRequestAndResponse,
            Some(3),
        ),
    ];
    for (line, kind, id) in cases {
        assert_eq!(malformed_summary(line), (kind, id, false), "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn an_error_without_whole_code_or_message_is_bad() {
    for error in ["[]", "{}", r#"{"code":1}"#, r#"{"code":1.5,"message":""}"#, r#"{"message":""}"#]
    {
        let line = format!(r#"{{"jsonrpc":"2.0","id":3,"error":{error}}}"#);
        assert_eq!(
            malformed_summary(line.as_bytes()),
            (MalformedKind::BadError, Some(3), true),
            "{error}"
        );
    }
}

fn nested(levels: usize) -> String {
    let (open, close) = ("[".repeat(levels), "]".repeat(levels));
    format!(r#"{{"jsonrpc":"2.0","id":3,"result":{open}{close}}}"#)
}

/// Attack: framing | a result nests 100,000 levels, also without its end | the parser rejects the
/// message without recursion and finds its id | No unbounded memory
/// Proves: FR7.6
#[test]
fn nesting_at_the_limit_is_read_and_one_past_it_is_not() {
    let line = nested(MAX_MESSAGE_DEPTH - 1);
    assert!(parse(line.as_bytes()).is_ok());
    assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok());
    let line = nested(MAX_MESSAGE_DEPTH);
    assert_eq!(malformed_summary(line.as_bytes()), (MalformedKind::TooDeep, Some(3), true));
    assert!(serde_json::from_str::<serde_json::Value>(&line).is_err());
    assert_eq!(
        malformed_summary(nested(100_000).as_bytes()),
        (MalformedKind::TooDeep, Some(3), true)
    );
    let unclosed = format!(r#"{{"id":3,"result":{}"#, "[".repeat(100_000));
    assert_eq!(malformed_summary(unclosed.as_bytes()), (MalformedKind::TooDeep, Some(3), true));
}

#[test]
fn brackets_beside_each_other_or_in_strings_are_not_deep() {
    let many_items = "[],".repeat(1000);
    let text = "[".repeat(1000);
    let line = format!(r#"{{"jsonrpc":"2.0","id":3,"result":[{many_items}"{text}"]}}"#);
    assert!(parse(line.as_bytes()).is_ok());
}

/// Attack: framing | a batch contains one message more than the limit | the messages past the limit
/// are omitted and reported | No unbounded memory
#[test]
fn a_batch_at_the_limit_is_read_and_one_past_it_is_cut() {
    let batch = |items: usize| {
        let item = r#"{"jsonrpc":"2.0","id":3,"result":{}}"#;
        format!("[{}]", vec![item; items].join(","))
    };
    let items = |line: &str| {
        match parse(line.as_bytes()) {
            Ok(Message::Batch(items)) => {
                items.into_iter().map(|item| item.err().map(|error| error.kind))
            }
            other => panic!("{other:?}"),
        }
        .collect::<Vec<_>>()
    };
    assert_eq!(items(&batch(MAX_BATCH_MESSAGES)), vec![None; MAX_BATCH_MESSAGES]);
    let truncated = items(&batch(MAX_BATCH_MESSAGES + 1));
    assert_eq!(truncated.len(), MAX_BATCH_MESSAGES + 1);
    assert_eq!(truncated[MAX_BATCH_MESSAGES], Some(MalformedKind::BatchTooLarge));
}

#[test]
fn a_line_over_the_limit_is_reported_with_its_head() {
    let malformed =
        MalformedMessage::too_long(br#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"#);
    assert_eq!(malformed.kind, MalformedKind::TooLong);
    assert_eq!(malformed.id, Some(RequestId::Integer(3)));
    assert!(malformed.looks_like_response);
}

#[test]
fn the_detail_has_the_reason_and_the_start_of_the_line() {
    let not_json = parse_malformed(br#"{"jsonrpc":"2.0" "id":3}"#);
    let reason = "expected `,` or `}` at line 1 column 18";
    assert_eq!(not_json.detail, format!(r#"{reason}: {{"jsonrpc":"2.0" "id":3}}"#));
    let log_line = format!("{}|{}", "x".repeat(120), "y".repeat(500));
    let detail = parse_malformed(log_line.as_bytes()).detail;
    assert!(detail.ends_with(&"x".repeat(120)), "{detail}");
    assert_eq!(parse_malformed(b"\xFFabc").detail, "\u{FFFD}abc");
    assert_eq!(MalformedMessage::too_long(b"abc").detail, "abc");
    let details = [
        ("[[]]", "an array"),
        (r#"[{"jsonrpc":"1.0"}]"#, r#""1.0""#),
        (r#"[{"jsonrpc":"2.0","id":true,"method":"x"}]"#, "true"),
        (r#"[{"jsonrpc":"2.0","id":true,"method":["x"]}]"#, r#"["x"]"#),
        (r#"[{"jsonrpc":"2.0","id":1,"error":[2]}]"#, "[2]"),
        (r#"[{"jsonrpc":"2.0","id":1,"id":1}]"#, "id"),
        (r#"[{"jsonrpc":"2.0","error":{"code":-1,"message":"no"}}]"#, "error -1: no"),
        (r#"[{"jsonrpc":"2.0","id":1}]"#, ""),
    ];
    for (batch, detail) in details {
        let Ok(Message::Batch(items)) = parse(batch.as_bytes()) else { panic!("{batch}") };
        assert_eq!(items[0].as_ref().unwrap_err().detail, detail, "{batch}");
    }
}

#[test]
fn a_batch_over_the_limit_says_how_many_messages_are_omitted() {
    let batch = format!("[{}1]", "1,".repeat(MAX_BATCH_MESSAGES + 6));
    let Ok(Message::Batch(items)) = parse(batch.as_bytes()) else { panic!("no batch") };
    assert_eq!(items.last().unwrap().as_ref().unwrap_err().detail, "7 messages omitted");
}

/// Attack: terminal | a malformed line contains escape codes and direction marks | the message
/// about the line is short and contains printable ASCII only | Foreign text stays text
#[test]
fn a_message_about_a_line_shows_no_byte_of_it_raw_and_stays_short() {
    let wild = "\x1b[31m\u{202e}\u{7}\u{200b}\\".repeat(50);
    for line in [wild.clone(), format!(r#"{{"jsonrpc":{wild:?},"id":3,"result":1}}"#)] {
        let malformed = parse_malformed(line.as_bytes());
        let message = malformed.to_string();
        assert!(malformed.detail.chars().count() <= 200, "{message}");
        assert!(message.chars().all(|c| c == '…' || c.is_ascii_graphic() || c == ' '), "{message}");
        assert!(message.starts_with(malformed.kind.as_str()));
    }
    let error = parse_malformed(b"{");
    assert_eq!(error.to_string(), error.kind.as_str());
}
