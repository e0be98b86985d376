//! Reads and writes the file of a golden.

use serde::Deserialize;
use serde::ser::Serialize as _;
use serde_json::value::RawValue;

use crate::file::{Golden, Offer, ReplyRecord, VERSION};
use crate::json::indent;
use crate::rules::RulesError;

/// Maximum size of a file: a hundred responses of common size, with room.
pub const MAX_FILE_BYTES: usize = 64 << 20;

/// Maximum number of requests, tools, calls and offers, each.
const MAX_ITEMS: usize = 10_000;

/// Maximum number of chunks of one response.
const MAX_CHUNKS: usize = 200_000;

/// Depth of indented values in the file.
const INPUT_DEPTH: usize = 2;
const BODY_DEPTH: usize = 4;

/// Why a text is no golden.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file is too large.
    #[error("the golden has {bytes} bytes; the limit is {} MiB", MAX_FILE_BYTES >> 20)]
    TooLarge {
        /// The size of the file.
        bytes: usize,
    },
    /// The text is no JSON, or not the JSON of a golden.
    #[error("invalid golden")]
    Invalid(#[from] serde_json::Error),
    /// The version is unknown.
    #[error("the golden has version {version}; this program reads version {VERSION}")]
    UnknownVersion {
        /// The version in the file.
        version: u64,
    },
    /// A part has more items than a golden may have.
    #[error("`{part}` has {count} items; the limit is {limit}")]
    TooMany {
        /// The member.
        part: &'static str,
        /// The number of items.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// The rules make no sense.
    #[error("invalid `rules`")]
    Rules(#[from] RulesError),
    /// A value contradicts another one.
    #[error("`{place}` {problem}")]
    Inconsistent {
        /// The JSON pointer of the value.
        place: String,
        /// What is wrong.
        problem: &'static str,
    },
}

#[derive(Deserialize)]
struct VersionOnly {
    version: u64,
}

impl Golden {
    /// Reads the text of a file.
    ///
    /// # Errors
    ///
    /// The text is too long, of an unknown version, no golden, or contradicts itself.
    pub fn from_json(text: &str) -> Result<Self, ReadError> {
        if text.len() > MAX_FILE_BYTES {
            return Err(ReadError::TooLarge { bytes: text.len() });
        }
        let VersionOnly { version } = serde_json::from_str(text)?;
        if version != u64::from(VERSION) {
            return Err(ReadError::UnknownVersion { version });
        }
        let golden: Self = serde_json::from_str(text)?;
        golden.check()?;
        Ok(golden)
    }

    /// Returns the text of the file, in a form that people can read.
    ///
    /// # Errors
    ///
    /// The golden is larger than a file may be, or contradicts itself.
    pub fn to_json(&self) -> Result<String, ReadError> {
        self.check()?;
        let mut readable = self.clone();
        let input = &mut readable.input;
        for value in [&mut input.server_config, &mut input.settings] {
            *value = indent(value, INPUT_DEPTH);
        }
        readable.golden_output = indent(&readable.golden_output, INPUT_DEPTH - 1);
        for body in
            readable.provider_responses.iter_mut().filter_map(|item| item.request.body.as_mut())
        {
            *body = indent(body, BODY_DEPTH);
        }
        let mut text = Vec::new();
        readable.serialize(&mut serde_json::Serializer::pretty(&mut text))?;
        text.push(b'\n');
        if text.len() > MAX_FILE_BYTES {
            return Err(ReadError::TooLarge { bytes: text.len() });
        }
        String::from_utf8(text)
            .map_err(|error| ReadError::Invalid(serde::ser::Error::custom(error)))
    }

    fn check(&self) -> Result<(), ReadError> {
        let counts = [
            ("further_prompts", self.input.further_prompts.len(), MAX_ITEMS),
            ("provider_responses", self.provider_responses.len(), MAX_ITEMS),
            ("tools", self.tools.len(), MAX_ITEMS),
            ("offers", self.offers.len(), MAX_ITEMS),
            ("tool_calls", self.tool_calls.len(), MAX_ITEMS),
            ("served", self.served.len(), MAX_ITEMS),
            ("approvals", self.approvals.len(), MAX_ITEMS),
            ("questions", self.questions.len(), MAX_ITEMS),
            ("jitter", self.jitter.len(), MAX_ITEMS),
            ("accepted", self.accepted.len(), MAX_ITEMS),
        ];
        for (part, count, limit) in counts {
            check_count(part, count, limit)?;
        }
        for served in &self.served {
            check_count("answers", served.answers.len(), MAX_ITEMS)?;
            check_count("notifications", served.notifications.len(), MAX_ITEMS)?;
        }
        for (at, exchange) in self.provider_responses.iter().enumerate() {
            if let ReplyRecord::Http(response) = &exchange.response {
                check_count("chunks", response.chunks.len(), MAX_CHUNKS)?;
                let broken =
                    response.chunks.iter().position(|chunk| chunk.data.to_bytes().is_none());
                if let Some(chunk) = broken {
                    let place =
                        format!("/provider_responses/{at}/response/http/chunks/{chunk}/base64");
                    return Err(ReadError::Inconsistent { place, problem: "is no Base64" });
                }
            }
        }
        if let Some(rules) = &self.rules {
            rules.check()?;
        }
        self.check_tools()
    }

    fn check_tools(&self) -> Result<(), ReadError> {
        for (at, tool) in self.tools.iter().enumerate() {
            if tool.hash != crate::ToolRecord::hash_of(&tool.definition) {
                let place = format!("/tools/{at}/hash");
                return Err(ReadError::Inconsistent {
                    place,
                    problem: "is not that of `definition`",
                });
            }
        }
        let mut before = (0, 0);
        for (at, Offer { requests, calls, tools, .. }) in self.offers.iter().enumerate() {
            if tools.iter().any(|tool| *tool >= self.tools.len()) {
                let place = format!("/offers/{at}/tools");
                return Err(ReadError::Inconsistent {
                    place,
                    problem: "names a tool that is not in `tools`",
                });
            }
            if (*requests, *calls) < before {
                let place = format!("/offers/{at}");
                return Err(ReadError::Inconsistent {
                    place,
                    problem: "is earlier than the offer before",
                });
            }
            before = (*requests, *calls);
        }
        Ok(())
    }

    /// Returns whether two goldens are the same but for the time of the recording.
    pub fn is_same_recording(&self, other: &Self) -> bool {
        let text = |golden: &Self| {
            let undated = Self { recorded_at: String::new(), ..golden.clone() };
            serde_json::value::to_raw_value(&undated)
                .map(|raw: Box<RawValue>| crate::canonical(&raw))
                .ok()
        };
        let [this, that] = [text(self), text(other)];
        this.is_some() && this == that
    }
}

fn check_count(part: &'static str, count: usize, limit: usize) -> Result<(), ReadError> {
    if count > limit { Err(ReadError::TooMany { part, count, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
