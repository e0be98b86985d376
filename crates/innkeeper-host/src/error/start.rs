//! The error of a host or server start.

mod failure_line;
mod problem;
mod request_failure;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_config::ConfigError;
use innkeeper_process::ExitStatus;
use innkeeper_protocol::envelope::code;
use innkeeper_protocol::method;
use serde::Serialize;

use super::display::{ErrorChain, FailureList, Seconds};
use super::{
    CallError, ConnectFailureKind, ConnectorError, ErrorClass, ProtocolError, UnavailableReason,
};
use failure_line::failure_line;
use problem::StartProblem;
use request_failure::RequestFailure;

/// The reason why a host could not start; no server is left running.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is invalid; no server was started.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// One or more required servers did not become ready; all started servers were stopped.
    #[error("{}", FailureList(.0))]
    Servers(Vec<ServerFailure>),
}

impl StartError {
    /// Returns the class, which call errors share.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Config(_) => ErrorClass::Configuration,
            Self::Servers(_) => ErrorClass::ServerStartup,
        }
    }
}

/// The failed start of one server.
#[derive(Debug, thiserror::Error)]
#[error("server `{server}` {}", FailedPhase(self))]
pub struct ServerFailure {
    /// Name of the server.
    pub server: Arc<str>,
    /// Phase of the start that failed.
    pub phase: StartPhase,
    /// Reason of the failure.
    pub reason: StartFailureReason,
    /// Last lines on stderr without colors, escaped for display; at most 4 KiB.
    pub stderr: String,
    /// Number of launches.
    pub attempts: u32,
}

impl ServerFailure {
    /// Returns the line of stderr that says why the process ended: without colors, stack traces and
    /// the messages of package runners around it, at most 300 characters. `None` if the process did
    /// not end by itself, or wrote no such line.
    pub fn stderr_line(&self) -> Option<String> {
        self.reason.stderr_line(&self.stderr)
    }

    /// Returns the reason in one line: [`Self::stderr_line`] with the exit status, else the reason
    /// with the phase, if the reason alone would mislead.
    pub fn summary(&self) -> String {
        if let Some(line) = self.stderr_line() {
            return format!("{line} ({})", self.reason);
        }
        match self.phase {
            StartPhase::Install => format!("{}: {}", self.phase, self.reason),
            StartPhase::Lists if !self.reason.names_list() => {
                format!("{}: {}", self.phase, self.reason)
            }
            StartPhase::Dependencies
            | StartPhase::Launch
            | StartPhase::Handshake
            | StartPhase::Lists => self.reason.to_string(),
        }
    }

    /// Returns [`Self::summary`] with the last words of a server that did not respond in time.
    pub fn summary_with_last_words(&self) -> String {
        let summary = self.summary();
        match failure_line(&self.stderr).filter(|_| self.reason.elapsed_timeout().is_some()) {
            Some(line) => format!("{summary}; the server said: {line}"),
            None => summary,
        }
    }

    /// Returns what to change if stderr or the connection shows a frequent problem: a variable that
    /// is not set, a certificate, a proxy, or a package that does not exist.
    pub fn hint(&self) -> Option<String> {
        if let Some(line) = self.stderr_line() {
            return Some(StartProblem::from_stderr(&self.stderr, &line)?.hint(&self.server));
        }
        self.reason.connect_hint()
    }

    /// Returns whether a later start can succeed although the user changes nothing: the failure shows
    /// no missing program, variable, package or trust, and no wrong protocol. A person may sign in
    /// with another process.
    pub(crate) fn may_succeed_later(&self) -> bool {
        match &self.reason {
            StartFailureReason::Spawn(_) => false,
            StartFailureReason::TimedOut(_)
            | StartFailureReason::StartTimeout(_)
            | StartFailureReason::Dependency(_) => true,
            StartFailureReason::Exited(_) | StartFailureReason::Connector(_) => {
                self.reason.is_transient(&self.stderr)
            }
            StartFailureReason::Call(error) => match &**error {
                CallError::Unavailable { reason: UnavailableReason::Unauthorized(_), .. } => {
                    error.needs_user_sign_in()
                }
                CallError::Unavailable { reason, .. } => !matches!(
                    reason,
                    UnavailableReason::Unreachable { kind: ConnectFailureKind::Certificate, .. }
                ),
                CallError::Protocol { source, .. } => !matches!(
                    source,
                    ProtocolError::UnsupportedRevision { .. }
                        | ProtocolError::HttpStatus { status: 401 | 403, .. }
                ),
                CallError::Server { error, .. } => error.code != code::UNSUPPORTED_PROTOCOL_VERSION,
                CallError::Routing(_)
                | CallError::Validation { .. }
                | CallError::Timeout { .. }
                | CallError::Withheld { .. } => true,
            },
        }
    }

    /// Returns whether the start failed because a user must sign in.
    pub fn needs_user_sign_in(&self) -> bool {
        let StartFailureReason::Call(error) = &self.reason else { return false };
        error.needs_user_sign_in()
    }
}

struct FailedPhase<'a>(&'a ServerFailure);

impl fmt::Display for FailedPhase<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ServerFailure { phase, reason, .. } = self.0;
        match reason.names_list() {
            true => write!(f, "{reason}"),
            false => write!(f, "failed {phase}: {reason}"),
        }
    }
}

/// The phase of a server start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StartPhase {
    /// Waiting for dependencies.
    Dependencies,
    /// Creating the process or the connection.
    Launch,
    /// Downloading or installing the server with its package runner.
    Install,
    /// Negotiating era and revision.
    Handshake,
    /// Listing tools, prompts and resources.
    Lists,
}

impl fmt::Display for StartPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dependencies => "while waiting for dependencies",
            Self::Launch => "at launch",
            Self::Install => "during installation",
            Self::Handshake => "during the handshake",
            Self::Lists => "while listing tools",
        })
    }
}

/// The reason why a server start failed.
#[derive(Debug, thiserror::Error)]
pub enum StartFailureReason {
    /// The process could not be created.
    #[error("{0}")]
    Spawn(Box<str>),
    /// The host has no stream to an in-process server.
    #[error("{}", ErrorChain(.0))]
    Connector(#[source] ConnectorError),
    /// The process ended.
    #[error("process ended with {0}")]
    Exited(ExitStatus),
    /// The server did not become ready in time.
    #[error("not ready within {}", Seconds(*.0))]
    TimedOut(Duration),
    /// A request of the handshake or of the lists failed.
    #[error("{}", RequestFailure(.0))]
    Call(#[source] Box<CallError>),
    /// A dependency is unavailable.
    #[error("dependency `{0}` is unavailable")]
    Dependency(Arc<str>),
    /// The start timeout for all servers expired.
    #[error("`startTimeout` ({}) expired", Seconds(*.0))]
    StartTimeout(Duration),
}

impl StartFailureReason {
    /// Returns whether the server may support only the older HTTP transport.
    pub(crate) fn suggests_legacy_http(&self) -> bool {
        let Self::Call(error) = self else { return false };
        let CallError::Protocol { source, .. } = &**error else { return false };
        matches!(source, ProtocolError::HttpStatus { status: 400 | 404 | 405, .. })
    }

    /// Returns whether the server rejected a request of the start.
    pub(crate) fn is_rejection(&self) -> bool {
        let Self::Call(error) = self else { return false };
        match &**error {
            CallError::Server { .. } => true,
            CallError::Protocol { source, .. } => {
                matches!(source, ProtocolError::HttpStatus { status: 400..=499, .. })
            }
            CallError::Routing(_)
            | CallError::Validation { .. }
            | CallError::Timeout { .. }
            | CallError::Unavailable { .. }
            | CallError::Withheld { .. } => false,
        }
    }

    /// Returns how long the server wants to be left alone (`Retry-After`).
    pub(crate) fn requested_wait(&self) -> Duration {
        let Self::Call(error) = self else { return Duration::ZERO };
        match &**error {
            CallError::Unavailable {
                reason: UnavailableReason::Busy { retry_after: Some(after), .. },
                ..
            } => *after,
            _ => Duration::ZERO,
        }
    }

    /// Returns the expired timeout, if the start failed because of one.
    pub(crate) fn elapsed_timeout(&self) -> Option<Duration> {
        match self {
            Self::TimedOut(time) | Self::StartTimeout(time) => Some(*time),
            Self::Spawn(_)
            | Self::Connector(_)
            | Self::Exited(_)
            | Self::Call(_)
            | Self::Dependency(_) => None,
        }
    }

    /// Returns the line of stderr that says why the process ended by itself.
    pub(crate) fn stderr_line(&self, stderr: &str) -> Option<String> {
        let Self::Exited(ExitStatus::Code(_)) = self else { return None };
        failure_line(stderr)
    }

    /// Returns whether the message says that the list of tools failed.
    fn names_list(&self) -> bool {
        let Self::Call(error) = self else { return false };
        match &**error {
            CallError::Timeout { item, .. }
            | CallError::Server { item, .. }
            | CallError::Protocol { item, .. } => &**item == method::TOOLS_LIST,
            CallError::Routing(_)
            | CallError::Validation { .. }
            | CallError::Unavailable { .. }
            | CallError::Withheld { .. } => false,
        }
    }

    /// Returns the kind of the failure if no connection could be established.
    fn connect_failure(&self) -> Option<ConnectFailureKind> {
        let Self::Call(error) = self else { return None };
        match &**error {
            CallError::Unavailable {
                reason: UnavailableReason::Unreachable { kind, .. }, ..
            } => Some(*kind),
            _ => None,
        }
    }

    /// Returns whether the connection was refused: the server may be starting.
    pub(crate) fn is_refused(&self) -> bool {
        self.connect_failure() == Some(ConnectFailureKind::Refused)
    }

    fn connect_hint(&self) -> Option<String> {
        let hint = match self.connect_failure()? {
            ConnectFailureKind::Refused => "start the server, or correct the port in `url`",
            ConnectFailureKind::NameNotFound => "correct the host name in `url`",
            ConnectFailureKind::Certificate => {
                "set the environment variable `SSL_CERT_FILE` to a file with the certificate of \
                 the authority"
            }
            ConnectFailureKind::Other => return None,
        };
        Some(hint.to_owned())
    }

    /// Returns whether another launch may help (C2: never after a version mismatch or a missing
    /// program, a variable, a package or a certificate).
    pub(crate) fn is_transient(&self, stderr: &str) -> bool {
        match self {
            Self::Exited(_) => !self.stderr_line(stderr).is_some_and(|line| {
                StartProblem::from_stderr(stderr, &line)
                    .is_some_and(|problem| problem.is_permanent())
            }),
            Self::Connector(ConnectorError::Failed(_)) => true,
            // A connection that was not accepted yet or was cut off is no rejection.
            Self::Call(error) => match &**error {
                CallError::Unavailable { reason, .. } => !matches!(
                    reason,
                    UnavailableReason::ConnectionRejected(_)
                        | UnavailableReason::Unauthorized(_)
                        | UnavailableReason::Unreachable {
                            kind: ConnectFailureKind::NameNotFound
                                | ConnectFailureKind::Certificate,
                            ..
                        }
                ),
                _ => false,
            },
            Self::Spawn(_)
            | Self::Connector(
                ConnectorError::Panicked | ConnectorError::AlreadyUsed | ConnectorError::Missing,
            )
            | Self::TimedOut(_)
            | Self::Dependency(_)
            | Self::StartTimeout(_) => false,
        }
    }
}
