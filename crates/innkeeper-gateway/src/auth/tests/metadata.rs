//! Tests of the metadata of the protected resource.

use serde_json::json;

use super::*;

fn metadata(audience: &str) -> Option<ResourceMetadata> {
    let settings = OauthSettings { audience: audience.to_owned(), ..oauth_settings() };
    ResourceMetadata::new(&settings)
}

#[test]
fn the_document_names_the_resource_and_its_authorization_server() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    let metadata = authenticator.resource_metadata().unwrap();
    let document = json!({
        "resource": AUDIENCE,
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["mcp:tools"],
    });
    assert_eq!(metadata.document(), document);
    assert!(Authenticator::local_user().resource_metadata().is_none());
}

#[test]
fn the_well_known_path_precedes_the_path_of_the_resource() {
    for (audience, url, path) in [
        (AUDIENCE, "https://mcp.example.com/.well-known/oauth-protected-resource/mcp", "/mcp"),
        (
            "https://a.example:8443",
            "https://a.example:8443/.well-known/oauth-protected-resource",
            "",
        ),
        ("https://a.example/", "https://a.example/.well-known/oauth-protected-resource", ""),
        ("http://[::1]:1/a/b", "http://[::1]:1/.well-known/oauth-protected-resource/a/b", "/a/b"),
    ] {
        let metadata = metadata(audience).unwrap();
        assert_eq!(metadata.url(), url);
        assert_eq!(metadata.path(), format!("/.well-known/oauth-protected-resource{path}"));
    }
    for audience in
        ["mcp", "ftp://a.example", "https://", "https://a\"b", "https://a/ b", "https://a#b"]
    {
        assert_eq!(metadata(audience), None, "{audience}");
    }
}
