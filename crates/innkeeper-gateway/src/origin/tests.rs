//! Tests of the check with the headers of browsers, programs and attackers.

use http::Request;

use super::*;

fn loopback() -> OriginCheck {
    OriginCheck::new(IpAddr::from([127, 0, 0, 1]), OriginSettings::default())
}

fn network() -> OriginCheck {
    let settings = OriginSettings {
        allowed_hosts: vec!["mcp.example.com".to_owned(), "api.example.com:8443".to_owned()],
        allowed_origins: vec!["https://app.example.com".to_owned()],
    };
    OriginCheck::new(IpAddr::from([0, 0, 0, 0]), settings)
}

fn check(check: &OriginCheck, headers: &[(&str, &str)]) -> Result<(), String> {
    check_uri(check, "/mcp", headers)
}

fn check_uri(check: &OriginCheck, uri: &str, headers: &[(&str, &str)]) -> Result<(), String> {
    let mut request = Request::post(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (parts, ()) = request.body(()).unwrap().into_parts();
    check.check(&parts).map_err(|rejection| {
        assert_eq!(rejection.status(), StatusCode::FORBIDDEN);
        rejection.message().to_owned()
    })
}

fn host(check_of: &OriginCheck, host: &str) -> bool {
    match check(check_of, &[("host", host)]) {
        Ok(()) => true,
        Err(message) => {
            assert!(message.contains("`Host`"), "{message}");
            false
        }
    }
}

fn origin(check_of: &OriginCheck, origin: &str) -> bool {
    match check(check_of, &[("host", "127.0.0.1"), ("origin", origin)]) {
        Ok(()) => true,
        Err(message) => {
            assert!(message.contains("`Origin`"), "{message}");
            false
        }
    }
}

/// Attack: remote | a page gives its own name the address of this machine and sends requests (DNS
/// rebinding) | the gateway rejects the requests: `Host` is not this machine | Isolation
#[test]
fn on_a_loopback_address_only_hosts_of_this_machine_are_accepted() {
    let check = loopback();
    for own in [
        "localhost",
        "LocalHost:7300",
        "127.0.0.1",
        "127.0.0.1:80",
        "127.9.9.9:1",
        "[::1]",
        "[::1]:7300",
        "[::ffff:127.0.0.1]:1",
    ] {
        assert!(host(&check, own), "{own}");
    }
    for other in [
        "evil.example",
        "evil.example:7300",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "192.168.0.1",
        "0.0.0.0:7300",
        "[::]",
        "[2001:db8::1]",
    ] {
        assert!(!host(&check, other), "{other}");
    }
}

/// Attack: remote | `Host` has a trailing dot, an invalid port, a user, an unusual form of an address or
/// a second host | the gateway rejects the request | Complete checks
#[test]
fn a_host_in_another_form_is_rejected() {
    let networks = network();
    for form in [
        "localhost.",
        "localhost.:7300",
        "localhost:",
        "localhost:+1",
        "localhost:70000",
        "localhost:1:2",
        "user@localhost",
        "evil.example@localhost",
        "localhost,evil.example",
        "localhost/evil",
        " localhost",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "::1",
        "[::1",
        "[::1%25lo]",
        "",
    ] {
        assert!(!host(&loopback(), form), "{form}");
    }
    for form in ["mcp.example.com.", "mcp.example.com.:80", "x.mcp.example.com", "mcp.example.co"] {
        assert!(!host(&networks, form), "{form}");
    }
}

#[test]
fn on_another_address_configured_hosts_and_addresses_are_accepted() {
    let check = network();
    for allowed in [
        "mcp.example.com",
        "MCP.Example.com:443",
        "api.example.com:8443",
        "192.168.0.1:7300",
        "[2001:db8::1]",
        "localhost:7300",
    ] {
        assert!(host(&check, allowed), "{allowed}");
    }
    for other in ["api.example.com", "api.example.com:443", "evil.example", "gateway:7300"] {
        assert!(!host(&check, other), "{other}");
    }
}

/// Attack: remote | the URI of a request names another host than the header `Host` | the gateway checks
/// both | Complete checks
#[test]
fn the_host_of_the_uri_is_checked_as_well() {
    let check = |uri: &str, headers: &[(&str, &str)]| check_uri(&loopback(), uri, headers).is_ok();
    assert!(check("http://localhost:7300/mcp", &[]));
    assert!(check("http://localhost:7300/mcp", &[("host", "127.0.0.1")]));
    assert!(!check("http://evil.example/mcp", &[]));
    assert!(!check("http://evil.example/mcp", &[("host", "localhost")]));
    assert!(!check("http://localhost/mcp", &[("host", "evil.example")]));
    assert!(!check("/mcp", &[]), "a request without a host");
}

/// Attack: remote | a page of another site, a sandboxed frame or a local file sends a request to the
/// gateway of the user | the gateway rejects the `Origin` | Isolation
#[test]
fn an_origin_of_another_site_or_without_a_name_is_rejected() {
    for other in [
        "null",
        "https://evil.example",
        "http://localhost.evil.example",
        "http://evil.example#localhost",
        "http://localhost@evil.example",
        "http://localhost/",
        "http://localhost.",
        "http://192.168.0.1",
        "file://",
        "file://localhost",
        "localhost",
        "",
        "*",
    ] {
        assert!(!origin(&loopback(), other), "{other}");
    }
    for own in ["http://localhost:3000", "https://127.0.0.1", "http://[::1]:5173"] {
        assert!(origin(&loopback(), own), "{own}");
        assert!(!origin(&network(), own), "{own}");
    }
    let network = network();
    assert!(origin(&network, "https://app.example.com"));
    for other in [
        "http://app.example.com",
        "https://app.example.com:8443",
        "https://x.app.example.com",
        "https://app.example.com.",
        "null",
    ] {
        assert!(!origin(&network, other), "{other}");
    }
}

#[test]
fn no_setting_allows_an_origin_without_a_name() {
    let settings =
        OriginSettings { allowed_origins: vec!["null".to_owned()], ..OriginSettings::default() };
    let of_settings = OriginCheck::new(IpAddr::from([0, 0, 0, 0]), settings);
    let message = check(&of_settings, &[("host", "127.0.0.1"), ("origin", "null")]).unwrap_err();
    assert!(message.contains("the header `Origin` is `null`"), "{message}");
}

#[test]
fn a_request_without_an_origin_comes_from_a_program() {
    assert_eq!(check(&loopback(), &[("host", "localhost")]), Ok(()));
}

/// Attack: remote | a request has two headers `Host` or `Origin`, of which a proxy checks one | the
/// gateway rejects the request | Complete checks
#[test]
fn a_header_that_is_there_twice_is_rejected() {
    let check = |headers: &[(&str, &str)]| check(&loopback(), headers).unwrap_err();
    let message = check(&[("host", "localhost"), ("host", "localhost")]);
    assert!(message.contains("several headers `Host`"), "{message}");
    let own = ("origin", "http://localhost");
    let message = check(&[("host", "localhost"), own, own]);
    assert!(message.contains("several headers `Origin`"), "{message}");
}

#[test]
fn the_response_names_the_header_and_the_setting_and_repeats_no_value() {
    let message = check(&loopback(), &[("host", "evil.example")]).unwrap_err();
    assert!(message.contains("`Host`") && message.contains("`serve.allowedHosts`"), "{message}");
    let headers = [("host", "localhost"), ("origin", "https://evil.example")];
    let message = check(&loopback(), &headers).unwrap_err();
    assert!(message.contains("`Origin`"), "{message}");
    assert!(message.contains("`serve.allowedOrigins`") && !message.contains("evil"), "{message}");
}
