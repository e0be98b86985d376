//! Logging to stderr and to a file, controlled by `--log-level`, `--log-format` and `--log-file`.

mod fields;
mod file;
mod layer;
mod sink;
mod terminal_line;
#[cfg(test)]
mod tests;

use clap::ValueEnum;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;

pub(crate) use file::open_file;
use layer::LogLayer;
pub(crate) use layer::LogOutput;
pub(crate) use sink::LogSink;

use crate::secret_mask::SecretMask;

/// Fields with the cause of a fact, which can contain text of a server, in the order of preference.
const CAUSE_FIELDS: [&str; 6] = ["error", "what", "why", "reason", "detail", "fault"];

/// Minimum log level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum LogLevel {
    /// All messages, without the bodies of requests and responses
    Debug,
    /// Normal events, warnings and errors
    Info,
    /// Warnings and errors
    Warning,
    /// Errors
    Error,
    /// Only violated invariants of the host
    Critical,
}

impl LogLevel {
    fn level_filter(self) -> LevelFilter {
        match self {
            Self::Debug => LevelFilter::DEBUG,
            Self::Info => LevelFilter::INFO,
            Self::Warning => LevelFilter::WARN,
            Self::Error | Self::Critical => LevelFilter::ERROR,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }
}

/// Log format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Human-readable text
    Text,
    /// JSON Lines: one flat object per line
    Json,
}

/// How an event becomes a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineStyle {
    /// One JSON object with all fields.
    Json,
    /// Time, severity, message and all fields.
    Text {
        /// Whether the severity has a colour.
        colour: bool,
    },
    /// A sentence for a person, without a time: each fact once, and no fact that the command prints
    /// itself.
    Terminal(TerminalStyle),
}

/// The style of sentences on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TerminalStyle {
    /// Whether the severity has a colour.
    pub(crate) colour: bool,
    /// Number of columns, or `None` for lines of any length.
    pub(crate) columns: Option<usize>,
    /// Whether the command prints the findings about the definitions of servers itself.
    pub(crate) prints_findings: bool,
}

impl LineStyle {
    /// Returns the style of stderr. A terminal gets sentences unless the user requests details.
    pub(crate) fn of_stderr(
        level: LogLevel,
        format: LogFormat,
        is_terminal: bool,
        style: TerminalStyle,
    ) -> Self {
        match format {
            LogFormat::Json => Self::Json,
            LogFormat::Text if is_terminal && level >= LogLevel::Warning => Self::Terminal(style),
            LogFormat::Text => Self::Text { colour: style.colour },
        }
    }

    /// Returns the style of a file.
    pub(crate) fn of_file(format: LogFormat) -> Self {
        match format {
            LogFormat::Json => Self::Json,
            LogFormat::Text => Self::Text { colour: false },
        }
    }
}

/// Sends the events of the process to the outputs from now on. The caller must flush the sinks
/// before the process ends.
///
/// The causes of events have a mask in place of secrets. Has no effect if the process already has a tracing subscriber.
pub(crate) fn install(outputs: Vec<LogOutput>, mask: SecretMask) {
    let installed = tracing::subscriber::set_global_default(build_subscriber(outputs, mask));
    debug_assert!(installed.is_ok(), "logging is set up once, at the start of main");
}

fn build_subscriber(outputs: Vec<LogOutput>, mask: SecretMask) -> impl Subscriber {
    Registry::default().with(LogLayer::new(outputs, mask))
}
