//! Tests of the results in requests to a model with a known window.

use std::sync::Arc;

use super::*;
use crate::conversation::{Conversation, HistoryBudget, estimate_tokens};
use crate::provider::{Capabilities, LlmError, LlmErrorKind, Request, Response, TokenLimits};
use crate::run::tests::config;
use crate::run::{CallStatus, Effect, Run, RunConfig};

fn run_with_budget(max_tokens: usize, context_tokens: Option<u32>) -> Run {
    let history_budget = HistoryBudget { max_tokens };
    let capabilities = Capabilities {
        tokens: TokenLimits { context: context_tokens, ..TokenLimits::default() },
        ..Capabilities::default()
    };
    let config = RunConfig { history_budget, context_tokens, capabilities, ..config() }
        .with(|settings| settings.limits.max_iterations = 1000);
    let mut run = Run::new(Arc::new(config), Conversation::new());
    assert!(matches!(run.start("Read all."), Ok(Effect::SendRequest(_))));
    run
}

/// Makes one call for each result, and returns the effect after the results.
fn read(run: &mut Run, results: &[String]) -> Effect {
    let paths: Vec<String> = (0..results.len())
        .map(|at| format!(r#"{{"path": "{at}-{}"}}"#, run.conversation().messages().len()))
        .collect();
    let calls = paths.iter().map(|path| ("fs.read", path.as_str()));
    let Effect::CallTools(calls) = run.on_response(&Response::from_tool_calls(calls), 0.0) else {
        panic!("no call")
    };
    let mut effect = Effect::AwaitTools;
    for (call, result) in calls.iter().zip(results) {
        effect = run.on_tool_result(&call.id, result.as_str(), CallStatus::Succeeded);
    }
    effect
}

fn sent(effect: Effect) -> Request {
    match effect {
        Effect::SendRequest(request) => *request,
        effect => panic!("{effect:?}"),
    }
}

fn tokens(request: &Request) -> usize {
    let estimate = |message: &Message| estimate_message_tokens(message, ContentSupport::default());
    estimate_tokens(&request.system) + request.messages.iter().map(estimate).sum::<usize>()
}

/// Returns the texts of all results of a request.
fn results(request: &Request) -> Vec<String> {
    let results = request.messages.iter().filter_map(|message| match message {
        Message::ToolResults(results) => Some(results.iter()),
        Message::User(_) | Message::Assistant(_) => None,
    });
    results.flatten().map(|result| result.content.to_text().into_owned()).collect()
}

#[test]
fn a_result_that_cannot_fit_loses_its_middle_and_says_how_much() {
    let mut run = run_with_budget(4096, Some(8192));
    let text = format!("start {} end", "word ".repeat(60_000));
    let request = sent(read(&mut run, std::slice::from_ref(&text)));
    assert!(tokens(&request) <= 4096, "{}", tokens(&request));
    let [shortened] = &results(&request)[..] else { panic!("{request:?}") };
    assert!(shortened.starts_with("start word") && shortened.ends_with("word  end"));
    let line = shortened.lines().find(|line| line.starts_with('[')).unwrap();
    assert!(line.contains(&format!(" of {} bytes omitted", text.len())), "{line}");
    assert!(line.contains("Ask for less"), "{line}");
    // The conversation keeps the result, and the next request repeats the same text.
    let whole = run.conversation().messages().iter().any(|message| match message {
        Message::ToolResults(results) => results[0].content.to_text() == text,
        Message::User(_) | Message::Assistant(_) => false,
    });
    assert!(whole);
    let next = sent(read(&mut run, &["x".to_owned()]));
    assert_eq!(results(&next)[0], *shortened);
}

#[test]
fn parallel_results_share_the_room_and_small_ones_stay_whole() {
    let mut run = run_with_budget(4096, Some(8192));
    let big = |letter: &str| letter.repeat(100_000);
    let request = sent(read(&mut run, &[big("a"), "small".to_owned(), big("b")]));
    assert!(tokens(&request) <= 4096, "{}", tokens(&request));
    let texts = results(&request);
    assert_eq!(texts[1], "small");
    assert!(texts[0].len() > 2000 && texts[0].len() == texts[2].len(), "{}", texts[0].len());
}

#[test]
fn a_result_is_sent_whole_if_it_fits_or_the_window_is_unknown() {
    let mut run = run_with_budget(4096, Some(8192));
    let fitting = "x".repeat(8_000);
    assert_eq!(results(&sent(read(&mut run, std::slice::from_ref(&fitting)))), [fitting]);
    let mut run = run_with_budget(4096, None);
    let long = "x".repeat(100_000);
    assert_eq!(results(&sent(read(&mut run, std::slice::from_ref(&long)))), [long]);
}

#[test]
fn a_result_is_shortened_when_the_provider_says_that_it_does_not_fit() {
    let mut run = run_with_budget(100_000, None);
    let long = "x".repeat(100_000);
    let request = sent(read(&mut run, std::slice::from_ref(&long)));
    let error = LlmError::new("scripted", LlmErrorKind::ContextLength, "too long");
    assert!(matches!(run.on_error(error, 0.0), Effect::Sleep(_)));
    let shorter = sent(run.on_delay());
    assert!(tokens(&shorter) < tokens(&request) * 3 / 4 + 10);
}

#[test]
fn summaries_are_rare_in_a_small_window() {
    let mut run = run_with_budget(4096, Some(8192));
    let mut summaries = 0;
    let mut requests = 0;
    for at in 0..60 {
        let mut effect = read(&mut run, &[format!("{at} {}", "word ".repeat(600))]);
        if let Effect::Summarize { .. } = effect {
            summaries += 1;
            effect = run.on_response(&Response::from_text("Read some files."), 0.0);
        }
        assert!(tokens(&sent(effect)) <= 4096);
        requests += 1;
    }
    assert!(summaries > 0 && summaries * 5 <= requests, "{summaries} of {requests}");
}

#[test]
fn a_share_leaves_small_results_whole() {
    for (sizes, room, limit) in [
        (&[10, 20, 30][..], 60, usize::MAX),
        (&[10, 20, 30], 59, 29),
        (&[100, 10, 100], 110, 50),
        (&[100, 100], 0, 0),
        (&[], 5, usize::MAX),
    ] {
        assert_eq!(equal_share(sizes, room), limit, "{sizes:?} {room}");
    }
}
