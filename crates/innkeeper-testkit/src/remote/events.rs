//! Streams of events: written as messages come, and taken up again where they broke off.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;

use super::bridge::Open;
use super::pen::Pen;
use super::routes::Out;

/// Events kept for a session; the oldest are forgotten first.
const KEPT: usize = 256;

/// The stream of what belongs to no request.
pub(super) const GENERAL: u64 = 0;

#[derive(Clone, Debug)]
struct Event {
    stream: u64,
    number: u64,
    text: Bytes,
    last: bool,
    twice: bool,
}

/// The events of a session that can be asked for again.
#[derive(Debug)]
pub(super) struct EventLog {
    events: Mutex<(u64, VecDeque<Event>)>,
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

    fn add(&self, event: Event) {
        let mut events = self.lock();
        if events.1.len() == KEPT {
            events.1.pop_front();
        }
        events.1.push_back(event);
        drop(events);
        self.added.send_replace(());
    }

    fn after(&self, stream: u64, number: u64) -> Vec<Event> {
        let events = self.lock();
        let fits = |event: &&Event| event.stream == stream && event.number > number;
        events.1.iter().filter(fits).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, (u64, VecDeque<Event>)> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream whose events have ids.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub(super) log: Arc<EventLog>,
    pub(super) stream: u64,
    /// Whether its events come twice when it is taken up.
    pub(super) twice: bool,
}

impl Trace {
    fn prime(&self) -> String {
        id(self.stream, self.log.next())
    }

    fn add(&self, out: &Out) -> String {
        let number = self.log.next();
        let (stream, twice) = (self.stream, self.twice);
        self.log.add(Event { stream, number, text: out.text.clone(), last: out.last, twice });
        id(stream, number)
    }
}

fn id(stream: u64, number: u64) -> String {
    format!("{stream}_{number}")
}

/// The stream and number an event id stands for.
pub(super) fn place(id: &str) -> Option<(u64, u64)> {
    let (stream, number) = id.split_once('_')?;
    Some((stream.parse().ok()?, number.parse().ok()?))
}

/// Where a stream ends before the answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub(super) retry: Option<Duration>,
}

/// Writes the stream of one request until it is answered or closed.
pub(super) async fn answer(
    mut open: Open,
    first: Option<Out>,
    pen: Pen,
    trace: Option<Trace>,
    cut: Option<Cut>,
) {
    let mut pen = Some(pen);
    if let (Some(trace), Some(now)) = (&trace, &mut pen) {
        now.prime(&trace.prime(), cut.and_then(|cut| cut.retry)).await;
        if cut.is_some() {
            pen = None;
        }
    }
    let mut next = first;
    loop {
        let out = match next.take() {
            Some(out) => out,
            None => match received(&mut open, pen.as_ref()).await {
                Some(out) => out,
                // A stream that can be taken up goes on without a reader.
                None if trace.is_some() && pen.as_ref().is_some_and(Pen::is_closed) => {
                    pen = None;
                    continue;
                }
                None => break,
            },
        };
        let id = trace.as_ref().map(|trace| trace.add(&out));
        if let Some(now) = &mut pen
            && !now.put(&out.text, id.as_deref(), out.act.as_ref()).await
        {
            pen = None;
        }
        if out.last || pen.is_none() && trace.is_none() {
            break;
        }
    }
    if let Some(pen) = pen {
        pen.end().await;
    }
}

/// The next message; none at the end, or when the client reads no more.
async fn received(open: &mut Open, pen: Option<&Pen>) -> Option<Out> {
    let closed = async {
        match pen {
            Some(pen) => pen.closed().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        out = open.lines.recv() => out,
        () = closed => None,
    }
}

/// Writes the stream of what belongs to no request until the fixture server ends or it is closed.
pub(super) async fn general(
    waiting: Vec<Out>,
    mut lines: Receiver<Out>,
    mut pen: Pen,
    trace: Option<Trace>,
) {
    for out in waiting {
        let id = trace.as_ref().map(|trace| trace.add(&out));
        if !pen.put(&out.text, id.as_deref(), out.act.as_ref()).await {
            return;
        }
    }
    loop {
        let received = tokio::select! {
            out = lines.recv() => out,
            () = pen.closed() => return,
        };
        let Some(out) = received else { return pen.end().await };
        let id = trace.as_ref().map(|trace| trace.add(&out));
        if !pen.put(&out.text, id.as_deref(), out.act.as_ref()).await {
            return;
        }
    }
}

/// Writes again what came after an event; true when the stream has its last event.
async fn replay(log: &EventLog, stream: u64, after: &mut u64, pen: &mut Pen) -> bool {
    for event in log.after(stream, *after) {
        let id = id(stream, event.number);
        for _ in 0..if event.twice { 2 } else { 1 } {
            if !pen.put(&event.text, Some(&id), None).await {
                return true;
            }
        }
        *after = event.number;
        if event.last {
            return true;
        }
    }
    false
}

/// Takes the stream of a request up after an event, until its answer.
pub(super) async fn resume(log: Arc<EventLog>, stream: u64, mut after: u64, mut pen: Pen) {
    let mut added = log.added.subscribe();
    while !replay(&log, stream, &mut after, &mut pen).await {
        tokio::select! {
            changed = added.changed() => if changed.is_err() { return },
            () = pen.closed() => return,
        }
    }
    pen.end().await;
}

/// Writes again what came after an event of the general stream.
pub(super) async fn catch_up(log: &EventLog, mut after: u64, pen: &mut Pen) {
    replay(log, GENERAL, &mut after, pen).await;
}
