//! Tests of the lines and the tail of stderr.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncWriteExt, ReadBuf};

use super::*;

async fn drained(bytes: &[u8]) -> (StderrTail, Vec<String>) {
    let (tail, mut lines) = (StderrTail::default(), Vec::new());
    tail.drain(bytes, |line| lines.push(line.to_owned())).await;
    (tail, lines)
}

/// Attack: flow control | 1 MiB on stderr | the output is not delayed | No unbounded wait
/// Proves: TR2.2
#[cfg(unix)]
#[tokio::test]
async fn a_flood_on_stderr_does_not_hold_up_stdout() {
    use innkeeper_process::{Confinement, ProcessSpec, StdioPipes, Supervisor, spawn};

    let flood = "yes 'an unsolicited line' | head -c 1048576 >&2; echo done";
    let spec = ProcessSpec {
        command: "sh".to_owned(),
        program: "/bin/sh".into(),
        args: vec!["-c".into(), flood.into()],
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cwd: None,
        confinement: Confinement::default(),
    };
    let (_process, pipes) = spawn(&spec, &Supervisor::Group, None).await.unwrap();
    let StdioPipes { stdin: _stdin, mut stdout, stderr } = pipes;
    let (tail, mut lines, mut output) = (StderrTail::default(), 0, String::new());
    let drain = tail.drain(stderr, |_| lines += 1);
    let ((), read) = tokio::join!(drain, stdout.read_to_string(&mut output));
    assert_eq!((read.unwrap(), output.as_str()), (5, "done\n"));
    assert!(tail.tail(1000).contains("an unsolicited line"));
    assert!((1..1000).contains(&lines), "{lines} of 52000 lines were forwarded");
}

/// Attack: terminal | stderr contains an escape code | the line is escaped | Foreign text stays
/// text
#[tokio::test(start_paused = true)]
async fn lines_are_handed_on_escaped_and_the_last_one_without_its_end_too() {
    let (tail, lines) = drained(b"one\r\n\n\x1b[31mtwo\nthr\xffee").await;
    assert_eq!(lines, ["one", "\\u{1b}[31mtwo", "thr\u{fffd}ee"]);
    assert_eq!(tail.tail(9), "thr\u{fffd}ee");
    assert_eq!(tail.tail(100), "one\n\ntwo\nthr\u{fffd}ee");
}

/// A source whose reads return these results in order, then the end.
struct ScriptedSource(VecDeque<io::Result<&'static [u8]>>);

impl AsyncRead for ScriptedSource {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.0.pop_front().unwrap_or(Ok(b""));
        Poll::Ready(read.map(|bytes| buffer.put_slice(bytes)))
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_read_is_repeated_and_any_other_error_is_the_end() {
    for (kind, expected) in [
        (io::ErrorKind::Interrupted, &["one", "two"][..]),
        (io::ErrorKind::ConnectionReset, &["one"]),
    ] {
        let reads = [Ok(&b"one\n"[..]), Err(kind.into()), Ok(&b"two\n"[..])];
        let (source, mut lines) = (ScriptedSource(reads.into()), Vec::new());
        StderrTail::default().drain(source, |line| lines.push(line.to_owned())).await;
        assert_eq!(lines, expected, "{kind}");
    }
}

/// Attack: secrets | stderr contains values of `env` | they are masked | Secrets do not print
#[tokio::test(start_paused = true)]
async fn a_value_of_the_environment_is_masked_in_lines_and_in_the_tail() {
    let values = [Secret::new("secret-1"), Secret::new("secret-1-longer"), Secret::new("short")];
    let (tail, mut lines) = (StderrTail::with_masked_values(values.iter()), Vec::new());
    let source = &b"a secret-1 short\nb=secret-1-longer"[..];
    tail.drain(source, |line| lines.push(line.to_owned())).await;
    assert_eq!(lines, ["a *** short", "b=***"]);
    assert_eq!(tail.tail(100), "a *** short\nb=***");
    assert_eq!(tail.tail(5), "b=***");
}

#[tokio::test(start_paused = true)]
async fn a_line_at_the_limit_is_whole_and_one_byte_more_is_cut() {
    let (_, lines) = drained(&[vec![b'a'; MAX_LINE_BYTES], b"\nnext\n".to_vec()].concat()).await;
    assert_eq!((lines[0].len(), lines[1].as_str()), (MAX_LINE_BYTES, "next"));
    let (_, lines) =
        drained(&[vec![b'a'; MAX_LINE_BYTES + 1], b"\nnext\n".to_vec()].concat()).await;
    assert_eq!((lines[0].len(), lines[1].as_str()), (MAX_LINE_BYTES, "next"));
}

/// Attack: flow control | a huge line on stderr | it is cut | No unbounded memory
#[tokio::test(start_paused = true)]
async fn an_endless_line_stays_bounded_and_its_end_is_kept() {
    let (tail, lines) =
        drained(&[vec![b'x'; 4 * MAX_TAIL_BYTES], b"the end".to_vec()].concat()).await;
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].len(), MAX_LINE_BYTES);
    assert_eq!(tail.tail(usize::MAX).len(), MAX_TAIL_BYTES);
    assert!(tail.tail(100).ends_with("the end"));
}

/// Attack: flow control | more lines on stderr than the limit per second | the rest is counted
/// in one line | No unbounded memory
#[tokio::test(start_paused = true)]
async fn a_flood_of_lines_is_counted_and_summarised_once_a_second() {
    let (mut server, source) = tokio::io::duplex(1 << 20);
    let (tail, mut lines) = (StderrTail::default(), Vec::new());
    let flood = "flood\n".repeat(MAX_LINES_PER_SECOND as usize + 7);
    let writes = async {
        server.write_all(flood.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(2500)).await;
        server.write_all(b"later\n").await.unwrap();
        drop(server);
    };
    tokio::join!(writes, tail.drain(source, |line| lines.push(line.to_owned())));
    assert_eq!(lines.len(), MAX_LINES_PER_SECOND as usize + 2);
    assert_eq!(lines[MAX_LINES_PER_SECOND as usize..], ["(7 more lines not logged)", "later"]);
}

#[tokio::test(start_paused = true)]
async fn the_number_of_suppressed_lines_is_reported_a_second_after_the_first_line() {
    let (mut server, source) = tokio::io::duplex(1 << 20);
    let (tail, started, mut summaries) = (StderrTail::default(), Instant::now(), Vec::new());
    let flood = "flood\n".repeat(MAX_LINES_PER_SECOND as usize + 7);
    let writes = async {
        server.write_all(flood.as_bytes()).await.unwrap();
        tokio::time::sleep(Duration::from_mins(1)).await;
        drop(server);
    };
    let lines = |line: &str| {
        if line != "flood" {
            summaries.push((line.to_owned(), started.elapsed().as_secs()));
        }
    };
    tokio::join!(writes, tail.drain(source, lines));
    assert_eq!(summaries, [("(7 more lines not logged)".to_owned(), 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_tail_that_contains_only_the_end_of_one_line_shows_that_end() {
    let (tail, _) = drained(b"first\nsecond\n").await;
    assert_eq!(tail.tail(4), "ond");
    assert_eq!(tail.tail(10), "second");
}
