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

#[test]
fn each_endpoint_is_a_resource_of_its_own() {
    let of = metadata("https://a.example/ai/mcp").unwrap();
    for (path, resource) in [
        ("/mcp", "https://a.example/ai/mcp"),
        ("/mcp/docs", "https://a.example/ai/mcp/docs"),
        ("/sse/", "https://a.example/ai/sse"),
        ("/tools/a.b", "https://a.example/ai/tools/a.b"),
        ("/metrics", "https://a.example/ai/mcp"),
    ] {
        let endpoint = of.at(path);
        assert_eq!(endpoint.document()["resource"], resource, "{path}");
        let well_known =
            resource.replace(".example/", ".example/.well-known/oauth-protected-resource/");
        assert_eq!(endpoint.url(), well_known, "{path}");
    }
    let other = metadata("https://a.example").unwrap();
    assert_eq!(other.at("/sse").document()["resource"], "https://a.example");
}

/// Attack: remote | a client uses the token of one endpoint at another | a token for the URL of an
/// endpoint is valid there only | Isolation
#[tokio::test(start_paused = true)]
async fn a_token_for_an_endpoint_is_valid_at_this_endpoint_only() {
    let issuer = Issuer::new();
    let authenticator = authenticator(&issuer);
    let token = issuer.token(&json!({ "aud": "https://mcp.example.com/sse" }));
    for (path, is_valid) in [("/sse", true), ("/mcp", false), ("/sse/docs", false)] {
        let request = http::Request::builder().uri(path);
        let request = request.header("authorization", format!("Bearer {token}"));
        let (parts, ()) = request.body(()).unwrap().into_parts();
        assert_eq!(authenticator.authenticate(&parts).await.is_ok(), is_valid, "{path}");
    }
}
