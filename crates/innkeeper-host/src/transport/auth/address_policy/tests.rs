//! Tests of the allowed addresses.

use super::*;

fn allows(server: &str, url: &str) -> bool {
    AddressPolicy::new(&Url::parse(server).unwrap(), Vec::new()).allows(&Url::parse(url).unwrap())
}

/// Attack: remote | a public server names loopback, private, metadata, unencrypted or non-HTTP
/// addresses, 24 in total | each address is refused | Foreign text stays text
#[test]
fn only_addresses_of_the_servers_class_are_allowed() {
    let public = "https://mcp.example.com/mcp";
    for url in ["https://sso.example.org/", "https://93.184.216.34/", "https://mcp.example.com/x"] {
        assert!(allows(public, url), "{url}");
    }
    let disallowed = [
        "http://sso.example.org/",
        "https://127.0.0.1/",
        "https://localhost/",
        "https://a.localhost./",
        "https://10.0.0.1/",
        "https://192.168.1.1/",
        "https://100.64.0.1/",
        "https://169.254.169.254/latest/meta-data",
        "http://169.254.169.254/latest/meta-data",
        "https://2852039166/",
        "https://0x7f.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[::ffff:169.254.169.254]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[2002:7f00:1::]/",
        "https://[fd00:ec2::254]/",
        "https://[fe80::1]/",
        "https://[fc00::1]/",
        "https://0.0.0.0/",
        "https://metadata.google.internal/",
        "https://metadata.goog/",
        "https://192.0.0.192/",
        "https://[::ffff:0:169.254.169.254]/",
        "https://169-254-169-254.nip.io/",
        "https://a9fea9fe.sslip.io./",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "unix:///run/x.sock",
    ];
    for url in disallowed {
        assert!(!allows(public, url), "{url}");
    }
}

/// The first and the last address of each block, and the public addresses beside it.
#[test]
fn the_class_of_an_address_changes_at_the_bounds_of_its_block() {
    use AddressClass::{Forbidden, Loopback, Private, Public};
    for (address, class) in [
        ("0.0.0.0", Forbidden),
        ("0.255.255.255", Forbidden),
        ("1.0.0.0", Public),
        ("10.0.0.0", Private),
        ("11.0.0.0", Public),
        ("100.63.255.255", Public),
        ("100.64.0.0", Private),
        ("100.127.255.255", Private),
        ("100.128.0.0", Public),
        ("127.255.255.255", Loopback),
        ("168.63.129.15", Public),
        ("168.63.129.16", Forbidden),
        ("168.63.129.17", Public),
        ("169.254.0.0", Forbidden),
        ("172.31.255.255", Private),
        ("172.32.0.0", Public),
        ("198.17.255.255", Public),
        ("198.18.0.0", Forbidden),
        ("198.19.255.255", Forbidden),
        ("198.20.0.0", Public),
        ("223.255.255.255", Public),
        ("224.0.0.0", Forbidden),
        ("255.255.255.255", Forbidden),
        ("::", Forbidden),
        ("::1", Loopback),
        ("::2", Forbidden),
        ("::ffff:8.8.8.8", Public),
        ("::ffff:10.0.0.1", Private),
        ("64:ff9b::8.8.8.8", Public),
        ("64:ff9b::127.0.0.1", Loopback),
        ("64:ff9b:1::8.8.8.8", Forbidden),
        ("2001::1", Forbidden),
        ("2001:1::1", Public),
        ("2002:0808:0808::", Public),
        ("2002:7f00:1::", Loopback),
        ("2003::1", Public),
        ("fbff::1", Public),
        ("fc00::1", Private),
        ("fd00:ec2::254", Forbidden),
        ("fd00:ec3::254", Private),
        ("fdff::1", Private),
        ("fe7f::1", Public),
        ("fe80::1", Forbidden),
        ("ff02::1", Forbidden),
    ] {
        assert_eq!(classify(address.parse().unwrap()), class, "{address}");
    }
}

/// Attack: remote | a server on loopback names an address of the local network | the address is
/// refused | Foreign text stays text
#[test]
fn a_server_on_this_machine_may_name_others_on_it_and_none_on_the_network_around() {
    let here = "http://127.0.0.1:8080/mcp";
    assert!(allows(here, "http://localhost:9000/"));
    assert!(allows(here, "https://127.0.0.2/"));
    assert!(allows(here, "https://sso.example.org/"));
    assert!(!allows(here, "http://sso.example.org/"));
    assert!(!allows(here, "https://10.0.0.1/"));
    assert!(!allows(here, "http://169.254.169.254/"));
    assert!(allows("https://10.0.0.5/mcp", "https://10.0.0.6/"));
    assert!(!allows("https://10.0.0.5/mcp", "https://127.0.0.1/"));
}

/// Attack: remote | the name of an authorization server resolves to loopback | the address is
/// refused after the resolution | Foreign text stays text
#[tokio::test]
async fn a_name_that_leads_to_this_machine_is_refused_for_a_server_elsewhere() {
    let public = AddressPolicy::new(&Url::parse("https://93.184.216.34/mcp").unwrap(), Vec::new());
    assert!(public.clone().resolve("localhost".to_owned()).await.is_err());
    let here = AddressPolicy::new(&Url::parse("http://127.0.0.1/mcp").unwrap(), Vec::new());
    assert!(here.resolve("localhost".to_owned()).await.is_ok());
    let proxied = AddressPolicy { trusted_hosts: ["localhost".to_owned()].into(), ..public };
    assert!(proxied.resolve("localhost".to_owned()).await.is_ok());
}
