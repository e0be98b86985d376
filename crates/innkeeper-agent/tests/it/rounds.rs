//! Results as the next message, and how often there is one.

use std::convert::Infallible;

use innkeeper_agent::chat::{RoundsError, Token};
use innkeeper_agent::{Chat, Settings};
use serde_json::Value;

use crate::setup::{All, Shop, answer_of, echo};

fn capped(max_tool_rounds: usize) -> Settings {
    Settings { max_tool_rounds, ..Settings::default() }
}

/// Proves: S41
#[tokio::test]
async fn results_become_a_message_in_the_order_of_the_calls() {
    let chat = Shop::new().chat(Settings::default());
    let text =
        format!("{}\n{}\n{{\"tool\": \"broken\", \"params\": {{}}}}", echo("a\nb"), echo("c"));
    let answer = chat.turn().answer(answer_of([text])).unwrap();
    let message = answer.results_as_message().await.unwrap();
    assert_eq!(answer.results_as_message().await.as_deref(), Some(message.as_str()), "again");
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines[0], "Results of the tools, one a line:");
    let values: Vec<Value> =
        lines[1..].iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(values[0]["result"], r#"{"message":"a\nb"}"#);
    assert_eq!((&values[1]["result_of"], &values[1]["call"]), (&"echo".into(), &1.into()));
    assert_eq!(values[2]["error"], "tool `broken` could not be run");
    // A model that repeats the message calls nothing.
    assert!(All::read([message]).await.executed.is_empty());
}

/// A model that calls a tool in every answer, and what it was asked.
async fn always(chat: &Chat) -> (innkeeper_agent::chat::Rounds, Vec<Option<String>>) {
    let mut asked = Vec::new();
    let rounds = chat
        .run_rounds(
            |message| {
                asked.push(message);
                async { Ok::<_, Infallible>(answer_of([echo("again")])) }
            },
            |_| {},
        )
        .await
        .unwrap();
    (rounds, asked)
}

/// Proves: S42
#[tokio::test]
async fn a_model_that_always_calls_a_tool_is_stopped_and_zero_rounds_run_nothing() {
    for cap in [3, 1, 0] {
        let shop = Shop::new();
        let chat = shop.chat(capped(cap));
        for turn in 1..=2 {
            let (rounds, asked) = always(&chat).await;
            assert_eq!((rounds.rounds, rounds.withheld, asked.len()), (cap, 1, cap + 1));
            assert_eq!(shop.begun().len(), cap * turn);
            assert!(asked[0].is_none() && asked[1..].iter().all(Option::is_some));
        }
    }
}

#[tokio::test]
async fn a_turn_counts_rounds_by_the_messages_taken_and_begins_anew_behind_the_last() {
    let shop = Shop::new();
    let turn = shop.chat(capped(2)).turn();
    let mut ran = Vec::new();
    for _ in 0..6 {
        let answer = turn.answer(answer_of([echo("x")])).unwrap();
        ran.push(answer.results_as_message().await.is_some());
    }
    assert_eq!(ran, [true, true, false, true, true, false]);
    // An answer without calls ends the turn as well.
    for (text, runs) in [(echo("1"), true), ("done".to_owned(), false)] {
        let answer = turn.answer(answer_of([text])).unwrap();
        assert_eq!(answer.results_as_message().await.is_some(), runs);
    }
    for _ in 0..2 {
        assert!(turn.answer(answer_of([echo("x")])).unwrap().results_as_message().await.is_some());
    }
}

#[tokio::test]
async fn a_turn_of_two_rounds_shows_every_answer_and_feeds_the_results_back() {
    let chat = Shop::new().chat(Settings::default());
    let mut shown = String::new();
    let rounds = chat
        .run_rounds(
            |message: Option<String>| async move {
                Ok::<_, Infallible>(answer_of([match message {
                    None => format!("Let me see. {}", echo("seven")),
                    Some(message) if message.contains("seven") => "It is seven.".to_owned(),
                    Some(message) => message,
                }]))
            },
            |token: Token| shown.push_str(token.shown().unwrap_or_default()),
        )
        .await
        .unwrap();
    assert_eq!(shown, "Let me see. It is seven.");
    assert_eq!((rounds.rounds, rounds.executed.len(), rounds.withheld), (1, 1, 0));
}

#[tokio::test]
async fn a_model_that_cannot_be_asked_ends_the_turn_with_its_error() {
    let chat = Shop::new().chat(Settings::default());
    let error = chat
        .run_rounds(
            |_| async {
                let answer: Result<futures_util::stream::Empty<String>, _> =
                    Err(std::io::Error::other("no model"));
                answer
            },
            |_| {},
        )
        .await
        .unwrap_err();
    assert!(matches!(&error, RoundsError::Model(error) if error.to_string() == "no model"));
}
