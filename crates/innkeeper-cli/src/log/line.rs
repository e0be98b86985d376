//! One event as one line: the time, the severity, the event's words, its fields.

use std::fmt;
use std::time::SystemTime;

use tracing::{Event, Level as TracingLevel, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::fields::{Severity, Values, Which, write_json};
use super::{Level, LogFormat};
use crate::timestamp::rfc3339;

/// Formats events, leaving out those below a level.
#[derive(Debug)]
pub(super) struct LineFormat {
    least: Level,
    format: LogFormat,
    now: fn() -> SystemTime,
}

impl LineFormat {
    pub(super) fn new(least: Level, format: LogFormat) -> Self {
        Self { least, format, now: SystemTime::now }
    }
}

impl<S, N> FormatEvent<S, N> for LineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let severity = severity(event);
        if severity < self.least {
            return Ok(());
        }
        match self.format {
            LogFormat::Json => self.json(writer, severity, event),
            LogFormat::Text => self.text(writer, severity, event),
        }
    }
}

impl LineFormat {
    fn json(&self, mut writer: Writer<'_>, severity: Level, event: &Event<'_>) -> fmt::Result {
        let now = (self.now)();
        write!(writer, "{{\"ts\":\"{}\",\"severity\":\"{}\"", rfc3339(now), severity.word())?;
        writer.write_str(",\"event\":")?;
        let mut message = Values::new(&mut writer, Which::Message);
        event.record(&mut message);
        if !message.finish()? {
            write_json(&mut writer, event.metadata().name())?;
        }
        let mut fields = Values::new(&mut writer, Which::JsonFields);
        event.record(&mut fields);
        fields.finish()?;
        writer.write_str("}\n")
    }

    fn text(&self, mut writer: Writer<'_>, severity: Level, event: &Event<'_>) -> fmt::Result {
        write!(writer, "{} ", rfc3339((self.now)()))?;
        if writer.has_ansi_escapes() {
            write!(writer, "\x1b[{}m{:<8}\x1b[0m ", colour(severity), severity.word())?;
        } else {
            write!(writer, "{:<8} ", severity.word())?;
        }
        let mut message = Values::new(&mut writer, Which::TextMessage);
        event.record(&mut message);
        if !message.finish()? {
            writer.write_str(event.metadata().name())?;
        }
        let mut fields = Values::new(&mut writer, Which::TextFields);
        event.record(&mut fields);
        fields.finish()?;
        writer.write_char('\n')
    }
}

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

fn colour(severity: Level) -> &'static str {
    match severity {
        Level::Debug => "2",
        Level::Info => "32",
        Level::Warning => "33",
        Level::Error => "31",
        Level::Critical => "1;31",
    }
}
