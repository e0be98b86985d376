//! The stored form of a conversation: its messages with a version number.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Conversation, Message, OmittedHistory};

/// The version of the stored form: `{"version": 1, "messages": […]}`, with a member `omitted` if
/// requests leave messages out.
pub const CONVERSATION_VERSION: u64 = 1;

impl Serialize for Conversation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let has_omitted = self.omitted != OmittedHistory::default();
        let fields = 2 + usize::from(has_omitted);
        let mut object = serializer.serialize_struct("Conversation", fields)?;
        object.serialize_field("version", &CONVERSATION_VERSION)?;
        object.serialize_field("messages", &self.messages)?;
        if has_omitted {
            object.serialize_field("omitted", &self.omitted)?;
        }
        object.end()
    }
}

/// Reads the stored form, without members that this version does not have. The messages must be in
/// a valid order; the limits of a conversation apply.
impl<'de> Deserialize<'de> for Conversation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StoredConversation { version, messages, omitted, unknown } =
            deserializer.deserialize_map(StoredConversationVisitor)?;
        if version != CONVERSATION_VERSION {
            return Err(D::Error::custom(format!(
                "unknown version `{version}` of a stored conversation: this release reads version \
                 `{CONVERSATION_VERSION}`"
            )));
        }
        if let Some(name) = unknown {
            return Err(D::Error::custom(format!(
                "unknown member `{name}` of a stored conversation"
            )));
        }
        let messages: Vec<Message> =
            serde_json::from_str(messages.get()).map_err(D::Error::custom)?;
        let mut conversation = Self::new();
        let mut call_ids = HashSet::new();
        for (at, message) in messages.into_iter().enumerate() {
            conversation
                .push_stored(message, &mut call_ids)
                .map_err(|problem| D::Error::custom(format!("message {at}: {problem}")))?;
        }
        let omitted: OmittedHistory = match omitted {
            Some(raw) => serde_json::from_str(raw.get()).map_err(D::Error::custom)?,
            None => return Ok(conversation),
        };
        if !omitted.fits(conversation.messages()) {
            let count = omitted.messages;
            return Err(D::Error::custom(format!(
                "`omitted.messages` is {count}: no user message and no response starts there"
            )));
        }
        conversation.set_omitted_history(omitted);
        Ok(conversation)
    }
}

/// The stored form. The messages stay raw until their version is known.
struct StoredConversation {
    version: u64,
    messages: Box<RawValue>,
    omitted: Option<Box<RawValue>>,
    /// The name of a member that the version does not have.
    unknown: Option<String>,
}

/// Reads an object only: a derived implementation also reads an array.
struct StoredConversationVisitor;

impl<'de> Visitor<'de> for StoredConversationVisitor {
    type Value = StoredConversation;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `version` and `messages`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StoredConversation, A::Error> {
        let mut version = None;
        let mut messages = None;
        let mut omitted = None;
        let mut unknown = None;
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "version" if version.is_some() => return Err(A::Error::duplicate_field("version")),
                "version" => version = Some(map.next_value()?),
                "messages" if messages.is_some() => {
                    return Err(A::Error::duplicate_field("messages"));
                }
                "messages" => messages = Some(map.next_value()?),
                "omitted" if omitted.is_some() => return Err(A::Error::duplicate_field("omitted")),
                "omitted" => omitted = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    unknown = Some(name);
                }
            }
        }
        let version = version.ok_or_else(|| A::Error::missing_field("version"))?;
        let messages = messages.ok_or_else(|| A::Error::missing_field("messages"))?;
        Ok(StoredConversation { version, messages, omitted, unknown })
    }
}

impl Conversation {
    fn push_stored(
        &mut self,
        message: Message,
        call_ids: &mut HashSet<String>,
    ) -> Result<(), String> {
        match message {
            Message::User(content) => self.push_user(content).map_err(|error| error.to_string()),
            Message::Assistant(assistant) => {
                for call in assistant.calls() {
                    if call.id.is_empty() || !call_ids.insert(call.id.clone()) {
                        return Err(format!("call id `{}` is empty or occurs twice", call.id));
                    }
                }
                self.push_assistant((*assistant).clone()).map_err(|error| error.to_string())
            }
            Message::ToolResults(results) => {
                if results.is_empty() {
                    return Err("the list of tool results is empty".to_owned());
                }
                self.push_tool_results(results.to_vec()).map_err(|error| error.to_string())
            }
        }
    }
}
