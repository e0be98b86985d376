//! Tests of what is known of the requests of a stream whose replica has ended.

use super::*;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn log(requests: &[&str], messages: &[&str]) -> StreamLog {
    let mut log = StreamLog {
        requests: requests.iter().map(|request| raw(request)).collect(),
        entries: Vec::new(),
    };
    for message in messages {
        push(&mut log, EntryKind::Message, Bytes::copy_from_slice(message.as_bytes()), 0);
    }
    log
}

fn open(log: &StreamLog) -> Vec<String> {
    unanswered(log).iter().map(|id| id.get().to_owned()).collect()
}

#[test]
fn a_request_is_open_until_its_response_is_in_the_log() {
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"id":1}}"#;
    let question = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    assert_eq!(open(&log(&["1"], &[progress, question])), ["1"]);
    let response = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
    assert_eq!(open(&log(&["1"], &[progress, response])), [""; 0]);
    assert_eq!(open(&log(&[r#""1""#], &[response])), [r#""1""#], "a text is no number");
}

#[test]
fn each_request_of_a_batch_is_open_on_its_own() {
    let responses =
        r#"[{"jsonrpc":"2.0","id":"a","result":{}},{"jsonrpc":"2.0","id":2,"error":{}}]"#;
    assert_eq!(open(&log(&[r#""a""#, "2", "3"], &[responses])), ["3"]);
}

#[test]
fn parameters_name_a_replica_only_with_its_id() {
    let id = "0123456789abcdef0123456789abcdef";
    let named =
        |params: &str| named_replica(&raw(params)).map(|named| (named.id, named.has_sent_call));
    let token = format!("{id}.sealed");
    assert_eq!(named(&format!(r#"{{"requestState":"{token}"}}"#)), Some((id.to_owned(), true)));
    assert_eq!(named(&format!(r#"{{"taskId":"{token}"}}"#)), Some((id.to_owned(), false)));
    let uri = format!("{}{token}", stored_results::URI_PREFIX);
    assert_eq!(named(&format!(r#"{{"uri":"{uri}"}}"#)), Some((id.to_owned(), false)));
    for other in [
        r#"{"taskId":"task.1"}"#.to_owned(),
        format!(r#"{{"uri":"file:///{token}"}}"#),
        format!(r#"{{"taskId":"{}.x"}}"#, id.to_uppercase()),
        r#"{"requestState":1}"#.to_owned(),
    ] {
        assert_eq!(named(&other), None, "{other}");
    }
}
