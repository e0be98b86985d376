//! The markers that the parser of text looks for, built once per format.

use std::sync::OnceLock;

use super::lead_ins::LeadIns;
use super::markers::Markers;
use crate::format::{Format, LexerKind, Marker, MarkerKind};

/// The markers of a format, for each place in the text.
#[derive(Debug)]
pub(super) struct TextMarkers {
    format: Format,
    pub(super) all: Markers,
    /// The markers that count in a fenced block that is not a call.
    in_fence: Markers,
    /// The same two with the closers of raw values, which count only after a call that has such
    /// values. Most answers have none.
    with_closers: OnceLock<[Markers; 2]>,
    pub(super) lead_ins: LeadIns,
}

impl TextMarkers {
    pub(super) fn for_format(format: Format) -> &'static Self {
        static FORMATS: [OnceLock<TextMarkers>; Format::COUNT] =
            [const { OnceLock::new() }; Format::COUNT];
        FORMATS[format as usize].get_or_init(|| Self {
            format,
            all: markers(format, |marker| !is_closer(marker)),
            in_fence: markers(format, |marker| counts_in_fence(marker) && !is_closer(marker)),
            with_closers: OnceLock::new(),
            lead_ins: LeadIns::new(format),
        })
    }

    /// Returns the markers that may have an effect at a place.
    pub(super) fn at(&self, in_fence: bool, after_raw_call: bool) -> &Markers {
        match (in_fence, after_raw_call) {
            (false, false) => &self.all,
            (true, false) => &self.in_fence,
            (_, true) => &self.with_closers()[usize::from(in_fence)],
        }
    }

    fn with_closers(&self) -> &[Markers; 2] {
        self.with_closers
            .get_or_init(|| [markers(self.format, |_| true), markers(self.format, counts_in_fence)])
    }
}

fn markers(format: Format, is_retained: fn(&Marker) -> bool) -> Markers {
    Markers::new(format.markers().into_iter().filter(is_retained).collect())
}

fn is_closer(marker: &Marker) -> bool {
    marker.kind == MarkerKind::CallCloser
}

fn counts_in_fence(marker: &Marker) -> bool {
    !marker.in_prose || marker.kind == MarkerKind::Call(LexerKind::Fence)
}
