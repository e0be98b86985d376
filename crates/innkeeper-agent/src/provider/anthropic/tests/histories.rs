//! Messages: their order, and what goes back word for word.

use serde_json::json;

use super::{CLAUDE, answer, asking, body, call, native, result, text, tools, user};
use crate::conversation::{Message, Part, Said, ToolResult};
use crate::provider::{Request, Wire};

const THOUGHT: &str = r#"{"type":"thinking","thinking":"hm","signature":"EqQBCgIYAg=="}"#;
const HIDDEN: &str = r#"{"type":"redacted_thinking","data":"EmwKAhgB"}"#;
const USE: &str = r#"{"type":"tool_use","id":"toolu_1","name":"a_b","input":{"n": 12345678901234567890123},"caller":{"type":"direct"}}"#;

#[test]
fn results_and_the_text_behind_them_are_one_message_results_first() {
    let history = asking(vec![
        user("one"),
        user("two"),
        answer(vec![Part::new(call("x", "a.b", "{}")), Part::new(call("y", "a.b", r#"{"n":1}"#))]),
        Message::Results(
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
    let own = |said, block| native(said, Wire::Anthropic, CLAUDE, block);
    let server =
        r#"{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}"#;
    let cited = r#"{"type":"text","text":"so","citations":[{"n":1.0}]}"#;
    let parts = vec![
        own(Said::Reasoning("hm".to_owned()), THOUGHT),
        own(Said::Reasoning(String::new()), HIDDEN),
        own(Said::Other, server),
        own(Said::Text("so".to_owned()), cited),
        own(call("toolu_1", "a.b", r#"{"n":1}"#), USE),
    ];
    let history = vec![
        user("go"),
        answer(parts),
        Message::Results(vec![result("toolu_1", "a.b", "fine")].into()),
    ];
    let sent = text(&Request { tools: tools(&["a.b"]), ..asking(history) }, CLAUDE);
    let blocks = [THOUGHT, HIDDEN, server, cited, USE].join(",");
    assert!(sent.contains(&format!(r#"{{"role":"assistant","content":[{blocks}]}}"#)), "{sent}");
    assert!(sent.contains(r#""tool_use_id":"toolu_1""#));
}

#[test]
fn words_of_another_model_are_not_sent_to_this_one() {
    for (wire, model) in [(Wire::Anthropic, "claude-opus-5"), (Wire::GeminiGenerate, CLAUDE)] {
        let parts = vec![
            native(Said::Reasoning("secret".to_owned()), wire, model, THOUGHT),
            native(Said::Other, wire, model, r#"{"type":"compaction"}"#),
            native(Said::Text("so".to_owned()), wire, model, r#"{"type":"text","x":1}"#),
            native(call("toolu_1", "a.b", r#"{"n": 1.0}"#), wire, model, USE),
        ];
        let history = vec![
            user("go"),
            answer(parts),
            Message::Results(vec![result("toolu_1", "a.b", "")].into()),
        ];
        let sent = text(&asking(history), CLAUDE);
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
            let thought = native(Said::Reasoning("hm".to_owned()), Wire::Anthropic, model, block);
            let parts = vec![thought, Part::new(Said::Text("so".to_owned()))];
            let sent = text(&asking(vec![user("go"), answer(parts), user("on")]), model);
            assert_eq!(sent.contains(block), goes, "{model}: {sent}");
        }
    }
}

#[test]
fn empty_texts_and_messages_of_nothing_are_left_out() {
    let history = asking(vec![
        user("go"),
        answer(vec![Part::new(Said::Text("\n\n".to_owned())), Part::new(Said::Other)]),
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
fn ids_of_other_providers_are_spelled_so_that_they_are_taken_and_match() {
    let parts = vec![Part::new(call("functions.read:0", "read", "{}"))];
    let results = vec![result("functions.read:0", "read", "fine")];
    let sent =
        body(&asking(vec![user("go"), answer(parts), Message::Results(results.into())]), CLAUDE);
    let id = sent["messages"][1]["content"][0]["id"].as_str().unwrap();
    assert!(id.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it)), "{id}");
    assert_eq!(sent["messages"][2]["content"][0]["tool_use_id"], id);
    // In a block that goes back as it came, the id is what its server made it.
    let own = r#"{"type":"tool_use","id":"functions.read:0","name":"read","input":{}}"#;
    let parts = vec![native(call("functions.read:0", "read", "{}"), Wire::Anthropic, "kimi", own)];
    let results = vec![result("functions.read:0", "read", "fine")];
    let sent =
        body(&asking(vec![user("go"), answer(parts), Message::Results(results.into())]), "kimi");
    assert_eq!(sent["messages"][2]["content"][0]["tool_use_id"], "functions.read:0");
}

#[test]
fn arguments_that_are_no_object_are_told_as_what_they_were() {
    for (arguments, expected) in [
        ("", json!({})),
        ("[1]", json!({"unreadable": "[1]"})),
        (r#"{"a": "#, json!({"unreadable": r#"{"a":"#})),
    ] {
        let parts = vec![Part::new(call("x", "read", arguments))];
        let history =
            vec![user("go"), answer(parts), Message::Results(vec![result("x", "read", "")].into())];
        let sent = body(&asking(history), CLAUDE);
        assert_eq!(sent["messages"][1]["content"][0]["input"], expected, "{arguments}");
    }
}
