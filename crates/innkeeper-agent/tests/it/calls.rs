//! The calls of an answer: side by side, timed, checked first, each with its own outcome.

use std::time::Duration;

use innkeeper_agent::chat::{CALLS, Executed, Mode, PARALLEL, Token};
use innkeeper_agent::{RunError, Settings};
use innkeeper_toolcall::Json;
use serde_json::json;
use tokio::time::Instant;

use crate::setup::{All, Shop, answer_of, call, cut, echo, error, text};

/// Proves: S8, S18
#[tokio::test(start_paused = true)]
async fn a_tool_runs_by_itself_and_its_result_has_name_arguments_and_the_real_time() {
    let all = All::read([call("sleep", &json!({"ms": 250}))]).await;
    let [Executed { index, tool, arguments, elapsed, cached, .. }] = &all.executed[..] else {
        panic!("{:?}", all.executed)
    };
    assert_eq!((*index, tool.as_str(), *cached), (0, "sleep", false));
    assert_eq!(arguments.get("ms"), Some(&Json::Number("250".to_owned())));
    assert_eq!(*elapsed, Duration::from_millis(250));
    assert_eq!(text(&all.executed[0]), "slept");
}

/// Proves: S18
#[tokio::test(start_paused = true)]
async fn the_time_of_a_call_behind_a_placeholder_is_as_real() {
    let mode = Mode::WithPlaceholders { placeholder_text: "…".to_owned() };
    let chat = Shop::new().chat(Settings { mode, ..Settings::default() });
    let said = answer_of([call("sleep", &json!({"ms": 250}))]);
    let all = All::of(&mut chat.turn().answer(said).unwrap()).await;
    assert_eq!(all.executed[0].elapsed, Duration::from_millis(250));
}

/// Proves: S43
#[tokio::test(start_paused = true)]
async fn calls_run_beside_each_other_up_to_the_limit() {
    let of = |count: usize| async move {
        let begun = Instant::now();
        let all = All::read(vec![call("sleep", &json!({"ms": 300})) + "\n"; count]).await;
        assert_eq!(all.executed.len(), count);
        begun.elapsed()
    };
    assert_eq!(of(2).await, Duration::from_millis(300));
    assert_eq!(of(PARALLEL).await, Duration::from_millis(300));
    assert_eq!(of(PARALLEL + 1).await, Duration::from_millis(600));
}

#[tokio::test(start_paused = true)]
async fn results_come_as_calls_end_with_the_index_of_their_call() {
    let calls = [30, 10, 20].map(|ms| call("sleep", &json!({"ms": ms})) + "\n");
    let all = All::read(calls).await;
    let order: Vec<usize> = all.executed.iter().map(|executed| executed.index).collect();
    assert_eq!(order, [1, 2, 0]);
}

#[tokio::test]
async fn every_failure_is_an_outcome_of_its_call_alone() {
    let names = ["broken", "panic", "fail"];
    let all = All::read(names.map(|name| call(name, &json!({})) + "\n")).await;
    let of = |name: &str| all.executed.iter().find(|executed| executed.tool == name).unwrap();
    assert_eq!(error(of("broken")), "tool `broken` could not be run");
    assert_eq!(error(of("panic")), "running tool `panic` panicked");
    assert!(of("fail").outcome.as_ref().unwrap().is_error());
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_never_sent() {
    let shop = Shop::new();
    let chat = shop.chat(Settings::default());
    let all =
        All::of(&mut chat.turn().answer(answer_of([call("sleep", &json!({"s": 1}))])).unwrap())
            .await;
    let failed = all.executed[0].outcome.as_ref().unwrap_err();
    let RunError::Unfit { tool, violations } = &**failed else { panic!("{failed:?}") };
    assert_eq!((tool.as_str(), violations.len()), ("sleep", 1));
    assert!(failed.to_string().starts_with("arguments of `sleep` do not fit: "), "{failed}");
    assert!(shop.begun().is_empty());
}

#[tokio::test]
async fn a_number_that_would_be_another_one_is_never_sent() {
    let shop = Shop::new();
    let text = r#"{"tool": "read", "params": {"line": 123456789012345678901234567890}}"#;
    let chat = shop.chat(Settings::default());
    let all = All::of(&mut chat.turn().answer(answer_of([text])).unwrap()).await;
    assert!(error(&all.executed[0]).contains("123456789012345678901234567890"));
    assert!(shop.begun().is_empty());
}

#[tokio::test]
async fn an_unfinished_call_at_the_end_is_shown_and_never_run() {
    let whole = echo("hello");
    for end in [1, 9, 20, whole.len() - 1] {
        let shop = Shop::new();
        let text = format!("Look:\n{}", &whole[..end]);
        let chat = shop.chat(Settings::default());
        let all = All::of(&mut chat.turn().answer(answer_of(cut(&text, 3))).unwrap()).await;
        assert_eq!(all.shown(), text);
        assert!(shop.begun().is_empty());
    }
}

#[tokio::test]
async fn an_unknown_tool_is_shown_and_told_beside() {
    let text = format!("<tool_call>{}</tool_call>", call("echoo", &json!({})));
    let all = All::read([text.as_str()]).await;
    assert_eq!(all.shown(), text);
    assert!(all.executed.is_empty());
    let whys: Vec<&str> = all
        .tokens
        .iter()
        .filter_map(|token| match token {
            Token::NoCall { why, .. } => Some(why.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(whys, ["there is no tool `echoo`; did you mean `echo`?"]);
}

#[tokio::test]
async fn a_call_in_one_piece_with_text_around_it_is_taken_out_and_run() {
    let all = All::read([format!("I'll use {} to help.", echo("x"))]).await;
    assert_eq!(all.shown(), "I'll use  to help.");
    assert_eq!(all.executed.len(), 1);
}

#[tokio::test]
async fn calls_are_run_up_to_their_limit_and_those_behind_are_told() {
    let all = All::read(vec![echo("x") + "\n"; CALLS + 1]).await;
    assert_eq!(all.executed.len(), CALLS);
    let told = |token: &&Token| matches!(token, Token::NoCall { .. });
    assert_eq!(all.tokens.iter().filter(told).count(), 1);
    let all = All::read(vec![echo("x") + "\n"; CALLS]).await;
    assert_eq!(all.tokens.iter().filter(told).count(), 0);
}
