//! The errors of starting a server process.

use std::io;

/// An error that prevents the start of a process; names the command as the user wrote it.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program does not exist.
    #[error("command `{command}` was not found")]
    NotFound {
        /// The command as the user wrote it.
        command: Box<str>,
    },
    /// The interpreter in the first line of a script does not exist.
    #[error("command `{command}` is a script whose interpreter was not found")]
    NoInterpreter {
        /// The command as the user wrote it.
        command: Box<str>,
    },
    /// The file may not be executed.
    #[error("command `{command}` may not be executed")]
    NotExecutable {
        /// The command as the user wrote it.
        command: Box<str>,
    },
    /// The system cannot execute the format of the file.
    #[error("command `{command}` is not a program that this system can run")]
    NotAProgram {
        /// The command as the user wrote it.
        command: Box<str>,
    },
    /// Another process writes to the file.
    #[error("command `{command}` is being written to and cannot be executed")]
    Busy {
        /// The command as the user wrote it.
        command: Box<str>,
    },
    /// The arguments and the environment exceed the limit of the system.
    #[error("the arguments and environment of command `{command}` are too large")]
    TooLarge {
        /// The command as the user wrote it.
        command: Box<str>,
    },
    /// The working directory does not exist or may not be entered.
    #[error("the working directory of command `{command}` cannot be used: {source}")]
    WorkingDirectory {
        /// The command as the user wrote it.
        command: Box<str>,
        /// The error of the system.
        source: io::Error,
    },
    /// The system reported another error.
    #[error("command `{command}` could not be started: {source}")]
    Other {
        /// The command as the user wrote it.
        command: Box<str>,
        /// The error of the system.
        source: io::Error,
    },
    /// The limits or the sandbox cannot be applied; the server is not started without them.
    #[error("the limits or sandbox of command `{command}` cannot be applied: {reason}")]
    Confinement {
        /// The command as the user wrote it.
        command: Box<str>,
        /// The cause.
        reason: Box<str>,
    },
    /// The supervisor did not start.
    #[error("the supervisor of command `{command}` could not be started: {source}")]
    Supervisor {
        /// The command as the user wrote it.
        command: Box<str>,
        /// The error of the system.
        source: io::Error,
    },
}

impl SpawnError {
    /// Classifies an error of executing the program. `exists` distinguishes a missing program from
    /// a missing interpreter: the system reports both as "not found".
    pub(super) fn from_exec(command: &str, source: io::Error, exists: bool) -> Self {
        use io::ErrorKind;
        let command = command.into();
        match source.kind() {
            ErrorKind::NotFound if exists => Self::NoInterpreter { command },
            ErrorKind::NotFound | ErrorKind::NotADirectory => Self::NotFound { command },
            ErrorKind::PermissionDenied => Self::NotExecutable { command },
            ErrorKind::ExecutableFileBusy => Self::Busy { command },
            ErrorKind::ArgumentListTooLong => Self::TooLarge { command },
            _ if is_not_a_program(&source) => Self::NotAProgram { command },
            _ => Self::Other { command, source },
        }
    }

    #[cfg(unix)]
    pub(super) fn supervisor(command: &str, source: impl Into<io::Error>) -> Self {
        Self::Supervisor { command: command.into(), source: source.into() }
    }

    /// Creates the error for a confinement that cannot be applied; the server is not started
    /// without it.
    pub(super) fn confinement(command: &str, cause: impl Into<Box<str>>) -> Self {
        Self::Confinement { command: command.into(), reason: cause.into() }
    }

    pub(super) fn other(command: &str, source: impl Into<io::Error>) -> Self {
        Self::Other { command: command.into(), source: source.into() }
    }
}

#[cfg(unix)]
fn is_not_a_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error())
}

#[cfg(windows)]
fn is_not_a_program(error: &io::Error) -> bool {
    const ERROR_BAD_EXE_FORMAT: i32 = 193;
    error.raw_os_error() == Some(ERROR_BAD_EXE_FORMAT)
}
