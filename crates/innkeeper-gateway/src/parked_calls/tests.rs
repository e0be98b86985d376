//! Tests of the bytes that parked calls pass.

use innkeeper_host::CallReference;
use innkeeper_protocol::{Revision, method};

use super::*;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[tokio::test]
async fn the_request_of_a_server_and_the_answer_of_the_client_pass_byte_for_byte() {
    const PARAMS: &str = r#"{"message":"\u0041?","maximum":123456789012345678901234567890}"#;
    const ANSWER: &str = r#"{"content":{"n":123456789012345678901234567890.10},"action":"accept"}"#;
    let identity = CallIdentity {
        server: "a".into(),
        method: method::TOOLS_CALL.into(),
        item: "a.echo".into(),
        principal: Principal::local_user(),
        digest: "0".into(),
    };
    let capabilities = raw(r#"{"elicitation":{}}"#).into();
    let client = ClientIdentity { revision: Revision::V2026_07_28, capabilities };
    let stream = CurrentStream::new(RequestStream::NONE);
    // The result of the call is the answer.
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
    let parked_calls = ParkedCalls::new();
    let server_use = Arc::new(ServerUse::new(false));
    let call = ParkableCall::new((identity.clone(), server_use), client, stream, call);
    let required = parked_calls.start(call).await.unwrap();
    let request = format!(r#"{{"form":{{"method":"elicitation/create","params":{PARAMS}}}}}"#);
    assert_eq!(skim::member(required.get(), "inputRequests"), Some(&*request));
    let state = skim::member(required.get(), "requestState").and_then(skim::decode_string);
    let state = state.unwrap();
    let responses = raw(&format!(r#"{{"form":{ANSWER}}}"#));
    let resumed = parked_calls.resume(&state, Some(&responses), &identity, RequestStream::NONE);
    assert_eq!(resumed.await.unwrap().get(), ANSWER);
}
