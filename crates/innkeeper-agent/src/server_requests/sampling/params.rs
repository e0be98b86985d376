//! The parameters of `sampling/createMessage`.

use std::sync::Arc;

use innkeeper_protocol::skim;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::content::{Content, ContentBlock};
use crate::conversation::{AssistantMessage, Message};
use crate::provider::Request;

/// The highest temperature of a [`Request`].
const MAX_TEMPERATURE: f64 = 2.0;

/// A sampling request of a server. `includeContext` and `modelPreferences` are not read.
#[derive(Debug, PartialEq)]
pub(super) struct SamplingParams {
    pub(super) system: String,
    pub(super) messages: Vec<Message>,
    pub(super) max_tokens: u32,
    temperature: Option<f64>,
    stop_sequences: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawParams {
    messages: Vec<RawMessage>,
    max_tokens: f64,
    system_prompt: Option<String>,
    temperature: Option<f64>,
    stop_sequences: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct RawMessage {
    role: Role,
    content: Box<RawValue>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase")]
enum Role {
    User,
    Assistant,
}

impl SamplingParams {
    /// Parses the parameters; the error is a message for the server.
    pub(super) fn parse(params: &str) -> Result<Self, String> {
        let params: RawParams = serde_json::from_str(params).map_err(|error| error.to_string())?;
        let max_tokens = params.max_tokens;
        if max_tokens < 1.0 || max_tokens.fract() != 0.0 {
            return Err("`maxTokens` is no positive integer".to_owned());
        }
        if params.temperature.is_some_and(|value| !(0.0..=MAX_TEMPERATURE).contains(&value)) {
            return Err(format!("`temperature` is not between 0 and {MAX_TEMPERATURE}"));
        }
        let stop_sequences = params.stop_sequences.unwrap_or_default();
        Ok(Self {
            system: params.system_prompt.unwrap_or_default(),
            messages: to_messages(&params.messages)?,
            // The conversion saturates, far above each budget.
            max_tokens: max_tokens as u32,
            temperature: params.temperature,
            stop_sequences: stop_sequences.into_iter().filter(|text| !text.is_empty()).collect(),
        })
    }

    /// Returns the request to the model, without tools.
    pub(super) fn into_request(self) -> Request {
        Request {
            system: self.system,
            messages: self.messages,
            max_tokens: Some(self.max_tokens),
            temperature: self.temperature,
            stop_sequences: self.stop_sequences,
            ..Request::default()
        }
    }
}

/// Converts the messages. Adjacent messages of one role become one message, because some APIs
/// require that the roles alternate.
fn to_messages(raw_messages: &[RawMessage]) -> Result<Vec<Message>, String> {
    let mut messages = Vec::new();
    for group in raw_messages.chunk_by(|left, right| left.role == right.role) {
        let mut blocks = Vec::new();
        for message in group {
            push_blocks(&message.content, &mut blocks)?;
        }
        let content = Content::from(blocks);
        messages.push(match group[0].role {
            Role::User => Message::User(content),
            Role::Assistant => {
                Message::Assistant(Arc::new(AssistantMessage::from_text(content.to_text())))
            }
        });
    }
    match messages.last() {
        Some(Message::User(_)) => Ok(messages),
        Some(Message::Assistant(_) | Message::ToolResults(_)) => {
            Err("the last message is no message of the user".to_owned())
        }
        None => Err("`messages` is empty".to_owned()),
    }
}

/// Adds the content of a message: one block, or a list of blocks since 2025-11-25.
fn push_blocks(content: &RawValue, blocks: &mut Vec<ContentBlock>) -> Result<(), String> {
    if content.get().starts_with('[') {
        for element in skim::elements(content.get()) {
            let element = RawValue::from_string(element.to_owned());
            blocks.push(to_block(&element.map_err(|error| error.to_string())?)?);
        }
        return Ok(());
    }
    blocks.push(to_block(content)?);
    Ok(())
}

fn to_block(raw: &RawValue) -> Result<ContentBlock, String> {
    match ContentBlock::from_raw(raw) {
        Some(block @ (ContentBlock::Text(_) | ContentBlock::Image(_) | ContentBlock::Audio(_))) => {
            Ok(block)
        }
        Some(
            ContentBlock::Resource(_)
            | ContentBlock::ResourceLink(_)
            | ContentBlock::Structured(_)
            | ContentBlock::Other(_),
        )
        | None => Err("the content of a message is no text, image or audio".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::content::MediaContent;

    fn parse(params: &Value) -> Result<SamplingParams, String> {
        SamplingParams::parse(&params.to_string())
    }

    #[test]
    fn the_request_has_what_the_server_sent_and_no_context() {
        let text = |role: &str, text: &str| json!({"role": role, "content": {"type": "text", "text": text}});
        let image = json!({"type": "image", "mimeType": "image/png", "data": "aGVsbG8="});
        let list = json!({"role": "user", "content": [{"type": "text", "text": "c"}, image]});
        let params = json!({
            "messages": [text("user", "a"), text("user", "b"), text("assistant", "x"), list],
            "systemPrompt": "S", "maxTokens": 5.0, "temperature": 0.5,
            "stopSequences": ["END", ""], "includeContext": "allServers",
            "modelPreferences": {"hints": [{"name": "other"}]}, "metadata": {"a": 1},
        });
        let media = MediaContent { mime_type: Some("image/png".into()), data: "aGVsbG8=".into() };
        let assistant = AssistantMessage::from_text("x");
        let expected = Request {
            system: "S".to_owned(),
            messages: vec![
                Message::User(vec!["a".into(), "b".into()].into()),
                Message::Assistant(assistant.into()),
                Message::User(vec!["c".into(), ContentBlock::Image(media)].into()),
            ],
            max_tokens: Some(5),
            temperature: Some(0.5),
            stop_sequences: vec!["END".to_owned()],
            ..Request::default()
        };
        assert_eq!(parse(&params).unwrap().into_request(), expected);
    }

    #[test]
    fn parameters_that_no_model_can_answer_are_rejected() {
        let user = json!({"role": "user", "content": {"type": "text", "text": "a"}});
        let valid = json!({"messages": [user], "maxTokens": 1});
        parse(&valid).unwrap();
        for (key, value) in [
            ("messages", json!([])),
            ("messages", json!([{"role": "system", "content": {"type": "text", "text": "a"}}])),
            ("messages", json!([{"role": "user", "content": "a"}])),
            ("messages", json!([{"role": "user", "content": {"type": "tool_result"}}])),
            ("messages", json!([user, {"role": "assistant", "content": []}])),
            ("maxTokens", json!(0)),
            ("maxTokens", json!(1.5)),
            ("maxTokens", Value::Null),
            ("temperature", json!(2.1)),
            ("temperature", json!(-0.1)),
            ("stopSequences", json!("END")),
        ] {
            let mut params = valid.clone();
            params[key] = value;
            assert!(parse(&params).is_err(), "{params}");
        }
    }

    proptest! {
        #[test]
        fn the_roles_of_the_messages_alternate_and_no_text_is_lost(
            messages in prop::collection::vec((any::<bool>(), "[a-z]{1,3}"), 0..6),
        ) {
            let raw: Vec<_> = messages.iter().map(|(is_user, text)| {
                let role = if *is_user { "user" } else { "assistant" };
                json!({"role": role, "content": {"type": "text", "text": text}})
            }).collect();
            let parsed = parse(&json!({"messages": raw, "maxTokens": 1}));
            prop_assert_eq!(parsed.is_ok(), messages.last().is_some_and(|(is_user, _)| *is_user));
            let Ok(SamplingParams { messages: converted, .. }) = parsed else { return Ok(()) };
            let parts: Vec<(bool, String)> = converted.iter().map(|message| match message {
                Message::User(content) => (true, content.to_text().into_owned()),
                Message::Assistant(message) => (false, message.visible_text()),
                Message::ToolResults(_) => unreachable!("no tools"),
            }).collect();
            prop_assert!(parts.windows(2).all(|pair| pair[0].0 != pair[1].0), "{:?}", parts);
            let texts: Vec<_> = parts.iter().flat_map(|(_, text)| text.split('\n')).collect();
            let expected: Vec<_> = messages.iter().map(|(_, text)| text.as_str()).collect();
            prop_assert_eq!(texts, expected);
        }
    }
}
