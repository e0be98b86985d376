//! The approver of a recorded run, and that of a replay.

use std::future::pending;
use std::sync::Arc;

use async_trait::async_trait;
use innkeeper_golden::{Answer, ApprovalRecord, body_json};

use super::recorder::GoldenRecorder;
use super::script::Script;
use crate::safety::{ApprovalDecision, ApprovalRequest, Approver};

/// Passes questions on, and records the decisions.
pub(super) struct RecordingApprover {
    approver: Arc<dyn Approver>,
    recorder: GoldenRecorder,
}

impl RecordingApprover {
    pub(super) fn new(approver: Arc<dyn Approver>, recorder: GoldenRecorder) -> Self {
        Self { approver, recorder }
    }
}

#[async_trait]
impl Approver for RecordingApprover {
    async fn decide(&self, call: ApprovalRequest<'_>) -> ApprovalDecision {
        let tool = call.tool.to_owned();
        let arguments = body_json(call.arguments.as_bytes());
        let decision = self.approver.decide(call).await;
        let answer = match &decision {
            ApprovalDecision::Approve => Answer::Approved {},
            ApprovalDecision::ApproveWith(changed) => {
                Answer::Changed(body_json(changed.as_bytes()))
            }
            ApprovalDecision::Deny(reason) => Answer::Denied(reason.clone()),
        };
        self.recorder.on_approval(ApprovalRecord { tool, arguments, answer });
        decision
    }
}

/// Answers each question with the recorded decision.
pub(super) struct ReplayApprover(pub(super) Script);

#[async_trait]
impl Approver for ReplayApprover {
    async fn decide(&self, call: ApprovalRequest<'_>) -> ApprovalDecision {
        match self.0.take_approval(call.tool, &body_json(call.arguments.as_bytes())) {
            Some(Answer::Approved {}) => ApprovalDecision::Approve,
            Some(Answer::Changed(arguments)) => {
                ApprovalDecision::ApproveWith(arguments.get().to_owned())
            }
            Some(Answer::Denied(reason)) => ApprovalDecision::Deny(reason),
            // The replay ends; see `Script::missed`.
            None => pending().await,
        }
    }
}
