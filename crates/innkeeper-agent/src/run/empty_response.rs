//! Finds responses without an answer.
//!
//! Reasoning is not an answer, however it arrived: as a part of its own, between tags that only the
//! model's family uses, or behind an opening tag that is never closed.

use std::sync::{Arc, LazyLock};

use innkeeper_toolcall::event::{ParseEvent, TextEnd};
use innkeeper_toolcall::{ParserOptions, ToolCallParser, is_blank};
use regex::Regex;

use crate::provider::{FinishReason, Response};

/// The markup that ends reasoning. Without a start before it, all text before it is reasoning.
const REASONING_ENDS: [&str; 3] = ["</think>", "<|close|>think<|sep|>", "<channel|>"];

/// Elements for reasoning that no model's own format has, and empty elements.
static NO_ANSWER: LazyLock<Regex> = LazyLock::new(|| {
    let names = ["thoughts?", "reasoning", "reflection", "scratchpad", "inner_monologue"];
    let elements = names.map(|name| format!(r"<{name}>.*?(?:</{name}>|\z)")).join("|");
    Regex::new(&format!(r"(?is){elements}|<\w+>\s*</\w+>")).expect("the pattern is valid")
});

/// Returns whether a response has text for the user, besides reasoning and markup.
pub(super) fn has_answer(response: &Response) -> bool {
    let parser = ToolCallParser::new(Arc::default(), &ParserOptions::default());
    let mut text = String::new();
    parser.parse_all(&response.message.visible_text(), TextEnd::Stop, &mut |event| match event {
        // The template has written the opening tag into the prompt.
        ParseEvent::Markup(markup) if REASONING_ENDS.contains(&markup) => text.clear(),
        ParseEvent::Reasoning(_) | ParseEvent::Markup(_) => {}
        event => text.push_str(event.text()),
    });
    !is_blank(&NO_ANSWER.replace_all(&text, ""))
}

/// Returns the problem of a response without an answer or calls.
pub(super) fn empty_response_problem(response: &Response) -> Option<String> {
    let problem = match &response.finish_reason {
        FinishReason::MalformedToolCall => "the tool call is malformed",
        FinishReason::ToolCalls => "the response announces a tool call but contains none",
        FinishReason::Stop | FinishReason::Other(_) if !has_answer(response) => {
            let message = &response.message;
            match is_blank(&message.reasoning()) && is_blank(&message.visible_text()) {
                true => "the response is empty",
                false => "the response has reasoning but no answer; write the answer after it",
            }
        }
        FinishReason::Stop
        | FinishReason::Other(_)
        | FinishReason::Length
        | FinishReason::ContextFull
        | FinishReason::Refusal
        | FinishReason::Paused => return None,
    };
    if let FinishReason::Other(reason) = &response.finish_reason {
        return Some(format!("{problem}; it ended with `{reason}`"));
    }
    Some(problem.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::{AssistantMessage, ContentPart, PartContent};

    #[test]
    fn reasoning_in_any_familys_tags_is_no_answer() {
        for text in [
            "<think>Hmm.</think>",
            "<think>Hmm, I wonder",
            "Hmm.</think>",
            "<think>\nHmm.\n</think>\n\n",
            "<thinking>Hmm.</thinking>",
            "<|channel|>analysis<|message|>Hmm.<|end|>",
            "<|channel|>analysis<|message|>Hmm.",
            "[THINK]Hmm.[/THINK]",
            "<seed:think>Hmm.</seed:think>",
            "<thought>\nHmm.\n</thought>\n",
            "<reasoning>Hmm.",
            "<response>\n</response>",
            "<thought>Hmm.</thought>\u{200b}",
        ] {
            let response = Response::from_text(text);
            assert!(!has_answer(&response), "{text}");
            let problem = empty_response_problem(&response).unwrap_or_default();
            assert!(problem.contains("no answer"), "{text}: {problem}");
        }
    }

    #[test]
    fn text_behind_reasoning_is_an_answer_and_a_reasoning_part_is_none() {
        for text in [
            "It is 5.",
            "<think>Hmm.</think>It is 5.",
            "Hmm.</think>It is 5.",
            "<thought>Hmm.</thought> 5",
            "<br>",
        ] {
            assert_eq!(empty_response_problem(&Response::from_text(text)), None, "{text}");
        }
        let reasoning = PartContent::Reasoning("Hmm.".to_owned());
        let message = AssistantMessage { parts: vec![ContentPart::new(reasoning)] };
        let response = Response { message, ..Response::default() };
        assert!(
            empty_response_problem(&response).is_some_and(|problem| problem.contains("answer"))
        );
        let empty = empty_response_problem(&Response::default());
        assert_eq!(empty.as_deref(), Some("the response is empty"));
        let finish_reason = FinishReason::Other("abort".to_owned());
        let empty = empty_response_problem(&Response { finish_reason, ..Response::default() });
        assert_eq!(empty.as_deref(), Some("the response is empty; it ended with `abort`"));
    }
}
