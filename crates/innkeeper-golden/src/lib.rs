//! Recordings of runs ("goldens"): the file, its redaction and its comparison, without I/O, clock or
//! log.
//!
//! A [`Golden`] holds both sides of one run: what the model sent, byte for byte with the cuts of the
//! stream, and what the tools answered, with the definitions that were offered. A replay feeds both
//! into the real loop, so the file is a test of everything between them.

mod file;
mod json;

mod difference;
mod pointer;
mod read;
mod redact;
mod rules;
mod similarity;
mod varying;

mod compare;
mod mode;
mod output;
mod recording;
mod script;
mod stats;

pub use compare::{
    Bound, CallPlace, CompareError, Comparison, Judgement, MAX_MISMATCHES, Mismatch, Side, Verdict,
    compare,
};
pub use difference::{Difference, differences};
pub use file::{
    Acceptance, AgentInput, Answer, AnswerRecord, ApprovalRecord, Category, Chunk, ChunkData,
    Exchange, Golden, HttpRequestRecord, HttpResponseRecord, Input, NotificationRecord, Offer,
    Origin, Outcome, ProgressRecord, QuestionRecord, ReplyRecord, ServedRecord, ServerRecord,
    StreamEnd, ToolCallRecord, ToolRecord, UnavailableRecord, VERSION,
};
pub use json::{body_json, canonical, indent, on_one_line, with_member, without_members};
pub use mode::{GoldenAction, GoldenMode, UnusedAnswers};
pub use pointer::{PointerError, PointerPattern};
pub use read::{MAX_FILE_BYTES, ReadError};
pub use recording::Recording;
pub use redact::{FindCredentials, KnownSecret, RedactError, SecretPlace, redact, redact_value};
pub use rules::{
    ArgumentPolicy, Bounds, CallOrder, ErrorRule, FinalTextRule, MAX_RULES_BYTES, Rules,
    RulesError, ToolChainRule, ToolPolicy,
};
pub use script::{Miss, Script, SentCall, SentRequest};
pub use similarity::similarity;
pub use stats::{Statistics, ToolStatistics};
pub use varying::{
    VARYING_OUTPUT_FIELDS, VARYING_REQUEST_FIELDS, VaryingField, VaryingKind, is_varying_in_output,
    is_varying_in_request, normalize_message,
};
