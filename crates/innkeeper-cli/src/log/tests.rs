//! Tests of the log lines on stderr.

use serde_json::Value;

use std::io::Write as _;
use std::path::Path;

use innkeeper_host::{Config, Environment};

use super::*;
use crate::output::capture::CapturedStream;
use crate::text::is_deceptive;

fn capture_log(level: LogLevel, style: LineStyle, emit: impl FnOnce()) -> String {
    capture_masked_log(SecretMask::default(), level, style, emit)
}

fn capture_masked_log(
    mask: SecretMask,
    level: LogLevel,
    style: LineStyle,
    emit: impl FnOnce(),
) -> String {
    let output = CapturedStream::default();
    let writer = output.clone();
    let keep = move |line: &str| writer.clone().write_all(line.as_bytes()).unwrap();
    let subscriber = build_subscriber(vec![LogOutput::new(level, style, keep)], mask);
    tracing::subscriber::with_default(subscriber, emit);
    output.text()
}

const TEXT: LineStyle = LineStyle::Text { colour: false };

const PLAIN: TerminalStyle = TerminalStyle { colour: false, columns: None, prints_findings: false };
const TERMINAL: LineStyle = LineStyle::Terminal(PLAIN);

fn json_lines(level: LogLevel, emit: impl FnOnce()) -> Vec<Value> {
    let text = capture_log(level, LineStyle::Json, emit);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn log_one_of_each() {
    tracing::debug!("d");
    tracing::info!("i");
    tracing::warn!("w");
    tracing::error!("e");
    tracing::error!(severity = "critical", "c");
}

/// Proves: FR7.4, FR9.4
#[test]
fn every_severity_is_one_flat_json_line_with_its_name() {
    let mut lines = json_lines(LogLevel::Debug, log_one_of_each);
    for line in &mut lines {
        // The environment of the test can have `RUST_BACKTRACE`.
        line.as_object_mut().unwrap().remove("backtrace");
    }
    let severities: Vec<_> = lines.iter().map(|line| line["severity"].as_str().unwrap()).collect();
    assert_eq!(severities, ["debug", "info", "warning", "error", "critical"]);
    assert!(lines.iter().all(|line| line.as_object().unwrap().values().all(Value::is_string)));
    assert!(lines.iter().all(|line| line.as_object().unwrap().len() == 3), "{lines:#?}");
}

/// Proves: FR9.5
#[test]
fn each_level_keeps_what_is_at_least_as_severe() {
    for (level, expected) in [
        (LogLevel::Debug, 5),
        (LogLevel::Info, 4),
        (LogLevel::Warning, 3),
        (LogLevel::Error, 2),
        (LogLevel::Critical, 1),
    ] {
        assert_eq!(json_lines(level, log_one_of_each).len(), expected, "{level:?}");
    }
}

#[test]
fn libraries_are_logged_from_warning_on_only() {
    let lines = json_lines(LogLevel::Debug, || {
        tracing::info!(target: "hyper::client", "connected");
        tracing::warn!(target: "hyper::client", "refused");
    });
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["event"], "refused");
}

#[test]
fn a_json_line_has_time_severity_event_and_then_the_fields_with_their_types() {
    let text = capture_log(LogLevel::Info, LineStyle::Json, || {
        tracing::info!(
            server = "files",
            id = 7,
            latency_ms = 1.5,
            ok = true,
            rate = f64::NAN,
            r#type = ?Some("x"),
            error.chain = %"a: b",
            "tool called"
        );
    });
    let (ts, rest) = text.split_once(',').unwrap();
    assert!(ts.starts_with("{\"ts\":\"20") && ts.ends_with("Z\"") && ts.len() == 35, "{ts}");
    insta::assert_snapshot!(rest, @r#"
    "severity":"info","event":"tool called","server":"files","id":7,"latency_ms":1.5,"ok":true,"rate":"NaN","type":"Some(\"x\")","error.chain":"a: b"}
    "#);
}

/// Attack: terminal | a field has the name of a member of the log line | the field gets another
/// name | Foreign text stays text
#[test]
fn fields_cannot_take_the_names_of_the_line() {
    let lines = json_lines(LogLevel::Info, || {
        tracing::info!(ts = 1, severity = "critical", event = "x", "words");
    });
    assert_eq!(lines[0]["severity"], "info");
    assert_eq!(lines[0]["event"], "words");
    assert_eq!(lines[0]["severity_"], "critical");
    assert_eq!(lines[0]["event_"], "x");
}

#[test]
fn an_event_without_a_message_is_still_valid_json() {
    let lines = json_lines(LogLevel::Info, || tracing::info!(server = "files"));
    assert_eq!(lines[0]["server"], "files");
    assert!(lines[0]["event"].is_string());
}

#[test]
fn an_error_field_carries_its_whole_chain() {
    #[derive(Debug, thiserror::Error)]
    #[error("outer")]
    struct OuterError(#[source] std::io::Error);
    let error = OuterError(std::io::Error::other("inner"));
    let error: &(dyn std::error::Error + 'static) = &error;
    let lines = json_lines(LogLevel::Error, || tracing::error!(error, "failed"));
    assert_eq!(lines[0]["error"], "outer: inner");
}

/// Attack: terminal | a field contains line ends, forged JSON and escape codes | the event is one
/// line in both formats | Foreign text stays text
#[test]
fn control_and_bidi_characters_leave_as_escapes_and_arrive_whole() {
    let nasty = "\u{1b}[2J\r\n{\"forged\":1}\u{202e}\u{9b}\u{e0041}";
    let emit = || tracing::info!(name = nasty, "{nasty}");
    let text = capture_log(LogLevel::Info, LineStyle::Json, emit);
    assert!(text.trim_end_matches('\n').chars().all(|c| !is_deceptive(c)), "{text:?}");
    let line: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((line["name"].as_str(), line["event"].as_str()), (Some(nasty), Some(nasty)));
    let text = capture_log(LogLevel::Info, TEXT, emit);
    assert_eq!(text.matches('\n').count(), 1);
    assert!(text.trim_end_matches('\n').chars().all(|c| !is_deceptive(c)), "{text:?}");
}

#[test]
fn the_text_form_reads_like_a_sentence_with_its_fields() {
    let emit = || tracing::warn!(server = "files", path = "a b", code = 3, "server `files` exited");
    let plain = capture_log(LogLevel::Warning, TEXT, emit);
    let (_, rest) = plain.split_once(' ').unwrap();
    assert_eq!(rest, "warning  server `files` exited server=files path=\"a b\" code=3\n");
    let coloured = capture_log(LogLevel::Warning, LineStyle::Text { colour: true }, emit);
    assert!(coloured.contains("\u{1b}[33mwarning \u{1b}[0m "), "{coloured:?}");
}

#[test]
fn a_terminal_line_is_a_sentence_without_fields_for_programs() {
    let emit = || {
        tracing::warn!(
            server = "files",
            tool = Some("read"),
            why = "looks like \u{1b}[2J",
            refused = false,
            audit = "guard-finding",
            security = true,
            "possible attack detected"
        );
        tracing::warn!(server = "files", attempt = 1, delay_s = 1.082_131, "restarting");
        tracing::error!(severity = "critical", server = "files", "processes left after stop");
    };
    let text = capture_log(LogLevel::Warning, TERMINAL, emit);
    insta::assert_snapshot!(text, @r"
    warning: server `files`: possible attack detected: looks like \u{1b}[2J (tool read, refused false)
    warning: server `files`: restarting (attempt 1, delay 1.1 s)
    critical: server `files`: processes left after stop
    ");
    let coloured = capture_log(
        LogLevel::Warning,
        LineStyle::Terminal(TerminalStyle { colour: true, ..PLAIN }),
        emit,
    );
    assert!(coloured.starts_with("\u{1b}[33mwarning\u{1b}[0m: server"), "{coloured:?}");
}

#[test]
fn a_terminal_line_is_written_once() {
    let emit = || {
        for count in 1..=3 {
            let what = "malformed progress";
            tracing::warn!(server = "files", what, count, "unusable message");
        }
    };
    let text = capture_log(LogLevel::Warning, TERMINAL, emit);
    assert_eq!(text, "warning: server `files`: unusable message: malformed progress\n");
    assert_eq!(capture_log(LogLevel::Warning, TEXT, emit).lines().count(), 3);
}

#[test]
fn a_changed_version_of_a_server_is_one_terminal_line() {
    let emit = || {
        for tool in ["read", "write"] {
            tracing::warn!(server = "files", what = tool, audit = "pin-mismatch", "pin mismatch");
        }
    };
    let text = capture_log(LogLevel::Warning, TERMINAL, emit);
    insta::assert_snapshot!(text, @"warning: server `files` differs from `mcp.lock`: run `innkeeper lock --check`");
}

#[test]
fn a_terminal_gets_no_line_for_what_the_command_prints_itself() {
    let emit = || {
        tracing::error!(target: innkeeper_host::event::REPORTED_TARGET, "request");
        for audit in ["start-failed", "tool-refused", "arguments-refused", "security-warning"] {
            tracing::error!(target: innkeeper_host::audit::TARGET, audit, "{audit}");
        }
        tracing::error!("list refresh failed");
    };
    let text = capture_log(LogLevel::Warning, TERMINAL, emit);
    assert_eq!(text, "error: security-warning\nerror: list refresh failed\n");
    let style = LineStyle::Terminal(TerminalStyle { prints_findings: true, ..PLAIN });
    let text = capture_log(LogLevel::Warning, style, emit);
    assert_eq!(text, "error: list refresh failed\n");
    assert_eq!(capture_log(LogLevel::Warning, TEXT, emit).lines().count(), 6);
}

#[test]
fn only_a_terminal_without_a_lower_level_gets_sentences() {
    let style =
        |level, format, is_terminal| LineStyle::of_stderr(level, format, is_terminal, PLAIN);
    assert_eq!(style(LogLevel::Warning, LogFormat::Text, true), TERMINAL);
    assert_eq!(style(LogLevel::Error, LogFormat::Text, true), TERMINAL);
    assert_eq!(style(LogLevel::Info, LogFormat::Text, true), TEXT);
    assert_eq!(style(LogLevel::Warning, LogFormat::Text, false), TEXT);
    assert_eq!(style(LogLevel::Warning, LogFormat::Json, true), LineStyle::Json);
}

#[test]
fn each_output_has_its_own_level() {
    let (first, second) = (CapturedStream::default(), CapturedStream::default());
    let output = |level, stream: &CapturedStream| {
        let writer = stream.clone();
        let keep = move |line: &str| writer.clone().write_all(line.as_bytes()).unwrap();
        LogOutput::new(level, LineStyle::Json, keep)
    };
    let outputs = vec![output(LogLevel::Warning, &first), output(LogLevel::Info, &second)];
    tracing::subscriber::with_default(
        build_subscriber(outputs, SecretMask::default()),
        log_one_of_each,
    );
    assert_eq!((first.text().lines().count(), second.text().lines().count()), (3, 4));
}

/// Attack: secrets | a server repeats a value of `env` in the reason of a failure | no line of the
/// log has the value, in any format | Secrets do not print
#[test]
fn a_secret_in_the_cause_of_an_event_is_masked_in_every_format() {
    let secret = "canary-\"5d1c\"-secret";
    let config = serde_json::json!({"servers": {"far": {"command": "a", "env": {"KEY": secret}}}});
    let environment = Environment::from_pairs([("PATH", "/bin")]);
    let config = Config::from_value(&config, "test", Path::new("/"), &environment).unwrap();
    let mask = SecretMask::default();
    mask.add_config(&config);
    let emit = || {
        tracing::warn!(server = "far", error = %format!("bad key {secret}"), "refresh failed");
        tracing::warn!(reason = format!("bad key {secret}"), "start failed");
    };
    for style in [LineStyle::Json, TEXT, TERMINAL] {
        let text = capture_masked_log(mask.clone(), LogLevel::Warning, style, emit);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains("bad key ***"), "{text}");
        assert!(!text.contains("5d1c"), "{text}");
    }
}
