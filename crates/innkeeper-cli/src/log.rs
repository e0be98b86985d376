//! Logging to stderr: `--log-level`, `--log-format`, and the one line each event becomes.

mod fields;
mod line;
#[cfg(test)]
mod tests;

use clap::ValueEnum;
use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::{Layer as FmtLayer, MakeWriter};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry::Registry;

use line::LineFormat;

/// Everything this project logs has a target that begins with this.
const OWN_TARGETS: &str = "innkeeper";

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
    let subscriber = subscriber(level, format, colour, std::io::stderr);
    let installed = tracing::subscriber::set_global_default(subscriber);
    debug_assert!(installed.is_ok(), "logging is set up once, at the start of main");
}

/// Events of ours from `level` on, and of libraries from warning on, one line each.
fn subscriber<W>(level: Level, format: LogFormat, colour: bool, writer: W) -> impl Subscriber
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let foreign = level.filter().min(LevelFilter::WARN);
    let targets = Targets::new().with_default(foreign).with_target(OWN_TARGETS, level.filter());
    let lines = FmtLayer::new()
        .with_ansi(colour)
        .log_internal_errors(false)
        .event_format(LineFormat::new(level, format))
        .with_writer(writer);
    Registry::default().with(lines.with_filter(targets))
}
