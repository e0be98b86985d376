//! What can go wrong, each variant naming its server, tool or key and keeping its source.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::{ErrorObject, Malformed, ViewError};
use serde::Serialize;

use crate::config::ConfigError;
use crate::guard::Finding;
use crate::transport::auth::AuthFault;

/// The class of an error, the same in every language and edge (TR6.1 and routing).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// The configuration cannot be used; nothing was started.
    Configuration,
    /// A required server did not become ready; everything started was stopped.
    ServerStartup,
    /// The server is not there (any more); the request was not sent or has no answer.
    ServerUnavailable,
    /// The arguments do not fit; nothing was sent.
    Validation,
    /// No answer in time; the server was told to stop working on it.
    Timeout,
    /// The server's answer breaks the protocol.
    Protocol,
    /// No server could be determined from the name.
    Routing,
    /// The server answered with a JSON-RPC error.
    Server,
    /// The server answered, and the guard keeps the answer back.
    Withheld,
}

/// The class of a failed call, for counting and matching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    /// See [`ErrorClass::Routing`].
    Routing,
    /// See [`ErrorClass::ServerUnavailable`].
    Unavailable,
    /// See [`ErrorClass::Validation`].
    Validation,
    /// See [`ErrorClass::Timeout`].
    Timeout,
    /// See [`ErrorClass::Protocol`].
    Protocol,
    /// See [`ErrorClass::Server`].
    Server,
    /// See [`ErrorClass::Withheld`].
    Withheld,
}

impl CallKind {
    /// Every kind, in the order of the variants.
    pub(crate) const ALL: [Self; 7] = [
        Self::Routing,
        Self::Unavailable,
        Self::Validation,
        Self::Timeout,
        Self::Protocol,
        Self::Server,
        Self::Withheld,
    ];

    /// The word used in logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Routing => "routing",
            Self::Unavailable => "unavailable",
            Self::Validation => "validation",
            Self::Timeout => "timeout",
            Self::Protocol => "protocol",
            Self::Server => "server_error",
            Self::Withheld => "withheld",
        }
    }
}

/// Why a call, prompt or resource request has no result.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// The name leads to no server, tool, prompt or resource, or to more than one.
    #[error(transparent)]
    Routing(#[from] RoutingError),
    /// The arguments do not fit what the server declared, or the guard refuses them; nothing was sent.
    #[error("arguments of `{item}` do not fit: {}", Listed(problems))]
    Validation {
        /// The tool or prompt as it was called.
        item: Box<str>,
        /// Everything that does not fit.
        problems: Vec<ArgumentProblem>,
    },
    /// The server is not there, or went away before it answered.
    #[error("server `{server}` is unavailable: {reason}{}", Tries(*attempts))]
    Unavailable {
        /// The server.
        server: Arc<str>,
        /// Why it cannot answer.
        reason: Lost,
        /// Whether the request may have reached the server before it went away.
        may_have_run: bool,
        /// How often it was tried to send it; 0 where the server was known to take none.
        attempts: u32,
    },
    /// No answer within the time allowed; the server was sent a cancellation.
    #[error("server `{server}` did not answer `{item}` within {}", Seconds(*after))]
    Timeout {
        /// The server.
        server: Arc<str>,
        /// The tool, prompt, URI or method.
        item: Box<str>,
        /// The time that was allowed.
        after: Duration,
    },
    /// The answer breaks JSON-RPC or MCP.
    #[error("server `{server}` broke the protocol answering `{item}`")]
    Protocol {
        /// The server.
        server: Arc<str>,
        /// The tool, prompt, URI or method.
        item: Box<str>,
        /// What is wrong with the answer.
        #[source]
        source: ProtocolFault,
    },
    /// The server answered with a JSON-RPC error.
    #[error("server `{server}` refused `{item}`: {} (code {})", error.message, error.code)]
    Server {
        /// The server.
        server: Arc<str>,
        /// The tool, prompt, URI or method.
        item: Box<str>,
        /// The error object as the server sent it.
        error: ErrorObject,
    },
    /// The call ran, and the guard keeps its answer back; to send it again would run it again.
    #[error(
        "the answer of `{item}` of server `{server}` is withheld, the call has run: {}; \
         `guard.results` as `flag` lets such answers pass",
        Listed(findings)
    )]
    Withheld {
        /// The server.
        server: Arc<str>,
        /// The tool.
        item: Box<str>,
        /// What was found, at least one.
        findings: Vec<Finding>,
    },
}

impl CallError {
    /// The class for counting and matching.
    pub fn kind(&self) -> CallKind {
        match self {
            Self::Routing(_) => CallKind::Routing,
            Self::Validation { .. } => CallKind::Validation,
            Self::Unavailable { .. } => CallKind::Unavailable,
            Self::Timeout { .. } => CallKind::Timeout,
            Self::Protocol { .. } => CallKind::Protocol,
            Self::Server { .. } => CallKind::Server,
            Self::Withheld { .. } => CallKind::Withheld,
        }
    }

    /// The class shared with start and configuration errors.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Routing(_) => ErrorClass::Routing,
            Self::Validation { .. } => ErrorClass::Validation,
            Self::Unavailable { .. } => ErrorClass::ServerUnavailable,
            Self::Timeout { .. } => ErrorClass::Timeout,
            Self::Protocol { .. } => ErrorClass::Protocol,
            Self::Server { .. } => ErrorClass::Server,
            Self::Withheld { .. } => ErrorClass::Withheld,
        }
    }

    /// The same with the number of attempts it took.
    pub(crate) fn tried(mut self, times: u32) -> Self {
        if let Self::Unavailable { attempts, .. } = &mut self {
            *attempts = times;
        }
        self
    }

    /// The server concerned, if one could be determined.
    pub fn server(&self) -> Option<&str> {
        match self {
            Self::Routing(_) | Self::Validation { .. } => None,
            Self::Unavailable { server, .. }
            | Self::Timeout { server, .. }
            | Self::Protocol { server, .. }
            | Self::Server { server, .. }
            | Self::Withheld { server, .. } => Some(server),
        }
    }
}

/// Why a name could not be routed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RoutingError {
    /// The name has no known server before a dot.
    #[error("`{name}` names no known server{}", Meant(suggestion))]
    UnknownServer {
        /// The name as it was called.
        name: Box<str>,
        /// What may have been meant.
        suggestion: Option<Box<str>>,
    },
    /// The server is known, but has nothing of that name.
    #[error("server `{server}` has no {what} `{item}`{}", Meant(suggestion))]
    UnknownItem {
        /// The server.
        server: Arc<str>,
        /// `tool` or `prompt`.
        what: &'static str,
        /// The name behind the server's.
        item: Box<str>,
        /// What may have been meant.
        suggestion: Option<Box<str>>,
    },
    /// The server has a tool of that name, and it is not the one that was pinned, or the guard refuses
    /// its definition.
    #[error("tool `{tool}` of server `{server}` is refused: {reason}")]
    ToolChanged {
        /// The server.
        server: Arc<str>,
        /// The tool.
        tool: Box<str>,
        /// Whether it changed or is new or what was found, and what to type.
        reason: Box<str>,
    },
    /// The server has such a prompt, resource or template, and the guard refuses its definition.
    #[error("{what} `{item}` of server `{server}` is refused: {reason}")]
    ItemRefused {
        /// The server.
        server: Arc<str>,
        /// `prompt`, `resource` or `resource template`.
        what: &'static str,
        /// The name of the prompt at the server, or the URI.
        item: Box<str>,
        /// What was found, and what to type.
        reason: Box<str>,
    },
    /// No server offers the resource.
    #[error("no server offers the resource `{uri}`{}", Meant(suggestion))]
    UnknownResource {
        /// The URI as it was asked for.
        uri: Box<str>,
        /// What may have been meant.
        suggestion: Option<Box<str>>,
    },
    /// More than one server could be meant.
    #[error("`{name}` is offered by several servers: {}", Listed(candidates))]
    Ambiguous {
        /// The name or URI.
        name: Box<str>,
        /// Who offers it.
        candidates: Vec<Box<str>>,
    },
}

/// One part of the arguments that does not fit the schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArgumentProblem {
    /// JSON pointer into the arguments; empty for the whole.
    pub pointer: String,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for ArgumentProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            write!(f, "{}", self.message)
        } else {
            write!(f, "`{}`: {}", self.pointer, self.message)
        }
    }
}

/// Why a server cannot answer any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Its process ended.
    Exited(crate::server::process::Exit),
    /// It closed its output and its process still ran.
    ClosedOutput,
    /// Its input could not be written to.
    ClosedInput,
    /// It did not answer in time so many calls in a row (`unavailableAfterTimeouts`). Its process
    /// runs on.
    Silent {
        /// The calls.
        calls: u32,
    },
    /// It never became ready.
    NotStarted(Box<str>),
    /// It still starts.
    Starting,
    /// The host is shutting down or was shut down.
    Shutdown,
    /// Results that nobody takes fill the memory set aside for this server.
    ResultsNotTaken,
    /// It writes what nobody can read: so many useless lines in a row, or lines without end.
    Noise,
    /// No connection to its address could be made.
    Unreachable(Box<str>),
    /// The connection broke before the answer came.
    Broken(Box<str>),
    /// It wants a token, and there is none that it takes.
    NotSignedIn(Box<AuthFault>),
    /// It, or what stands before it, takes no requests now: HTTP 429, 502 or 503.
    Busy {
        /// The status of the HTTP answer.
        status: u16,
        /// How long it asks to be left alone (`Retry-After`).
        retry_after: Option<Duration>,
    },
}

impl Lost {
    /// The word used in metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Exited(_) => "exited",
            Self::ClosedOutput => "closed_output",
            Self::ClosedInput => "closed_input",
            Self::Silent { .. } => "silent",
            Self::NotStarted(_) => "not_started",
            Self::Starting => "starting",
            Self::Shutdown => "shutdown",
            Self::ResultsNotTaken => "results_not_taken",
            Self::Noise => "noise",
            Self::Unreachable(_) => "unreachable",
            Self::Broken(_) => "broken",
            Self::NotSignedIn(_) => "not_signed_in",
            Self::Busy { .. } => "busy",
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(exit) => write!(f, "its process ended with {exit}"),
            Self::ClosedOutput => f.write_str("it closed its output"),
            Self::ClosedInput => f.write_str("it closed its input"),
            Self::Silent { calls: 1 } => f.write_str("it did not answer a call in time"),
            Self::Silent { calls } => {
                write!(f, "it did not answer {calls} calls in a row in time")
            }
            Self::NotStarted(reason) => write!(f, "it did not start: {reason}"),
            Self::Starting => f.write_str("it is still starting"),
            Self::Shutdown => f.write_str("the host is shutting down"),
            Self::ResultsNotTaken => f.write_str("earlier results have not been taken"),
            Self::Noise => f.write_str("it writes too much that is no message"),
            Self::Unreachable(why) => write!(f, "it cannot be reached: {why}"),
            Self::Broken(why) => write!(f, "the connection broke: {why}"),
            Self::NotSignedIn(fault) => fault.fmt(f),
            Self::Busy { status, retry_after: None } => write!(f, "it is busy (HTTP {status})"),
            Self::Busy { status, retry_after: Some(after) } => {
                write!(f, "it is busy (HTTP {status}) and asks to wait {}", Seconds(*after))
            }
        }
    }
}

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

/// Why a host could not be started; nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration cannot be used; nothing was started.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// One or more required servers did not become ready; everything started was stopped.
    #[error("{}", Failures(.0))]
    Servers(Vec<ServerFailure>),
}

impl StartError {
    /// The class shared with call errors.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Config(_) => ErrorClass::Configuration,
            Self::Servers(_) => ErrorClass::ServerStartup,
        }
    }
}

/// Why a server was not started again.
#[derive(Debug, thiserror::Error)]
pub enum RestartError {
    /// No server of the configuration has this name.
    #[error("no server `{0}`")]
    Unknown(Box<str>),
    /// It was stopped and did not become ready again; it is unavailable.
    #[error(transparent)]
    Failed(Box<ServerFailure>),
    /// The host is shutting down or was shut down.
    #[error("the host is shutting down")]
    Shutdown,
}

/// How far a server's start had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Waiting for the servers it depends on.
    Dependencies,
    /// Creating the process.
    Launch,
    /// The launcher was fetching or installing the server.
    Install,
    /// Agreeing on era and revision.
    Handshake,
    /// Reading tools, prompts and resources.
    Lists,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dependencies => "while waiting for its dependencies",
            Self::Launch => "at launch",
            Self::Install => "while its launcher was installing it",
            Self::Handshake => "during the handshake",
            Self::Lists => "while its tools were listed",
        })
    }
}

/// One server that did not become ready.
#[derive(Debug, thiserror::Error)]
#[error("server `{server}` failed {phase}: {reason}")]
pub struct ServerFailure {
    /// The server.
    pub server: Arc<str>,
    /// How far it had come.
    pub phase: Phase,
    /// What went wrong.
    pub reason: StartReason,
    /// The last lines it wrote to stderr, escaped for display; at most 4 KiB.
    pub stderr: String,
    /// How often it was launched.
    pub attempts: u32,
}

/// What went wrong when a server was started.
#[derive(Debug, thiserror::Error)]
pub enum StartReason {
    /// Its process could not be created.
    #[error("{0}")]
    Spawn(Box<str>),
    /// Its process ended.
    #[error("its process ended with {0}")]
    Exited(crate::server::process::Exit),
    /// It did not become ready in time.
    #[error("not ready within {}", Seconds(*.0))]
    TimedOut(Duration),
    /// A request of the handshake failed.
    #[error("{}", Chain(.0))]
    Call(#[source] Box<CallError>),
    /// A server it depends on is not available.
    #[error("it depends on `{0}`, which is not available")]
    Dependency(Arc<str>),
    /// The time for the whole start was over.
    #[error("the start limit of {} for all servers was over", Seconds(*.0))]
    StartLimit(Duration),
}

impl StartReason {
    /// Whether a server that was asked over Streamable HTTP may know the older transport only.
    pub(crate) fn speaks_older_http(&self) -> bool {
        let Self::Call(error) = self else { return false };
        let CallError::Protocol { source, .. } = &**error else { return false };
        matches!(source, ProtocolFault::Status { status: 400 | 404 | 405, .. })
    }

    /// The time for it, if that was over.
    pub(crate) fn late(&self) -> Option<Duration> {
        match self {
            Self::TimedOut(time) | Self::StartLimit(time) => Some(*time),
            Self::Spawn(_) | Self::Exited(_) | Self::Call(_) | Self::Dependency(_) => None,
        }
    }

    /// Whether launching again may help (C2: never for a refusal of versions or a missing program).
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Exited(_) => true,
            // A connection that was refused or cut off in the middle says no to nothing yet.
            Self::Call(error) => match &**error {
                CallError::Unavailable { reason, .. } => {
                    !matches!(reason, Lost::Broken(_) | Lost::NotSignedIn(_))
                }
                _ => false,
            },
            Self::Spawn(_) | Self::TimedOut(_) | Self::Dependency(_) | Self::StartLimit(_) => false,
        }
    }
}

impl ServerFailure {
    /// Whether it is for want of a person to sign in.
    pub fn wants_a_person(&self) -> bool {
        let StartReason::Call(error) = &self.reason else { return false };
        let CallError::Unavailable { reason: Lost::NotSignedIn(fault), .. } = &**error else {
            return false;
        };
        **fault == AuthFault::Nobody
    }
}

struct Listed<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Listed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in self.0.iter().enumerate() {
            write!(f, "{}{item}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

struct Meant<'a>(&'a Option<Box<str>>);

impl fmt::Display for Meant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(meant) => write!(f, "; did you mean `{meant}`?"),
            None => Ok(()),
        }
    }
}

struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

struct Tries(u32);

impl fmt::Display for Tries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 1 { write!(f, " (after {} attempts)", self.0) } else { Ok(()) }
    }
}

struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.0.as_secs_f64())
    }
}

struct Chain<'a>(&'a CallError);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = std::error::Error::source(self.0);
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

struct Failures<'a>(&'a [ServerFailure]);

impl fmt::Display for Failures<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, failure) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{failure}")?;
            if failure.attempts > 1 {
                write!(f, " (after {} launches)", failure.attempts)?;
            }
            for line in failure.stderr.lines() {
                write!(f, "\n    | {line}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
