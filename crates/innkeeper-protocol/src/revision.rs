//! The published protocol revisions and their features.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// A published revision of the Model Context Protocol. Later revisions compare greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// `2024-11-05`: the first revision.
    V2024_11_05,
    /// `2025-03-26`: Streamable HTTP, batches, tool annotations.
    V2025_03_26,
    /// `2025-06-18`: structured results, elicitation, batches removed.
    V2025_06_18,
    /// `2025-11-25`: URL elicitation, experimental tasks; the last revision with a handshake.
    V2025_11_25,
    /// `2026-07-28`: no handshake, no requests from server to client.
    V2026_07_28,
}

/// The two connection models of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// A handshake (`initialize`), then requests in both directions.
    Legacy,
    /// Stateless requests: each request carries its revision and capabilities in `_meta`.
    Modern,
}

impl Revision {
    /// Every published revision, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];
    /// The newest revision with a handshake, which `initialize` offers.
    pub const LATEST_LEGACY: Self = Self::V2025_11_25;
    /// The newest revision.
    pub const LATEST: Self = Self::V2026_07_28;

    /// Returns the date that identifies the revision in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// Returns the revision with which a server answers `initialize`: the requested revision if it is
    /// a published revision with a handshake, else [`Revision::LATEST_LEGACY`] (2025-11-25,
    /// Lifecycle, Version Negotiation).
    pub fn negotiate(requested: &str) -> Self {
        let requested = requested.parse().ok();
        let legacy = requested.filter(|revision: &Self| revision.era() == Era::Legacy);
        legacy.unwrap_or(Self::LATEST_LEGACY)
    }

    /// Returns the connection model of this revision.
    pub fn era(self) -> Era {
        if self > Self::LATEST_LEGACY { Era::Modern } else { Era::Legacy }
    }

    /// Whether a peer may send several messages in one array: added in 2025-03-26 and removed in
    /// 2025-06-18 (both change logs).
    pub fn allows_batches(self) -> bool {
        self == Self::V2025_03_26
    }

    /// Whether tools may declare an `outputSchema` and return `structuredContent` (2025-06-18,
    /// Server Features, Tools).
    pub fn has_output_schema(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether servers may request input from the user (2025-06-18, Client Features, Elicitation).
    pub fn has_elicitation(self) -> bool {
        self >= Self::V2025_06_18
    }

    /// Whether tasks are part of the core protocol. 2026-07-28 made tasks an extension.
    pub fn has_core_tasks(self) -> bool {
        self == Self::V2025_11_25
    }

    /// Whether servers may send requests. 2026-07-28 replaced server requests by results that
    /// require input.
    pub fn has_server_requests(self) -> bool {
        self.era() == Era::Legacy
    }

    /// Whether `ping` exists. 2026-07-28 removed `ping`.
    pub fn has_ping(self) -> bool {
        self.era() == Era::Legacy
    }

    /// Whether `logging/setLevel` exists. 2026-07-28 sends the level with each request.
    pub fn has_set_level(self) -> bool {
        self.era() == Era::Legacy
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Revision {
    type Err = ParseRevisionError;

    fn from_str(text: &str) -> Result<Self, ParseRevisionError> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == text).ok_or(ParseRevisionError)
    }
}

impl Serialize for Revision {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// The error for a string that is not a published revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown protocol revision")]
pub struct ParseRevisionError;

#[cfg(test)]
mod tests {
    use super::{Era, Revision};

    #[test]
    fn every_revision_is_read_back_from_its_date_and_nothing_else_is() {
        for revision in Revision::ALL {
            assert_eq!(revision.to_string().parse(), Ok(revision));
            assert_eq!(serde_json::to_string(&revision).unwrap(), format!("\"{revision}\""));
        }
        for odd in ["", "2024-11-5", "2024-11-05 ", "2030-01-01", "latest"] {
            assert!(odd.parse::<Revision>().is_err(), "{odd}");
        }
    }

    #[test]
    fn a_server_answers_with_the_requested_legacy_revision_or_the_latest() {
        for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            assert_eq!(Revision::negotiate(revision).as_str(), revision);
        }
        for other in ["2026-07-28", "2030-01-01", "", "1.0", "2025-03-26 "] {
            assert_eq!(Revision::negotiate(other), Revision::V2025_11_25, "{other}");
        }
    }

    #[test]
    fn revisions_are_in_the_order_of_their_dates() {
        assert!(Revision::ALL.is_sorted_by(|a, b| a < b && a.as_str() < b.as_str()));
        assert_eq!(Revision::ALL.last(), Some(&Revision::LATEST));
    }

    #[test]
    fn what_a_revision_has_is_what_the_specification_says() {
        let having = |has_feature: fn(Revision) -> bool| {
            Revision::ALL
                .into_iter()
                .filter(move |revision| has_feature(*revision))
                .map(Revision::as_str)
        };
        let legacy = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
        let structured = ["2025-06-18", "2025-11-25", "2026-07-28"];
        assert!(having(|it| it.era() == Era::Legacy).eq(legacy));
        assert!(having(Revision::allows_batches).eq(["2025-03-26"]));
        assert!(having(Revision::has_output_schema).eq(structured));
        assert!(having(Revision::has_elicitation).eq(structured));
        assert!(having(Revision::has_core_tasks).eq(["2025-11-25"]));
        assert!(having(Revision::has_server_requests).eq(legacy));
        assert!(having(Revision::has_ping).eq(legacy));
        assert!(having(Revision::has_set_level).eq(legacy));
    }
}
