//! Messages of the user, and the run that answers them.

use innkeeper_agent::agent::AgentEvent;
use innkeeper_agent::content::Content;
use tokio::time::Instant;

use super::{App, commands};
use crate::chat::attachment;

impl App {
    pub(super) fn send(&mut self, text: &str) {
        let attached = std::mem::take(&mut self.attachments);
        let (shown, content) = attachment::to_message(&attached, text);
        self.send_content(&shown, content);
    }

    pub(super) fn send_content(&mut self, shown: &str, content: Content) {
        self.run = Some(self.session.run(content));
        self.screen.on_sent(shown, Instant::now());
        self.update_status();
    }

    /// Stops the run. The servers are told, and the model knows what was displayed.
    pub(super) fn interrupt(&mut self) {
        if self.run.take().is_none() {
            return;
        }
        let stored = self.session.on_interruption();
        self.screen.on_interrupted();
        self.report_storage(stored);
        self.update_status();
    }

    pub(super) fn on_agent_event(&mut self, event: AgentEvent) {
        let stored = self.session.record(&event);
        self.report_storage(stored);
        let host = self.session.host().clone();
        self.screen.on_event(&event, |tool| commands::server_of(&host, tool), Instant::now());
        self.is_dirty = true;
        if let AgentEvent::ResponseFinished { .. } = event {
            self.update_status();
        }
        let is_finished = matches!(event, AgentEvent::Finished(_));
        self.session.finish_event(event);
        if is_finished {
            self.run = None;
            self.update_status();
            self.send_queued();
        }
    }

    /// Sends the next message that was typed during a run or other work.
    pub(super) fn send_queued(&mut self) {
        if self.run.is_none()
            && self.work.is_empty()
            && let Some(queued) = self.screen.take_queued()
        {
            self.send(&queued);
        }
    }
}
