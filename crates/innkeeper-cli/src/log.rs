//! Logging to stderr: `--log-level`, `--log-format`, and the one line each event becomes.

mod fields;
mod lines;
mod sink;
#[cfg(test)]
mod tests;

use std::io;

use clap::ValueEnum;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;

use lines::Lines;
pub(crate) use sink::Sink;

/// Least severity that is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Level {
    /// Everything there is to say; never a request's or an answer's body
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

/// Sends the events of the process to stderr from now on. Whoever ends the process flushes the sink.
///
/// Has no effect when the process logs somewhere already.
pub(crate) fn install(level: Level, format: LogFormat, colour: bool) -> Sink {
    let sink = Sink::start(io::stderr());
    let lines = sink.clone();
    let subscriber = subscriber(level, format, colour, move |line: &str| lines.put(line));
    let installed = tracing::subscriber::set_global_default(subscriber);
    debug_assert!(installed.is_ok(), "logging is set up once, at the start of main");
    sink
}

fn subscriber<W>(least: Level, format: LogFormat, colour: bool, write: W) -> impl Subscriber
where
    W: Fn(&str) + Send + Sync + 'static,
{
    Registry::default().with(Lines { least, format, colour, write })
}
