//! The tools of a recorded run, and those of a replay.

use std::future::{pending, ready};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_golden::{ProgressRecord, ToolCallRecord};
use innkeeper_host::Progress;
use innkeeper_protocol::view::ProgressNotification;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use super::clock::ReplayClock;
use super::failure::{outcome_of, result_of};
use super::recorder::GoldenRecorder;
use super::script::Script;
use crate::tools::{
    AvailableTool, RefreshFuture, ToolCallFuture, ToolCallOptions, ToolRunner, UnavailableTool,
};

/// Number of progress notifications of a call that wait for the application.
const PROGRESS_QUEUE: usize = 16;

/// Passes calls on, and records what is offered, called and returned.
pub(super) struct RecordingTools {
    tools: Arc<dyn ToolRunner>,
    recorder: GoldenRecorder,
}

impl RecordingTools {
    pub(super) fn new(tools: Arc<dyn ToolRunner>, recorder: GoldenRecorder) -> Self {
        Self { tools, recorder }
    }
}

impl ToolRunner for RecordingTools {
    fn list_tools(&self) -> Vec<AvailableTool> {
        let tools = self.tools.list_tools();
        self.recorder.on_offer(&tools, &self.tools.unavailable_tools());
        tools
    }

    fn unavailable_tools(&self) -> Vec<UnavailableTool> {
        self.tools.unavailable_tools()
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        options: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        Box::pin(async move {
            let call = self.recorder.on_call(name, &arguments);
            let ToolCallOptions { timeout, progress } = options;
            let result = match progress {
                None => {
                    let options = ToolCallOptions { timeout, progress: None };
                    self.tools.call_tool(name, arguments, options).await
                }
                Some(listener) => {
                    let (sender, mut progress) = mpsc::channel(PROGRESS_QUEUE);
                    let options = ToolCallOptions { timeout, progress: Some(sender) };
                    let mut running = self.tools.call_tool(name, arguments, options);
                    let result = loop {
                        tokio::select! {
                            biased;
                            Some(progress) = progress.recv() => {
                                self.pass_on(call, progress, &listener);
                            }
                            result = &mut running => break result,
                        }
                    };
                    while let Ok(progress) = progress.try_recv() {
                        self.pass_on(call, progress, &listener);
                    }
                    result
                }
            };
            self.recorder.on_call_end(call, outcome_of(&result));
            result
        })
    }

    fn finish_refresh(&self) -> RefreshFuture<'_> {
        self.tools.finish_refresh()
    }
}

impl RecordingTools {
    fn pass_on(&self, call: usize, progress: Progress, listener: &mpsc::Sender<Progress>) {
        self.recorder.on_progress(call, &progress.params);
        // A full channel loses notifications, as without a recorder.
        listener.try_send(progress).ok();
    }
}

/// Answers each call with the recorded result.
pub(super) struct ReplayTools {
    script: Script,
    clock: ReplayClock,
}

impl ReplayTools {
    pub(super) fn new(script: Script, clock: ReplayClock) -> Self {
        Self { script, clock }
    }
}

impl ToolRunner for ReplayTools {
    fn list_tools(&self) -> Vec<AvailableTool> {
        self.script.offered_tools()
    }

    fn unavailable_tools(&self) -> Vec<UnavailableTool> {
        self.script.unavailable_tools()
    }

    fn call_tool<'r>(
        &'r self,
        name: &'r str,
        arguments: Box<RawValue>,
        options: ToolCallOptions,
    ) -> ToolCallFuture<'r> {
        Box::pin(async move {
            let started_at = self.clock.elapsed();
            let Some(record) = self.script.take_call(name, &arguments) else {
                // The replay ends; see `Script::missed`.
                return pending().await;
            };
            let ToolCallRecord { begin_ms, end_ms, ended_before, progress, outcome, .. } = record;
            for ProgressRecord { ms, params } in progress {
                self.clock.sleep_until(started_at.saturating_add(Duration::from_millis(ms))).await;
                if let (Some(listener), Some(progress)) = (&options.progress, parsed(&params)) {
                    // A full channel loses notifications.
                    listener.try_send(progress).ok();
                }
            }
            let (Some(result), Some(end_ms)) = (result_of(name, &outcome), end_ms) else {
                return pending().await;
            };
            let duration = Duration::from_millis(end_ms.saturating_sub(begin_ms));
            let end = started_at.saturating_add(duration);
            self.clock.sleep_in_order(end, ended_before).await;
            self.script.end_call();
            result
        })
    }

    fn finish_refresh(&self) -> RefreshFuture<'_> {
        Box::pin(ready(()))
    }
}

fn parsed(params: &RawValue) -> Option<Progress> {
    let view = ProgressNotification::from_raw(params).ok()?;
    let ProgressNotification { progress, total, message, .. } = view;
    Some(Progress { progress, total, message, meta: None, params: params.to_owned().into() })
}
