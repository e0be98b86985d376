//! Tests of parked calls: the bytes that they pass, and their time.

use innkeeper_host::ServerRequest;
use innkeeper_protocol::skim;

use innkeeper_host::CallReference;
use innkeeper_protocol::{Revision, method};

use super::*;
use crate::client::ClientIdentity;
use crate::principal::Principal;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

const PARAMS: &str = r#"{"message":"\u0041?","maximum":123456789012345678901234567890}"#;

fn identity() -> CallIdentity {
    CallIdentity {
        server: "a".into(),
        method: method::TOOLS_CALL.into(),
        item: "a.echo".into(),
        principal: Principal::local_user(),
        endpoint: 0,
        digest: "0".into(),
    }
}

/// A call whose server requests input. The result of the call is the answer.
fn asking_call() -> ParkableCall {
    let server_use = Arc::new(ServerUse::new(false));
    let capabilities = raw(r#"{"elicitation":{}}"#).into();
    let client = ClientIdentity { revision: Revision::V2026_07_28, capabilities };
    let stream = CurrentStream::new(RequestStream::NONE);
    let call = |context: CallContext| async move {
        let request = ServerRequest {
            server: "a".into(),
            key: Some("form".into()),
            method: method::ELICITATION_CREATE.into(),
            params: Some(raw(PARAMS)),
            call: CallReference::Unknown,
        };
        let answer = context.callback.respond(request).await;
        answer.map_err(|error| RpcError::new(error.code, error.message))
    };
    ParkableCall::new(identity(), server_use, client, stream, call)
}

fn request_state(result: &RawValue) -> String {
    let state = skim::member(result.get(), "requestState").and_then(skim::decode_string);
    state.unwrap().into_owned()
}

#[tokio::test]
async fn the_request_of_a_server_and_the_answer_of_the_client_pass_byte_for_byte() {
    const ANSWER: &str = r#"{"content":{"n":123456789012345678901234567890.10},"action":"accept"}"#;
    let parked_calls = ParkedCalls::new(None);
    let required = parked_calls.start(asking_call()).await.unwrap();
    let request = format!(r#"{{"form":{{"method":"elicitation/create","params":{PARAMS}}}}}"#);
    assert_eq!(skim::member(required.get(), "inputRequests"), Some(&*request));
    let responses = raw(&format!(r#"{{"form":{ANSWER}}}"#));
    let state = request_state(&required);
    let identity = identity();
    let resumed = parked_calls.resume(&state, Some(&responses), &identity, RequestStream::NONE);
    assert_eq!(resumed.await.unwrap().get(), ANSWER);
}

/// Attack: remote | a client sends the state of a parked call to another endpoint, where the name may
/// belong to another tool | the call does not continue there, and does where it started | Isolation
#[tokio::test]
async fn a_parked_call_continues_at_its_own_endpoint_only() {
    let responses = raw(r#"{"form":{"action":"decline"}}"#);
    let parked_calls = ParkedCalls::new(None);
    let required = parked_calls.start(asking_call()).await.unwrap();
    let state = request_state(&required);
    for (endpoint, is_own) in [(1, false), (0, true)] {
        let identity = CallIdentity { endpoint, ..identity() };
        let resumed =
            parked_calls.resume(&state, Some(&responses), &identity, RequestStream::NONE).await;
        match resumed {
            Ok(_) => assert!(is_own),
            Err(error) => assert!(!is_own && error.message.contains("another"), "{error:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_parked_call_expires_after_its_time_and_not_before() {
    let responses = raw(r#"{"form":{"action":"decline"}}"#);
    let parked_calls = ParkedCalls::new(None);
    for (passed, is_alive) in [(MAX_PARKED - Duration::from_secs(1), true), (MAX_PARKED, false)] {
        let required = parked_calls.start(asking_call()).await.unwrap();
        tokio::time::advance(passed).await;
        assert_eq!(parked_calls.remove_expired(), usize::from(is_alive));
        let (state, identity) = (request_state(&required), identity());
        let resumed =
            parked_calls.resume(&state, Some(&responses), &identity, RequestStream::NONE).await;
        match resumed {
            Ok(_) => assert!(is_alive),
            Err(error) => assert!(!is_alive && error.message.contains("expired"), "{error:?}"),
        }
    }
}
