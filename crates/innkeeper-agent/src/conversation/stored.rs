//! The stored form of a conversation: its messages with a version number.

use std::collections::HashSet;

use serde::de::Error as _;
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Conversation, Message};

/// The version of the stored form: `{"version": 1, "messages": […]}`.
pub const CONVERSATION_VERSION: u64 = 1;

impl Serialize for Conversation {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Conversation", 2)?;
        object.serialize_field("version", &CONVERSATION_VERSION)?;
        object.serialize_field("messages", &self.messages)?;
        object.end()
    }
}

/// Reads the stored form. The messages must be in a valid order; the limits of a conversation apply.
impl<'de> Deserialize<'de> for Conversation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StoredConversation { version, messages } =
            StoredConversation::deserialize(deserializer)?;
        if version != CONVERSATION_VERSION {
            return Err(D::Error::custom(format!(
                "unknown version `{version}` of a stored conversation: this release reads version \
                 `{CONVERSATION_VERSION}`"
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
        Ok(conversation)
    }
}

/// The stored form. The messages stay raw until their version is known.
#[derive(Deserialize)]
struct StoredConversation {
    version: u64,
    messages: Box<RawValue>,
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
