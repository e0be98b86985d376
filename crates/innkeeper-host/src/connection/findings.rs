//! Reports findings of the guard.

use std::sync::Arc;

use super::Connection;
use crate::audit::AuditEvent;
use crate::event::{EventPublisher, HostEvent};
use crate::guard::{Finding, ItemKind, Verdict};

impl Connection {
    /// Reports the findings of the guard and returns them if the content is withheld.
    pub(crate) fn report_findings(
        &self,
        kind: ItemKind,
        item: &str,
        verdict: Option<Verdict>,
    ) -> Option<Vec<Finding>> {
        let verdict = verdict?;
        report_findings(&self.host.events, &self.server, Some((kind, item)), &verdict);
        verdict.withheld.then_some(verdict.findings)
    }
}

/// Reports findings of the guard as events and audit records. Without an item, the findings are in
/// the server's instructions.
pub(crate) fn report_findings(
    events: &EventPublisher,
    server: &Arc<str>,
    item: Option<(ItemKind, &str)>,
    verdict: &Verdict,
) {
    let is_withheld = verdict.withheld;
    let (tool, item) = ItemKind::split(item);
    for finding in &verdict.findings {
        let finding_place = &*finding.place;
        let rule_reason = finding.reason;
        AuditEvent::GuardFinding {
            tool,
            item,
            subject: finding_place,
            reason: rule_reason,
            withheld: is_withheld,
        }
        .emit(server);
        events.publish(HostEvent::GuardFinding {
            server: server.clone(),
            tool: tool.map(Into::into),
            item: item.map(Into::into),
            finding: finding.clone(),
            withheld: is_withheld,
        });
    }
}
