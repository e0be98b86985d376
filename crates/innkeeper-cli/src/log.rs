//! Logging to stderr, controlled by `--log-level` and `--log-format`.

mod fields;
mod layer;
mod sink;
#[cfg(test)]
mod tests;

use std::io;

use clap::ValueEnum;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;

use layer::LogLayer;
pub(crate) use sink::LogSink;

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

/// Sends the events of the process to stderr from now on. The caller must flush the sink before the
/// process ends.
///
/// Has no effect if the process already has a tracing subscriber.
pub(crate) fn install(level: LogLevel, format: LogFormat, colour: bool) -> LogSink {
    let sink = LogSink::start(io::stderr());
    let lines = sink.clone();
    let subscriber =
        build_subscriber(level, format, colour, move |line: &str| lines.push_line(line));
    let installed = tracing::subscriber::set_global_default(subscriber);
    debug_assert!(installed.is_ok(), "logging is set up once, at the start of main");
    sink
}

fn build_subscriber<W>(
    min_level: LogLevel,
    format: LogFormat,
    colour: bool,
    write: W,
) -> impl Subscriber
where
    W: Fn(&str) + Send + Sync + 'static,
{
    Registry::default().with(LogLayer { min_level, format, colour, write })
}
