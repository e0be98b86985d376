//! Versions of features, and which versions fit each other.

use std::fmt;
use std::str::FromStr;

use semver::Version;

/// A version by the rules of semantic versioning. `1` and `1.2` mean `1.0.0` and `1.2.0`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureVersion(Version);

/// The text is not a version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a version such as `1.2.0`")]
pub struct InvalidVersion {
    /// The text, escaped for display and shortened.
    pub text: String,
}

/// Which versions of a client fit the version of the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VersionCompatibility {
    /// The same version, with its pre-release.
    Exact,
    /// A version of the same major version; for `0.x`, of the same minor version.
    #[default]
    Compatible,
    /// Every version.
    Any,
    /// The version of the server or an older one.
    Downgrade,
    /// The version of the server or a newer one.
    Upgrade,
}

impl FeatureVersion {
    /// Returns the version `1.0.0`.
    pub fn first() -> Self {
        Self(Version::new(1, 0, 0))
    }

    /// Returns the start and the excluded end of the versions that are compatible with this one.
    pub fn compatible_range(&self) -> (Self, Self) {
        let Version { major, minor, .. } = self.0;
        let (start, end) = match major {
            0 => (Version::new(0, minor, 0), Version::new(0, minor.saturating_add(1), 0)),
            _ => (Version::new(major, 0, 0), Version::new(major.saturating_add(1), 0, 0)),
        };
        (Self(start), Self(end))
    }
}

impl VersionCompatibility {
    /// Returns whether the version of a client fits the version of the server.
    pub fn accepts(self, server: &FeatureVersion, client: &FeatureVersion) -> bool {
        let order = client.0.cmp_precedence(&server.0);
        match self {
            Self::Exact => order.is_eq(),
            Self::Compatible => {
                let ours = &server.0;
                let theirs = &client.0;
                ours.major == theirs.major && (ours.major > 0 || ours.minor == theirs.minor)
            }
            Self::Any => true,
            Self::Downgrade => order.is_le(),
            Self::Upgrade => order.is_ge(),
        }
    }

    /// Returns the name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Compatible => "compatible",
            Self::Any => "any",
            Self::Downgrade => "downgrade",
            Self::Upgrade => "upgrade",
        }
    }

    /// Returns which versions fit the version of the server, for an error message.
    pub(crate) fn describe(self, server: &FeatureVersion) -> String {
        match self {
            Self::Exact => format!("exactly `{server}`"),
            Self::Compatible => {
                let (start, end) = server.compatible_range();
                format!("`{start}` up to, but not, `{end}`")
            }
            Self::Any => "any version".to_owned(),
            Self::Downgrade => format!("`{server}` or older"),
            Self::Upgrade => format!("`{server}` or newer"),
        }
    }
}

impl FromStr for FeatureVersion {
    type Err = InvalidVersion;

    fn from_str(text: &str) -> Result<Self, InvalidVersion> {
        let number_end = text.find(['-', '+']).unwrap_or(text.len());
        let (number, rest) = text.split_at(number_end);
        let missing = match number.matches('.').count() {
            0 => ".0.0",
            1 => ".0",
            _ => "",
        };
        Version::parse(&format!("{number}{missing}{rest}")).map(Self).map_err(|_| {
            let shown: String = text.chars().take(MAX_SHOWN_CHARS).collect();
            InvalidVersion { text: innkeeper_host::display_safe(&shown).into_owned() }
        })
    }
}

/// Maximum number of characters of an invalid version in its error.
const MAX_SHOWN_CHARS: usize = 64;

impl fmt::Display for FeatureVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl serde::Serialize for FeatureVersion {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(text: &str) -> FeatureVersion {
        text.parse().unwrap()
    }

    #[test]
    fn missing_parts_are_zero_and_the_pre_release_stays() {
        let texts = ["1", "1.2", "1.2.3", "1-beta.1", "1.2.3-rc.1+build"];
        let parsed = texts.map(|text| version(text).to_string());
        assert_eq!(parsed, ["1.0.0", "1.2.0", "1.2.3", "1.0.0-beta.1", "1.2.3-rc.1+build"]);
    }

    #[test]
    fn other_texts_are_not_versions() {
        for text in ["", "one", "1.2.3.4", "1.", "01.0.0", "v1", "1.0 ", "-1"] {
            let error = text.parse::<FeatureVersion>().unwrap_err();
            assert_eq!(error.text, text);
        }
        let long = "9".repeat(10_000);
        assert_eq!(long.parse::<FeatureVersion>().unwrap_err().text.len(), MAX_SHOWN_CHARS);
    }

    /// Proves: B21
    #[test]
    fn each_mode_accepts_exactly_its_versions() {
        use VersionCompatibility::{Any, Compatible, Downgrade, Exact, Upgrade};
        let table = [
            ("1.2.3", "1.2.3", [true, true, true, true, true]),
            ("1.2.3", "1.2", [false, true, true, true, false]),
            ("1.2.3", "1.3.0", [false, true, true, false, true]),
            ("1.2.3", "1.2.3-beta", [false, true, true, true, false]),
            ("1.2.3-beta", "1.2.3-beta", [true, true, true, true, true]),
            ("1.2.3", "2.0.0", [false, false, true, false, true]),
            ("2.0.0", "1.9.9", [false, false, true, true, false]),
            ("0.2.3", "0.2.9", [false, true, true, false, true]),
            ("0.2.3", "0.3.0", [false, false, true, false, true]),
            ("1.0.0+a", "1.0.0+b", [true, true, true, true, true]),
        ];
        for (server, client, expected) in table {
            let modes = [Exact, Compatible, Any, Downgrade, Upgrade];
            let accepted = modes.map(|mode| mode.accepts(&version(server), &version(client)));
            assert_eq!(accepted, expected, "{server} and {client}");
        }
    }

    #[test]
    fn the_compatible_range_is_a_major_version_or_a_minor_version_of_zero() {
        let range = |text| {
            let (start, end) = version(text).compatible_range();
            (start.to_string(), end.to_string())
        };
        assert_eq!(range("1.2.3"), ("1.0.0".to_owned(), "2.0.0".to_owned()));
        assert_eq!(range("0.2.3"), ("0.2.0".to_owned(), "0.3.0".to_owned()));
    }
}
