//! Logging to stderr: `--log-level`, `--log-format`, and the one line each event becomes.

mod fields;
mod lines;
#[cfg(test)]
mod tests;

use std::io::Write as _;

use clap::ValueEnum;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;

use lines::Lines;

/// Least severity that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Level {
    /// Everything, request bodies included
    Debug,
    /// Also what goes as it should
    Info,
    /// Also what is doubtful
    Warning,
    /// What failed
    Error,
    /// Only what ends the program's usefulness
    Critical,
}

impl Level {
    fn filter(self) -> LevelFilter {
        match self {
            Self::Debug => LevelFilter::DEBUG,
            Self::Info => LevelFilter::INFO,
            Self::Warning => LevelFilter::WARN,
            Self::Error | Self::Critical => LevelFilter::ERROR,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Critical => "critical",
        }
    }
}

/// Form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One flat JSON object a line
    Json,
}

/// Sends the events of the process to stderr from now on.
///
/// Has no effect when the process logs somewhere already.
pub(crate) fn install(level: Level, format: LogFormat, colour: bool) {
    let stderr = |line: &str| {
        // A log that nobody takes ends nothing.
        drop(std::io::stderr().write_all(line.as_bytes()));
    };
    let subscriber = subscriber(level, format, colour, stderr);
    let installed = tracing::subscriber::set_global_default(subscriber);
    debug_assert!(installed.is_ok(), "logging is set up once, at the start of main");
}

fn subscriber<W>(least: Level, format: LogFormat, colour: bool, write: W) -> impl Subscriber
where
    W: Fn(&str) + Send + Sync + 'static,
{
    Registry::default().with(Lines { least, format, colour, write })
}
