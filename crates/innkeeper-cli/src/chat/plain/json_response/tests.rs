//! Tests of responses to questions.

use innkeeper_agent::ToolAnnotations;
use innkeeper_agent::server_requests::form::{FieldKind, Form};
use serde_json::json;
use tokio::sync::oneshot;

use super::*;
use crate::chat::question::{ApprovalQuestion, ElicitationQuestion, SamplingQuestion};

fn approval() -> (Question, oneshot::Receiver<ApprovalAnswer>) {
    let (reply, receiver) = oneshot::channel();
    let question = ApprovalQuestion {
        tool: "one.add".to_owned(),
        server: Some("one".to_owned()),
        arguments: "{}".to_owned(),
        description: None,
        annotations: ToolAnnotations::default(),
        is_pinned: false,
        permanent_obstacle: None,
    };
    (Question::Approval(question, reply), receiver)
}

fn respond(question: Question, mut members: Value) -> Result<(), String> {
    members["type"] = "response".into();
    members["id"] = 1.into();
    send_response(question, &members.to_string()).map_err(|error| error.1)
}

#[test]
fn each_decision_about_a_call_has_its_scope_its_arguments_or_its_reason() {
    let deny = |scope, reason: Option<&str>| ApprovalAnswer::Deny(scope, reason.map(str::to_owned));
    for (members, expected) in [
        (json!({"decision": "allow"}), ApprovalAnswer::Allow(DecisionScope::Call)),
        (json!({"decision": "allow", "scope": "tool"}), ApprovalAnswer::Allow(DecisionScope::Tool)),
        (
            json!({"decision": "allow", "scope": "server"}),
            ApprovalAnswer::Allow(DecisionScope::Server),
        ),
        (json!({"decision": "allow", "scope": "always"}), ApprovalAnswer::AllowAlways),
        (
            json!({"decision": "allow", "arguments": {"a": 1}}),
            ApprovalAnswer::AllowWith(r#"{"a":1}"#.to_owned()),
        ),
        (json!({"decision": "deny", "reason": " "}), deny(DecisionScope::Call, None)),
        (
            json!({"decision": "deny", "scope": "tool", "reason": "not now"}),
            deny(DecisionScope::Tool, Some("not now")),
        ),
    ] {
        let (question, mut receiver) = approval();
        assert_eq!(respond(question, members.clone()), Ok(()), "{members}");
        assert_eq!(receiver.try_recv().unwrap(), expected, "{members}");
    }
}

#[test]
fn a_rule_for_later_conversations_that_cannot_be_stored_keeps_the_question_open() {
    let (mut question, mut receiver) = approval();
    if let Question::Approval(call, _) = &mut question {
        call.permanent_obstacle = Some("nothing is stored");
    }
    let problem = respond(question, json!({"decision": "allow", "scope": "always"}));
    assert_eq!(problem, Err("nothing is stored".to_owned()));
    assert!(receiver.try_recv().is_err());
}

/// Attack: data | a program answers a question with members that do not fit together | the question
/// stays open, and nothing runs | Approval first
#[test]
fn a_response_whose_members_do_not_fit_keeps_the_question_open() {
    for (members, problem) in [
        (json!({}), "missing field `decision`"),
        (json!({"decision": "yes"}), "unknown variant `yes`"),
        (json!({"decision": "allow", "scope": "ever"}), "unknown variant `ever`"),
        (json!({"decision": "deny", "scope": "always"}), "`always` needs"),
        (json!({"decision": "allow", "scope": "always", "reason": "x"}), "`reason` needs"),
        (json!({"decision": "allow", "scope": "always", "arguments": {}}), "this call only"),
        (json!({"decision": "allow", "arguments": [1]}), "no JSON object"),
        (json!({"decision": "allow", "arguments": {}, "scope": "tool"}), "this call only"),
        (json!({"decision": "allow", "reason": "x"}), "`reason` needs"),
        (json!({"decision": "deny", "arguments": {}}), "`arguments` need"),
        (json!({"decision": "allow", "argument": {}}), "unknown field `argument`"),
    ] {
        let (question, mut receiver) = approval();
        let text = format!("{{\"type\":\"response\",\"id\":1,{}", &members.to_string()[1..]);
        let text = text.replace(",}", "}");
        let error = send_response(question, &text).unwrap_err();
        assert!(error.1.contains(problem), "{members}: {}", error.1);
        assert_eq!(receiver.try_recv(), Err(oneshot::error::TryRecvError::Empty), "{members}");
    }
    let (question, _receiver) = approval();
    let text = r#"{"type":"response","id":1,"decision":"deny","decision":"allow"}"#;
    assert!(send_response(question, text).unwrap_err().1.contains("duplicate field"));
}

#[test]
fn the_content_of_a_form_is_checked_and_an_address_has_none() {
    let schema = json!({"type": "object", "required": ["age"], "properties": {
        "age": {"type": "integer", "minimum": 0},
    }});
    let form = Form::parse(&schema).unwrap();
    assert!(matches!(form.fields()[0].kind, FieldKind::Number { .. }));
    let elicit = |input: RequestedInput, members: Value| {
        let (reply, mut receiver) = oneshot::channel();
        let question = ElicitationQuestion {
            server: "one".to_owned(),
            call: None,
            message: String::new(),
            input,
        };
        respond(Question::Elicitation(question, reply), members)?;
        Ok::<_, String>(receiver.try_recv().unwrap())
    };
    let on_form = |members| elicit(RequestedInput::Form(form.clone()), members);
    let url = || RequestedInput::Url { url: "https://a/".to_owned(), host: "a".to_owned() };
    let content = json!({"age": 7}).as_object().unwrap().clone();
    let accepted = on_form(json!({"action": "accept", "content": content}));
    assert_eq!(accepted, Ok(ElicitationResponse::Accept(content)));
    assert_eq!(on_form(json!({"action": "decline"})), Ok(ElicitationResponse::Decline));
    assert_eq!(on_form(json!({"action": "cancel"})), Ok(ElicitationResponse::Cancel));
    let agreed = elicit(url(), json!({"action": "accept"}));
    assert_eq!(agreed, Ok(ElicitationResponse::Accept(Map::new())));
    for (result, problem) in [
        (on_form(json!({"action": "accept"})), "field `age`: a value is required"),
        (on_form(json!({"action": "accept", "content": {"age": -1}})), "must be at least 0"),
        (on_form(json!({"action": "accept", "content": {"age": 1, "b": 2}})), "no such field"),
        (on_form(json!({"action": "accept", "content": []})), "expected a map"),
        (on_form(json!({"action": "decline", "content": {}})), "`content` needs"),
        (elicit(url(), json!({"action": "accept", "content": {}})), "has no `content`"),
    ] {
        let text = result.unwrap_err();
        assert!(text.contains(problem), "{text}");
    }
}

#[test]
fn a_sampling_question_takes_a_decision_only() {
    let question = || {
        let (reply, receiver) = oneshot::channel();
        let question = SamplingQuestion {
            server: "one".to_owned(),
            call: None,
            model: "m".to_owned(),
            messages: Vec::new(),
            max_tokens: 1,
        };
        (Question::Sampling(question, reply), receiver)
    };
    for (decision, expected) in [("allow", true), ("deny", false)] {
        let (question, mut receiver) = question();
        assert_eq!(respond(question, json!({"decision": decision})), Ok(()));
        assert_eq!(receiver.try_recv(), Ok(expected));
    }
    let (question, _receiver) = question();
    let problem = respond(question, json!({"decision": "allow", "scope": "server"})).unwrap_err();
    assert!(problem.contains("unknown field `scope`"), "{problem}");
}
