//! Reading a stream of events: what is in it goes to the session, and where it could go on is kept.

use std::collections::VecDeque;
use std::time::Duration;

use innkeeper_protocol::sse::{SseDecoder, SseEvent};
use reqwest::Response;
use tokio::time::timeout;

use super::answer::words;
use crate::server::session::{Inlet, Turns};

/// How long after the answer the end of its stream is waited for, so that the connection can be
/// used again.
const AFTER_ANSWER: Duration = Duration::from_millis(250);

/// Ids of events that are remembered: more than a server is likely to send again.
const REMEMBERED: usize = 256;

/// The pause before a request's stream is taken up again, unless the server says another.
const PAUSE: Duration = Duration::from_secs(1);

/// The shortest such pause, whatever the server says; doubles, up to the usual one, while streams
/// have no message in them: who has nothing to say need not be asked ten times a second.
const PAUSE_LEAST: Duration = Duration::from_millis(100);

/// The longest such pause, whatever the server says.
const PAUSE_LONGEST: Duration = Duration::from_secs(30);

/// How a stream ended.
#[derive(Debug)]
pub(in crate::transport) enum End {
    /// The request it was for has its answer.
    Answered,
    /// The server closed it.
    Closed,
    /// The connection broke.
    Broke(Box<str>),
}

/// Where a stream that ended may be taken up again.
#[derive(Debug, Default)]
pub(super) struct Resume {
    pub(super) last: Option<String>,
    pub(super) retry: Option<Duration>,
    /// Whether the last stream had anything in it.
    pub(super) heard: bool,
    /// Streams without a message in them, one after the other.
    empty: u32,
    /// Whether it took another one up.
    again: bool,
    known: VecDeque<Box<str>>,
}

impl Resume {
    /// How long to wait before the stream of a request is taken up again.
    pub(super) fn pause(&self) -> Duration {
        let doublings = 2_u32.saturating_pow(self.empty.saturating_sub(1));
        let least = PAUSE_LEAST.saturating_mul(doublings).min(PAUSE);
        self.retry.unwrap_or(PAUSE).clamp(least, PAUSE_LONGEST)
    }

    /// Whether an event has not come before. Only a stream that takes another one up repeats any.
    fn is_new(&mut self, id: Option<&str>) -> bool {
        let Some(id) = id.filter(|id| !id.is_empty()) else { return true };
        let known = self.known.iter().any(|known| &**known == id);
        if !known {
            if self.known.len() == REMEMBERED {
                self.known.pop_front();
            }
            self.known.push_back(id.into());
        }
        !(known && self.again)
    }
}

/// Gives every message of a stream to the session until it ends, or until the request is answered.
pub(super) async fn read(
    inlet: &Inlet,
    mut response: Response,
    id: Option<u64>,
    resume: &mut Resume,
) -> End {
    let mut decoder = SseDecoder::new(inlet.limit());
    let mut turns = Turns::default();
    let answered = || id.is_some_and(|id| !inlet.waits(id));
    resume.heard = false;
    resume.empty = resume.empty.saturating_add(1);
    resume.again = resume.last.is_some();
    loop {
        let chunk = match response.chunk().await {
            Ok(Some(chunk)) => chunk,
            Ok(None) => return if answered() { End::Answered } else { End::Closed },
            Err(error) => {
                return if answered() { End::Answered } else { End::Broke(words(&error)) };
            }
        };
        resume.heard = true;
        decoder.feed(&chunk);
        while let Some(event) = decoder.next_event() {
            match event {
                SseEvent::Message { name: "message", data, id }
                    if !data.trim_ascii().is_empty() && resume.is_new(id) =>
                {
                    resume.empty = 0;
                    inlet.message(data).await;
                }
                SseEvent::Message { .. } => {}
                SseEvent::TooLong { head } => inlet.too_long(head).await,
            }
        }
        if let Some(last) = decoder.last_event_id() {
            resume.last = Some(last.to_owned());
        }
        resume.retry = decoder.retry().map(Duration::from_millis).or(resume.retry);
        if answered() {
            let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
            drop(timeout(AFTER_ANSWER, rest).await);
            return End::Answered;
        }
        if decoder.is_dropping() {
            inlet.dropped(chunk.len() as u64).await;
        }
        turns.took(chunk.len()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_taken_up_when_the_server_says_but_not_without_a_pause() {
        let pause = |retry: Option<u64>, empty| {
            let retry = retry.map(Duration::from_millis);
            Resume { retry, empty, ..Resume::default() }.pause().as_millis()
        };
        assert_eq!(
            [pause(None, 0), pause(Some(500), 0), pause(Some(u64::MAX), 0)],
            [1000, 500, 30_000]
        );
        let in_a_row = |retry| (0..7).map(|empty| pause(Some(retry), empty)).collect::<Vec<_>>();
        assert_eq!(in_a_row(0), [100, 100, 200, 400, 800, 1000, 1000]);
        assert_eq!(in_a_row(500), [500, 500, 500, 500, 800, 1000, 1000]);
        assert_eq!(in_a_row(5000), [5000; 7]);
        assert_eq!(pause(Some(0), u32::MAX), 1000);
    }
}
