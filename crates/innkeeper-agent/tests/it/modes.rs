//! The three modes: what the reader is shown, and what is run.

use innkeeper_agent::chat::{Mode, Token};
use innkeeper_agent::{Chat, Settings};
use proptest::prelude::*;

use crate::setup::{All, Shop, answer_of, cut, echo, open_stream};

fn in_mode(mode: Mode) -> Settings {
    Settings { mode, ..Settings::default() }
}

fn placeholders() -> Settings {
    in_mode(Mode::WithPlaceholders { placeholder_text: "[working]".to_owned() })
}

async fn read(chat: &Chat, pieces: Vec<String>) -> All {
    All::of(&mut chat.turn().answer(answer_of(pieces)).unwrap()).await
}

/// Proves: S7, S20
#[tokio::test]
async fn the_three_modes_show_and_run_what_they_say_and_the_default_is_smart() {
    let text = format!("Let me look.\n{}\nDone.", echo("hi"));
    let seen = [
        (Settings::default(), "Let me look.\n\nDone.", 1),
        (in_mode(Mode::SmartBuffering { max_buffer_chars: 200 }), "Let me look.\n\nDone.", 1),
        (in_mode(Mode::Passthrough), text.as_str(), 0),
        (placeholders(), "Let me look.\n[working]\nDone.", 1),
    ];
    for (settings, shown, runs) in seen {
        let shop = Shop::new();
        let chat = shop.chat(settings.clone());
        let all = read(&chat, cut(&text, 7)).await;
        assert_eq!(all.shown(), shown, "{settings:?}");
        assert_eq!((all.executed.len(), shop.begun().len()), (runs, runs), "{settings:?}");
    }
}

/// Proves: S22
#[tokio::test]
async fn in_passthrough_every_piece_comes_out_as_it_went_in_and_nothing_is_run() {
    let pieces = cut(&format!("<think>é</think> {} ```\n{}\n```", echo("1"), echo("2")), 3);
    let shop = Shop::new();
    let all = read(&shop.chat(in_mode(Mode::Passthrough)), pieces.clone()).await;
    let same: Vec<Token> = pieces.into_iter().map(Token::Narrative).collect();
    assert_eq!(all.tokens, same);
    assert!(shop.begun().is_empty() && all.executed.is_empty());
}

/// Proves: S23
#[tokio::test(start_paused = true)]
async fn a_placeholder_comes_once_a_call_and_the_call_is_begun_before_the_stream_ends() {
    let shop = Shop::new();
    let (to, pieces) = open_stream();
    let mut answer = shop.chat(placeholders()).turn().answer(pieces).unwrap();
    to.send(&format!("a {} b {}", echo("1"), echo("2"))).await;
    let mut shown = String::new();
    while shown != "a [working] b [working]" {
        shown.push_str(answer.token_stream.recv().await.unwrap().shown().unwrap_or_default());
    }
    for _ in 0..2 {
        assert!(answer.tool_stream.recv().await.is_some());
    }
    assert_eq!(shop.begun().len(), 2, "while the stream is still open");
    drop(to);
    assert_eq!(answer.token_stream.recv().await, None);
}

#[tokio::test]
async fn each_call_of_a_list_has_its_placeholder() {
    let all =
        read(&Shop::new().chat(placeholders()), vec![format!("[{}, {}]", echo("1"), echo("2"))])
            .await;
    assert_eq!((all.shown().as_str(), all.executed.len()), ("[working][working]", 2));
}

#[tokio::test]
async fn the_limit_of_what_is_undecided_is_the_one_of_the_mode() {
    // Long enough to be past a small limit before it names its tool.
    let text =
        format!("{{{}\"tool\": \"echo\", \"params\": {{\"message\": \"x\"}}}}", " ".repeat(100));
    for (max_buffer_chars, runs) in [(20, 0), (200, 1)] {
        let chat = Shop::new().chat(in_mode(Mode::SmartBuffering { max_buffer_chars }));
        let all = read(&chat, cut(&text, 5)).await;
        assert_eq!(all.executed.len(), runs, "{max_buffer_chars}");
        assert_eq!(all.input(), text);
    }
}

/// Proves: S21
#[tokio::test]
async fn text_without_a_marker_is_there_before_the_next_piece_is_asked_for() {
    let (to, pieces) = open_stream();
    let mut answer = Shop::new().chat(Settings::default()).turn().answer(pieces).unwrap();
    for piece in ["Hello", " my", " friend, how are", " you? It costs 5"] {
        to.send(piece).await;
        assert_eq!(answer.token_stream.recv().await, Some(Token::Narrative(piece.to_owned())));
    }
}

#[tokio::test]
async fn what_is_undecided_is_told_as_buffered_and_comes_again() {
    let all = All::read(cut(&format!("So: {} ok", echo("a b")), 4)).await;
    let buffered: String = all
        .tokens
        .iter()
        .filter_map(|token| match token {
            Token::Buffered(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert!(echo("a b").starts_with(&buffered) && buffered.len() > 20, "{buffered}");
    assert_eq!(all.shown(), "So:  ok");
    assert_eq!(all.input(), format!("So: {} ok", echo("a b")));
}

#[tokio::test]
async fn thoughts_keep_their_markup_and_markup_of_calls_is_hidden() {
    let text =
        format!("<think>hm</think><|eot_id|>Yes. <tool_call>{}</tool_call><|im_end|>", echo("1"));
    let all = All::read(cut(&text, 9)).await;
    assert_eq!(all.shown(), "Yes. ");
    let thought: String = all
        .tokens
        .iter()
        .filter_map(|token| match token {
            Token::Reasoning(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(thought, "<think>hm</think>");
    assert_eq!(all.input(), text);
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zé {}\\[\\]\"`<>:,\n]{0,12}",
        Just(echo("x")),
        Just(format!("<tool_call>{}</tool_call>", echo("y"))),
        Just("<think>".to_owned()),
        Just("</think>".to_owned()),
        Just("```json\n".to_owned()),
        Just("{\"tool\": \"nobody\", \"params\": {}}".to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Proves: S17
    #[test]
    fn nothing_of_the_input_is_lost_in_any_mode(
        parts in prop::collection::vec(piece(), 0..12), size in 1usize..9,
    ) {
        let text = parts.concat();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for settings in [Settings::default(), in_mode(Mode::Passthrough), placeholders()] {
            let chat = Shop::new().chat(settings);
            let all = runtime.block_on(read(&chat, cut(&text, size)));
            prop_assert_eq!(all.input(), text.as_str());
        }
    }
}
