//! Event streams of requests and sessions, with resumption.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;

use super::body_writer::BodyWriter;
use super::bridge::OpenRequest;
use super::routes::OutboundMessage;

/// Maximum number of stored events per session; the oldest events are removed first.
const MAX_EVENTS: usize = 256;

/// The id of the stream for messages that belong to no request.
pub(super) const GENERAL_STREAM: u64 = 0;

#[derive(Clone, Debug)]
struct LoggedEvent {
    stream: u64,
    number: u64,
    text: Bytes,
    is_last: bool,
    replay_twice: bool,
}

/// The resumable events of a session.
#[derive(Debug)]
pub(super) struct EventLog {
    events: Mutex<(u64, VecDeque<LoggedEvent>)>,
    added: watch::Sender<()>,
}

impl EventLog {
    pub(super) fn new() -> Arc<Self> {
        let added = watch::Sender::new(());
        Arc::new(Self { events: Mutex::new((0, VecDeque::new())), added })
    }

    fn next(&self) -> u64 {
        let mut events = self.lock();
        events.0 += 1;
        events.0
    }

    fn add(&self, event: LoggedEvent) {
        let mut events = self.lock();
        if events.1.len() == MAX_EVENTS {
            events.1.pop_front();
        }
        events.1.push_back(event);
        drop(events);
        self.added.send_replace(());
    }

    fn after(&self, stream: u64, number: u64) -> Vec<LoggedEvent> {
        let events = self.lock();
        let later = events.1.iter().filter(|event| event.stream == stream && event.number > number);
        later.cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, (u64, VecDeque<LoggedEvent>)> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Debug)]
pub(super) struct ResumableStream {
    pub(super) log: Arc<EventLog>,
    pub(super) stream: u64,
    /// Whether a resumed stream sends its events twice.
    pub(super) replay_twice: bool,
}

impl ResumableStream {
    fn priming_event_id(&self) -> String {
        event_id(self.stream, self.log.next())
    }

    fn record(&self, out: &OutboundMessage) -> String {
        let number = self.log.next();
        let stream = self.stream;
        let replays_twice = self.replay_twice;
        self.log.add(LoggedEvent {
            stream,
            number,
            text: out.text.clone(),
            is_last: out.is_last,
            replay_twice: replays_twice,
        });
        event_id(stream, number)
    }
}

fn event_id(stream: u64, number: u64) -> String {
    format!("{stream}_{number}")
}

/// Parses an event id into stream id and event number.
pub(super) fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.split_once('_')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}

/// The end of a stream before the response.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamCut {
    pub(super) retry: Option<Duration>,
}

/// Writes the stream of one request until its response or its end.
pub(super) async fn write_request_stream(
    mut open: OpenRequest,
    first: Option<OutboundMessage>,
    writer: BodyWriter,
    trace: Option<ResumableStream>,
    stream_cut: Option<StreamCut>,
) {
    let mut writer = Some(writer);
    if let (Some(trace), Some(now)) = (&trace, &mut writer) {
        now.write_priming_event(
            &trace.priming_event_id(),
            stream_cut.and_then(|stream_cut| stream_cut.retry),
        )
        .await;
        if stream_cut.is_some() {
            writer = None;
        }
    }
    let mut next = first;
    loop {
        let out = match next.take() {
            Some(out) => out,
            None => match next_message(&mut open, writer.as_ref()).await {
                Some(out) => out,
                // A resumable stream continues without a reader.
                None if trace.is_some() && writer.as_ref().is_some_and(BodyWriter::is_closed) => {
                    writer = None;
                    continue;
                }
                None => break,
            },
        };
        let id = trace.as_ref().map(|trace| trace.record(&out));
        if let Some(now) = &mut writer
            && !now.write_message(&out.text, id.as_deref(), out.fault.as_ref()).await
        {
            writer = None;
        }
        if out.is_last || writer.is_none() && trace.is_none() {
            break;
        }
    }
    if let Some(writer) = writer {
        writer.finish().await;
    }
}

/// Returns the next message; none at the end, or if the client has stopped reading.
async fn next_message(
    open: &mut OpenRequest,
    writer: Option<&BodyWriter>,
) -> Option<OutboundMessage> {
    let closed = async {
        match writer {
            Some(writer) => writer.closed().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        out = open.lines.recv() => out,
        () = closed => None,
    }
}

/// Writes the stream for messages that belong to no request, until its end.
pub(super) async fn write_general_stream(
    waiting: Vec<OutboundMessage>,
    mut lines: Receiver<OutboundMessage>,
    mut writer: BodyWriter,
    trace: Option<ResumableStream>,
) {
    for out in waiting {
        let id = trace.as_ref().map(|trace| trace.record(&out));
        if !writer.write_message(&out.text, id.as_deref(), out.fault.as_ref()).await {
            return;
        }
    }
    loop {
        let received = tokio::select! {
            out = lines.recv() => out,
            () = writer.closed() => return,
        };
        let Some(out) = received else { return writer.finish().await };
        let id = trace.as_ref().map(|trace| trace.record(&out));
        if !writer.write_message(&out.text, id.as_deref(), out.fault.as_ref()).await {
            return;
        }
    }
}

/// Writes the events after an event again; returns true if the stream is complete.
async fn replay_events(
    log: &EventLog,
    stream: u64,
    after: &mut u64,
    writer: &mut BodyWriter,
) -> bool {
    for event in log.after(stream, *after) {
        let id = event_id(stream, event.number);
        for _ in 0..if event.replay_twice { 2 } else { 1 } {
            if !writer.write_message(&event.text, Some(&id), None).await {
                return true;
            }
        }
        *after = event.number;
        if event.is_last {
            return true;
        }
    }
    false
}

/// Resumes the stream of a request after an event, until its response.
pub(super) async fn resume_stream(
    log: Arc<EventLog>,
    stream: u64,
    mut after: u64,
    mut writer: BodyWriter,
) {
    let mut added = log.added.subscribe();
    while !replay_events(&log, stream, &mut after, &mut writer).await {
        tokio::select! {
            changed = added.changed() => if changed.is_err() { return },
            () = writer.closed() => return,
        }
    }
    writer.finish().await;
}

/// Writes the events of the general stream after an event again.
pub(super) async fn replay_missed(log: &EventLog, mut after: u64, writer: &mut BodyWriter) {
    replay_events(log, GENERAL_STREAM, &mut after, writer).await;
}
