//! Corrections after invalid calls.

use std::time::Duration;

use innkeeper_agent::agent::{AgentEvent, AgentSettings};
use innkeeper_agent::conversation::Message;
use innkeeper_agent::provider::{Capabilities, LlmError, LlmErrorKind, Response, ScriptedProvider};
use innkeeper_agent::run::{CallOrigin, RunLimits, RunOutcome};
use tokio::time::Instant;

use super::{
    READ_CALL, call_reply, harness, native_harness, prompted_harness, text_only_capabilities,
    text_reply,
};

/// Proves: P3, P13, P22
#[tokio::test(start_paused = true)]
async fn a_bad_call_is_corrected_by_asking_again_cooler_with_every_earlier_error() {
    let replies = [
        r#"{"tool": "fs.read", "params": {"path": "#,
        r#"{"tool": "fs.read", "params": {"file": "a"}}"#,
        READ_CALL,
        "Done.",
    ];
    let test_env = prompted_harness(replies);
    let start = Instant::now();
    let report = test_env.agent.run("Read a.").await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(report.stats.corrections, 2);
    let [_, _, corrected] = &report.tool_calls[..] else { panic!("{report:?}") };
    assert_eq!((corrected.origin, corrected.attempts.failed_attempts), (CallOrigin::Corrected, 2));
    let requests = test_env.model.requests();
    let cool: Vec<_> = requests.iter().map(|request| request.temperature).collect();
    assert_eq!(cool, [Some(0.7), Some(0.6), Some(0.5), Some(0.7)]);
    let Some(Message::User(correction)) = requests[2].messages.last() else {
        panic!("no question")
    };
    let correction = correction.to_text();
    let (first, two) = (correction.find("Attempt 1: "), correction.find("Attempt 2: "));
    assert!(correction.starts_with("Read a.") && first.is_some() && first < two, "{correction}");
    assert!(correction.contains("path"), "{correction}");
    let waited = start.elapsed();
    let (least, max) = (Duration::from_secs(3), Duration::from_millis(3900));
    assert!((least..=max).contains(&waited), "{waited:?}");
    assert_eq!(report.correction_examples.len(), 1);
    assert_eq!(report.correction_examples[0].attempts.len(), 2);
    assert_eq!(report.correction_examples[0].corrected_text, READ_CALL);
}

/// Proves: P13
#[tokio::test(start_paused = true)]
async fn a_temperature_falls_to_zero_and_no_further() {
    let replies = [
        r#"{"tool": "fs.read", "params": {"one": 1}}"#,
        r#"{"tool": "fs.read", "params": {"two": 2}}"#,
        r#"{"tool": "fs.read", "params": {"three": 3}}"#,
        "I give up.",
    ];
    let replies = replies.map(|text| Ok(Response::from_text(text)));
    let model = ScriptedProvider::new(replies).with_capabilities(text_only_capabilities());
    let mut settings = AgentSettings::default();
    settings.requests.temperature = Some(0.15);
    let test_env = harness(model, settings);
    test_env.agent.run("Read a.").await;
    let requests = test_env.model.requests();
    let temperatures: Vec<_> =
        requests.iter().map(|request| request.temperature.unwrap()).collect();
    assert_eq!(temperatures.len(), 4);
    assert!((temperatures[1] - 0.05).abs() < 1e-6, "{temperatures:?}");
    assert_eq!(temperatures[2..], [0.0, 0.0], "{temperatures:?}");
}

/// Proves: P24
#[tokio::test(start_paused = true)]
async fn each_pause_before_a_correction_is_twice_the_last_with_up_to_three_tenths_added() {
    let bad = |path: &'static str| Ok(Response::from_text(path));
    let mut jitters = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let replies = [
            bad(r#"{"tool": "fs.read", "params": {"one": 1}}"#),
            bad(r#"{"tool": "fs.read", "params": {"two": 2}}"#),
            bad(r#"{"tool": "fs.read", "params": {"three": 3}}"#),
            text_reply(READ_CALL),
            text_reply("Done."),
        ];
        let model = ScriptedProvider::new(replies).with_capabilities(text_only_capabilities());
        let test_env = harness(model, AgentSettings::default());
        let (mut delays, start) = (Vec::new(), Instant::now());
        let report = test_env
            .agent
            .run_streaming("Read a.", |event| {
                if let AgentEvent::Retrying { delay } = event {
                    delays.push(delay);
                }
            })
            .await;
        assert!(report.is_success(), "{report:?}");
        let waited = start.elapsed();
        assert_eq!(delays.len(), 3);
        for (actual, seconds) in delays.iter().zip([1.0, 2.0, 4.0]) {
            let least = Duration::from_secs_f64(seconds);
            assert!((least..=least.mul_f64(1.3)).contains(actual), "{delays:?}");
        }
        let all: Duration = delays.iter().sum();
        assert!(waited >= all && waited < all + Duration::from_millis(50), "{waited:?}");
        jitters.insert(delays[0]);
    }
    assert!(jitters.len() > 10, "{jitters:?}");
}

/// Proves: P10, P23
#[tokio::test(start_paused = true)]
async fn a_missing_parameter_is_named_and_the_form_is_shown_again() {
    let test_env = prompted_harness([r#"{"tool": "fs.read", "params": {}}"#, READ_CALL, "Done."]);
    test_env.agent.run("Read a.").await;
    assert_eq!(test_env.tools.calls().len(), 1);
    let requests = test_env.model.requests();
    let Some(Message::User(correction)) = requests[1].messages.last() else {
        panic!("no question")
    };
    let correction = correction.to_text();
    assert!(
        correction.contains("missing required property `path`") && correction.contains("`fs.read`"),
        "{correction}"
    );
    assert!(correction.contains(r#"{"tool": "name", "params": {...}}"#), "{correction}");
}

/// Proves: P34
#[tokio::test(start_paused = true)]
async fn an_unknown_tool_is_answered_with_the_one_that_may_be_meant() {
    let test_env =
        prompted_harness([r#"{"tool": "fs.reed", "params": {"path": "a"}}"#, READ_CALL, "Done."]);
    test_env.agent.run("Read a.").await;
    let requests = test_env.model.requests();
    let Some(Message::User(correction)) = requests[1].messages.last() else {
        panic!("no question")
    };
    let correction = correction.to_text();
    assert!(
        correction.contains("fs.reed")
            && correction.contains("did you mean")
            && correction.contains("fs.read"),
        "{correction}"
    );
}

/// Proves: P29
#[tokio::test(start_paused = true)]
async fn more_calls_than_are_allowed_are_sent_back_and_none_is_run() {
    let six = [READ_CALL; 6].join("\n");
    let model = ScriptedProvider::new([
        Ok(Response::from_text(six)),
        text_reply(READ_CALL),
        text_reply("Done."),
    ])
    .with_capabilities(text_only_capabilities());
    let limits = RunLimits { max_calls: 5, ..RunLimits::default() };
    let test_env = harness(model, AgentSettings { limits, ..AgentSettings::default() });
    let report = test_env.agent.run("Read.").await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(test_env.tools.calls().len(), 1);
    assert_eq!(report.stats.corrections, 1);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_makes_the_same_mistake_twice_is_not_asked_a_third_time() {
    let bad = r#"{"tool": "fs.read", "params": {}}"#;
    let test_env = prompted_harness([bad, bad, READ_CALL]);
    let report = test_env.agent.run("Read a.").await;
    let RunOutcome::NoValidCall { attempts } = &report.outcome else { panic!("{report:?}") };
    assert_eq!(attempts.len(), 2);
    assert!(test_env.tools.calls().is_empty());
    assert_eq!(test_env.agent.conversation().messages().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_inside_a_providers_error_is_rescued() {
    let mut error =
        LlmError::new("scripted", LlmErrorKind::MalformedToolCall, "error parsing tool call");
    error.partial_output = Some(READ_CALL.into());
    let test_env = native_harness([Err(error), text_reply("Done.")]);
    let report = test_env.agent.run("Read a.").await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(report.tool_calls[0].origin, CallOrigin::Recovered);
}

/// Proves: G56
#[tokio::test(start_paused = true)]
async fn arguments_that_cannot_be_read_are_an_error_to_the_model() {
    let replies = [
        call_reply("fs.read", "not json"),
        call_reply("fs.read", r#"{"path": 7, "more": 1}"#),
        call_reply("fs.raed", r#"{"path": "a"}"#),
        call_reply("fs.read", r#"{"path": "a"}"#),
        text_reply("Done."),
    ];
    let test_env = native_harness(replies);
    let report = test_env.agent.run("Read a.").await;
    assert!(report.is_success(), "{report:?}");
    assert_eq!(test_env.tools.calls().len(), 1);
    let [_, _, _, corrected] = &report.tool_calls[..] else { panic!("{report:?}") };
    assert_eq!(corrected.origin, CallOrigin::Corrected);
    let tool_results: Vec<_> = test_env.model.requests()[4]
        .messages
        .iter()
        .filter_map(|message| match message {
            Message::ToolResults(results) => {
                Some((results[0].is_error, results[0].content.to_text().into_owned()))
            }
            Message::User(_) | Message::Assistant(_) => None,
        })
        .collect();
    assert!(tool_results[0].0 && tool_results[0].1.contains("not valid JSON"), "{tool_results:?}");
    assert!(tool_results[1].0 && tool_results[1].1.contains("more"), "{tool_results:?}");
    assert!(tool_results[2].0 && tool_results[2].1.contains("did you mean"), "{tool_results:?}");
    assert!(!tool_results[3].0);
}

#[tokio::test(start_paused = true)]
async fn rejected_calls_in_a_text_stand_in_the_result_with_their_errors() {
    let test_env = prompted_harness([
        r#"{"tool": "fs.read", "params": {"file": "a"}}"#,
        r#"{"tool": "fs.read", "params": {"path": "a"#,
        READ_CALL,
        "Done.",
    ]);
    let report = test_env.agent.run("Read a.").await;
    let [misfit, cut, read] = &report.tool_calls[..] else { panic!("{report:?}") };
    assert!(
        misfit.outcome.rejected && !misfit.outcome.success && !misfit.outcome.was_run,
        "{misfit:?}"
    );
    assert_eq!((&*misfit.id, &*misfit.tool), ("", "fs.read"));
    assert_eq!(misfit.arguments.to_string(), r#"{"file":"a"}"#);
    assert!(misfit.result_text.contains("missing required property `path`"), "{misfit:?}");
    assert!(cut.outcome.rejected && cut.result_text.contains("incomplete"), "{cut:?}");
    assert!(read.outcome.success && !read.outcome.rejected);
    let attempts: Vec<_> =
        report.tool_calls.iter().map(|call| call.attempts.retry_attempt).collect();
    assert_eq!((attempts, report.errors.len()), (vec![0, 1, 2], 2));
    assert_eq!(test_env.agent.statistics().calls.count, 1, "only calls that were run or refused");
}

#[tokio::test(start_paused = true)]
async fn a_run_with_nothing_but_rejected_calls_is_no_success() {
    let bad = r#"{"tool": "fs.read", "params": {}}"#;
    for test_env in [
        prompted_harness([bad, "It says a."]),
        native_harness([call_reply("fs.read", "{}"), text_reply("It says a.")]),
        native_harness([call_reply("fs.reed", r#"{"path": "a"}"#), text_reply("It says a.")]),
    ] {
        let report = test_env.agent.run("Read a.").await;
        assert!(report.is_completed() && !report.is_success(), "{report:?}");
        assert_eq!((report.tool_calls.len(), &*report.text), (1, "It says a."));
    }
}

#[tokio::test(start_paused = true)]
async fn a_correction_is_cooler_also_without_a_temperature_if_the_model_takes_one() {
    let replies = || [text_reply(r#"{"tool": "fs.read", "params": {}}"#), text_reply(READ_CALL)];
    for (capabilities, expected) in [
        (text_only_capabilities(), [None, Some(0.6), None]),
        (Capabilities::default(), [None, None, None]),
    ] {
        let replies = replies().into_iter().chain([text_reply("Done.")]);
        let model = ScriptedProvider::new(replies).with_capabilities(capabilities);
        let test_env = harness(model, AgentSettings::default());
        assert!(test_env.agent.run("Read a.").await.is_success());
        let requests = test_env.model.requests();
        let temperatures: Vec<_> = requests.iter().map(|request| request.temperature).collect();
        assert_eq!(temperatures, expected);
    }
}
