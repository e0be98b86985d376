//! A line on the terminal while a request runs: a spinner, the elapsed time and the progress.

use std::pin::pin;

use innkeeper_host::Progress;
use tokio::sync::mpsc::Receiver;

use crate::output::{Output, escape_inline};
use crate::progress_lines::SpinnerLine;
use crate::secret_mask::SecretMask;

/// A line on stderr; nothing if stderr is no terminal. The line disappears with this value.
#[derive(Debug)]
pub(crate) struct ActivityLine(Option<(SpinnerLine, SecretMask)>);

impl ActivityLine {
    pub(crate) fn show(output: &Output, text: &str) -> Self {
        let line = output.progress_lines().add_spinner("{spinner} {elapsed} {wide_msg}");
        if let Some(line) = &line {
            line.set_message(escape_inline(text).into_owned());
            line.start();
        }
        Self(line.map(|line| (line, output.secret_mask().clone())))
    }

    /// Shows nothing.
    pub(crate) fn hidden() -> Self {
        Self(None)
    }

    /// Shows the progress of a call after `subject`.
    pub(crate) fn show_progress(&self, subject: &str, step: &Progress) {
        if let Some((line, mask)) = &self.0 {
            let text = progress_text(step);
            line.set_message(format!("{}  {}", escape_inline(subject), mask.apply(&text)));
        }
    }

    /// Waits for a call, and shows its progress after `subject`.
    pub(crate) async fn follow<T>(
        self,
        subject: &str,
        mut progress: Receiver<Progress>,
        call: impl Future<Output = T>,
    ) -> T {
        let mut call = pin!(call);
        loop {
            tokio::select! {
                value = &mut call => return value,
                Some(step) = progress.recv() => self.show_progress(subject, &step),
            }
        }
    }
}

/// Returns `3/10 reading files`.
fn progress_text(step: &Progress) -> String {
    let mut text = step.progress.to_string();
    if let Some(total) = step.total {
        text.push_str(&format!("/{total}"));
    }
    if let Some(message) = &step.message {
        text.push_str(&format!("  {}", escape_inline(message)));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::value::RawValue;

    use super::*;

    #[test]
    fn progress_has_the_total_and_the_message_if_the_server_sends_them() {
        let step = |total, message: Option<&str>| Progress {
            progress: 2.5,
            total,
            message: message.map(str::to_owned),
            meta: None,
            params: Arc::from(RawValue::from_string("{}".to_owned()).unwrap()),
        };
        assert_eq!(progress_text(&step(None, None)), "2.5");
        assert_eq!(
            progress_text(&step(Some(10.0), Some("a\u{1b}[2J\nb"))),
            "2.5/10  a\\u{1b}[2J\\nb"
        );
    }
}
