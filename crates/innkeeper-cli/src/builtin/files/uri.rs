//! `file:` URIs for the files server.

use std::path::Path;

use url::Url;

/// Returns the `file:` URI of an absolute path.
pub(super) fn from_path(path: &Path) -> String {
    Url::from_file_path(path).map(String::from).unwrap_or_default()
}

/// Returns the decoded path of a local `file:` URI.
pub(super) fn to_path(uri: &str) -> Option<String> {
    let uri = Url::parse(uri).ok().filter(|uri| uri.scheme() == "file")?;
    uri.to_file_path().ok()?.into_os_string().into_string().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_path_survives_the_way_through_its_uri() {
        let path = "/tmp/a b/ü%2f#?.txt";
        let uri = from_path(Path::new(path));
        assert_eq!(uri, "file:///tmp/a%20b/%C3%BC%252f%23%3F.txt");
        assert_eq!(to_path(&uri).as_deref(), Some(path));
    }

    #[test]
    fn foreign_and_broken_uris_have_no_path() {
        for uri in ["http://x/y", "file://host/x", "file:///%ff", "/x", ""] {
            assert_eq!(to_path(uri), None, "{uri}");
        }
    }
}
