//! The parse mode in which a prompt ends.

use std::cmp::Reverse;

use super::harmony::HarmonyHeader;
use super::markers::Markers;
use super::reasoning::ReasoningState;
use super::{ParseMode, ParserOptions};
use crate::format::{Format, MarkerKind};

impl ParseMode {
    /// Returns the mode in which the prompt ends.
    pub(super) fn after_prompt(markers: &Markers, options: &ParserOptions) -> Self {
        let prompt = options.prompt.as_deref().unwrap_or_default();
        let open_reasoning = markers.iter().filter_map(|marker| match marker.kind {
            MarkerKind::ReasoningStart { end_texts, allows_calls } => {
                let after = &prompt[prompt.rfind(marker.text)?..];
                let open = end_texts.iter().all(|end| !after.contains(end));
                open.then_some((marker.text.len(), end_texts, allows_calls))
            }
            MarkerKind::StrayReasoningEnd
            | MarkerKind::Markup
            | MarkerKind::EndToken
            | MarkerKind::CallCloser
            | MarkerKind::CallSection { .. }
            | MarkerKind::Call(_)
            | MarkerKind::HarmonyHeader => None,
        });
        match open_reasoning.min_by_key(|(length, ..)| Reverse(*length)) {
            Some((_, end_texts, allows_calls)) => {
                Self::Reasoning(ReasoningState::new(markers, end_texts, allows_calls))
            }
            None if options.format == Format::Harmony || prompt.ends_with("<|start|>assistant") => {
                Self::HarmonyHeader(HarmonyHeader::from_prompt_end())
            }
            None => Self::Text,
        }
    }
}
