//! The two streams of an answer, taken in any order, by halves, or not at all.

use std::time::Duration;

use futures_util::{StreamExt, stream};
use innkeeper_agent::Settings;
use innkeeper_agent::chat::{Ended, Executed, ROOM, Token, UNTAKEN};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::setup::{All, Shop, answer_of, call, echo, open_stream};

const MANY: usize = 1_000;

/// A thousand calls with text between them.
fn many() -> Vec<String> {
    (0..MANY).map(|at| format!("Call {at}:\n{}\n", echo(&at.to_string()))).collect()
}

fn indices(executed: &[Executed]) -> Vec<usize> {
    let mut indices: Vec<usize> = executed.iter().map(|executed| executed.index).collect();
    indices.sort_unstable();
    indices
}

/// Proves: S16, S19
#[tokio::test]
async fn a_thousand_calls_are_taken_in_either_order_without_a_deadlock() {
    for tokens_first in [true, false] {
        let chat = Shop::new().chat(Settings::default());
        let mut answer = chat.turn().answer(answer_of(many())).unwrap();
        let (mut shown, mut executed) = (String::new(), Vec::new());
        let taking = async {
            for tokens in [tokens_first, !tokens_first] {
                if tokens {
                    while let Some(token) = answer.token_stream.recv().await {
                        shown.push_str(token.shown().unwrap_or_default());
                    }
                } else {
                    while let Some(one) = answer.tool_stream.recv().await {
                        executed.push(one);
                    }
                }
            }
        };
        timeout(Duration::from_secs(30), taking).await.expect("no deadlock");
        assert_eq!(indices(&executed), (0..MANY).collect::<Vec<_>>());
        assert!(shown.starts_with("Call 0:\n\n") && shown.contains("Call 999:"), "{shown}");
    }
}

#[tokio::test]
async fn results_alone_are_taken_although_more_text_waits_than_there_is_room_for() {
    let filler = "word ".repeat(ROOM / 5);
    let text = [filler.clone(), echo("1"), filler.clone(), echo("2"), filler.clone()];
    let chat = Shop::new().chat(Settings::default());
    let mut answer = chat.turn().answer(answer_of(text)).unwrap();
    for _ in 0..2 {
        assert!(answer.tool_stream.recv().await.is_some());
    }
    assert!(answer.tool_stream.recv().await.is_none());
    assert_eq!(answer.results.ended(), Some(Ended::Whole));
    let mut length = 0;
    while let Some(token) = answer.token_stream.recv().await {
        length += token.shown().map_or(0, str::len);
    }
    assert_eq!(length, 3 * filler.len());
}

#[tokio::test]
async fn the_message_is_there_although_nobody_takes_the_text() {
    let filler = "word ".repeat(ROOM / 5);
    let text = [filler.clone(), echo("1"), filler, echo("2")];
    let chat = Shop::new().chat(Settings::default());
    let answer = chat.turn().answer(answer_of(text)).unwrap();
    let message = timeout(Duration::from_secs(30), answer.results_as_message()).await;
    assert_eq!(message.unwrap().unwrap().lines().count(), 3);
}

#[tokio::test]
async fn text_that_nobody_takes_is_not_read_beyond_the_room_for_it() {
    let piece = "x".repeat(1 << 16);
    let read = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = read.clone();
    let endless = stream::repeat(piece.clone()).inspect(move |piece| {
        count.fetch_add(piece.len(), std::sync::atomic::Ordering::Relaxed);
    });
    let chat = Shop::new().chat(Settings::default());
    let mut answer = chat.turn().answer(endless).unwrap();
    assert!(answer.token_stream.recv().await.is_some());
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let read = read.load(std::sync::atomic::Ordering::Relaxed);
    assert!((ROOM - piece.len()..=ROOM + 2 * piece.len()).contains(&read), "{read}");
}

#[tokio::test]
async fn endless_text_ends_at_its_limit_where_only_results_are_taken() {
    let endless = stream::repeat("x".repeat(1 << 20));
    let chat = Shop::new().chat(Settings::default());
    let mut answer = chat.turn().answer(endless).unwrap();
    assert!(answer.tool_stream.recv().await.is_none());
    assert_eq!(answer.results.ended(), Some(Ended::Overrun));
    let mut length = 0;
    while let Some(token) = answer.token_stream.recv().await {
        length += token.text().len();
    }
    assert!((UNTAKEN - (1 << 20)..=UNTAKEN + (1 << 20)).contains(&length), "{length}");
}

#[tokio::test]
async fn either_receiver_may_be_dropped() {
    let shop = Shop::new();
    let long: Vec<String> =
        many().into_iter().map(|text| text + &"word ".repeat(ROOM / 1_000)).collect();
    let answer = shop.chat(Settings::default()).turn().answer(answer_of(long)).unwrap();
    drop(answer.token_stream);
    let watched = answer.results;
    let read = async {
        while watched.ended().is_none() {
            tokio::task::yield_now().await;
        }
    };
    timeout(Duration::from_secs(30), read).await.expect("the text is read to its end");
    let executed: Vec<Executed> = answer.tool_stream.collect().await;
    assert_eq!(executed.len(), MANY);

    let shop = Shop::new();
    let answer = shop.chat(Settings::default()).turn().answer(answer_of(many())).unwrap();
    drop(answer.tool_stream);
    let tokens: Vec<Token> = answer.token_stream.collect().await;
    assert!(tokens.len() > 2 * MANY);
    assert_eq!(answer.results.as_message().await.unwrap().lines().count(), MANY + 1);
    assert_eq!(shop.ended().len(), MANY, "calls run although nobody takes their results");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_answer_ends_the_reading_and_cancels_its_calls() {
    let shop = Shop::new();
    let (pen, pieces) = open_stream();
    let mut answer = shop.chat(Settings::default()).turn().answer(pieces).unwrap();
    pen.send(&call("sleep", &json!({"ms": 1_000}))).await;
    while shop.begun().is_empty() {
        answer.token_stream.recv().await;
    }
    drop(answer);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert!(shop.ended().is_empty());
    let sent = timeout(Duration::from_secs(1), async { pen.try_send("more").await });
    assert!(!sent.await.unwrap(), "nobody reads the stream any more");
}

#[tokio::test]
async fn a_part_that_is_kept_keeps_the_reading_alive() {
    let shop = Shop::new();
    let chat = shop.chat(Settings::default());
    let tools = chat.turn().answer(answer_of([echo("1")])).unwrap().tool_stream;
    assert_eq!(tools.collect::<Vec<_>>().await.len(), 1);
}

/// Proves: S-b1
#[tokio::test]
async fn merged_a_result_stands_behind_the_text_of_its_call() {
    use innkeeper_agent::chat::Part;
    let chat = Shop::new().chat(Settings::default());
    let mut answer = chat.turn().answer(answer_of(many())).unwrap();
    let (mut called, mut results) = (0, 0);
    while let Some(part) = answer.next_part().await {
        match part {
            Part::Token(Token::ToolCall(_)) => called += 1,
            Part::Token(_) => {}
            Part::Executed(executed) => {
                results += 1;
                assert!(executed.index < called, "{} of {called}", executed.index);
            }
        }
    }
    assert_eq!((called, results), (MANY, MANY));
}

/// Proves: S5
#[tokio::test(start_paused = true)]
async fn text_goes_on_while_a_tool_works() {
    let (pen, pieces) = open_stream();
    let mut answer = Shop::new().chat(Settings::default()).turn().answer(pieces).unwrap();
    let begun = Instant::now();
    pen.send(&format!("{}\n", call("sleep", &json!({"ms": 5_000})))).await;
    for at in 0..20 {
        pen.send(&format!("word {at}\n")).await;
    }
    drop(pen);
    let mut shown = String::new();
    while let Some(token) = answer.token_stream.recv().await {
        shown.push_str(token.shown().unwrap_or_default());
    }
    assert!(shown.contains("word 19"));
    assert!(begun.elapsed() < Duration::from_millis(1), "{:?}", begun.elapsed());
    let executed = answer.tool_stream.recv().await.unwrap();
    assert_eq!(executed.elapsed, Duration::from_secs(5));
}

#[tokio::test]
async fn a_stream_that_panics_ends_both_streams() {
    let breaks = stream::iter(0..).map(|at| {
        assert!(at < 3, "as asked");
        "text ".to_owned()
    });
    let chat = Shop::new().chat(Settings::default());
    let mut answer = chat.turn().answer(breaks).unwrap();
    let all = All::of(&mut answer).await;
    assert_eq!(all.shown(), "text text text ");
    assert_eq!(answer.results.ended(), Some(Ended::Broken));
}

#[test]
fn outside_of_a_runtime_there_is_an_error_and_no_panic() {
    let chat = Shop::new().chat(Settings::default());
    let error = chat.turn().answer(answer_of(["x"])).unwrap_err();
    assert!(error.to_string().contains("Tokio runtime"), "{error}");
}
