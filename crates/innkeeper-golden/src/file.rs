//! The file of a golden, version 1 (document 002, "Golden Test Implementation").
//!
//! Foreign JSON stays text: numbers keep their digits, and results and definitions keep their bytes.
//! All times are whole milliseconds.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::rules::Rules;

/// The version that this program writes.
pub const VERSION: u32 = 1;

/// A recorded run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Golden {
    /// The version of the file's form; see [`VERSION`].
    pub version: u32,
    /// The name of the test.
    pub test_name: String,
    /// Where the bytes come from.
    pub origin: Origin,
    /// What the golden shows, for the statistics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// The UTC time of the recording, `2026-11-29T05:40:00Z`.
    pub recorded_at: String,
    /// The program that recorded the run, with its version.
    pub program: String,
    /// What the run was given.
    pub input: Input,
    /// The result of the run, as `ask --json` prints it.
    pub golden_output: Box<RawValue>,
    /// The requests to the model with their responses, in the order of the requests.
    pub provider_responses: Vec<Exchange>,
    /// The servers after the start, by name.
    #[serde(default)]
    pub servers: BTreeMap<String, ServerRecord>,
    /// Each definition that was offered, once.
    #[serde(default)]
    pub tools: Vec<ToolRecord>,
    /// The tools that were offered, with each change.
    #[serde(default)]
    pub offers: Vec<Offer>,
    /// The tool calls in the order in which they began.
    #[serde(default)]
    pub tool_calls: Vec<ToolCallRecord>,
    /// What the MCP clients of another program's agent got from `innkeeper serve --stdio`: one record
    /// for each command line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub served: Vec<ServedRecord>,
    /// The decisions about calls that needed approval, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<ApprovalRecord>,
    /// The questions of servers with their answers, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<QuestionRecord>,
    /// The random numbers that varied the delays of retries, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jitter: Vec<Box<RawValue>>,
    /// The rules by which runs are compared with the golden; without rules, by [`Rules::exact`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Rules>,
    /// The changed results that people took over, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accepted: Vec<Acceptance>,
}

/// Where the bytes of a golden come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A real run.
    Recorded,
    /// Written after a provider's documentation.
    Constructed,
    /// The trace of a run.
    Trace,
}

impl Origin {
    /// Returns the name in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Constructed => "constructed",
            Self::Trace => "trace",
        }
    }
}

/// The four categories of document 002.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// A chain of calls that succeeds.
    HappyPath,
    /// Failures, and what the model does about them.
    ErrorRecovery,
    /// The same input for several providers.
    ProviderComparison,
    /// Everything that is rare.
    EdgeCase,
}

impl Category {
    /// All categories.
    pub const ALL: [Self; 4] =
        [Self::HappyPath, Self::ErrorRecovery, Self::ProviderComparison, Self::EdgeCase];

    /// Returns the category with which the name of a test begins, such as `edge_case_two_answers`.
    pub fn from_test_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| name.starts_with(category.as_str()))
    }

    /// Returns the name in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::HappyPath => "happy_path",
            Self::ErrorRecovery => "error_recovery",
            Self::ProviderComparison => "provider_comparison",
            Self::EdgeCase => "edge_case",
        }
    }
}

/// What a run was given.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The configuration of the servers as the user wrote it, without expanded variables.
    pub server_config: Box<RawValue>,
    /// The system prompt.
    pub system_prompt: String,
    /// The name of the provider.
    pub provider: String,
    /// The provider's name of the model, before a server was asked for it.
    pub model: String,
    /// The HTTP API of the provider.
    pub api: String,
    /// The base URL of the provider, without credentials.
    pub base_url: String,
    /// The message of the user, or the first one of a chat.
    pub user_prompt: String,
    /// The further messages of a chat. Each one was sent after the response to the one before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_prompts: Vec<String>,
    /// The namespace of the tools.
    pub namespace: String,
    /// Whether the responses were streamed.
    pub streaming: bool,
    /// The settings of the agent.
    pub settings: Box<RawValue>,
    /// The agent, if it is another program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentInput>,
}

/// An agent of another program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentInput {
    /// The command with its arguments.
    pub command: Vec<String>,
    /// The base URL of each provider that the agent used, by the provider's name.
    pub base_urls: BTreeMap<String, String>,
}

/// A request to the model and its response.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exchange {
    /// The iteration of the run, counted from 1 and on over all messages of a chat; 0 for a question
    /// about the server.
    pub iteration: u32,
    /// The request.
    pub request: HttpRequestRecord,
    /// What came back.
    pub response: ReplyRecord,
    /// The reported tokens of the iteration, at the response that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_usage: Option<Box<RawValue>>,
}

/// A request without its headers, which carry the key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpRequestRecord {
    /// The method.
    pub method: String,
    /// The URL, without credentials.
    pub url: String,
    /// The body; `null` for a request without one.
    pub body: Option<Box<RawValue>>,
    /// When the request was sent, since the start of the run.
    pub begin_ms: u64,
}

/// What came back for a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplyRecord {
    /// A response.
    Http(HttpResponseRecord),
    /// No response: the request failed.
    Failed {
        /// Since the request.
        ms: u64,
        /// The class of the failure.
        kind: String,
        /// The message.
        message: String,
    },
    /// No response before the run gave up.
    Silent {},
}

/// A response as it arrived.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpResponseRecord {
    /// The status code.
    pub status: u16,
    /// When the head arrived, since the request.
    pub ms: u64,
    /// The headers that the run reads, in lower case.
    pub headers: Vec<(String, String)>,
    /// The body, cut as it arrived.
    pub chunks: Vec<Chunk>,
    /// How the body ended.
    pub end: StreamEnd,
}

/// One piece of a body: `{"ms": 12, "text": "…"}` or `{"ms": 12, "base64": "…"}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "ChunkFields", into = "ChunkFields")]
pub struct Chunk {
    /// When the piece arrived, since the request.
    pub ms: u64,
    /// The bytes.
    pub data: ChunkData,
}

/// A chunk in the file, which has exactly one of the last two members.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChunkFields {
    ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl TryFrom<ChunkFields> for Chunk {
    type Error = &'static str;

    fn try_from(fields: ChunkFields) -> Result<Self, Self::Error> {
        let data = match (fields.text, fields.base64) {
            (Some(text), None) => ChunkData::Text(text),
            (None, Some(base64)) => ChunkData::Base64(base64),
            (Some(_), Some(_)) | (None, None) => return Err("a chunk has `text` or `base64`"),
        };
        Ok(Self { ms: fields.ms, data })
    }
}

impl From<Chunk> for ChunkFields {
    fn from(Chunk { ms, data }: Chunk) -> Self {
        match data {
            ChunkData::Text(text) => Self { ms, text: Some(text), base64: None },
            ChunkData::Base64(base64) => Self { ms, text: None, base64: Some(base64) },
        }
    }
}

/// The bytes of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkData {
    /// UTF-8.
    Text(String),
    /// Base64 of anything else, such as one half of a character.
    Base64(String),
}

impl ChunkData {
    /// Encodes bytes.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Base64(STANDARD.encode(bytes)),
        }
    }

    /// Returns the bytes; `None` if the text is not Base64.
    pub fn to_bytes(&self) -> Option<Cow<'_, [u8]>> {
        match self {
            Self::Text(text) => Some(Cow::Borrowed(text.as_bytes())),
            Self::Base64(text) => STANDARD.decode(text).ok().map(Cow::Owned),
        }
    }
}

/// How a body ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamEnd {
    /// At its end.
    Complete {
        /// Since the request.
        ms: u64,
    },
    /// With a failure.
    Failed {
        /// Since the request.
        ms: u64,
        /// The class of the failure.
        kind: String,
        /// The message.
        message: String,
    },
    /// The run did not read further.
    Unread {},
}

/// A server after the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerRecord {
    /// Whether the server was ready.
    pub ready: bool,
    /// Why the server was not ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A tool as it was offered.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRecord {
    /// The public name.
    pub name: String,
    /// `sha256:` and the hash of the definition's bytes.
    pub hash: String,
    /// Whether a server sent the definition; otherwise the host made the tool.
    pub from_server: bool,
    /// Why models may not call the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The definition, byte for byte.
    pub definition: Box<RawValue>,
}

impl ToolRecord {
    /// Returns the hash of a definition.
    pub fn hash_of(definition: &RawValue) -> String {
        let digest = Sha256::digest(definition.get().as_bytes());
        format!("sha256:{digest:x}")
    }
}

/// The tools that were offered from a moment on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// The number of requests that were sent before.
    pub requests: usize,
    /// The number of calls that had ended before.
    pub calls: usize,
    /// The tools, as positions in [`Golden::tools`].
    pub tools: Vec<usize>,
    /// The tools whose server is not available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable: Vec<UnavailableRecord>,
}

/// A tool whose server is not available.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UnavailableRecord {
    /// The public name of the tool.
    pub name: String,
    /// The server.
    pub server: String,
    /// The reason.
    pub reason: String,
}

/// A call that reached a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCallRecord {
    /// The public name of the tool.
    pub name: String,
    /// The arguments as they were sent.
    pub arguments: Box<RawValue>,
    /// The number of requests to the model before the call: calls with the same number are one round.
    pub round: usize,
    /// When the call began, since the start of the run.
    pub begin_ms: u64,
    /// When the call ended, since the start of the run; `null` if the run gave up first.
    pub end_ms: Option<u64>,
    /// The number of calls that had ended before: it orders ends in the same millisecond.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ended_before: u64,
    /// The progress notifications.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub progress: Vec<ProgressRecord>,
    /// What came back.
    pub outcome: Outcome,
    /// The position in [`Golden::served`] of what served the call.
    #[serde(default, skip_serializing_if = "is_first")]
    pub served: usize,
    /// Other parameters of the request, such as the answers to a question of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature of serde")]
fn is_first(position: &usize) -> bool {
    *position == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature of serde")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A progress notification.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProgressRecord {
    /// Since the start of the call.
    pub ms: u64,
    /// The parameters.
    pub params: Box<RawValue>,
}

/// What came back for a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The result object, byte for byte. The tool itself may report a failure in it.
    Result(Box<RawValue>),
    /// The result object of a call whose tool reports a failure.
    ToolError(Box<RawValue>),
    /// No result.
    Failed {
        /// The class of the error.
        class: String,
        /// The message that the model gets.
        message: String,
        /// Whether the tool may have run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_have_run: bool,
    },
    /// The JSON-RPC error of a server, byte for byte.
    Error(Box<RawValue>),
    /// The run gave up before an answer.
    Abandoned {},
}

impl Outcome {
    /// Returns the class of a failure; `None` for a result without one.
    pub fn failure_class(&self) -> Option<&str> {
        match self {
            Self::Result(_) => None,
            Self::ToolError(_) => Some("tool_error"),
            Self::Failed { class, .. } => Some(class),
            Self::Error(_) => Some("error"),
            Self::Abandoned {} => Some("abandoned"),
        }
    }
}

/// What one command line of `innkeeper serve --stdio` said to an MCP client, except for tool calls.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServedRecord {
    /// The arguments after `innkeeper`.
    pub arguments: Vec<String>,
    /// The configuration of the servers as the user wrote it.
    pub server_config: Box<RawValue>,
    /// The answers to requests that change nothing, in the order of the answers.
    pub answers: Vec<AnswerRecord>,
    /// The notifications that no call explains.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notifications: Vec<NotificationRecord>,
}

/// The answer to a request that changes nothing, such as `tools/list`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerRecord {
    /// The method.
    pub method: String,
    /// The parameters without `_meta`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
    /// What came back. A list of tools is in `tools`.
    pub outcome: Outcome,
    /// The listed tools, as positions in [`Golden::tools`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<usize>>,
}

/// A notification of a server that is not about one call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotificationRecord {
    /// The method.
    pub method: String,
    /// The parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Box<RawValue>>,
    /// The number of requests to the model that were sent before.
    pub requests: usize,
    /// The number of calls that had begun before.
    pub begun: usize,
    /// The number of calls that had ended before.
    pub calls: usize,
    /// The number of answers of the same command line before.
    pub answers: usize,
}

/// A decision about a call that needed approval.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalRecord {
    /// The public name of the tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Box<RawValue>,
    /// The decision.
    pub answer: Answer,
}

/// A decision.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The call ran.
    Approved {},
    /// The call ran with these arguments.
    Changed(Box<RawValue>),
    /// The call did not run; the text is the reason that the model got.
    Denied(String),
}

/// A changed result that a person took over as the golden result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Acceptance {
    /// The person.
    pub who: String,
    /// The UTC time, `2026-11-29T05:40:00Z`.
    pub when: String,
    /// The reason.
    pub why: String,
}

/// A question of a server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionRecord {
    /// The server.
    pub server: String,
    /// The method, such as `elicitation/create`.
    pub method: String,
    /// The parameters.
    pub params: Box<RawValue>,
    /// The answer; `null` for an error.
    pub answer: Option<Box<RawValue>>,
    /// The position in [`Golden::tool_calls`] of the call that asked, or of the call that ended next if
    /// nothing says which one asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<usize>,
}
