//! Tests of encoded messages: order and verbatim content.

use serde_json::json;

use super::{
    CLAUDE, assistant_message, body, call, part_with_block, request_with, result, text, tools, user,
};
use crate::conversation::{ContentPart, Message, PartContent, ToolResult};
use crate::provider::{ProviderApi, Request};

const THOUGHT: &str = r#"{"type":"thinking","thinking":"hm","signature":"EqQBCgIYAg=="}"#;
const HIDDEN: &str = r#"{"type":"redacted_thinking","data":"EmwKAhgB"}"#;
const USE: &str = r#"{"type":"tool_use","id":"toolu_1","name":"a_b","input":{"n": 12345678901234567890123},"caller":{"type":"direct"}}"#;

#[test]
fn results_and_the_text_behind_them_are_one_message_results_first() {
    let history = request_with(vec![
        user("one"),
        user("two"),
        assistant_message(vec![
            ContentPart::new(call("x", "a.b", "{}")),
            ContentPart::new(call("y", "a.b", r#"{"n":1}"#)),
        ]),
        Message::ToolResults(
            vec![
                result("x", "a.b", "fine"),
                ToolResult { is_error: true, ..result("y", "a.b", "broken") },
            ]
            .into(),
        ),
        user("and now?"),
    ]);
    let request = Request { tools: tools(&["a.b"]), ..history };
    let expected = json!([
        {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "x", "name": "a_b", "input": {}},
            {"type": "tool_use", "id": "y", "name": "a_b", "input": {"n": 1}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "x", "content": "fine"},
            {"type": "tool_result", "tool_use_id": "y", "content": "broken", "is_error": true},
            {"type": "text", "text": "and now?"},
        ]},
    ]);
    assert_eq!(body(&request, CLAUDE)["messages"], expected);
}

#[test]
fn the_models_own_blocks_go_back_word_for_word_and_in_order() {
    let native_part = |said, block| part_with_block(said, ProviderApi::Anthropic, CLAUDE, block);
    let server =
        r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}"#;
    let cited = r#"{"type":"text","text":"so","citations":[{"n":1.0}]}"#;
    let parts = vec![
        native_part(PartContent::Reasoning("hm".to_owned()), THOUGHT),
        native_part(PartContent::Reasoning(String::new()), HIDDEN),
        native_part(PartContent::Other, server),
        native_part(PartContent::Text("so".to_owned()), cited),
        native_part(call("toolu_1", "a.b", r#"{"n":1}"#), USE),
    ];
    let history = vec![
        user("go"),
        assistant_message(parts),
        Message::ToolResults(vec![result("toolu_1", "a.b", "fine")].into()),
    ];
    let sent = text(&Request { tools: tools(&["a.b"]), ..request_with(history) }, CLAUDE);
    let blocks = [THOUGHT, HIDDEN, server, cited, USE].join(",");
    assert!(sent.contains(&format!(r#"{{"role":"assistant","content":[{blocks}]}}"#)), "{sent}");
    assert!(sent.contains(r#""tool_use_id":"toolu_1""#));
}

#[test]
fn blocks_of_another_model_are_not_sent_to_this_one() {
    for (api, model) in
        [(ProviderApi::Anthropic, "claude-opus-5"), (ProviderApi::GeminiGenerate, CLAUDE)]
    {
        let parts = vec![
            part_with_block(PartContent::Reasoning("secret".to_owned()), api, model, THOUGHT),
            part_with_block(PartContent::Other, api, model, r#"{"type":"compaction"}"#),
            part_with_block(
                PartContent::Text("so".to_owned()),
                api,
                model,
                r#"{"type":"text","x":1}"#,
            ),
            part_with_block(call("toolu_1", "a.b", r#"{"n": 1.0}"#), api, model, USE),
        ];
        let history = vec![
            user("go"),
            assistant_message(parts),
            Message::ToolResults(vec![result("toolu_1", "a.b", "")].into()),
        ];
        let sent = text(&request_with(history), CLAUDE);
        let expected = r#"[{"type":"text","text":"so"},{"type":"tool_use","id":"toolu_1","name":"a_b","input":{"n": 1.0}}]"#;
        assert!(sent.contains(expected), "{sent}");
        assert!(!sent.contains("secret") && !sent.contains("compaction"), "{sent}");
    }
}

#[test]
fn a_thought_without_its_signature_goes_back_only_to_servers_that_sign_nothing() {
    for block in [
        r#"{"type":"thinking","thinking":"hm","signature":""}"#,
        r#"{"type":"thinking","thinking":"hm"}"#,
    ] {
        for (model, goes) in [(CLAUDE, false), ("qwen3", true)] {
            let thought = part_with_block(
                PartContent::Reasoning("hm".to_owned()),
                ProviderApi::Anthropic,
                model,
                block,
            );
            let parts = vec![thought, ContentPart::new(PartContent::Text("so".to_owned()))];
            let sent =
                text(&request_with(vec![user("go"), assistant_message(parts), user("on")]), model);
            assert_eq!(sent.contains(block), goes, "{model}: {sent}");
        }
    }
}

#[test]
fn empty_texts_and_messages_of_nothing_are_left_out() {
    let history = request_with(vec![
        user("go"),
        assistant_message(vec![
            ContentPart::new(PartContent::Text("\n\n".to_owned())),
            ContentPart::new(PartContent::Other),
        ]),
        user(" "),
        user("on"),
    ]);
    let sent = body(&history, CLAUDE);
    let expected = json!([{"role": "user", "content": [
        {"type": "text", "text": "go"},
        {"type": "text", "text": "on"},
    ]}]);
    assert_eq!(sent["messages"], expected);
    let blank = Request { system: " \n".to_owned(), ..history };
    assert_eq!(body(&blank, CLAUDE).get("system"), None);
}

#[test]
fn a_failed_result_without_text_gets_a_text_and_an_empty_result_stays_empty() {
    for (is_error, said, expected) in [
        (true, "", "the tool failed without a message"),
        (true, " \n", "the tool failed without a message"),
        (true, "broken", "broken"),
        (false, "", ""),
    ] {
        let history = request_with(vec![
            user("go"),
            assistant_message(vec![ContentPart::new(call("x", "a.b", "{}"))]),
            Message::ToolResults(vec![ToolResult { is_error, ..result("x", "a.b", said) }].into()),
        ]);
        let sent = body(&history, CLAUDE);
        assert_eq!(sent["messages"][2]["content"][0]["content"], expected, "{is_error} {said:?}");
    }
}

#[test]
fn ids_of_other_providers_are_sanitized_and_match() {
    let parts = vec![ContentPart::new(call("functions.read:0", "read", "{}"))];
    let results = vec![result("functions.read:0", "read", "fine")];
    let sent = body(
        &request_with(vec![
            user("go"),
            assistant_message(parts),
            Message::ToolResults(results.into()),
        ]),
        CLAUDE,
    );
    let id = sent["messages"][1]["content"][0]["id"].as_str().unwrap();
    assert!(id.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it)), "{id}");
    assert_eq!(sent["messages"][2]["content"][0]["tool_use_id"], id);
    // A verbatim block keeps the id of its server.
    let native_block = r#"{"type":"tool_use","id":"functions.read:0","name":"read","input":{}}"#;
    let parts = vec![part_with_block(
        call("functions.read:0", "read", "{}"),
        ProviderApi::Anthropic,
        "kimi",
        native_block,
    )];
    let results = vec![result("functions.read:0", "read", "fine")];
    let sent = body(
        &request_with(vec![
            user("go"),
            assistant_message(parts),
            Message::ToolResults(results.into()),
        ]),
        "kimi",
    );
    assert_eq!(sent["messages"][2]["content"][0]["tool_use_id"], "functions.read:0");
}

#[test]
fn arguments_that_are_no_object_are_wrapped_in_one() {
    for (arguments, expected) in [
        ("", json!({})),
        ("[1]", json!({"unreadable": "[1]"})),
        (r#"{"a": "#, json!({"unreadable": r#"{"a":"#})),
    ] {
        let parts = vec![ContentPart::new(call("x", "read", arguments))];
        let history = vec![
            user("go"),
            assistant_message(parts),
            Message::ToolResults(vec![result("x", "read", "")].into()),
        ];
        let sent = body(&request_with(history), CLAUDE);
        assert_eq!(sent["messages"][1]["content"][0]["input"], expected, "{arguments}");
    }
}
