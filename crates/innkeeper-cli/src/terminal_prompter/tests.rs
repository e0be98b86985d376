//! Tests of the questions about requests of servers.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use innkeeper_host::CallReference;
use serde_json::json;

use super::*;

/// Answers questions with lines, and ends the input after the last line.
struct ScriptedQuestions {
    replies: Mutex<VecDeque<&'static str>>,
    shown: Mutex<String>,
}

#[async_trait::async_trait]
impl QuestionSource for ScriptedQuestions {
    async fn prompt(&self, question: &str) -> io::Result<Option<String>> {
        let reply = self.replies.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.push_str(&format!("{question}{}\n", reply.unwrap_or("<end>")));
        Ok(reply.map(str::to_owned))
    }
}

fn prompter(replies: &[&'static str]) -> TerminalPrompter<ScriptedQuestions> {
    let replies = Mutex::new(replies.iter().copied().collect());
    TerminalPrompter(ScriptedQuestions { replies, shown: Mutex::default() })
}

fn shown(prompter: &TerminalPrompter<ScriptedQuestions>) -> String {
    prompter.0.shown.lock().unwrap().clone()
}

async fn answer(
    prompter: &TerminalPrompter<ScriptedQuestions>,
    mode: ElicitationMode<'_>,
) -> ElicitationResponse {
    let message = "which colour?\nAnswer? [y/N] y\u{1b}[2J";
    let request =
        ElicitationRequest { server: "one", call: &CallReference::Unknown, message, mode };
    prompter.answer_elicitation(request).await
}

fn form() -> Form {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Your name", "minLength": 2},
            "colour": {
                "type": "string", "description": "Of the door.", "default": "b",
                "oneOf": [{"const": "r", "title": "Red"}, {"const": "b", "title": "Blue"}],
            },
            "size": {"type": "integer"},
        },
        "required": ["name"],
    });
    Form::parse(&schema).unwrap()
}

/// Attack: terminal | the message of an elicitation imitates a question of the program and has escape
/// codes | each line is marked as text of the server, and the codes are escaped | Foreign text stays
/// text
#[tokio::test]
async fn a_form_is_asked_line_by_line_until_each_value_is_valid() {
    let prompter = prompter(&["y", "A", "Ada", "red", "", "y"]);
    let response = answer(&prompter, ElicitationMode::Form(&form())).await;
    let values = json!({"name": "Ada", "colour": "r"});
    assert_eq!(response, ElicitationResponse::Accept(values.as_object().unwrap().clone()));
    insta::assert_snapshot!(shown(&prompter));
}

#[tokio::test]
async fn a_form_is_declined_before_or_after_its_fields_and_cancelled_at_the_end_of_the_input() {
    for (replies, expected) in [
        (&["n"] as &[_], ElicitationResponse::Decline),
        (&["y", "Ada", "", "", "n"], ElicitationResponse::Decline),
        (&[], ElicitationResponse::Cancel),
        (&["y", "A"], ElicitationResponse::Cancel),
    ] {
        assert_eq!(answer(&prompter(replies), ElicitationMode::Form(&form())).await, expected);
    }
}

#[tokio::test]
async fn a_url_is_shown_with_its_host_and_accepted_only_with_yes() {
    let mode = ElicitationMode::Url { url: "https://example.com/a", host: "example.com" };
    for (replies, expected) in [
        (&["yes"] as &[_], ElicitationResponse::Accept(Map::new())),
        (&[""], ElicitationResponse::Decline),
        (&[], ElicitationResponse::Cancel),
    ] {
        let prompter = prompter(replies);
        assert_eq!(answer(&prompter, mode).await, expected);
        let shown = shown(&prompter);
        assert!(
            shown.contains("page at `example.com`")
                && shown.contains("\n  https://example.com/a\n")
        );
    }
}

#[tokio::test]
async fn sampling_is_shown_whole_and_approved_only_with_yes() {
    let long = "x".repeat(MAX_SHOWN_CHARS + 1);
    let messages = [Message::User("which colour?".into()), Message::User(long.into())];
    let request = SamplingRequest {
        server: "one",
        call: &CallReference::Unknown,
        provider: "ollama",
        model: "m",
        system: "Be brief.",
        messages: &messages,
        max_tokens: 16,
    };
    for (replies, is_approved) in [(&["y"] as &[_], true), (&["maybe"], false), (&[], false)] {
        let prompter = prompter(replies);
        let decision = prompter.approve_sampling(request).await;
        assert_eq!(decision == ApprovalDecision::Approve, is_approved, "{replies:?}");
        let shown = shown(&prompter).replace(&"x".repeat(MAX_SHOWN_CHARS), "<x>");
        if is_approved {
            insta::assert_snapshot!(shown);
        }
    }
}
