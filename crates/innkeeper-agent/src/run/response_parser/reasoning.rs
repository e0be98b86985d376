//! Reasoning in the text of a response, and calls in its reasoning.

use std::sync::Arc;

use innkeeper_toolcall::event::{ParseEvent, TextEnd};
use innkeeper_toolcall::{ParserOptions, ResolvedCall, ToolCallParser};

use crate::provider::Response;
use crate::run::RunConfig;
use crate::run::quotation::{CallPlace, MarkedParts};

/// Returns the calls at the end of the model's reasoning: some servers put a call there if the model
/// does not end its reasoning before the call. Only calls in special tokens count, because a model
/// also thinks about calls that it doesn't make.
pub(super) fn calls_in_reasoning(response: &Response, config: &RunConfig) -> Vec<ResolvedCall> {
    let reasoning = response.message.reasoning();
    if reasoning.is_empty() || config.tools.known.is_empty() {
        return Vec::new();
    }
    let prompt = Some("<think>".to_owned());
    let options = ParserOptions {
        format: config.settings.tool_use.format,
        prompt,
        ..ParserOptions::default()
    };
    let mut found = Vec::new();
    let mut length = 0;
    let parser = ToolCallParser::new(config.tools.known.clone(), &options);
    parser.parse_all(&reasoning, TextEnd::Stop, &mut |event| {
        let start = length;
        length += event.text().len();
        if let ParseEvent::Call { call, .. } = event {
            found.push((start..length, call.clone()));
        }
    });
    let ranges: Vec<_> = found.iter().map(|found| found.0.clone()).collect();
    let parts = MarkedParts::new(&reasoning, &ranges, &[]);
    let mut is_certain = false;
    found.retain(|(range, _)| {
        // The further calls of a list have no text.
        if !range.is_empty() {
            let text = &reasoning[range.clone()];
            is_certain = SPECIAL_TOKENS.iter().any(|token| text.starts_with(token))
                && parts.place(range) == CallPlace::TopLevel;
        }
        is_certain
    });
    found.into_iter().map(|found| found.1).collect()
}

/// The starts of tokens that models have for calls only.
const SPECIAL_TOKENS: [&str; 4] = ["<|", "<｜", "[TOOL_CALLS]", "]<]"];

/// Returns the text of a response without the reasoning that a model wrote into its text.
pub(in crate::run) fn text_without_reasoning(response: &Response) -> String {
    let mut text = String::new();
    let mut has_reasoning = false;
    let visible_text = response.message.visible_text();
    let parser = ToolCallParser::new(Arc::default(), &ParserOptions::default());
    parser.parse_all(&visible_text, TextEnd::Stop, &mut |event| match event {
        ParseEvent::Reasoning(_) => has_reasoning = true,
        ParseEvent::Markup(_) | ParseEvent::Arguments { .. } => {}
        event => text.push_str(event.text()),
    });
    // Other markup is part of a text without reasoning.
    if has_reasoning { text } else { visible_text }
}
