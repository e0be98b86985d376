//! Finds a response that is nothing but a quoted call.
//!
//! A call in a block of code or in a quotation is text. A response with nothing else is probably a
//! call, of a model that likes to decorate its calls.

use innkeeper_toolcall::event::{ParseEvent, TextEnd};
use innkeeper_toolcall::{ParserOptions, ToolCallParser};
use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag};

use super::RunConfig;
use super::quotation::is_closed;

/// Maximum number of quotations and blocks of code around a call.
const MAX_BLOCKS: usize = 4;

/// Whether a text in which the parser found no call is one block of code or one quotation with a
/// call, or a call between signs. A block of code that doesn't end counts whatever stands before it.
pub(super) fn is_wrapped_call(text: &str, config: &RunConfig) -> bool {
    if config.tools.known.is_empty() {
        return false;
    }
    if let Some(content) = content_of_open_block(text) {
        return FoundCall::find(&content, config).is_call;
    }
    let text = text.trim_matches('\n').trim_end();
    // The usual answer begins with a word.
    if text.trim_start().starts_with(char::is_alphabetic) {
        return false;
    }
    let mut content = text.to_owned();
    for _ in 0..MAX_BLOCKS {
        let Some(inner) = content_of_only_block(&content) else { break };
        content = inner;
    }
    let bare = content.trim().trim_start_matches("<!--").trim_end_matches("-->");
    let bare =
        bare.trim_start_matches(|letter: char| !letter.is_alphabetic() && !"<[{|".contains(letter));
    let bare =
        bare.trim_end_matches(|letter: char| !letter.is_alphabetic() && !">]})|".contains(letter));
    let found = FoundCall::find(bare, config);
    found.is_call && (content != text || !found.has_words)
}

/// What the parser finds in a text.
#[derive(Default)]
struct FoundCall {
    is_call: bool,
    /// Whether other text has words.
    has_words: bool,
}

impl FoundCall {
    fn find(text: &str, config: &RunConfig) -> Self {
        let options =
            ParserOptions { format: config.settings.tool_use.format, ..ParserOptions::default() };
        let parser = ToolCallParser::new(config.tools.known.clone(), &options);
        let mut found = Self::default();
        parser.parse_all(text, TextEnd::Interrupted, &mut |event| match event {
            ParseEvent::Call { .. } => found.is_call = true,
            ParseEvent::Text(text) => found.has_words |= text.contains(char::is_alphabetic),
            _ => {}
        });
        found
    }
}

/// Returns the content of the block of code that a text ends with, if nothing closes the block.
fn content_of_open_block(text: &str) -> Option<String> {
    if !text.contains("```") && !text.contains("~~~") {
        return None;
    }
    let mut blocks =
        Parser::new(text).into_offset_iter().filter_map(|(event, range)| match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))) => Some(&text[range]),
            _ => None,
        });
    let (_, content) = blocks.find(|block| !is_closed(block))?.split_once('\n')?;
    Some(content.to_owned())
}

/// Returns the content of a text that is one block of code or one quotation.
fn content_of_only_block(text: &str) -> Option<String> {
    let mut events = Parser::new(text).into_offset_iter();
    let (first, range) = events.next()?;
    if !text[range.end..].trim().is_empty() {
        return None;
    }
    match first {
        Event::Start(Tag::CodeBlock(_)) => {
            let lines = events.filter_map(|(event, _)| match event {
                Event::Text(line) => Some(line.into_string()),
                _ => None,
            });
            Some(lines.collect())
        }
        Event::Start(Tag::BlockQuote(_)) => {
            let lines = text.lines().map(|line| {
                let line = line.trim_start();
                line.strip_prefix('>').map_or(line, |quoted| {
                    // One space belongs to the sign.
                    quoted.strip_prefix(' ').unwrap_or(quoted)
                })
            });
            Some(lines.collect::<Vec<_>>().join("\n"))
        }
        _ => None,
    }
}
