//! Logs that are read slowly, in parts, or not at all.

use std::sync::mpsc;

use super::*;

/// Takes one write for each permit, and never ends.
struct Slow {
    permits: mpsc::Receiver<()>,
    taken: Arc<Mutex<Vec<String>>>,
}

impl Write for Slow {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.permits.recv().map_err(io::Error::other)?;
        self.taken.lock().unwrap().push(String::from_utf8(bytes.to_vec()).unwrap());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn slow() -> (Sink, mpsc::Sender<()>, Arc<Mutex<Vec<String>>>) {
    let (permit, permits) = mpsc::channel();
    let taken = Arc::default();
    let sink = Sink::start(Slow { permits, taken: Arc::clone(&taken) });
    (sink, permit, taken)
}

#[test]
fn what_is_flushed_was_written_whole_and_in_order() {
    let (sink, permit, taken) = slow();
    let lines: Vec<String> = (0..1000).map(|number| format!("line {number}\n")).collect();
    for line in &lines {
        sink.put(line);
        permit.send(()).unwrap();
    }
    sink.flush();
    assert_eq!(taken.lock().unwrap().concat(), lines.concat());
}

#[test]
fn a_log_that_nobody_reads_stops_nobody_and_tells_how_many_lines_it_lost() {
    let (sink, permit, taken) = slow();
    let line = format!("{}\n", "x".repeat(1023));
    sink.put(&line);
    let shared = sink.0.as_ref().unwrap();
    while !shared.state().busy {
        std::thread::yield_now();
    }
    for _ in 0..(2 * ROOM / line.len()) {
        sink.put(&line);
    }
    let kept = ROOM / line.len();
    assert_eq!(shared.state().left_out, kept as u64);
    drop(permit);
    sink.flush();
    assert!(taken.lock().unwrap().is_empty(), "nobody took it");
}

#[test]
fn a_stderr_that_does_not_block_loses_nothing() {
    struct Reluctant(bool, Arc<Mutex<Vec<u8>>>);

    impl Write for Reluctant {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = !self.0;
            if self.0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let part = bytes.len().min(7);
            self.1.lock().unwrap().extend_from_slice(&bytes[..part]);
            Ok(part)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let taken = Arc::default();
    let sink = Sink::start(Reluctant(false, Arc::clone(&taken)));
    sink.put("one line and\n");
    sink.put("another\n");
    sink.flush();
    assert_eq!(taken.lock().unwrap().as_slice(), b"one line and\nanother\n");
}

#[test]
fn one_line_may_be_longer_than_the_room() {
    let (sink, permit, taken) = slow();
    let line = "x".repeat(ROOM + 1);
    for _ in 0..=line.len() / CHUNK {
        permit.send(()).unwrap();
    }
    sink.put(&line);
    sink.flush();
    assert_eq!(taken.lock().unwrap().concat().len(), line.len());
}

#[test]
fn words_come_behind_the_lines_logged_before_them() {
    let (sink, permit, taken) = slow();
    for _ in 0..2 {
        permit.send(()).unwrap();
    }
    sink.put("logged\n");
    let kept = Arc::clone(&taken);
    let (said, words) = mpsc::channel();
    said.send(()).unwrap();
    sink.before(Slow { permits: words, taken: kept }).write_all(b"said\n").unwrap();
    assert_eq!(taken.lock().unwrap().concat(), "logged\nsaid\n");
}
