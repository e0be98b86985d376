//! Events into lines: which are wanted, and one write for each.

use std::cell::Cell;
use std::time::SystemTime;

use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level as TracingLevel, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use super::fields::{Fields, Severity, write_json};
use super::{Level, LogFormat};
use crate::output::inline;
use crate::timestamp::write_rfc3339;

/// Everything this project logs has a target that begins with this.
const OWN_TARGETS: &str = "innkeeper";

/// The most room in bytes a thread keeps for its next line.
const KEPT: usize = 16 << 10;

thread_local! {
    static LINE: Cell<String> = const { Cell::new(String::new()) };
}

/// Writes events of ours from a level on, and of libraries from warning on, one line each.
#[derive(Debug)]
pub(super) struct Lines<W> {
    pub(super) least: Level,
    pub(super) format: LogFormat,
    pub(super) colour: bool,
    pub(super) write: W,
}

impl<S: Subscriber, W: Fn(&str) + 'static> Layer<S> for Lines<W> {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.wants(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.wants(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.least.filter())
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let severity = severity(event);
        if severity < self.least {
            return;
        }
        // A value that logs while it is shown, or a thread at its end, gets a line of its own.
        let mut line = LINE.try_with(Cell::take).unwrap_or_default();
        line.clear();
        match self.format {
            LogFormat::Json => json(&mut line, severity, event),
            LogFormat::Text => text(&mut line, severity, event, self.colour),
        }
        (self.write)(&line);
        if line.capacity() <= KEPT {
            let _ = LINE.try_with(|kept| kept.set(line));
        }
    }
}

impl<W> Lines<W> {
    fn wants(&self, metadata: &Metadata<'_>) -> bool {
        let own = metadata.target().starts_with(OWN_TARGETS);
        let least = self.least.filter();
        *metadata.level() <= if own { least } else { least.min(LevelFilter::WARN) }
    }
}

fn json(line: &mut String, severity: Level, event: &Event<'_>) {
    line.push_str("{\"ts\":\"");
    write_rfc3339(SystemTime::now(), line);
    line.push_str("\",\"severity\":\"");
    line.push_str(severity.word());
    line.push_str("\",\"event\":");
    let mut fields = Fields::new(line, LogFormat::Json, severity);
    event.record(&mut fields);
    fields.finish(|line| write_json(line, event.metadata().name()));
    line.push_str("}\n");
}

fn text(line: &mut String, severity: Level, event: &Event<'_>, colour: bool) {
    write_rfc3339(SystemTime::now(), line);
    line.push(' ');
    if colour {
        line.push_str("\x1b[");
        line.push_str(code(severity));
        line.push('m');
    }
    let start = line.len();
    line.push_str(severity.word());
    line.extend(std::iter::repeat_n(' ', (start + WIDEST).saturating_sub(line.len())));
    line.push_str(if colour { "\x1b[0m " } else { " " });
    let mut fields = Fields::new(line, LogFormat::Text, severity);
    event.record(&mut fields);
    fields.finish(|line| line.push_str(&inline(event.metadata().name())));
    line.push('\n');
}

/// Columns of the longest severity.
const WIDEST: usize = "critical".len();

/// The severity of an event: an error that says `severity="critical"` is critical.
fn severity(event: &Event<'_>) -> Level {
    match *event.metadata().level() {
        TracingLevel::ERROR => {
            let mut critical = Severity::default();
            event.record(&mut critical);
            if critical.is_critical() { Level::Critical } else { Level::Error }
        }
        TracingLevel::WARN => Level::Warning,
        TracingLevel::INFO => Level::Info,
        TracingLevel::DEBUG | TracingLevel::TRACE => Level::Debug,
    }
}

fn code(severity: Level) -> &'static str {
    match severity {
        Level::Debug => "2",
        Level::Info => "32",
        Level::Warning => "33",
        Level::Error => "31",
        Level::Critical => "1;31",
    }
}
