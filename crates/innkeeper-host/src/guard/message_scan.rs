//! The scan of one definition, call or result: its findings, its budget, and its joined texts.

use std::ops::ControlFlow;

use innkeeper_config::GuardMode;
use serde::de::IgnoredAny;

use super::broken_words::{JoinedTexts, find_broken_sentences};
use super::injection::{TOO_MANY_MATCHES, TextSource, find_injections};
use super::normalize::{DecodeBudget, NormalizedText, normalized_forms};
use super::parameters::ToolParameters;
use super::text_nodes::{ScannedNode, SkippedMembers, TOO_LONG, TextNode, walk_text_nodes};
use super::{Finding, FindingKind, MAX_FINDINGS, Verdict};
use crate::text::PathSegment;

/// Members of MCP whose value is no sentence.
const PROTOCOL_MEMBERS: [&str; 5] = ["mimeType", "name", "role", "type", "uri"];

/// Collects the findings of one definition, call or result; each kind and place once.
pub(super) struct MessageScan<'p> {
    place_prefix: &'static str,
    /// The tool's declared arguments, if known.
    parameters: Option<&'p ToolParameters>,
    findings: Vec<Finding>,
    budget: DecodeBudget,
    joined: JoinedNodes,
}

impl<'p> MessageScan<'p> {
    pub(super) fn new(place_prefix: &'static str, parameters: Option<&'p ToolParameters>) -> Self {
        Self {
            place_prefix,
            parameters,
            findings: Vec::new(),
            budget: DecodeBudget::default(),
            joined: JoinedNodes::default(),
        }
    }

    pub(super) fn add(
        &mut self,
        kind: FindingKind,
        segments: &[PathSegment<'_>],
        reason: &'static str,
    ) {
        if self.findings.len() >= MAX_FINDINGS {
            return;
        }
        let finding = Finding::new(
            kind,
            self.place_prefix,
            segments,
            |name| self.parameters.is_some_and(|declared| declared.declares(name)),
            reason,
        );
        let mut known = self.findings.iter();
        if !known.any(|other| other.kind == finding.kind && other.place == finding.place) {
            self.findings.push(finding);
        }
    }

    /// Returns the text of a node, or adds the finding that the node is.
    pub(super) fn text_node<'n>(&mut self, node: ScannedNode<'n>) -> Option<TextNode<'n>> {
        match node {
            ScannedNode::Text(node) => return Some(node),
            ScannedNode::DuplicateKey(steps) => {
                let reason = "two members of one object have the same name";
                self.add(FindingKind::DuplicateKey, steps, reason);
            }
            ScannedNode::NotScanned(steps) => self.add(FindingKind::NotScanned, steps, TOO_LONG),
        }
        None
    }

    /// Returns `Break` when the maximum number of findings is reached.
    pub(super) fn control_flow(&self) -> ControlFlow<()> {
        if self.findings.len() < MAX_FINDINGS {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    }

    pub(super) fn forms(&mut self, node: TextNode<'_>) -> Vec<NormalizedText> {
        let normalized = normalized_forms(node.text, &mut self.budget);
        if let Some(reason) = normalized.incomplete {
            self.add(FindingKind::NotScanned, node.steps, reason);
        }
        normalized.forms
    }

    /// Searches for instructions to a model, and returns the forms of the text.
    pub(super) fn scan_injections(
        &mut self,
        node: TextNode<'_>,
        source: TextSource,
    ) -> Vec<NormalizedText> {
        let forms = self.forms(node);
        for form in &forms {
            let injections = find_injections(&form.plain, source);
            for (kind, reason) in injections.found {
                self.add(kind, node.steps, reason);
            }
            if injections.is_incomplete {
                self.add(FindingKind::NotScanned, node.steps, TOO_MANY_MATCHES);
            }
            for (kind, reason) in find_broken_sentences(&form.plain) {
                self.add(kind, node.steps, reason);
            }
        }
        if let Some(form) = forms.first() {
            self.joined.push(node, &form.plain);
        }
        for (kind, reason) in split_sentences_of_json(node.text) {
            self.add(kind, node.steps, reason);
        }
        forms
    }

    pub(super) fn into_verdict(mut self, mode: GuardMode) -> Option<Verdict> {
        for (kind, reason) in self.joined.find_split_sentences() {
            self.add(kind, &[], reason);
        }
        let withheld = mode == GuardMode::Refuse;
        (!self.findings.is_empty()).then_some(Verdict { findings: self.findings, withheld })
    }
}

/// The texts of JSON text, joined as a reader may join them.
#[derive(Debug, Default)]
struct JoinedNodes {
    all: JoinedTexts,
    names: JoinedTexts,
    values: JoinedTexts,
}

impl JoinedNodes {
    fn push(&mut self, node: TextNode<'_>, plain: &str) {
        self.all.push(plain);
        if node.is_name {
            self.names.push(plain);
        } else if !PROTOCOL_MEMBERS.contains(&node.name()) {
            self.values.push(plain);
        }
    }

    fn find_split_sentences(&self) -> Vec<(FindingKind, &'static str)> {
        let joined = [&self.values, &self.names, &self.all];
        joined.iter().flat_map(|texts| texts.find_split_sentences()).collect()
    }
}

/// Returns the sentences that are split over the strings of a text that is itself JSON.
fn split_sentences_of_json(text: &str) -> Vec<(FindingKind, &'static str)> {
    let is_json = text.trim_start().starts_with(['{', '['])
        && serde_json::from_str::<IgnoredAny>(text).is_ok();
    if !is_json {
        return Vec::new();
    }
    let mut joined = JoinedNodes::default();
    // Nothing ends this walk.
    let _end = walk_text_nodes(text, SkippedMembers::None, |node| {
        if let ScannedNode::Text(node) = node {
            joined.push(node, &NormalizedText::new(node.text).plain);
        }
        ControlFlow::Continue(())
    });
    joined.find_split_sentences()
}
