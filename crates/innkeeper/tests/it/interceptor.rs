//! Tests of the streaming interceptor: each transition of the document's state diagram.

use futures_util::{StreamExt as _, stream};
use innkeeper::compat::{
    InterceptedText, InterceptorState, ProcessedToken, StreamingInterceptor, StreamingMode,
};
use innkeeper_toolcall::{ParserLimits, ParserOptions, Tool};
use serde_json::json;

use InterceptorState::{AfterToolCall, InToolCall, MaybeToolStart, Narrative};

const CALL_HEAD: &str = "{\"tool\": \"echo\", ";
const CALL: &str = "{\"tool\": \"echo\", \"params\": {}}";

/// A transition: the text that leads to the first state, the first state, the text that leads to
/// the second state, the second state.
type Transition = (&'static str, InterceptorState, &'static str, InterceptorState);

const TRANSITIONS: &[Transition] = &[
    // Start, regular text, tool pattern.
    ("", Narrative, "Hello ", Narrative),
    ("Hello ", Narrative, "there.", Narrative),
    ("Hello\n", Narrative, "{", MaybeToolStart),
    ("Hello\n", Narrative, "<tool_c", MaybeToolStart),
    // Valid JSON start, false alarm.
    ("{\"to", MaybeToolStart, "ol\": \"echo\"", InToolCall { depth: 1 }),
    ("{", MaybeToolStart, " key: value", Narrative),
    ("<tool_c", MaybeToolStart, "ase> is", Narrative),
    ("{\"tool\": \"ec", MaybeToolStart, "ho2\", \"params\": {}}", Narrative),
    // Tracking braces, complete JSON (depth 0), invalid JSON.
    (CALL_HEAD, InToolCall { depth: 1 }, "\"params\": {\"a\": {", InToolCall { depth: 3 }),
    (CALL_HEAD, InToolCall { depth: 1 }, "\"params\": {\"a\": \"}}}\"", InToolCall { depth: 2 }),
    (CALL_HEAD, InToolCall { depth: 1 }, "\"params\": {\"a\": {}}", InToolCall { depth: 1 }),
    (CALL_HEAD, InToolCall { depth: 1 }, "\"params\": {}}", AfterToolCall),
    (CALL_HEAD, InToolCall { depth: 1 }, "\"params\": ]", Narrative),
    // Another tool pattern, resumed text.
    (CALL, AfterToolCall, "\n{\"to", MaybeToolStart),
    (CALL, AfterToolCall, "\n\nDone", Narrative),
];

fn interceptor() -> StreamingInterceptor {
    StreamingInterceptor::new([Tool::new("echo", "", json!({}))].into_iter().collect())
}

/// Returns the state after the chunks.
fn state_after(chunks: &[&str]) -> InterceptorState {
    let mut interceptor = interceptor();
    for chunk in chunks {
        interceptor.push(chunk);
    }
    interceptor.state()
}

/// Returns the different states on the way through a text, character by character.
fn path_through(text: &str) -> Vec<InterceptorState> {
    let mut interceptor = interceptor();
    let mut states = vec![interceptor.state()];
    for letter in text.chars() {
        interceptor.push(letter.encode_utf8(&mut [0; 4]));
        states.push(interceptor.state());
    }
    states.dedup();
    states
}

/// The states of a path without their depths.
fn without_depths(mut states: Vec<InterceptorState>) -> Vec<InterceptorState> {
    for state in &mut states {
        if let InToolCall { depth } = state {
            *depth = 0;
        }
    }
    states.dedup();
    states
}

/// Proves: S25
#[test]
fn each_transition_of_the_diagram_occurs_wherever_the_text_is_cut() {
    for (before, from, text, to) in TRANSITIONS {
        assert_eq!(state_after(&[before]), *from, "{before:?}");
        for first in 0..=before.len() {
            for second in 0..=text.len() {
                let chunks = [&before[..first], &before[first..], &text[..second], &text[second..]];
                assert_eq!(state_after(&chunks), *to, "{chunks:?}");
            }
        }
    }
}

/// Proves: S25
#[test]
fn each_transition_is_direct() {
    for (before, from, text, to) in TRANSITIONS {
        let path = without_depths(path_through(&format!("{before}{text}")));
        let mut expected = without_depths(vec![*from, *to]);
        assert!(path.ends_with(&expected), "{before:?} {text:?}: {path:?}");
        // The diagram has no other way to a call than through its start.
        expected = vec![Narrative, InToolCall { depth: 0 }];
        assert!(!path.windows(2).any(|step| step == expected), "{path:?}");
    }
}

#[test]
fn a_response_passes_the_states_in_the_order_of_the_diagram() {
    let path = path_through("Hm. {\"tool\": \"echo\", \"params\": {\"a\": [1]}}\nDone.");
    let depth = |depth| InToolCall { depth };
    let expected = [
        Narrative,
        MaybeToolStart,
        depth(1),
        depth(2),
        depth(3),
        depth(2),
        depth(1),
        AfterToolCall,
        Narrative,
    ];
    assert_eq!(path, expected);
}

#[test]
fn a_call_in_any_syntax_reaches_the_state_of_a_call() {
    let tagged = ["<tool_call>", "{\"name\": \"echo\", \"arguments\": {"];
    assert_eq!(state_after(&tagged[..1]), MaybeToolStart);
    assert_eq!(state_after(&tagged), InToolCall { depth: 2 });
    let parameters = "<tool_call>\n<function=echo>\n<parameter=a>\n{";
    assert_eq!(state_after(&[parameters]), InToolCall { depth: 0 });
    assert_eq!(state_after(&["<think>{\"tool\": \"echo\", "]), Narrative);
}

/// The narrative, the hidden text and the calls of several items.
fn collect(items: impl IntoIterator<Item = InterceptedText>) -> (String, String, Vec<String>) {
    let (mut narrative, mut hidden, mut calls) = (String::new(), String::new(), Vec::new());
    for item in items {
        for token in item.tokens {
            match token {
                ProcessedToken::Narrative(text) => narrative.push_str(&text),
                ProcessedToken::ToolCall(text) => hidden.push_str(&text),
                ProcessedToken::Buffered(text) => panic!("{text}"),
            }
        }
        calls.extend(item.calls.iter().map(|call| format!("{} {}", call.name, call.arguments)));
    }
    (narrative, hidden, calls)
}

/// Proves: S27
#[test]
fn text_and_call_are_separated_wherever_the_response_is_cut() {
    let text = "I'll use {\"tool\": \"echo\", \"params\": {\"a\": \"}\"}} to help.";
    let call = "{\"tool\": \"echo\", \"params\": {\"a\": \"}\"}}";
    let expected =
        ("I'll use  to help.".to_owned(), call.to_owned(), vec!["echo {\"a\":\"}\"}".to_owned()]);
    for at in 0..=text.len() {
        let mut interceptor = interceptor();
        let items =
            [interceptor.push(&text[..at]), interceptor.push(&text[at..]), interceptor.finish()];
        assert_eq!(collect(items), expected, "cut at {at}");
    }
}

#[test]
fn the_start_of_a_call_is_held_and_regular_text_is_not() {
    let mut interceptor = interceptor();
    assert_eq!(interceptor.push("Regular text").tokens.len(), 1);
    assert_eq!(interceptor.push("\n{\"tool\"").tokens, [ProcessedToken::Narrative("\n".into())]);
    assert_eq!(interceptor.push(": \"echo\", ").tokens, []);
}

/// Proves: S46
#[test]
fn an_unfinished_an_unknown_and_a_malformed_call_are_narrative_and_no_call() {
    for text in [
        "{\"tool\": \"echo\", \"params\": {\"a\": 1",
        "{\"tool\": \"echo\", \"params\": {}",
        "{\"tool\": \"unknown\", \"params\": {}}",
        "{\"tool\": \"echo\", \"params\": ]}",
    ] {
        let mut interceptor = interceptor();
        let items = [interceptor.push(text), interceptor.finish()];
        assert_eq!(collect(items), (text.to_owned(), String::new(), Vec::new()), "{text}");
        assert_eq!(interceptor.state(), Narrative, "{text}");
    }
}

#[test]
fn undecided_text_has_the_limit_of_the_options() {
    let StreamingMode::SmartBuffering { max_buffer_chars } = StreamingMode::default() else {
        panic!("the default mode is another mode");
    };
    let text =
        |length: usize| format!("{{\"tool\": \"{}", "e".repeat(length - "{\"tool\": \"".len()));
    for (limit, length, expected) in [
        (max_buffer_chars, max_buffer_chars, MaybeToolStart),
        (max_buffer_chars, max_buffer_chars + 1, Narrative),
        (20, 20, MaybeToolStart),
        (20, 21, Narrative),
    ] {
        let limits = ParserLimits { max_undecided_chars: limit, ..ParserLimits::default() };
        let options = ParserOptions { limits, ..ParserOptions::default() };
        let tools = [Tool::new("echo", "", json!({}))].into_iter().collect();
        let mut interceptor = StreamingInterceptor::with_options(tools, &options);
        interceptor.push(&text(length));
        assert_eq!(interceptor.state(), expected, "{limit} {length}");
    }
}

#[tokio::test]
async fn a_stream_of_tokens_gives_one_item_for_each_token_and_one_for_the_end() {
    let tokens = ["Hm. {\"tool\": \"ec", "ho\", \"params\": {}}", " Done. {\"to"];
    let tokens = stream::iter(tokens.map(str::to_owned));
    let items: Vec<_> = interceptor().process_stream(tokens).collect().await;
    assert_eq!(items.len(), 4);
    assert_eq!(items[3].tokens, [ProcessedToken::Narrative("{\"to".to_owned())]);
    let (narrative, hidden, calls) = collect(items);
    assert_eq!(narrative, "Hm.  Done. {\"to");
    assert_eq!((hidden.as_str(), calls), (CALL, vec!["echo {}".to_owned()]));
}
