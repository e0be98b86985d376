//! One message in the words of Chat Completions.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::json;
use serde_json::value::RawValue;

use crate::conversation::{Answer, Said, ToolCall, ToolResult};
use crate::provider::Wire;
use crate::provider::codec::{Asking, Fields, object};

/// The members of a message in their order.
pub(super) struct Message<'r>(Vec<(String, Member<'r>)>);

/// The value of a member.
enum Member<'r> {
    Text(&'r str),
    /// What is made here.
    Made(serde_json::Value),
    /// What came from the provider.
    Raw(&'r RawValue),
    List(Vec<Self>),
}

impl<'r> Message<'r> {
    pub(super) fn system(text: &'r str) -> Self {
        Self::new("system", Member::Text(text))
    }

    pub(super) fn user(text: &'r str) -> Self {
        Self::new("user", Member::Text(text))
    }

    /// Stands between results and what the person says then: models of Mistral's take nothing else.
    pub(super) fn stopped() -> Self {
        Self::new("assistant", Member::Text("I stopped here."))
    }

    pub(super) fn tool(result: &'r ToolResult) -> Self {
        let mut message = Self::new("tool", Member::Text(&result.text));
        message.0.push(("tool_call_id".to_owned(), Member::Text(&result.id)));
        message
    }

    /// Thoughts go back only as they came, and only to the model that thought them.
    pub(super) fn assistant(answer: &'r Answer, asking: Asking<'r>) -> Self {
        let (mut text, mut contents, mut calls) = (String::new(), Vec::new(), Vec::new());
        let mut members = Vec::new();
        for part in &answer.parts {
            let native = part.native.as_ref();
            let native = native.and_then(|it| it.for_model(Wire::OpenAiChat, asking.model));
            match (&part.said, native) {
                (Said::Text(said), _) => text.push_str(said),
                (Said::Call(call), native) => calls.push(match native {
                    Some(block) => Member::Raw(block),
                    None => Member::Made(made(call, asking)),
                }),
                (Said::Reasoning(_) | Said::Other, Some(block)) => {
                    place(block, &mut members, &mut contents);
                }
                (Said::Reasoning(_) | Said::Other, None) => {}
            }
        }
        let content = if !contents.is_empty() {
            if !text.is_empty() {
                contents.push(Member::Made(json!({"type": "text", "text": text})));
            }
            Member::List(contents)
        } else if text.is_empty() && !calls.is_empty() {
            Member::Made(serde_json::Value::Null)
        } else {
            Member::Made(text.into())
        };
        let mut message = Self::new("assistant", content);
        message.0.append(&mut members);
        if !calls.is_empty() {
            message.0.push(("tool_calls".to_owned(), Member::List(calls)));
        }
        message
    }

    fn new(role: &'static str, content: Member<'r>) -> Self {
        Self(vec![("role".to_owned(), Member::Text(role)), ("content".to_owned(), content)])
    }
}

/// A block with a type is a part of the content; any other holds members of the message.
fn place<'r>(
    block: &'r RawValue,
    members: &mut Vec<(String, Member<'r>)>,
    contents: &mut Vec<Member<'r>>,
) {
    let Some(fields) = Fields::of(block) else { return };
    if fields.get("type").is_some() {
        contents.push(Member::Raw(block));
        return;
    }
    members.extend(fields.iter().map(|(name, value)| (name.to_owned(), Member::Raw(value))));
}

/// Arguments that are no object are put into one: there are servers that fail for good on a
/// conversation with others.
fn made(call: &ToolCall, asking: Asking<'_>) -> serde_json::Value {
    let name = asking.offer.alias(&call.name);
    let arguments = object(&call.arguments);
    json!({
        "id": call.id,
        "type": "function",
        "function": {"name": name, "arguments": arguments.get()},
    })
}

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Serialize for Member<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Made(value) => value.serialize(serializer),
            Self::Raw(value) => value.serialize(serializer),
            Self::List(list) => list.serialize(serializer),
        }
    }
}
