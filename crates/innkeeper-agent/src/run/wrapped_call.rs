//! Finds a response that is nothing but a quoted call.
//!
//! A call in a block of code or in a quotation is text. A response with nothing else is probably a
//! call, of a model that likes to decorate its calls.

use innkeeper_toolcall::event::{ParseEvent, TextEnd};
use innkeeper_toolcall::{ParserOptions, ToolCallParser};
use pulldown_cmark::{Event, Parser, Tag};

use super::RunConfig;

/// Maximum number of quotations and blocks of code around a call.
const MAX_BLOCKS: usize = 4;

/// Whether a text in which the parser found no call is one block of code or one quotation with a
/// call, or a call between signs.
pub(super) fn is_wrapped_call(text: &str, config: &RunConfig) -> bool {
    let text = text.trim_matches('\n').trim_end();
    // The usual answer begins with a word.
    if config.tools.known.is_empty() || text.trim_start().starts_with(char::is_alphabetic) {
        return false;
    }
    let mut content = text.to_owned();
    for _ in 0..MAX_BLOCKS {
        let Some(inner) = content_of_only_block(&content) else { break };
        content = inner;
    }
    let is_block = content != text;
    let is_start = |letter: char| letter.is_alphabetic() || "<[{|".contains(letter);
    let is_end = |letter: char| letter.is_alphabetic() || ">]})|".contains(letter);
    let bare = content.trim().trim_start_matches("<!--").trim_end_matches("-->");
    let bare = bare.trim_start_matches(|letter| !is_start(letter));
    let bare = bare.trim_end_matches(|letter| !is_end(letter));
    let options = ParserOptions { format: config.format, ..ParserOptions::default() };
    let mut parser = ToolCallParser::new(config.tools.known.clone(), &options);
    let mut has_call = false;
    let mut has_words = false;
    let mut look = |event: ParseEvent<'_>| match event {
        ParseEvent::Call { .. } => has_call = true,
        ParseEvent::Text(text) => has_words |= text.contains(char::is_alphabetic),
        _ => {}
    };
    parser.push(bare, &mut look);
    parser.finish(TextEnd::Stop, &mut look);
    has_call && (is_block || !has_words)
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
