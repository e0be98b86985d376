//! Every form streams what it says whole, in whatever pieces.

use innkeeper_testkit::{Script, ScriptedLlm, Step};
use serde_json::{Value, json};

use super::fold::Said;
use super::{WIRES, path, post, talk};
use crate::remote::http::Http;

fn steps() -> Vec<Step> {
    let calls = Step::think("Näher hinsehen.").calls("fs.read", json!({"path": "ä\"\\b", "n": 1}));
    vec![
        calls.calls("fs.write", json!({})).usage(100, 20).cached_tokens(30).reasoning_tokens(5),
        Step::think("Enough thought of.").says("All of it, to the last 🦀.").usage(9, 8),
        Step::say("It is cut her").cut().usage(7, 6),
        Step::say("No.").refuses().usage(5, 4),
        Step::new().usage(3, 0),
    ]
}

async fn streamed(wire: &str, script: Script) -> Vec<String> {
    let llm = ScriptedLlm::start(script).await;
    let mut bodies = Vec::new();
    for _ in steps() {
        let mut reply = post(&llm, wire, true, &talk::begin(wire)).await;
        assert_eq!(reply.status, 200);
        bodies.push(String::from_utf8(reply.bytes().await).unwrap());
    }
    bodies
}

#[tokio::test]
async fn every_form_streams_what_it_says_whole() {
    for wire in WIRES {
        let llm = ScriptedLlm::start(steps()).await;
        for body in streamed(wire, Script::new(steps())).await {
            let mut reply = post(&llm, wire, false, &talk::begin(wire)).await;
            assert_eq!(reply.header("content-type"), Some("application/json"));
            let whole = Said::whole(wire, &reply.json().await);
            assert_eq!(Said::streamed(wire, &body), whole, "{wire}: {body}");
        }
    }
}

#[tokio::test]
async fn an_answer_has_its_thoughts_its_calls_and_its_cost() {
    for wire in WIRES {
        let llm = ScriptedLlm::start(steps()).await;
        let mut reply = post(&llm, wire, false, &talk::begin(wire)).await;
        let said = Said::whole(wire, &reply.json().await);
        assert_eq!(said.thoughts, "Näher hinsehen.", "{wire}");
        let calls: Vec<(&str, Value)> = said
            .calls
            .iter()
            .map(|(_, name, text)| (name.as_str(), serde_json::from_str(text).unwrap()))
            .collect();
        let first = json!({"path": "ä\"\\b", "n": 1});
        // The tool that is offered has another spelling, the other is not offered.
        assert_eq!(calls, [("fs_read", first), ("fs.write", json!({}))], "{wire}");
        assert_ne!(said.calls[0].0, said.calls[1].0, "{wire}");
        let (read_as, read, written_as, written) = match wire {
            "chat" => ("prompt_tokens", 100, "completion_tokens", 20),
            "responses" => ("input_tokens", 100, "output_tokens", 20),
            "anthropic" => ("input_tokens", 70, "output_tokens", 20),
            "gemini" => ("promptTokenCount", 100, "candidatesTokenCount", 15),
            "interactions" => ("total_input_tokens", 100, "total_output_tokens", 15),
            _ => ("prompt_eval_count", 100, "eval_count", 20),
        };
        let usage = &said.usage;
        assert_eq!(
            (&usage[read_as], &usage[written_as]),
            (&json!(read), &json!(written)),
            "{wire}"
        );
    }
}

#[tokio::test]
async fn an_answer_ends_as_the_script_says_in_the_words_of_its_provider() {
    let words = [
        ("chat", ["tool_calls", "stop", "length", "content_filter"]),
        (
            "responses",
            ["completed", "completed", "incompletemax_output_tokens", "incompletecontent_filter"],
        ),
        ("anthropic", ["tool_use", "end_turn", "max_tokens", "refusal"]),
        ("gemini", ["STOP", "STOP", "MAX_TOKENS", "SAFETY"]),
        ("interactions", ["requires_action", "completed", "incomplete", "failed"]),
        ("ollama", ["stop", "stop", "length", "stop"]),
    ];
    for (wire, words) in words {
        let bodies = streamed(wire, Script::new(steps())).await;
        let said = bodies.iter().map(|body| Said::streamed(wire, body).finish);
        assert_eq!(said.take(4).collect::<Vec<_>>(), words, "{wire}");
    }
}

#[tokio::test]
async fn a_stream_comes_in_the_pieces_that_the_script_asks_for() {
    for wire in WIRES {
        let llm = ScriptedLlm::start(Script::new(steps()).chunks(1)).await;
        let mut reply = post(&llm, wire, true, &talk::begin(wire)).await;
        let pieces = reply.pieces().await;
        assert!(pieces.len() > 100 && pieces.iter().all(|piece| piece.len() == 1), "{wire}");
        let bytes = streamed(wire, Script::new(steps())).await;
        assert_eq!(pieces.concat(), bytes[0].as_bytes(), "{wire}");

        let llm = ScriptedLlm::start(Script::new(steps()).chunks(usize::MAX)).await;
        let mut reply = post(&llm, wire, true, &talk::begin(wire)).await;
        assert_eq!(reply.pieces().await, [bytes[0].as_bytes()], "{wire}");
    }
}

#[tokio::test]
async fn numbers_too_big_for_any_type_are_sent_as_they_were_written() {
    let text = r#"{"n":123456789012345678901234567890,"x":1.00}"#;
    for wire in WIRES {
        for streams in [false, true] {
            let llm = ScriptedLlm::start(Step::new().raw_arguments("fs.read", text)).await;
            let mut reply = post(&llm, wire, streams, &talk::begin(wire)).await;
            let body = String::from_utf8(reply.bytes().await).unwrap();
            if streams && !matches!(wire, "gemini" | "ollama") {
                assert_eq!(Said::streamed(wire, &body).calls[0].2, text, "{wire}");
            } else {
                let quoted = json!(text).to_string();
                assert!(body.contains(text) || body.contains(&quoted), "{wire}: {body}");
            }
        }
    }
}

#[tokio::test]
async fn ollama_streams_unless_told_otherwise() {
    let llm = ScriptedLlm::start([Step::say("a"), Step::say("b")]).await;
    for (wire, form) in [("ollama", "application/x-ndjson"), ("chat", "application/json")] {
        let body = talk::begin(wire);
        let reply = Http::ask(&llm, "POST", path(wire, false), &[], Some(&body)).await;
        assert_eq!(reply.header("content-type"), Some(form));
    }
}
