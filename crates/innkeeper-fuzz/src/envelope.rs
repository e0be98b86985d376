//! Whatever a line holds, nothing panics, and a line that is JSON is taken for what its tree says.

use innkeeper_protocol::view::{
    InitializeResult, Page, ProgressNotification, Prompt, Resource, ResourceTemplate, Tool,
    ToolResult, check_prompt_result, check_read_result, check_tool_result,
};
use innkeeper_protocol::{Incoming, Malformed, MalformedKind, Message, RequestId, envelope, skim};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

/// Reads the input as one line.
pub fn envelope(line: &[u8]) {
    let parsed = envelope::parse(line);
    let (id, _) = skim::top_level_id(line);
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
                assert!(read.len() >= items.len().min(envelope::BATCH_LIMIT));
            }
            Ok(Message::One(_)) => panic!("an array is not one message"),
            Err(malformed) => assert!(items.is_empty(), "{malformed}"),
        },
        Ok(_) => assert!(matches!(&parsed, Err(it) if it.kind == MalformedKind::NotAnObject)),
        Err(_) => assert!(shaped || parsed.is_err()),
    }
    match &parsed {
        Ok(Message::One(incoming)) => look(incoming),
        Ok(Message::Batch(items)) => items.iter().flatten().for_each(look),
        Err(malformed) => assert!(malformed.detail.chars().count() <= 200),
    }
}

fn is_duplicate(parsed: &Result<Message<'_>, Malformed>) -> bool {
    matches!(parsed, Err(malformed) if malformed.kind == MalformedKind::DuplicateKey)
}

fn value(raw: &str) -> Value {
    serde_json::from_str(raw).expect("a part of a tree")
}

fn compare_members(line: &[u8], tree: &Map<String, Value>) {
    let object = std::str::from_utf8(line).expect("JSON is UTF-8");
    let mut skimmed = Map::new();
    for (key, raw) in skim::members(object) {
        let key = serde_json::from_str(&format!("\"{key}\"")).expect("a key");
        skimmed.insert(key, value(raw));
    }
    assert_eq!(&skimmed, tree);
}

fn compare(parsed: &Result<Message<'_>, Malformed>, tree: &Map<String, Value>) {
    match parsed {
        Ok(Message::One(Incoming::Response { outcome: Ok(result), .. })) => {
            assert_eq!(Some(&value(result.get())), tree.get("result"));
        }
        Ok(Message::One(Incoming::Response { outcome: Err(error), .. })) => {
            assert_eq!(Some(&error.message[..]), tree["error"]["message"].as_str());
        }
        Ok(Message::One(
            Incoming::Request { method, params, .. } | Incoming::Notification { method, params },
        )) => {
            assert_eq!(Some(&method[..]), tree["method"].as_str());
            let params = params.map_or(Value::Null, |params| value(params.get()));
            assert_eq!(&params, tree.get("params").unwrap_or(&Value::Null));
        }
        Ok(Message::Batch(_)) => panic!("an object is no batch"),
        Err(malformed) => {
            use MalformedKind as Kind;
            let text = [Kind::NotJson, Kind::NotUtf8, Kind::MultiLineJson, Kind::TooDeep];
            assert!(!text.contains(&malformed.kind), "{malformed}");
        }
    }
}

fn look(incoming: &Incoming<'_>) {
    match incoming {
        Incoming::Response { outcome: Ok(result), .. } => view(result),
        Incoming::Request { params: Some(params), .. }
        | Incoming::Notification { params: Some(params), .. } => view(params),
        _ => {}
    }
}

fn view(raw: &RawValue) {
    if let Ok(is_error) = check_tool_result(raw) {
        let viewed = ToolResult::read(raw).map(|result| result.is_error);
        assert_eq!(viewed, Ok(is_error));
    }
    drop(check_prompt_result(raw));
    drop(check_read_result(raw));
    drop(InitializeResult::read(raw));
    drop(ProgressNotification::read(raw));
    for list in ["tools", "resources"] {
        for item in Page::read(raw, list).unwrap_or_default().items {
            drop((Tool::read(&item), Prompt::read(&item), Resource::read(&item)));
            if let Ok(template) = ResourceTemplate::read(&item) {
                template.matches("file:///a/b?c=d#e");
            }
        }
    }
}
