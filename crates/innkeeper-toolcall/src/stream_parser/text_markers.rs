//! The markers that the parser of text looks for, built once per format.

use std::sync::OnceLock;

use super::lead_ins::LeadIns;
use super::markers::Markers;
use crate::format::{Format, LexerKind, Marker, MarkerKind};

/// The markers of a format, for each place in the text.
#[derive(Debug)]
pub(super) struct TextMarkers {
    pub(super) all: Markers,
    /// The markers that count in a fenced block that is not a call.
    in_fence: Markers,
    /// The same two with the closers of raw values, which count only after a call that has such
    /// values.
    with_closers: Markers,
    in_fence_with_closers: Markers,
    pub(super) lead_ins: LeadIns,
}

impl TextMarkers {
    /// Returns the markers of a format.
    pub(super) fn for_format(format: Format) -> &'static Self {
        static FORMATS: [OnceLock<TextMarkers>; Format::COUNT] =
            [const { OnceLock::new() }; Format::COUNT];
        FORMATS[format as usize].get_or_init(|| Self::new(format))
    }

    fn new(format: Format) -> Self {
        let retained = |is_retained: fn(&Marker) -> bool| {
            Markers::new(format.markers().into_iter().filter(is_retained).collect())
        };
        Self {
            all: retained(|marker| !is_closer(marker)),
            in_fence: retained(|marker| counts_in_fence(marker) && !is_closer(marker)),
            with_closers: retained(|_| true),
            in_fence_with_closers: retained(counts_in_fence),
            lead_ins: LeadIns::new(format),
        }
    }

    /// Returns the markers that may have an effect at a place.
    pub(super) fn at(&self, in_fence: bool, after_raw_call: bool) -> &Markers {
        match (in_fence, after_raw_call) {
            (false, false) => &self.all,
            (true, false) => &self.in_fence,
            (false, true) => &self.with_closers,
            (true, true) => &self.in_fence_with_closers,
        }
    }
}

fn is_closer(marker: &Marker) -> bool {
    marker.kind == MarkerKind::CallCloser
}

fn counts_in_fence(marker: &Marker) -> bool {
    !marker.in_prose || marker.kind == MarkerKind::Call(LexerKind::Fence)
}
