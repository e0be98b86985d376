//! Completes the text of the editor, and reads what the history needs, beside all other work.

use futures_util::future::{BoxFuture, FutureExt as _};

use super::super::screen::Action;
use super::App;
use crate::chat::completion::{self, CompletionSources, Completions};
use crate::chat::conversation_file::ConversationFile;
use crate::chat::file_thread::FileThreads;
use crate::chat::permanent_rules;

/// The values for a text, when they are known.
pub(super) type PendingCompletion = BoxFuture<'static, FinishedCompletion>;

/// The values for a text.
pub(super) struct FinishedCompletion {
    text: String,
    completions: Completions,
    is_automatic: bool,
}

/// The searches for the editor, which run beside all other work.
#[derive(Default)]
pub(super) struct Searches {
    /// The search for values of the text in the editor.
    pub(super) completion: Option<PendingCompletion>,
    /// The search for the messages of earlier conversations.
    pub(super) earlier_messages: Option<BoxFuture<'static, Vec<String>>>,
    /// A file system that does not respond stops no command.
    pub(super) threads: FileThreads,
}

impl App {
    /// Looks for values; a drop of the earlier search cancels its request to a server. Names that the
    /// program knows are values before the next key. Returns what an accepted value causes.
    pub(super) fn complete(&mut self, text: String, is_automatic: bool) -> Option<Action> {
        let sources = CompletionSources {
            host: self.session.host().clone(),
            threads: self.searches.threads.clone(),
            conversations: self.context.directory.clone(),
            current: self.session.file().map(ConversationFile::id),
            rules: permanent_rules::tools_with_rules(self.session.approver()),
            home: self.context.environment.get("HOME").map(str::to_owned),
        };
        let mut search: PendingCompletion = Box::pin(async move {
            let completions = completion::complete(sources, text.clone()).await;
            FinishedCompletion { text, completions, is_automatic }
        });
        match (&mut search).now_or_never() {
            Some(finished) => {
                self.searches.completion = None;
                self.on_completion(finished)
            }
            None => {
                self.searches.completion = Some(search);
                if !is_automatic {
                    self.screen.set_hint("looking for values".to_owned());
                }
                None
            }
        }
    }

    /// Shows the values that were found. Returns what an accepted value causes.
    pub(super) fn on_completion(&mut self, finished: FinishedCompletion) -> Option<Action> {
        let FinishedCompletion { text, completions, is_automatic } = finished;
        self.is_dirty = true;
        self.screen.on_completions(&text, completions, is_automatic)
    }
}

/// Returns the next result of a future; waits forever without a future.
pub(super) async fn next_result<T>(pending: &mut Option<BoxFuture<'static, T>>) -> T {
    match pending {
        Some(future) => {
            let result = future.await;
            *pending = None;
            result
        }
        None => std::future::pending().await,
    }
}
