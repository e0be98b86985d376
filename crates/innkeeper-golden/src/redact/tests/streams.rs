//! Secrets in pieces: in chunks, and in the events of each provider's API.

use serde_json::json;

use super::*;

type Event = fn(&str, usize) -> Value;

/// The events of each API that stream a text, with the pointer of the text.
pub(super) const WIRES: [(&str, Event, &str); 9] = [
    (
        "data",
        |text, _| json!({"id": "c", "choices": [{"index": 0, "delta": {"content": text}}]}),
        "/choices/0/delta/content",
    ),
    (
        "data",
        |text, at| {
            let mut call = json!({"index": 0, "function": {"arguments": text}});
            if at == 0 {
                call = json!({"index": 0, "id": "1", "type": "function",
                    "function": {"name": "f", "arguments": text}});
            }
            json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
        },
        "/choices/0/delta/tool_calls/0/function/arguments",
    ),
    (
        "data",
        |text, at| {
            json!({"type": "response.output_text.delta", "sequence_number": at, "item_id": "m",
                "output_index": 0, "content_index": 0, "delta": text})
        },
        "/delta",
    ),
    (
        "data",
        |text, _| {
            json!({"type": "content_block_delta", "index": 0,
                "delta": {"type": "text_delta", "text": text}})
        },
        "/delta/text",
    ),
    (
        "data",
        |text, _| {
            json!({"type": "content_block_delta", "index": 1,
                "delta": {"type": "input_json_delta", "partial_json": text}})
        },
        "/delta/partial_json",
    ),
    (
        "data",
        |text, _| json!({"candidates": [{"content": {"parts": [{"text": text}], "role": "model"}}]}),
        "/candidates/0/content/parts/0/text",
    ),
    (
        "array",
        |text, _| json!({"candidates": [{"content": {"parts": [{"text": text}]}}]}),
        "/candidates/0/content/parts/0/text",
    ),
    (
        "lines",
        |text, _| json!({"message": {"role": "assistant", "content": text}}),
        "/message/content",
    ),
    ("lines", |text, at| json!({"i": at, "response": text, "done": false}), "/response"),
];

/// Writes events in the framing of an API.
pub(super) fn write_events(framing: &str, events: &[Value]) -> String {
    let lines: Vec<String> = events.iter().map(Value::to_string).collect();
    match framing {
        "data" => lines.iter().map(|line| format!("event: e\ndata: {line}\n\n")).collect(),
        "array" => format!("[{}]", lines.join(",\n")),
        _ => lines.join("\n") + "\n",
    }
}

/// Reads the events again; all of them must be JSON.
pub(super) fn read_events(framing: &str, body: &str) -> Vec<Value> {
    match framing {
        "data" => {
            let lines = body.lines().filter_map(|line| line.strip_prefix("data: "));
            lines.map(|line| serde_json::from_str(line).unwrap()).collect()
        }
        "array" => serde_json::from_str(body).unwrap(),
        _ => body.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
    }
}

fn joined(events: &[Value], pointer: &str) -> String {
    events.iter().filter_map(|event| event.pointer(pointer)?.as_str()).collect()
}

#[test]
fn a_secret_in_pieces_is_replaced_in_the_events_of_each_api() {
    let secret = "sk-\"é\"0123";
    let text = format!("It is {secret}, is it?");
    for (framing, event, pointer) in WIRES {
        for size in 1..8 {
            let characters: Vec<char> = text.chars().collect();
            let pieces = characters.chunks(size).map(String::from_iter).enumerate();
            let events: Vec<Value> = pieces.map(|(at, piece)| event(&piece, at)).collect();
            let before = write_events(framing, &events);
            let after = redact_body(&before, &[anywhere("api-key", secret)]).unwrap();
            let events = read_events(framing, &after);
            assert_eq!(joined(&events, pointer), "It is [redacted:api-key], is it?", "{after}");
        }
    }
}

#[test]
fn an_escape_in_pieces_is_replaced() {
    let events = [r#"{"key":"\\u00"#, r"7a\\u007", r#"9xwvut"}"#]
        .map(|text| json!({"delta": text.replace("\\\\", "\\")}));
    let body = write_events("data", &events);
    let after = redact_body(&body, &[anywhere("key", "zyxwvut")]).unwrap();
    assert_eq!(joined(&read_events("data", &after), "/delta"), r#"{"key":"[redacted:key]"}"#);
}

#[test]
fn parallel_calls_do_not_hide_a_secret_in_each_other() {
    let call = |index: usize, text: &str| {
        json!({"choices": [{"delta": {"tool_calls":
            [{"index": index, "function": {"arguments": text}}]}}]})
    };
    let body =
        write_events("data", &[call(0, "abc"), call(1, "123"), call(0, "def"), call(1, "456")]);
    let after = redact_body(&body, &[anywhere("a", "abcdef"), anywhere("b", "123456")]).unwrap();
    let texts: Vec<String> = read_events("data", &after)
        .iter()
        .map(|event| joined(std::slice::from_ref(event), WIRES[1].2))
        .collect();
    assert_eq!(texts, ["[redacted:a]", "[redacted:b]", "", ""]);
}

#[test]
fn calls_of_one_event_continue_by_their_number() {
    let body = concat!(
        r#"{"calls":[{"index":0,"text":"x"},{"index":1,"text":"sk-abc"}]}"#,
        "\n",
        r#"{"calls":[{"index":1,"text":"def"}]}"#,
    );
    let after = redact_body(body, &[anywhere("key", "sk-abcdef")]).unwrap();
    assert_eq!(after, body.replace("sk-abc", "[redacted:key]").replace("def", ""));
}

#[test]
fn events_of_two_types_do_not_hide_a_secret_in_each_other() {
    let events = ["a:sk-abc", "b:123", "a:def", "b:456"].map(|event| {
        let (name, text) = event.split_once(':').unwrap();
        json!({"type": name, "delta": text})
    });
    let body = write_events("data", &events);
    let after = redact_body(&body, &[anywhere("key", "sk-abcdef")]).unwrap();
    assert_eq!(joined(&read_events("data", &after), "/delta"), "[redacted:key]123456");
}

#[test]
fn a_number_that_is_missing_in_some_events_hides_nothing() {
    let body = concat!(
        r#"{"index":0,"text":"sk-abc"}"#,
        "\n",
        r#"{"text":"def"}"#,
        "\n",
        r#"{"index":0,"text":"!"}"#,
    );
    let after = redact_body(body, &[anywhere("key", "sk-abcdef")]).unwrap();
    assert_eq!(after, body.replace("sk-abc", "[redacted:key]").replace("def", ""));
}

#[test]
fn only_strings_with_secrets_change() {
    let body = "data: {\"n\" : 1.00, \"t\":\"\\u0041bc\", \"d\":\"sk-ab\\u0063\"}\r\n\r\n: x\r\n\
                data: {\"n\" : 2.0e5, \"t\":\"\\u0041bc\", \"d\":\"defg\\/\"}\r\n\r\ndata: [DONE]\r\n\r\n";
    let after = redact_body(body, &[anywhere("key", "sk-abcdefg")]).unwrap();
    let expected = body.replace("sk-ab\\u0063", "[redacted:key]").replace("defg\\/", "\\/");
    assert_eq!(after, expected);
}

#[test]
fn cuts_move_to_the_end_of_a_replacement() {
    let mut golden = golden_with_chunks(&[b"see sk-", b"ab", b"cdef: \xc3", b"\xa9", b" end"]);
    redact(&mut golden, &[anywhere("key", "sk-abcdef")], find_nothing).unwrap();
    let texts: Vec<(u64, ChunkData)> =
        chunks(&golden).iter().map(|chunk| (chunk.ms, chunk.data.clone())).collect();
    let expected = [
        (10, ChunkData::Text("see [redacted:key]".to_owned())),
        (11, ChunkData::Text(String::new())),
        (12, ChunkData::from_bytes(b": \xc3")),
        (13, ChunkData::from_bytes(b"\xa9")),
        (14, ChunkData::Text(" end".to_owned())),
    ];
    assert_eq!(texts, expected);
}

#[test]
fn a_character_that_is_cut_in_two_belongs_to_a_secret() {
    let mut golden = golden_with_chunks(&[b"x gr\xc3", b"\xbc\xc3\x9fe y\xc3"]);
    redact(&mut golden, &[anywhere("key", "grüße")], find_nothing).unwrap();
    assert_eq!(chunks(&golden)[0].data, ChunkData::Text("x [redacted:key]".to_owned()));
    assert_eq!(chunks(&golden)[1].data, ChunkData::from_bytes(b" y\xc3"));
}

#[test]
fn a_stream_that_ends_in_the_middle_of_an_event_hides_nothing() {
    let body = "data: {\"delta\":\"sk-ab\"}\n\ndata: {\"delta\":\"cdef";
    let after = redact_body(body, &[anywhere("key", "sk-abcdef")]).unwrap();
    assert_eq!(after, "data: {\"delta\":\"[redacted:key]\"}\n\ndata: {\"delta\":\"");
}

#[test]
fn text_that_is_not_json_is_searched() {
    let secret = [anywhere("key", "sk-abcdef")];
    for (body, expected) in [
        ("<p>sk-abcdef</p>", "<p>[redacted:key]</p>"),
        ("{\"a\": oops \"sk\\u002dabcdef\"", "{\"a\": oops \"[redacted:key]\""),
        ("data: sk-abc\n\ndata: def\n\n", "data: [redacted:key]\n\ndata: \n\n"),
        ("event: sk-abcdef\ndata: {}\n\n", "event: [redacted:key]\ndata: {}\n\n"),
        ("[\"sk\"]-abc sk-abcdef", "[\"sk\"]-abc [redacted:key]"),
        ("\"sk-abc\"def sk-abcdef", "\"sk-abc\"def [redacted:key]"),
    ] {
        assert_eq!(redact_body(body, &secret).unwrap(), expected);
    }
}

#[test]
fn a_secret_may_contain_what_looks_like_the_end_of_json() {
    let after = redact_body("[\"abc\"]def", &[anywhere("key", "abc\"]def")]).unwrap();
    assert_eq!(after, "[\"[redacted:key]");
}

#[test]
fn the_detector_sees_the_events_together() {
    let events = ["a ghp_0123456", "789abcdef", "ghij."].map(|text| json!({"delta": text}));
    let mut golden = golden_with_chunks(&[write_events("lines", &events).as_bytes()]);
    redact(&mut golden, &[], find_tokens).unwrap();
    assert_eq!(joined(&read_events("lines", &body(&golden)), "/delta"), "a [redacted:credential].");
}

#[test]
fn a_stream_and_the_request_that_repeats_it_stay_equal() {
    let secret = [anywhere("a", "abcdef"), anywhere("b", "abcdefghij")];
    let events = ["x\\abcdef", "ghij abc", "def"].map(|text| json!({"delta": text}));
    let mut golden = golden_with_chunks(&[write_events("lines", &events).as_bytes()]);
    golden.test_name = "x\\abcdefghij abcdef".to_owned();
    redact(&mut golden, &secret, find_nothing).unwrap();
    assert_eq!(joined(&read_events("lines", &body(&golden)), "/delta"), golden.test_name);
}

#[test]
fn a_long_stream_with_many_secrets_is_searched_once_for_all() {
    let secrets: Vec<KnownSecret> =
        (0..50).map(|at| anywhere(&format!("s{at}"), &format!("sk-{at:06}/secret"))).collect();
    let events: Vec<Value> =
        (0..2000).map(|at| json!({"delta": format!("word \"{at}\" \n"), "index": 0})).collect();
    let body = write_events("data", &events);
    assert_eq!(redact_body(&body, &secrets).unwrap(), body);
}

#[test]
fn pieces_at_other_places_and_after_other_line_ends_are_one_secret() {
    let start = json!({"type": "content_block_start", "index": 0,
        "content_block": {"type": "thinking", "thinking": "It is hunter2"}});
    let rest = json!({"type": "content_block_delta", "index": 0,
        "delta": {"type": "thinking_delta", "thinking": "-hunter2x."}});
    let parts = |parts: Value| json!({"candidates": [{"content": {"parts": parts}}]});
    let thought = parts(json!([{"thought": true, "text": "No."}, {"text": "hunter2"}]));
    let bodies = [
        "data: {\"delta\":\"hunter2\"}\r\rdata: {\"delta\":\"-hunter2x\"}\r\r".to_owned(),
        "\u{feff}data: {\"delta\":\"hunter2\"}\n\ndata: {\"delta\":\"-hunter2x\"}\n\n".to_owned(),
        write_events("data", &[start, rest]),
        write_events("data", &[parts(json!([{"text": "hunter2"}, {"text": "-hunter2x"}]))]),
        write_events("data", &[thought, parts(json!([{"text": "-hunter2x"}]))]),
    ];
    for body in bodies {
        let redacted = redact_body(&body, &[anywhere("pw", "hunter2-hunter2x")]).unwrap();
        assert!(redacted.contains("[redacted:pw]"), "{redacted}");
        assert!(!redacted.contains("hunter2"), "{redacted}");
    }
}
