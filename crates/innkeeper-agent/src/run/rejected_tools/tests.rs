//! Tests of the tools that a run leaves out.

use innkeeper_toolcall::{Tool, Tools};
use serde_json::json;

use super::*;
use crate::conversation::Conversation;
use crate::provider::{Capabilities, LlmErrorKind, Request, ToolSupport};
use crate::run::tests::config;
use crate::run::{Effect, RunOutcome};

fn names(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("s.t{at}")).collect()
}

fn started(count: usize, max_tools: Option<usize>) -> (Run, Request) {
    started_with(count, max_tools, false)
}

fn started_with(count: usize, max_tools: Option<usize>, strict_tools: bool) -> (Run, Request) {
    let tools: Tools =
        names(count).into_iter().map(|name| Tool::new(name, "", json!({}))).collect();
    let capabilities = Capabilities {
        tools: ToolSupport {
            native: true,
            strict: strict_tools,
            max: max_tools,
            ..ToolSupport::default()
        },
        ..Capabilities::default()
    };
    let tools = OfferedTools::new(tools, |_| false);
    let config = RunConfig { tools, capabilities, ..config() };
    let mut run = Run::new(Arc::new(config), Conversation::new());
    let request = sent(run.start("Go.").unwrap());
    (run, request)
}

fn sent(effect: Effect) -> Request {
    match effect {
        Effect::SendRequest(request) => *request,
        effect => panic!("{effect:?}"),
    }
}

fn offered(request: &Request) -> Vec<&str> {
    request.tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn rejection(rejection: ToolRejection) -> LlmError {
    let error = LlmError::new("scripted", LlmErrorKind::InvalidRequest, "Invalid schema.");
    LlmError { source: Some(Box::new(rejection)), ..error }
}

fn of_tools(names: &[&str]) -> LlmError {
    rejection(ToolRejection::Tools(names.iter().map(|name| (*name).to_owned()).collect()))
}

#[test]
fn a_rejected_tool_is_left_out_and_reported_and_the_request_is_sent_again() {
    let (mut run, _) = started(3, None);
    assert!(
        matches!(run.on_error(of_tools(&["s.t1"]), 0.0), Effect::Sleep(delay) if delay.is_zero())
    );
    assert_eq!(offered(&sent(run.on_delay())), ["s.t0", "s.t2"]);
    let text = "the model does not get `s.t1`: the provider rejects it: Invalid schema.";
    let [error] = run.errors() else { panic!("{:?}", run.errors()) };
    assert_eq!((error.tool.as_deref(), error.error.as_str()), (Some("s.t1"), text));
    let [omitted] = &run.take_omitted_tools()[..] else { panic!("not reported") };
    assert_eq!(omitted.to_string(), text);
    assert!(run.take_omitted_tools().is_empty());
    // A changed list of tools does not bring the tool back.
    run.on_tools_changed(OfferedTools::new(
        ["s.t1", "s.t3"].map(|name| Tool::new(name, "", json!({}))).into_iter().collect(),
        |_| false,
    ));
    assert_eq!(offered(&sent(run.on_delay())), ["s.t3"]);
}

#[test]
fn tools_are_sent_without_strict_mode_before_one_is_left_out() {
    for error in [rejection(ToolRejection::Strict), of_tools(&["s.t1"])] {
        let (mut run, request) = started_with(3, None, true);
        assert!(!request.plain_tools);
        run.on_error(error, 0.0);
        let plain = sent(run.on_delay());
        assert!(plain.plain_tools);
        assert_eq!(offered(&plain), ["s.t0", "s.t1", "s.t2"]);
        assert!(run.errors().is_empty());
        run.on_error(of_tools(&["s.t1"]), 0.0);
        assert_eq!(offered(&sent(run.on_delay())), ["s.t0", "s.t2"]);
        let ended = run.on_error(rejection(ToolRejection::Strict), 0.0);
        assert!(matches!(ended, Effect::Finish(RunOutcome::Failed(_))), "{ended:?}");
    }
}

#[test]
fn an_error_that_names_no_offered_tool_ends_the_run() {
    for error in [of_tools(&[]), of_tools(&["s.other"]), of_tools(&["s.t1", "s.t1"])] {
        let (mut run, _) = started(3, None);
        let first = run.on_error(error, 0.0);
        if let Effect::Sleep(_) = first {
            sent(run.on_delay());
            let again = run.on_error(of_tools(&["s.t1"]), 0.0);
            assert!(matches!(again, Effect::Finish(RunOutcome::Failed(_))), "{again:?}");
        } else {
            assert!(matches!(first, Effect::Finish(RunOutcome::Failed(_))), "{first:?}");
        }
    }
}

#[test]
fn a_run_sends_no_more_than_a_few_requests_without_rejected_tools() {
    let (mut run, _) = started(20, None);
    for at in 0..MAX_REJECTIONS {
        assert!(matches!(run.on_error(of_tools(&[&format!("s.t{at}")]), 0.0), Effect::Sleep(_)));
        sent(run.on_delay());
    }
    let last = run.on_error(of_tools(&["s.t19"]), 0.0);
    assert!(matches!(last, Effect::Finish(RunOutcome::Failed(_))), "{last:?}");
    let (mut run, _) = started(MAX_REJECTED_TOOLS + 5, None);
    let all = names(MAX_REJECTED_TOOLS + 1);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let too_many = run.on_error(of_tools(&all), 0.0);
    assert!(matches!(too_many, Effect::Finish(RunOutcome::Failed(_))), "{too_many:?}");
    let (mut run, _) = started(MAX_REJECTED_TOOLS + 5, None);
    assert!(matches!(run.on_error(of_tools(&all[1..]), 0.0), Effect::Sleep(_)));
}

#[test]
fn tools_above_the_limit_of_the_provider_are_left_out_and_reported_once() {
    let (_, request) = started(128, Some(128));
    assert_eq!(request.tools.len(), 128);
    let (mut run, request) = started(150, Some(128));
    assert_eq!(request.tools.len(), 128);
    assert_eq!(offered(&request), names(128));
    let [error] = run.errors() else { panic!("{:?}", run.errors()) };
    assert!(error.error.ends_with("and 14 other tools: the provider takes at most 128 tools"));
    assert_eq!(run.take_omitted_tools()[0].tools.len(), 22);
    let tools: Tools = names(150).into_iter().map(|name| Tool::new(name, "x", json!({}))).collect();
    run.on_tools_changed(OfferedTools::new(tools, |_| false));
    assert_eq!(sent(run.on_delay()).tools.len(), 128);
    assert_eq!((run.errors().len(), run.take_omitted_tools().len()), (1, 0));
}

#[test]
fn the_limit_in_an_error_of_the_provider_holds_from_then_on() {
    let (mut run, request) = started(150, None);
    assert_eq!(request.tools.len(), 150);
    let too_many = || rejection(ToolRejection::TooMany { max_tools: 100 });
    assert!(matches!(run.on_error(too_many(), 0.0), Effect::Sleep(_)));
    assert_eq!(sent(run.on_delay()).tools.len(), 100);
    let again = run.on_error(too_many(), 0.0);
    assert!(matches!(again, Effect::Finish(RunOutcome::Failed(_))), "{again:?}");
}
