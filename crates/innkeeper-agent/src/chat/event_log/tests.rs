//! Tests of the times in the log.

use std::sync::Mutex;

use super::*;

#[tokio::test]
async fn the_times_of_a_log_are_those_of_its_clock() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log");
    let log_config = LogConfig {
        log_path: Some(path.clone()),
        token_classifications: false,
        performance_metrics: true,
    };
    let (base, passed) = (Instant::now(), Arc::new(Mutex::new(Duration::ZERO)));
    let clock = passed.clone();
    let written_at = UNIX_EPOCH + Duration::from_millis(1_700_000_000_123);
    let timing = Timing {
        now: Arc::new(move || base + *clock.lock().unwrap()),
        system_time: Arc::new(move || written_at),
        ..Timing::default()
    };
    let log_writer = LogWriter::open(&log_config, timing).unwrap();
    let start_time = log_writer.log_start(LogEventKind::ToolDetectionStart);
    *passed.lock().unwrap() = Duration::from_secs(90);
    log_writer.log_complete(LogEventKind::ToolDetectionComplete, start_time, || json!({}));
    log_writer.log_metric("a part", start_time);
    log_writer.flush().await;
    let text = std::fs::read_to_string(path).unwrap();
    let entries: Vec<LogEntry> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let times: Vec<_> = entries.iter().map(|entry| (entry.timestamp, entry.duration_ms)).collect();
    let at = 1_700_000_000_123;
    assert_eq!(times, [(at, None), (at, Some(90_000.0)), (at, Some(90_000.0))]);
}

#[test]
fn the_next_written_entry_has_the_number_of_dropped_entries_once() {
    let (sender, mut lines) = mpsc::channel(1);
    let open = OpenLog {
        timing: Timing::default(),
        sender,
        token_classifications: false,
        performance_metrics: false,
        dropped_entries: AtomicUsize::new(0),
    };
    let send = || open.send(LogEventKind::ToolDetectionStart, json!({}), None);
    let mut next_details = || match lines.try_recv().unwrap() {
        WriterCommand::Write(entry) => entry.details,
        WriterCommand::Flush(_) => panic!("no flush was requested"),
    };
    // The queue has room for the first entry only.
    for _ in 0..3 {
        send();
    }
    assert_eq!(next_details(), json!({}));
    send();
    assert_eq!(next_details(), json!({"lines_left_out": 2}));
    send();
    assert_eq!(next_details(), json!({}));
}
