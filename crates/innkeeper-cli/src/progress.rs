//! One line a server on a terminal while servers start, and nothing elsewhere.

use std::collections::HashMap;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use innkeeper_host::{Event, display_safe};
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinHandle;

/// How often the spinners turn.
const TURN: Duration = Duration::from_millis(100);

/// How much of a reason fits on a line.
const REASON: usize = 100;

/// Progress being shown.
#[derive(Debug)]
pub(crate) struct Shown(Option<(MultiProgress, JoinHandle<()>)>);

/// Shows what happens until [`Shown::end`].
pub(crate) fn show(events: Receiver<Event>) -> Shown {
    if !std::io::stderr().is_terminal() {
        return Shown(None);
    }
    let lines = MultiProgress::new();
    #[expect(clippy::disallowed_methods, reason = "owned by `Shown`, which ends it")]
    let task = tokio::spawn(follow(events, lines.clone()));
    Shown(Some((lines, task)))
}

impl Shown {
    /// Takes the lines off the screen.
    pub(crate) fn end(self) {
        if let Some((lines, task)) = self.0 {
            task.abort();
            // A terminal that is gone has nothing to clear.
            drop(lines.clear());
        }
    }
}

async fn follow(mut events: Receiver<Event>, lines: MultiProgress) {
    let mut bars: HashMap<Arc<str>, ProgressBar> = HashMap::new();
    loop {
        let event = match events.recv().await {
            Ok(event) => event,
            Err(RecvError::Lagged(_)) => continue,
            Err(RecvError::Closed) => return,
        };
        let Some((server, words, done)) = words(&event) else { continue };
        let bar = bars.entry(server.clone()).or_insert_with(|| {
            let bar = lines.add(ProgressBar::new_spinner());
            if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}  {msg}") {
                bar.set_style(style);
            }
            bar.set_prefix(server.to_string());
            bar.enable_steady_tick(TURN);
            bar
        });
        if done {
            bar.finish_with_message(words);
        } else {
            bar.set_message(words);
        }
    }
}

/// The server an event is about, the words for it, and whether its line is finished.
fn words(event: &Event) -> Option<(&Arc<str>, String, bool)> {
    let short = |reason: &str| display_safe(reason).chars().take(REASON).collect::<String>();
    Some(match event {
        Event::Launching { server, attempt: 1 } => (server, "launching".to_owned(), false),
        Event::Launching { server, attempt } => {
            (server, format!("launching, attempt {attempt}"), false)
        }
        Event::Installing { server } => (server, "fetching the package".to_owned(), false),
        Event::Handshake { server } => (server, "shaking hands".to_owned(), false),
        Event::Retrying { server, delay, reason } => {
            (server, format!("{}; again in {} s", short(reason), delay.as_secs()), false)
        }
        Event::Ready { server, took, tools } => {
            let plural = if *tools == 1 { "" } else { "s" };
            (server, format!("ready after {} ms, {tools} tool{plural}", took.as_millis()), true)
        }
        Event::Unavailable { server, reason } => (server, short(reason), true),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_of_a_start_has_its_words_and_only_the_last_ends_the_line() {
        let server: Arc<str> = "one".into();
        let own = || server.clone();
        let took = Duration::from_millis(1500);
        let reason = || "\u{1b}[2Jno such program".to_owned();
        let told = |event: Event| {
            let (about, words, done) = words(&event).unwrap();
            assert_eq!(**about, *server);
            (words, done)
        };
        let launching = |attempt| told(Event::Launching { server: own(), attempt }).0;
        assert_eq!(launching(1), "launching");
        assert_eq!(launching(2), "launching, attempt 2");
        assert!(!told(Event::Installing { server: own() }).1);
        assert!(!told(Event::Handshake { server: own() }).1);
        let retrying =
            Event::Retrying { server: own(), delay: Duration::from_secs(2), reason: reason() };
        let (words, done) = told(retrying);
        assert!(words.ends_with("no such program; again in 2 s") && !done, "{words}");
        assert!(!words.contains('\u{1b}'), "{words}");
        let ready = |tools| told(Event::Ready { server: own(), took, tools });
        assert_eq!(ready(1), ("ready after 1500 ms, 1 tool".to_owned(), true));
        assert_eq!(ready(2), ("ready after 1500 ms, 2 tools".to_owned(), true));
        let long = "x".repeat(REASON + 1);
        let (words, done) = told(Event::Unavailable { server: own(), reason: long });
        assert_eq!((words.chars().count(), done), (REASON, true));
    }
}
