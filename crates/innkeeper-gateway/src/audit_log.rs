//! The last security-relevant events of the gateway and its servers, in memory.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};
use innkeeper_host::HostEvent;
use innkeeper_host::audit::TARGET;

use crate::error::shown_name;
use crate::principal::Principal;
use crate::quota::oldest_of_most;

/// Number of events of clients that are kept, and of events of servers: neither displaces the other.
pub(crate) const MAX_AUDIT_EVENTS: usize = 250;

/// Maximum number of characters of the text of an event.
const MAX_TEXT_CHARS: usize = 500;

/// What happened.
#[derive(Clone, Debug)]
pub(crate) struct AuditEvent {
    pub(crate) at: DateTime<Utc>,
    /// The kind of the event, with the words of the log.
    pub(crate) kind: &'static str,
    pub(crate) principal: Option<Principal>,
    pub(crate) server: Option<Box<str>>,
    pub(crate) text: Box<str>,
    /// How often the event happened without another one in between; `at` is the last time.
    pub(crate) count: u64,
}

impl AuditEvent {
    /// Returns whether the events differ only in their time and count.
    fn is_same(&self, other: &Self) -> bool {
        self.kind == other.kind
            && self.principal == other.principal
            && self.server == other.server
            && self.text == other.text
    }
}

/// Bounded lists of events; a new event replaces the oldest of the client that has the most.
#[derive(Debug, Default)]
pub(crate) struct AuditLog {
    clients: Mutex<VecDeque<AuditEvent>>,
    servers: Mutex<VecDeque<AuditEvent>>,
}

impl AuditLog {
    /// Records an event of a client, and writes it to the log.
    pub(crate) fn record(&self, kind: &'static str, principal: Option<&Principal>, text: &str) {
        let id = principal.map(|principal| shown_name(principal.id()));
        let message = "security event of a client";
        tracing::info!(target: TARGET, principal = id, what = text, audit = kind, security = true, message);
        self.push(kind, principal.cloned(), None, text);
    }

    /// Records the call of a tool that does not exist for a client. Whether the tool exists is no fact
    /// for the client.
    pub(crate) fn record_refused_tool(&self, principal: &Principal, name: &str) {
        let text = format!("call of the unknown or denied tool `{}`", shown_name(name));
        self.record("tool-refused", Some(principal), &text);
    }

    /// Records the rejection of a request, which the log has already.
    pub(crate) fn record_rejection(&self, text: &str) {
        self.push("request-rejected", None, None, text);
    }

    /// Records that a page of another site, or a client with a wrong credential, was rejected, and writes
    /// it to the log. `from` is the address of the client.
    pub(crate) fn record_attack(&self, kind: &'static str, from: Option<IpAddr>, text: &str) {
        let client = from.map(|from| from.to_canonical().to_string());
        let client = client.as_deref().unwrap_or("unknown");
        let message = "security event of a client";
        tracing::warn!(target: TARGET, client, what = text, audit = kind, security = true, message);
        self.push(kind, None, None, &format!("{client}: {text}"));
    }

    /// Records an answer of an operator, which the log has already with its fields.
    pub(crate) fn record_answer(&self, operator: &Principal, text: &str) {
        self.push("question-answered", Some(operator.clone()), None, text);
    }

    /// Records an event of a host, if it is relevant for security.
    pub(crate) fn record_host_event(&self, event: &HostEvent) {
        let withheld = |withheld: bool| if withheld { " (withheld)" } else { "" };
        match event {
            HostEvent::PinMismatch { server, subject, reason, withheld: is_withheld } => {
                let text = format!("{subject}: {reason}{}", withheld(*is_withheld));
                self.push("pin-mismatch", None, Some(server), &text);
            }
            HostEvent::SecurityWarning { server, tool, reason } => {
                let text = format!("{}: {reason}", tool.as_deref().unwrap_or("instructions"));
                self.push("security-warning", None, Some(server), &text);
            }
            HostEvent::GuardFinding { server, tool, item, finding, withheld: is_withheld } => {
                let subject = tool.as_deref().or(item.as_deref()).unwrap_or("instructions");
                let text = format!("{subject}: {finding}{}", withheld(*is_withheld));
                self.push("guard-finding", None, Some(server), &text);
            }
            HostEvent::LimitNotApplied { server, key, reason } => {
                self.push("limit-not-applied", None, Some(server), &format!("{key}: {reason}"));
            }
            HostEvent::NotTrusted { server } => {
                self.push("not-trusted", None, Some(server), "server not trusted, not started");
            }
            HostEvent::Quarantined { server, subject, reason } => {
                self.push("quarantined", None, Some(server), &format!("{subject}: {reason}"));
            }
            HostEvent::Unavailable { server, reason } => {
                self.push("unavailable", None, Some(server), reason);
            }
            HostEvent::ReloadFailed { diagnostics } => {
                let text = format!("{} problems of the new configuration", diagnostics.len());
                self.push("reload-failed", None, None, &text);
            }
            HostEvent::Launching { .. }
            | HostEvent::Installing { .. }
            | HostEvent::Handshake { .. }
            | HostEvent::LaunchRetry { .. }
            | HostEvent::Restarting { .. }
            | HostEvent::CallRetry { .. }
            | HostEvent::Ready { .. }
            | HostEvent::Stopped { .. }
            | HostEvent::Reinitialized { .. }
            | HostEvent::CatalogChanged { .. }
            | HostEvent::ResourceUpdated { .. }
            | HostEvent::Message { .. }
            | HostEvent::Notification { .. }
            | HostEvent::ListMissing { .. }
            | HostEvent::Reloaded { .. }
            | HostEvent::CallFinished(_) => {}
        }
    }

    fn push(
        &self,
        kind: &'static str,
        principal: Option<Principal>,
        server: Option<&str>,
        text: &str,
    ) {
        let end = text.char_indices().nth(MAX_TEXT_CHARS).map_or(text.len(), |(at, _)| at);
        let text = text[..end].into();
        let server = server.map(|server| shown_name(server).into());
        let list = if server.is_some() { &self.servers } else { &self.clients };
        let event = AuditEvent { at: Utc::now(), kind, principal, server, text, count: 1 };
        let mut events = list.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = events.back_mut().filter(|last| last.is_same(&event)) {
            last.count += 1;
            last.at = event.at;
            return;
        }
        if events.len() >= MAX_AUDIT_EVENTS {
            let owners = events.iter().map(|event| event.principal.as_ref());
            if let Some(position) = oldest_of_most(owners) {
                events.remove(position);
            }
        }
        events.push_back(event);
    }

    /// Returns the events, the newest first.
    pub(crate) fn events(&self) -> Vec<AuditEvent> {
        let mut events: Vec<AuditEvent> = Vec::new();
        for list in [&self.clients, &self.servers] {
            let list = list.lock().unwrap_or_else(PoisonError::into_inner);
            events.extend(list.iter().rev().cloned());
        }
        events.sort_by_key(|event| std::cmp::Reverse(event.at));
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: remote | a client floods the events of the console with its own | the events of other
    /// clients stay | Isolation
    #[test]
    fn a_client_displaces_its_own_events_only() {
        let log = AuditLog::default();
        let (ann, ben) = (Principal::new("ann"), Principal::new("ben"));
        log.record("test", Some(&ben), "what ben did");
        for number in 0..2 * MAX_AUDIT_EVENTS {
            log.record("test", Some(&ann), &number.to_string());
        }
        let events = log.events();
        assert_eq!(events.len(), MAX_AUDIT_EVENTS);
        let kept = events.iter().filter(|event| &*event.text == "what ben did").count();
        assert_eq!(kept, 1);
        assert_eq!(&*events[0].text, &(2 * MAX_AUDIT_EVENTS - 1).to_string());
    }

    #[test]
    fn the_log_has_a_maximum_of_events_and_of_characters_and_the_newest_comes_first() {
        let log = AuditLog::default();
        for number in 0..=MAX_AUDIT_EVENTS {
            log.record("test", None, &number.to_string());
        }
        log.record("test", Some(&Principal::new("ann")), &"ä".repeat(MAX_TEXT_CHARS + 1));
        let events = log.events();
        assert_eq!(events.len(), MAX_AUDIT_EVENTS);
        assert_eq!(events[0].text.chars().count(), MAX_TEXT_CHARS);
        assert_eq!(&*events[1].text, MAX_AUDIT_EVENTS.to_string());
        assert_eq!(&*events[MAX_AUDIT_EVENTS - 1].text, "2");
    }

    #[test]
    fn an_event_of_a_server_has_the_kind_of_the_log_line() {
        let log = AuditLog::default();
        let (server, subject) = ("a".into(), "tool `x`".to_owned());
        let event = HostEvent::PinMismatch {
            server,
            subject,
            reason: "changed".to_owned(),
            withheld: true,
        };
        log.record_host_event(&event);
        log.record_host_event(&HostEvent::Stopped { server: "a".into() });
        let events = log.events();
        assert_eq!((events.len(), events[0].kind), (1, "pin-mismatch"));
        assert_eq!(events[0].server.as_deref(), Some("a"));
        assert_eq!(&*events[0].text, "tool `x`: changed (withheld)");
    }
}
