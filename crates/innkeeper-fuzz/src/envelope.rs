//! Fuzz target: reads one line as a message. The result agrees with a JSON tree parser.

use innkeeper_protocol::view::{
    InitializeResult, Page, ProgressNotification, Prompt, Resource, ResourceTemplate, Tool,
    ToolResult, check_prompt_result, check_read_result, check_tool_result,
};
use innkeeper_protocol::{
    Incoming, MalformedKind, MalformedMessage, Message, RequestId, envelope, skim,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Reads the input as one line.
pub fn envelope(line: &[u8]) {
    let parsed = envelope::parse(line);
    let (id, _) = skim::recover_top_level_id(line);
    let shaped = serde_json::from_slice::<&RawValue>(line).is_ok();
    match serde_json::from_slice::<Value>(line) {
        Ok(Value::Object(tree)) => {
            compare_members(line, &tree);
            if !line.contains(&b'\\') && !is_duplicate(&parsed) {
                let expected = tree.get("id").and_then(|id| RequestId::from_raw(&id.to_string()));
                assert_eq!(id, expected);
            }
            compare(&parsed, &tree);
        }
        Ok(Value::Array(items)) => match &parsed {
            Ok(Message::Batch(read)) => {
                assert!(read.len() >= items.len().min(envelope::MAX_BATCH_MESSAGES));
            }
            Ok(Message::Single(_)) => panic!("an array is not a single message"),
            Err(malformed) => assert!(items.is_empty(), "{malformed}"),
        },
        Ok(_) => assert!(matches!(&parsed, Err(it) if it.kind == MalformedKind::NotAnObject)),
        Err(_) => assert!(shaped || parsed.is_err()),
    }
    match &parsed {
        Ok(Message::Single(incoming)) => exercise(incoming),
        Ok(Message::Batch(items)) => items.iter().flatten().for_each(exercise),
        Err(malformed) => assert!(malformed.detail.chars().count() <= 200),
    }
}

fn is_duplicate(parsed: &Result<Message<'_>, MalformedMessage>) -> bool {
    matches!(parsed, Err(malformed) if malformed.kind == MalformedKind::DuplicateKey)
}

fn parse_value(raw: &str) -> Value {
    serde_json::from_str(raw).expect("member of a valid tree")
}

fn compare_members(line: &[u8], tree: &Map<String, Value>) {
    let object = std::str::from_utf8(line).expect("valid JSON is UTF-8");
    let mut skimmed = Map::new();
    for (key, raw) in skim::members(object) {
        let key = serde_json::from_str(&format!("\"{key}\"")).expect("a key");
        skimmed.insert(key, parse_value(raw));
    }
    assert_eq!(&skimmed, tree);
}

fn compare(parsed: &Result<Message<'_>, MalformedMessage>, tree: &Map<String, Value>) {
    match parsed {
        Ok(Message::Single(Incoming::Response { outcome: Ok(result), .. })) => {
            assert_eq!(Some(&parse_value(result.get())), tree.get("result"));
        }
        Ok(Message::Single(Incoming::Response { outcome: Err(error), .. })) => {
            assert_eq!(Some(&error.message[..]), tree["error"]["message"].as_str());
        }
        Ok(Message::Single(
            Incoming::Request { method, params, .. } | Incoming::Notification { method, params },
        )) => {
            assert_eq!(Some(&method[..]), tree["method"].as_str());
            let params = params.map_or(Value::Null, |params| parse_value(params.get()));
            assert_eq!(&params, tree.get("params").unwrap_or(&Value::Null));
        }
        Ok(Message::Batch(_)) => panic!("an object is not a batch"),
        Err(malformed) => {
            use MalformedKind as Kind;
            let text = [Kind::NotJson, Kind::NotUtf8, Kind::MultiLineJson, Kind::TooDeep];
            assert!(!text.contains(&malformed.kind), "{malformed}");
        }
    }
}

fn exercise(incoming: &Incoming<'_>) {
    match incoming {
        Incoming::Response { outcome: Ok(result), .. } => read_views(result),
        Incoming::Request { params: Some(params), .. }
        | Incoming::Notification { params: Some(params), .. } => read_views(params),
        _ => {}
    }
}

fn read_views(raw: &RawValue) {
    if let Ok(is_error) = check_tool_result(raw) {
        let viewed = ToolResult::from_raw(raw).map(|result| result.is_error);
        assert_eq!(viewed, Ok(is_error));
    }
    let _ = check_prompt_result(raw);
    let _ = check_read_result(raw);
    let _ = InitializeResult::from_raw(raw);
    let _ = ProgressNotification::from_raw(raw);
    for list in ["tools", "resources"] {
        for item in Page::from_raw(raw, list).unwrap_or_default().items {
            drop((Tool::from_raw(&item), Prompt::from_raw(&item), Resource::from_raw(&item)));
            if let Ok(template) = ResourceTemplate::from_raw(&item) {
                template.matches("file:///a/b?c=d#e");
            }
        }
    }
}
