//! Events of a run beside its text and its calls: usage, warnings, shortening of the history.

use innkeeper_agent::agent::{AgentEvent, AgentSettings};
use innkeeper_agent::conversation::HistoryBudget;
use innkeeper_agent::provider::{Response, ScriptedProvider, Usage};

use super::{ModelReply, call_reply, harness, native_harness, text_reply};

fn read_a() -> ModelReply {
    call_reply("fs.read", r#"{"path": "a"}"#)
}

#[tokio::test(start_paused = true)]
async fn a_warned_call_has_an_event_with_the_warning_that_the_model_gets() {
    let test_env = native_harness([read_a(), read_a(), read_a(), text_reply("It says a.")]);
    let (mut warned, mut ended) = (Vec::new(), 0);
    let result = test_env
        .agent
        .run_streaming("Read.", |event| match event {
            AgentEvent::Warned(warning) => warned.push((ended, warning)),
            AgentEvent::ToolCallFinished(_) => ended += 1,
            _ => {}
        })
        .await;
    let [(2, again), (3, refused)] = &warned[..] else { panic!("{warned:?}") };
    assert_eq!((again.tool.as_str(), &again.call_id), ("fs.read", &result.tool_calls[1].id));
    assert!(again.text.contains("already returned"), "{again:?}");
    assert!(refused.text.contains("refused from now on"), "{refused:?}");
    let last = test_env.model.requests().last().unwrap().messages.clone();
    assert!(format!("{last:?}").contains(&again.text[..60]));
    assert!(!result.tool_calls[1].result_text.contains("already returned"));
}

#[tokio::test(start_paused = true)]
async fn each_response_has_an_event_with_its_usage() {
    let usage = Some(Usage { prompt_tokens: 70, completion_tokens: 5, ..Usage::default() });
    let call = Response::from_tool_calls([("fs.read", r#"{"path": "a"}"#)]);
    let test_env = native_harness([Ok(Response { usage, ..call }), text_reply("It says a.")]);
    let mut reported = Vec::new();
    test_env
        .agent
        .run_streaming("Read.", |event| {
            if let AgentEvent::ResponseFinished { usage } = event {
                reported.push(usage);
            }
        })
        .await;
    assert_eq!(reported, [usage, None]);
}

/// The history is shortened with a summary or without it, and each time an event says so.
#[tokio::test(start_paused = true)]
async fn each_shortening_of_the_history_has_an_event() {
    for summarize_history in [true, false] {
        let mut settings = AgentSettings::default();
        settings.requests.history_budget = Some(HistoryBudget { max_tokens: 600 });
        settings.requests.summarize_history = summarize_history;
        let replies = (0..6).map(|_| text_reply("An answer."));
        let test_env = harness(ScriptedProvider::new(replies), settings);
        let (mut shortened, mut started) = (Vec::new(), 0);
        for _ in 0..2 {
            test_env
                .agent
                .run_streaming("x".repeat(1800), |event| match event {
                    AgentEvent::HistoryShortened { messages, is_summarized } => {
                        shortened.push((messages, is_summarized));
                    }
                    AgentEvent::HistorySummaryStarted { .. } => started += 1,
                    _ => {}
                })
                .await;
        }
        assert_eq!(shortened, [(2, summarize_history)]);
        assert_eq!(started, usize::from(summarize_history));
    }
}
