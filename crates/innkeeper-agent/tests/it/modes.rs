//! The three streaming modes: displayed text and executed calls.

use innkeeper_agent::chat::{StreamingMode, TextSegment};
use innkeeper_agent::{Chat, ChatSettings};
use proptest::prelude::*;

use crate::setup::{
    CollectedResponse, InMemoryTools, chunk_channel, echo_call, response_stream, split_chunks,
};

fn settings_for_mode(mode: StreamingMode) -> ChatSettings {
    ChatSettings { mode, ..ChatSettings::default() }
}

fn placeholder_settings() -> ChatSettings {
    settings_for_mode(StreamingMode::WithPlaceholders { placeholder_text: "[working]".to_owned() })
}

async fn read_response(chat: &Chat, chunks: Vec<String>) -> CollectedResponse {
    CollectedResponse::collect(
        &mut chat.start_run().read_response(response_stream(chunks)).unwrap(),
    )
    .await
}

/// Proves: S7, S20
#[tokio::test]
async fn the_three_modes_show_and_run_what_they_say_and_the_default_is_smart() {
    let text = format!("Let me look.\n{}\nDone.", echo_call("hi"));
    let cases = [
        (ChatSettings::default(), "Let me look.\n\nDone.", 1),
        (
            settings_for_mode(StreamingMode::SmartBuffering { max_buffer_chars: 200 }),
            "Let me look.\n\nDone.",
            1,
        ),
        (settings_for_mode(StreamingMode::Passthrough), text.as_str(), 0),
        (placeholder_settings(), "Let me look.\n[working]\nDone.", 1),
    ];
    for (settings, expected, runs) in cases {
        let tools = InMemoryTools::new();
        let chat = tools.chat(settings.clone());
        let all = read_response(&chat, split_chunks(&text, 7)).await;
        assert_eq!(all.visible_text(), expected, "{settings:?}");
        assert_eq!(
            (all.executions.len(), tools.started_calls().len()),
            (runs, runs),
            "{settings:?}"
        );
    }
}

/// Proves: S22
#[tokio::test]
async fn in_passthrough_every_piece_comes_out_as_it_went_in_and_nothing_is_run() {
    let chunks = split_chunks(
        &format!("<think>é</think> {} ```\n{}\n```", echo_call("1"), echo_call("2")),
        3,
    );
    let tools = InMemoryTools::new();
    let all =
        read_response(&tools.chat(settings_for_mode(StreamingMode::Passthrough)), chunks.clone())
            .await;
    let same: Vec<TextSegment> = chunks.into_iter().map(TextSegment::Narrative).collect();
    assert_eq!(all.segments, same);
    assert!(tools.started_calls().is_empty() && all.executions.is_empty());
}

/// Proves: S23
#[tokio::test(start_paused = true)]
async fn each_call_has_one_placeholder_and_starts_before_the_stream_ends() {
    let tools = InMemoryTools::new();
    let (to, chunks) = chunk_channel();
    let mut response =
        tools.chat(placeholder_settings()).start_run().read_response(chunks).unwrap();
    to.send(&format!("a {} b {}", echo_call("1"), echo_call("2"))).await;
    let mut visible_text = String::new();
    while visible_text != "a [working] b [working]" {
        visible_text.push_str(
            response.segment_stream.recv().await.unwrap().visible_text().unwrap_or_default(),
        );
    }
    for _ in 0..2 {
        assert!(response.execution_stream.recv().await.is_some());
    }
    assert_eq!(tools.started_calls().len(), 2, "while the stream is still open");
    drop(to);
    assert_eq!(response.segment_stream.recv().await, None);
}

#[tokio::test]
async fn each_call_of_a_list_has_its_placeholder() {
    let all = read_response(
        &InMemoryTools::new().chat(placeholder_settings()),
        vec![format!("[{}, {}]", echo_call("1"), echo_call("2"))],
    )
    .await;
    assert_eq!((all.visible_text().as_str(), all.executions.len()), ("[working][working]", 2));
}

#[tokio::test]
async fn the_limit_of_what_is_undecided_is_the_one_of_the_mode() {
    // Long enough to exceed a small limit before the call names its tool.
    let text =
        format!("{{{}\"tool\": \"echo\", \"params\": {{\"message\": \"x\"}}}}", " ".repeat(100));
    for (max_buffer_chars, runs) in [(20, 0), (200, 1)] {
        let chat = InMemoryTools::new()
            .chat(settings_for_mode(StreamingMode::SmartBuffering { max_buffer_chars }));
        let all = read_response(&chat, split_chunks(&text, 5)).await;
        assert_eq!(all.executions.len(), runs, "{max_buffer_chars}");
        assert_eq!(all.input_text(), text);
    }
}

/// Proves: S21
#[tokio::test]
async fn text_without_a_marker_is_there_before_the_next_piece_is_asked_for() {
    let (to, chunks) = chunk_channel();
    let mut response = InMemoryTools::new()
        .chat(ChatSettings::default())
        .start_run()
        .read_response(chunks)
        .unwrap();
    for chunk in ["Hello", " my", " friend, how are", " you? It costs 5"] {
        to.send(chunk).await;
        assert_eq!(
            response.segment_stream.recv().await,
            Some(TextSegment::Narrative(chunk.to_owned()))
        );
    }
}

#[tokio::test]
async fn undecided_text_is_reported_as_buffered_and_comes_again() {
    let all =
        CollectedResponse::from_chunks(split_chunks(&format!("So: {} ok", echo_call("a b")), 4))
            .await;
    let buffered: String = all
        .segments
        .iter()
        .filter_map(|token| match token {
            TextSegment::Buffered(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert!(echo_call("a b").starts_with(&buffered) && buffered.len() > 20, "{buffered}");
    assert_eq!(all.visible_text(), "So:  ok");
    assert_eq!(all.input_text(), format!("So: {} ok", echo_call("a b")));
}

#[tokio::test]
async fn thoughts_keep_their_markup_and_markup_of_calls_is_hidden() {
    let text = format!(
        "<think>hm</think>Yes. <tool_call>{}</tool_call><|eot_id|><|im_end|>",
        echo_call("1")
    );
    let all = CollectedResponse::from_chunks(split_chunks(&text, 9)).await;
    assert_eq!(all.visible_text(), "Yes. ");
    let reasoning: String = all
        .segments
        .iter()
        .filter_map(|token| match token {
            TextSegment::Reasoning(text) => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(reasoning, "<think>hm</think>");
    assert_eq!(all.input_text(), text);
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zé {}\\[\\]\"`<>:,\n]{0,12}",
        Just(echo_call("x")),
        Just(format!("<tool_call>{}</tool_call>", echo_call("y"))),
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
        for settings in [ChatSettings::default(), settings_for_mode(StreamingMode::Passthrough), placeholder_settings()] {
            let chat = InMemoryTools::new().chat(settings);
            let all = runtime.block_on(read_response(&chat, split_chunks(&text, size)));
            prop_assert_eq!(all.input_text(), text.as_str());
        }
    }
}
