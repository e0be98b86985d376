//! Tests with log readers that are slow, read in parts, or do not read.

use std::sync::mpsc;

use super::*;

/// A writer that blocks until a permit arrives for each write.
struct PermitWriter {
    permits: mpsc::Receiver<()>,
    written: Arc<Mutex<Vec<String>>>,
}

impl Write for PermitWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.permits.recv().map_err(io::Error::other)?;
        self.written.lock().unwrap().push(String::from_utf8(bytes.to_vec()).unwrap());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn slow_sink() -> (LogSink, mpsc::Sender<()>, Arc<Mutex<Vec<String>>>) {
    let (permit, permits) = mpsc::channel();
    let output = Arc::default();
    let sink = LogSink::start(PermitWriter { permits, written: Arc::clone(&output) });
    (sink, permit, output)
}

#[test]
fn flushed_lines_are_written_whole_and_in_order() {
    let (sink, permit, written) = slow_sink();
    let lines: Vec<String> = (0..1000).map(|number| format!("line {number}\n")).collect();
    for line in &lines {
        sink.push_line(line);
        permit.send(()).unwrap();
    }
    sink.flush();
    assert_eq!(written.lock().unwrap().concat(), lines.concat());
}

#[test]
fn an_unread_log_blocks_nobody_and_counts_its_dropped_lines() {
    let (sink, permit, written) = slow_sink();
    let line = format!("{}\n", "x".repeat(1023));
    sink.push_line(&line);
    let shared = sink.0.as_ref().unwrap();
    while !shared.lock_state().writer_busy {
        std::thread::yield_now();
    }
    for _ in 0..(2 * MAX_BUFFERED_BYTES / line.len()) {
        sink.push_line(&line);
    }
    let buffered_lines = MAX_BUFFERED_BYTES / line.len();
    assert_eq!(shared.lock_state().dropped_lines, buffered_lines as u64);
    drop(permit);
    sink.flush();
    assert!(written.lock().unwrap().is_empty(), "nobody took it");
}

#[test]
fn a_stderr_that_does_not_block_loses_nothing() {
    struct WouldBlockWriter(bool, Arc<Mutex<Vec<u8>>>);

    impl Write for WouldBlockWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = !self.0;
            if self.0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let length = bytes.len().min(7);
            self.1.lock().unwrap().extend_from_slice(&bytes[..length]);
            Ok(length)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let written = Arc::default();
    let sink = LogSink::start(WouldBlockWriter(false, Arc::clone(&written)));
    sink.push_line("one line and\n");
    sink.push_line("another\n");
    sink.flush();
    assert_eq!(written.lock().unwrap().as_slice(), b"one line and\nanother\n");
}

#[test]
fn one_line_may_be_longer_than_the_buffer() {
    let (sink, permit, written) = slow_sink();
    let line = "x".repeat(MAX_BUFFERED_BYTES + 1);
    for _ in 0..=line.len() / MAX_WRITE_BYTES {
        permit.send(()).unwrap();
    }
    sink.push_line(&line);
    sink.flush();
    assert_eq!(written.lock().unwrap().concat().len(), line.len());
}

#[test]
fn output_comes_after_the_lines_logged_before_it() {
    let (sink, permit, output) = slow_sink();
    for _ in 0..2 {
        permit.send(()).unwrap();
    }
    sink.push_line("logged\n");
    let written_copy = Arc::clone(&output);
    let (done_sender, receiver) = mpsc::channel();
    done_sender.send(()).unwrap();
    sink.write_barrier(PermitWriter { permits: receiver, written: written_copy })
        .write_all(b"said\n")
        .unwrap();
    assert_eq!(output.lock().unwrap().concat(), "logged\nsaid\n");
}
