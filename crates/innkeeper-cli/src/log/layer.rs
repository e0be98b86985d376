//! A tracing layer that writes each event as one line to each output.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::Cell;
use std::time::SystemTime;

use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Level as TracingLevel, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use super::fields::{CriticalVisitor, FieldWriter, write_json};
use super::terminal_line::TerminalLines;
use super::{LineStyle, LogFormat, LogLevel};
use crate::secret_mask::SecretMask;
use crate::text::escape_inline;
use crate::timestamp::write_rfc3339;

/// Prefix of the targets of all events of this project.
const OWN_TARGETS: &str = "innkeeper";

/// Maximum number of bytes a thread retains for its next line.
const MAX_RETAINED_LINE_BYTES: usize = 16 << 10;

thread_local! {
    static LINE: Cell<String> = const { Cell::new(String::new()) };
}

/// One destination of log lines.
pub(crate) struct LogOutput {
    min_level: LogLevel,
    style: LineStyle,
    terminal_lines: TerminalLines,
    write: Box<dyn Fn(&str) + Send + Sync>,
}

impl LogOutput {
    pub(crate) fn new(
        min_level: LogLevel,
        style: LineStyle,
        write: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self { min_level, style, terminal_lines: TerminalLines::default(), write: Box::new(write) }
    }

    fn write_event(&self, line: &mut String, severity: LogLevel, event: &MaskedEvent<'_>) {
        match self.style {
            LineStyle::Json => write_json_line(line, severity, event),
            LineStyle::Text { colour } => write_text_line(line, severity, event, colour),
            LineStyle::Terminal(style) => {
                self.terminal_lines.write(line, severity, event, style);
            }
        }
        if !line.is_empty() {
            (self.write)(line);
        }
    }
}

/// An event, and the values that its line does not show.
pub(super) struct MaskedEvent<'e> {
    pub(super) event: &'e Event<'e>,
    pub(super) mask: &'e SecretMask,
}

/// Writes events of this project from the minimum level of each output on, and of libraries from
/// `warning` on.
pub(super) struct LogLayer {
    outputs: Vec<LogOutput>,
    mask: SecretMask,
    min_level: LogLevel,
}

impl LogLayer {
    pub(super) fn new(outputs: Vec<LogOutput>, mask: SecretMask) -> Self {
        let levels = outputs.iter().map(|output| output.min_level);
        let min_level = levels.min().unwrap_or(LogLevel::Critical);
        Self { outputs, mask, min_level }
    }

    fn is_enabled(&self, metadata: &Metadata<'_>) -> bool {
        let is_own = metadata.target().starts_with(OWN_TARGETS);
        let least = self.min_level.level_filter();
        *metadata.level() <= if is_own { least } else { least.min(LevelFilter::WARN) }
    }
}

impl<S: Subscriber> Layer<S> for LogLayer {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.is_enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        self.is_enabled(metadata)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.min_level.level_filter())
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let severity = event_level(event);
        if severity < self.min_level {
            return;
        }
        let event = &MaskedEvent { event, mask: &self.mask };
        // A value that logs while it is formatted, and a thread that is exiting, use a new buffer.
        let mut line = LINE.try_with(Cell::take).unwrap_or_default();
        for output in self.outputs.iter().filter(|output| severity >= output.min_level) {
            line.clear();
            output.write_event(&mut line, severity, event);
        }
        if line.capacity() <= MAX_RETAINED_LINE_BYTES {
            let _ = LINE.try_with(|cell| cell.set(line));
        }
    }
}

fn write_json_line(line: &mut String, severity: LogLevel, event: &MaskedEvent<'_>) {
    line.push_str("{\"ts\":\"");
    write_rfc3339(SystemTime::now(), line);
    line.push_str("\",\"severity\":\"");
    line.push_str(severity.as_str());
    line.push_str("\",\"event\":");
    let mut fields = FieldWriter::new(line, LogFormat::Json, severity, event.mask);
    event.event.record(&mut fields);
    fields.finish(|line| write_json(line, event.event.metadata().name()));
    if severity >= LogLevel::Error {
        write_backtrace(line);
    }
    line.push_str("}\n");
}

/// Writes the call stack of the event if the user sets `RUST_BACKTRACE`.
fn write_backtrace(line: &mut String) {
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        line.push_str(",\"backtrace\":");
        write_json(line, &backtrace.to_string());
    }
}

fn write_text_line(line: &mut String, severity: LogLevel, event: &MaskedEvent<'_>, colour: bool) {
    write_rfc3339(SystemTime::now(), line);
    line.push(' ');
    if colour {
        line.push_str("\x1b[");
        line.push_str(ansi_code(severity));
        line.push('m');
    }
    let start = line.len();
    line.push_str(severity.as_str());
    line.extend(std::iter::repeat_n(' ', (start + LEVEL_COLUMN_WIDTH).saturating_sub(line.len())));
    line.push_str(if colour { "\x1b[0m " } else { " " });
    let mut fields = FieldWriter::new(line, LogFormat::Text, severity, event.mask);
    event.event.record(&mut fields);
    fields.finish(|line| line.push_str(&escape_inline(event.event.metadata().name())));
    line.push('\n');
}

/// Width of the severity column: the longest severity.
const LEVEL_COLUMN_WIDTH: usize = "critical".len();

/// Returns the severity of an event: an error with `severity="critical"` is critical.
fn event_level(event: &Event<'_>) -> LogLevel {
    match *event.metadata().level() {
        TracingLevel::ERROR => {
            let mut critical = CriticalVisitor::default();
            event.record(&mut critical);
            if critical.is_critical() { LogLevel::Critical } else { LogLevel::Error }
        }
        TracingLevel::WARN => LogLevel::Warning,
        TracingLevel::INFO => LogLevel::Info,
        TracingLevel::DEBUG | TracingLevel::TRACE => LogLevel::Debug,
    }
}

pub(super) fn ansi_code(severity: LogLevel) -> &'static str {
    match severity {
        LogLevel::Debug => "2",
        LogLevel::Info => "32",
        LogLevel::Warning => "33",
        LogLevel::Error => "31",
        LogLevel::Critical => "1;31",
    }
}
