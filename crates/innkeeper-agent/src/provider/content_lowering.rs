//! Lowers the content of messages to what an API and its model take.
//!
//! Text replaces media that cannot be sent, so that the codecs encode every medium that they find:
//! media of a kind that the model does not take, of a type or size that the API rejects, and the
//! oldest media of a request that would become too large. Media move from a tool result to a
//! following user message if a tool result cannot contain them.

mod media_rules;

use crate::content::{
    Content, ContentBlock, ContentSupport, EmbeddedResource, Media, MediaContent, MediaKind,
    ResourceContents,
};
use crate::conversation::{Message, ToolResult};
use crate::provider::ProviderApi;
use media_rules::MediaRules;

/// Returns the lowered messages; `None` if no message has media.
pub(super) fn lower_messages(
    api: ProviderApi,
    support: ContentSupport,
    messages: &[Message],
) -> Option<Vec<Message>> {
    lower_by_rules(MediaRules::for_api(api), support, messages)
}

fn lower_by_rules(
    rules: &'static MediaRules,
    support: ContentSupport,
    messages: &[Message],
) -> Option<Vec<Message>> {
    let contents: Vec<_> = messages.iter().flat_map(message_contents).collect();
    if !contents.iter().any(|content| content.has_media()) {
        return None;
    }
    let mut lowering = ContentLowering { rules, support, omitted_media: 0 };
    lowering.omitted_media = lowering.count_omitted(&contents);
    let mut lowered = Vec::with_capacity(messages.len() + 1);
    // Blocks of tool results for a user message that directly follows the results.
    let mut moved = Vec::new();
    for message in messages {
        match message {
            Message::User(content) => {
                let mut blocks = std::mem::take(&mut moved);
                blocks.extend(lowering.lower(content));
                lowered.push(Message::User(blocks.into()));
            }
            Message::Assistant(_) => {
                lowered.extend(take_user_message(&mut moved));
                lowered.push(message.clone());
            }
            Message::ToolResults(results) => {
                let results: Vec<_> = results
                    .iter()
                    .map(|result| lowering.lower_result(result, &mut moved))
                    .collect();
                lowered.push(Message::ToolResults(results.into()));
            }
        }
    }
    lowered.extend(take_user_message(&mut moved));
    Some(lowered)
}

fn take_user_message(blocks: &mut Vec<ContentBlock>) -> Option<Message> {
    let blocks = std::mem::take(blocks);
    (!blocks.is_empty()).then(|| Message::User(blocks.into()))
}

fn message_contents(message: &Message) -> Vec<&Content> {
    match message {
        Message::User(content) => vec![content],
        Message::Assistant(_) => Vec::new(),
        Message::ToolResults(results) => results.iter().map(|result| &result.content).collect(),
    }
}

/// The state of the lowering of one request.
struct ContentLowering {
    rules: &'static MediaRules,
    support: ContentSupport,
    /// The number of media, from the oldest, that exceed the limit of the request.
    omitted_media: usize,
}

impl ContentLowering {
    /// Counts the oldest media that do not fit the request together with the newer media.
    fn count_omitted(&self, contents: &[&Content]) -> usize {
        let mut bytes = 0_usize;
        let newest_first = contents.iter().rev().flat_map(|content| content.blocks().iter().rev());
        let sendable = newest_first
            .filter_map(ContentBlock::media)
            .filter(|media| self.support.accepts(media.kind) && self.rules.check(*media).is_ok());
        sendable
            .filter(|media| {
                bytes = bytes.saturating_add(media.data.len());
                bytes > self.rules.max_request_bytes
            })
            .count()
    }

    fn lower(&mut self, content: &Content) -> Vec<ContentBlock> {
        content.blocks().iter().map(|block| self.lower_block(block)).collect()
    }

    /// Lowers a tool result; `moved` receives the media that a tool result cannot contain.
    fn lower_result(&mut self, result: &ToolResult, moved: &mut Vec<ContentBlock>) -> ToolResult {
        let support = self.support;
        let may_contain_media = !result.is_error || self.rules.media_in_failed_results;
        let is_moved = |block: &ContentBlock| {
            block.media().is_some_and(|media| {
                !may_contain_media || !support.accepts_in_tool_result(media.kind)
            })
        };
        let mut blocks = self.lower(&result.content);
        let lowered = ToolResult { content: blocks.clone().into(), ..result.clone() };
        moved.extend(lowered.media_blocks(is_moved));
        for (block, original) in blocks.iter_mut().zip(result.content.blocks()) {
            if is_moved(block) {
                *block = original.to_text().unwrap_or_default().into_owned().into();
            }
        }
        ToolResult { content: blocks.into(), ..lowered }
    }

    fn lower_block(&mut self, block: &ContentBlock) -> ContentBlock {
        let Some(media) = block.media() else { return block.clone() };
        if !self.support.accepts(media.kind) {
            return block.to_text().unwrap_or_default().into_owned().into();
        }
        match self.rules.check(media) {
            Ok(_) if self.omitted_media > 0 => {
                self.omitted_media -= 1;
                block.to_text_with_reason("newer content fills the request").into()
            }
            Ok(mime_type) => sendable_block(media, mime_type),
            Err(reason) => block.to_text_with_reason(&reason).into(),
        }
    }
}

/// Returns the media as a block of their kind, with the type in the API's spelling.
fn sendable_block(media: Media<'_>, mime_type: &str) -> ContentBlock {
    let mime_type = Some(mime_type.to_owned());
    let data = media.data.into();
    match media.kind {
        MediaKind::Image => ContentBlock::Image(MediaContent { mime_type, data }),
        MediaKind::Audio => ContentBlock::Audio(MediaContent { mime_type, data }),
        MediaKind::Document => ContentBlock::Resource(EmbeddedResource {
            uri: String::new(),
            mime_type,
            contents: ResourceContents::Blob(data),
        }),
    }
}

#[cfg(test)]
mod tests;
