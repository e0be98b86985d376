//! How an answer breaks the protocol.

use std::time::Duration;

use innkeeper_protocol::{Malformed, ViewError};

use super::words::{Quoted, Seconds};

/// How an answer breaks the protocol.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolFault {
    /// The message is no JSON-RPC response.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// The result has the wrong shape.
    #[error("the result has the wrong shape")]
    Shape(#[from] ViewError),
    /// The answer is larger than a line may be.
    #[error("the answer is longer than {limit} bytes")]
    TooLarge {
        /// The limit that was crossed, in bytes.
        limit: usize,
    },
    /// The server speaks no revision that is known here.
    #[error("it speaks revision `{theirs}`; known here: {ours}")]
    Revision {
        /// What the server answered.
        theirs: Box<str>,
        /// What is known.
        ours: Box<str>,
    },
    /// The request cannot be written as JSON.
    #[error("the request cannot be written: {0}")]
    Unwritable(Box<str>),
    /// The server asks for input again and again.
    #[error("it asked for more input after {limit} rounds")]
    EndlessRounds {
        /// How often it may ask in one call.
        limit: u32,
    },
    /// The server needs input that the application does not give.
    #[error("it needs `{method}`: {why}")]
    InputRefused {
        /// What it asked for.
        method: Box<str>,
        /// Why it does not get it.
        why: Box<str>,
    },
    /// The answer is of a kind that is not known here.
    #[error("the answer is no final result but {0}")]
    NotFinal(Box<str>),
    /// The task that the answer began ended without a result.
    #[error("its task is `{status}` and has no result{}", Quoted(message))]
    NoTaskResult {
        /// How the task ended.
        status: &'static str,
        /// The server's words about that, escaped for display; empty if it has none.
        message: Box<str>,
    },
    /// The task that the answer began was forgotten before its result was known.
    #[error("it kept its task for {} only", Seconds(*after))]
    TaskExpired {
        /// How long the server kept it.
        after: Duration,
    },
    /// An HTTP answer that says nothing in JSON-RPC.
    #[error("it answered with HTTP {status}{}", Quoted(text))]
    Status {
        /// The status.
        status: u16,
        /// How its body begins, escaped for display; empty if it has none.
        text: Box<str>,
    },
    /// An HTTP answer in a form that MCP does not have.
    #[error("it answered with `{0}`, not with JSON or a stream of events")]
    ContentType(Box<str>),
    /// An HTTP answer without the answer to the request.
    #[error("its HTTP answer does not have the answer to the request")]
    NoAnswer,
}
