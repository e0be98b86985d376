//! Constrained output.

use innkeeper_agent::agent::AgentSettings;
use innkeeper_agent::conversation::Message;
use innkeeper_agent::provider::{
    Capabilities, ConstraintSupport, FinishReason, OutputConstraint, Response, ScriptedProvider,
    ToolSupport,
};
use innkeeper_agent::run::{CallOrigin, RunOutcome, ToolCalling};

use super::{AgentHarness, ModelReply, READ_CALL, harness, text_only_capabilities, text_reply};

#[tokio::test(start_paused = true)]
async fn constrained_output_is_the_last_resort_where_the_server_supports_it() {
    let bad = r#"{"tool": "fs.read", "params": {}}"#;
    let constraints = ConstraintSupport { json_schema: true, ..ConstraintSupport::default() };
    let call = r#"{"name": "fs.read", "arguments": {"path": "a"}}"#;
    let replies = [text_reply(bad), text_reply(bad), text_reply(call), text_reply("Done.")];
    let model = ScriptedProvider::new(replies)
        .with_capabilities(Capabilities { constraints, ..text_only_capabilities() });
    let test_env = harness(model, AgentSettings::default());
    let report = test_env.agent.run("Read a.").await;
    assert!(report.is_success(), "{report:?}");
    let origins: Vec<_> = report.tool_calls.iter().map(|call| call.origin).collect();
    let recovered = CallOrigin::Recovered;
    assert_eq!(origins, [recovered, recovered, CallOrigin::Constrained]);
    let requests = test_env.model.requests();
    assert!(matches!(requests[2].output_constraint, Some(OutputConstraint::JsonSchema(_))));
    assert!(requests[3].output_constraint.is_none());
}

fn constraining_capabilities() -> Capabilities {
    let constraints = ConstraintSupport { json_schema: true, ..ConstraintSupport::default() };
    Capabilities {
        tools: ToolSupport { native: true, ..text_only_capabilities().tools },
        constraints,
        ..text_only_capabilities()
    }
}

fn constrained_harness(
    replies: impl IntoIterator<Item = ModelReply>,
    capabilities: Capabilities,
) -> AgentHarness {
    let tool_calling = ToolCalling::Constrained;
    let mut settings = AgentSettings::default();
    settings.tool_use.tool_calling = tool_calling;
    settings.requests.temperature = Some(0.7);
    harness(ScriptedProvider::new(replies).with_capabilities(capabilities), settings)
}

#[tokio::test(start_paused = true)]
async fn the_first_response_is_constrained_and_the_response_to_its_result_is_free() {
    let test_env = constrained_harness(
        [
            text_reply(READ_CALL),
            text_reply("It says a."),
            text_reply(READ_CALL),
            text_reply("Still a."),
        ],
        constraining_capabilities(),
    );
    for expected in ["It says a.", "Still a."] {
        let report = test_env.agent.run("Read a.").await;
        assert_eq!((report.is_success(), &*report.text), (true, expected), "{report:?}");
        let record = &report.tool_calls[0];
        assert_eq!((record.origin, record.attempts.failed_attempts), (CallOrigin::Constrained, 0));
    }
    let requests = test_env.model.requests();
    let constrained: Vec<_> =
        requests.iter().map(|request| request.output_constraint.is_some()).collect();
    assert_eq!(constrained, [true, false, true, false], "each message anew");
    assert!(requests[0].tools.is_empty() && requests[0].system.contains("fs.read"));
    let Some(OutputConstraint::JsonSchema(schema)) = &requests[0].output_constraint else {
        panic!("no schema")
    };
    let keys: Vec<_> = schema["anyOf"][0]["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["tool", "params"], "the form that the prompt shows");
    let Message::Assistant(worked) = &requests[0].messages[1] else { panic!("no example") };
    assert!(worked.visible_text().starts_with(r#"{"tool": "#), "{worked:?}");
    let lengths: Vec<_> = requests.iter().map(|request| request.messages.len()).collect();
    assert_eq!(lengths, [3, 3, 7, 7], "the example stands before what was said, and is not kept");
}

#[tokio::test(start_paused = true)]
async fn an_invalid_constrained_call_is_requested_again_with_the_same_constraint() {
    let truncated =
        Response { finish_reason: FinishReason::Length, ..Response::from_text(&READ_CALL[..30]) };
    let test_env = constrained_harness(
        [Ok(truncated), text_reply(READ_CALL), text_reply("Done.")],
        constraining_capabilities(),
    );
    let report = test_env.agent.run("Read a.").await;
    assert!(report.is_success(), "{report:?}");
    let [cut, record] = &report.tool_calls[..] else { panic!("{report:?}") };
    assert!(cut.outcome.rejected && !cut.outcome.success, "{cut:?}");
    assert_eq!((record.origin, record.attempts.failed_attempts), (CallOrigin::Constrained, 1));
    let constrained: Vec<_> = test_env
        .model
        .requests()
        .iter()
        .map(|request| request.output_constraint.is_some())
        .collect();
    assert_eq!(constrained, [true, true, false]);
    let bad = r#"{"tool": "fs.read", "params": {}}"#;
    let test_env = constrained_harness(
        [text_reply(bad), text_reply(bad), text_reply(READ_CALL)],
        constraining_capabilities(),
    );
    let report = test_env.agent.run("Read a.").await;
    assert!(
        matches!(report.outcome, RunOutcome::NoValidCall { .. }),
        "the same mistake twice: {report:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn without_server_constraints_a_required_call_is_requested_in_the_prompt() {
    let test_env =
        constrained_harness([text_reply(READ_CALL), text_reply("Done.")], text_only_capabilities());
    let report = test_env.agent.run("Read a.").await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(report.tool_calls[0].origin, CallOrigin::Recovered);
    assert!(test_env.model.requests().iter().all(|request| request.output_constraint.is_none()));
}
