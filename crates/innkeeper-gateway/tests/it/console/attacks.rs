//! Attacks on the console: markup of servers and clients, forms of other sites, sessions.

use http::StatusCode;
use innkeeper_gateway::Principal;
use innkeeper_testkit::Journal;
use serde_json::json;

use super::browser::{Browser, form_token, router_with_keys};
use super::{builder, local_gateway};
use crate::limits::KEYS;
use crate::setup::TestEnv;

const SCRIPT: &str = "<script>alert(1)</script><img src=x onerror=alert(1)>\u{202e}";

/// Returns a page without the markup of the console: a tag that remains is of somebody else.
fn assert_no_markup(page: &str) {
    let scripts = page.matches("<script").count();
    assert_eq!(
        scripts,
        page.matches("<script src=\"console.js\" defer></script>").count(),
        "{page}"
    );
    assert!(!page.contains("<img src=x") && !page.contains('\u{202e}'), "{page}");
}

/// Attack: remote | a server has a script in its instructions, in the name, description and schema of
/// a tool, on stderr and in a result | every page shows the text | Foreign text stays text
#[tokio::test]
async fn markup_of_a_server_is_shown_as_text() {
    let test_env = TestEnv::new();
    let tools = json!([{ "name": SCRIPT, "title": SCRIPT, "description": SCRIPT }, {
        "name": "t", "title": SCRIPT, "description": SCRIPT, "inputSchema": {
            "type": "object", "properties": {
                SCRIPT: { "type": "string", "title": SCRIPT, "description": SCRIPT, "default": SCRIPT },
                "e": { "enum": [SCRIPT] }, "l": { "type": "array", "items": { "enum": [SCRIPT] } },
                "o": { "type": "object", "default": { SCRIPT: SCRIPT } },
            } },
    }]);
    let result = json!({ "content": [{ "type": "text", "text": SCRIPT }, { "type": SCRIPT }] });
    let server = test_env
        .fixture("a")
        .with("--tools", tools)
        .with("--stderr", SCRIPT)
        .with("--instructions", SCRIPT)
        .with("--server-name", SCRIPT)
        .with("--call-result", result);
    let (gateway, mut browser) = local_gateway(&test_env, [server]).await;
    // The result of a client is a log message of the console at most, and no page.
    let mut client = gateway.initialized(SCRIPT, json!({})).await;
    let call = json!({ "name": SCRIPT, "arguments": { SCRIPT: SCRIPT } });
    client.respond("tools/call", call).await;
    client.respond("tools/call", json!({ "name": "a.t", "arguments": {} })).await;
    let called = browser.submit("/console/tool?name=a.t", &[("f0", SCRIPT)]).await;
    assert!(called.text.contains(">done<"), "{}", called.text);
    assert_no_markup(&called.text);
    let problem = browser.submit("/console/tool?name=a.t", &[("f0", SCRIPT), ("f3", SCRIPT)]).await;
    assert!(problem.text.contains("no valid JSON"));
    // A field has the exact text, which the browser sends back.
    assert_no_markup(&problem.text.replace('\u{202e}', ""));
    for (path, expected) in [
        ("/console/servers", "&lt;script&gt;"),
        ("/console/server?name=a", "&lt;script&gt;"),
        ("/console/tools", "&lt;script&gt;"),
        ("/console/calls", "<code>&lt;script&gt;"),
        ("/console/charts", ""),
        ("/console/audit", "&lt;script&gt;"),
        ("/console/server?name=<script>alert(1)</script>", "no such"),
    ] {
        let page = browser.get(&path.replace('<', "%3C").replace('>', "%3E")).await;
        assert!(
            page.status != StatusCode::OK || page.text.contains(expected),
            "{path}: {}",
            page.text
        );
        assert_no_markup(&page.text);
    }
    let form = browser.get("/console/tool?name=a.t").await.text;
    assert!(form.contains("&lt;script&gt;"));
    assert_no_markup(&form.replace('\u{202e}', ""));
}

/// Attack: remote | the page of another site frames the console, loads its pages as scripts or images,
/// or adds markup that loads something | the headers of every response forbid it | Foreign text stays
/// text
#[tokio::test]
async fn every_response_forbids_frames_inline_scripts_and_other_origins() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway_with(builder(&["ann"]), [test_env.fixture("a")]).await;
    let mut browser = Browser::new(router_with_keys(&gateway));
    for path in [
        "/console",
        "/console/",
        "/console/servers",
        "/console/sign-in",
        "/console/console.css",
        "/console/console.js",
        "/console/nothing",
    ] {
        let headers = browser.get(path).await.headers;
        let policy = headers["content-security-policy"].to_str().unwrap();
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "img-src 'self' data:",
            "form-action 'self'",
            "frame-ancestors 'none'",
            "base-uri 'none'",
        ] {
            assert!(policy.split("; ").any(|known| known == rule), "{path}: {rule}");
        }
        assert!(!policy.contains("unsafe"));
        assert_eq!(headers["x-frame-options"], "DENY");
        assert_eq!(headers["x-content-type-options"], "nosniff");
        assert_eq!(headers["referrer-policy"], "same-origin");
        assert_eq!(headers["cross-origin-resource-policy"], "same-origin");
        let is_file = path.ends_with(".css") || path.ends_with(".js");
        assert_eq!(headers["cache-control"], if is_file { "no-cache" } else { "no-store" });
        assert!(!headers.contains_key("access-control-allow-origin"));
    }
    for page in [browser.sign_in(KEYS[0]).await.text, browser.get("/console/charts").await.text] {
        assert!(
            !page.contains(" style=") && !page.contains(" onclick=") && !page.contains("<style")
        );
    }
}

/// Attack: remote | the page of another site sends the forms of the console with the cookie of the
/// operator, with no token, an old one, or that of another session | nothing runs | Isolation
#[tokio::test]
async fn a_form_of_another_site_or_session_changes_nothing() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").journal(&test_env.journal());
    let gateway = test_env.gateway_with(builder(&["ann"]), [server]).await;
    let router = router_with_keys(&gateway);
    let (mut browser, mut second) = (Browser::new(router.clone()), Browser::new(router));
    let page = browser.sign_in(KEYS[0]).await.text;
    let other_token = form_token(&second.sign_in(KEYS[0]).await.text);
    let token = form_token(&page);
    assert_ne!(token, other_token, "each session has a token of its own");
    let tool = "/console/tool?name=a.echo";
    let forms = [
        (tool, None, &[][..]),
        (tool, Some(&*other_token), &[]),
        (tool, Some(&*token), &[("sec-fetch-site", "cross-site")]),
        (tool, Some(&*token), &[("sec-fetch-site", "same-site")]),
        (tool, Some(&*token), &[("origin", "https://evil.example")]),
        (tool, Some(&*token), &[("origin", "null")]),
        ("/console/calls", None, &[]),
        ("/console/sign-out", None, &[]),
    ];
    for (path, token, headers) in forms {
        let mut fields = vec![("f0", "hi"), ("number", "1")];
        fields.extend(token.map(|token| ("form-token", token)));
        let refused = browser.post(path, &fields, headers).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{path} {headers:?}: {}", refused.text);
    }
    let json =
        browser.send(("POST", tool), &[("content-type", "text/plain")], "f0=hi".to_owned()).await;
    assert_eq!(json.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(browser.get(tool).await.status, StatusCode::OK, "still signed in");
    assert_eq!(Journal::read(&test_env.journal()).count("tools/call"), 0);
    let own = browser.post(tool, &[("f0", "hi"), ("form-token", &token)], &[]).await;
    assert_eq!(own.status, StatusCode::SEE_OTHER);
    assert_eq!(Journal::read(&test_env.journal()).count("tools/call"), 1);
}

/// Attack: remote | an attacker gives the browser of an operator a cookie with a known id, before and
/// after the sign-in | the session has another id, and the known id is nobody's | Isolation
#[tokio::test]
async fn the_id_of_a_session_is_new_at_each_sign_in() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway_with(builder(&["ann"]), [test_env.fixture("a")]).await;
    let router = router_with_keys(&gateway);
    let mut browser = Browser::new(router.clone());
    browser.cookies.insert("innkeeper_console".to_owned(), "known".to_owned());
    browser.sign_in(KEYS[0]).await;
    let first = browser.cookie().unwrap().clone();
    assert!(first != "known" && first.len() == 43, "{first}");
    browser.sign_in(KEYS[0]).await;
    let second = browser.cookie().unwrap().clone();
    assert_ne!(first, second);
    let mut attacker = Browser::new(router);
    for id in ["known", "", "x; innkeeper_console=y"] {
        attacker.cookies.insert("innkeeper_console".to_owned(), id.to_owned());
        assert_eq!(attacker.get("/console/servers").await.status, StatusCode::SEE_OTHER, "{id}");
    }
    // After a sign-out, the id of a thief is nobody's either.
    browser.submit_at("/console/servers", "/console/sign-out", &[]).await;
    attacker.cookies.insert("innkeeper_console".to_owned(), second);
    assert_eq!(attacker.get("/console/servers").await.status, StatusCode::SEE_OTHER);
}

/// Attack: remote | a script or a neighbour reads the cookie of a session | the cookie is for HTTP
/// requests of the same site to the console only, and over HTTPS only for HTTPS | Secrets stay with
/// their owner
#[tokio::test]
async fn the_cookie_of_a_session_is_confined() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway_with(builder(&["ann"]), [test_env.fixture("a")]).await;
    let mut browser = Browser::new(router_with_keys(&gateway));
    for (headers, is_secure) in [(&[][..], false), (&[("x-forwarded-proto", "https")], true)] {
        let form = browser.get("/console/sign-in").await.text;
        let fields = [("credential", KEYS[0]), ("form-token", &form_token(&form))];
        let response = browser.post("/console/sign-in", &fields, headers).await;
        let cookies = response.headers.get_all("set-cookie").iter();
        let cookies: Vec<&str> = cookies.map(|cookie| cookie.to_str().unwrap()).collect();
        let cookie =
            cookies.iter().find(|cookie| cookie.starts_with("innkeeper_console=")).unwrap();
        let parts: Vec<&str> = cookie.split("; ").collect();
        assert!(parts.contains(&"HttpOnly") && parts.contains(&"SameSite=Strict"), "{cookie}");
        assert!(parts.contains(&"Max-Age=28800") && !cookie.contains("Domain"), "{cookie}");
        assert!(!cookie.contains("Path"), "the directory of the sign-in is the path");
        assert_eq!(parts.contains(&"Secure"), is_secure, "{cookie}");
    }
}

/// Attack: remote | the page of another site signs the browser of an operator in with the key of the
/// attacker | the form needs the token of the browser | Isolation
#[tokio::test]
async fn a_sign_in_needs_the_token_of_its_browser() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway_with(builder(&["ann"]), [test_env.fixture("a")]).await;
    let router = router_with_keys(&gateway);
    let (mut victim, mut attacker) = (Browser::new(router.clone()), Browser::new(router));
    let token = form_token(&attacker.get("/console/sign-in").await.text);
    victim.get("/console/sign-in").await;
    let fields = [("credential", KEYS[0]), ("form-token", &*token)];
    let refused = victim.post("/console/sign-in", &fields, &[]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(victim.cookie().is_none());
    victim.cookies.clear();
    let refused = victim.post("/console/sign-in", &fields, &[]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(victim.cookie().is_none());
}

/// Attack: remote | a client that is no operator requests the pages of the console with its own valid
/// credential | no page shows the data of another client | Isolation
#[tokio::test]
async fn a_client_that_is_no_operator_sees_nothing() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway_with(builder(&["ann"]), [test_env.fixture("a")]).await;
    let mut client = gateway.initialized("ann", json!({})).await;
    client.call("a.echo", json!({"message": "hi"})).await;
    let mut browser = Browser::new(router_with_keys(&gateway));
    browser.header = Some(("x-api-key", KEYS[1].to_owned()));
    for page in
        ["servers", "server?name=a", "tools", "tool?name=a.echo", "calls", "charts", "audit", "x"]
    {
        let refused = browser.get(&format!("/console/{page}")).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{page}");
        assert!(!refused.text.contains("a.echo") && !refused.text.contains("<nav"), "{page}");
    }
    assert_ne!(Principal::new("ben"), Principal::new("ann"));
}

/// Attack: remote | a page with a rebound name requests the console of a gateway without
/// authentication | the name of the host is refused | Isolation
#[tokio::test]
async fn a_rebound_name_does_not_reach_the_console() {
    let test_env = TestEnv::new();
    let (_gateway, mut browser) = local_gateway(&test_env, [test_env.fixture("a")]).await;
    let page =
        browser.send(("GET", "/console/servers"), &[("host", "evil.example")], String::new()).await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    assert!(!page.text.contains(">ready<"));
}

/// Attack: remote | the page of another site loads the pages of the console as images or scripts,
/// which would start the servers of the operator | only a link to the console works | Isolation
#[tokio::test]
async fn the_page_of_another_site_loads_nothing_of_the_console() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").config_key("share", "principal");
    let (_gateway, mut browser) = local_gateway(&test_env, [server]).await;
    for (site, mode, expected) in [
        ("cross-site", "no-cors", StatusCode::FORBIDDEN),
        ("same-site", "cors", StatusCode::FORBIDDEN),
        ("same-origin", "cors", StatusCode::OK),
        ("cross-site", "navigate", StatusCode::OK),
    ] {
        assert_eq!(
            test_env.process_count(),
            usize::from(site == "cross-site" && mode == "navigate")
        );
        let headers = [("sec-fetch-site", site), ("sec-fetch-mode", mode)];
        let page = browser.send(("GET", "/console/tools"), &headers, String::new()).await;
        assert_eq!(page.status, expected, "{site} {mode}");
    }
}

/// Attack: remote | a form has more fields and longer values than any page of the console | the body
/// is refused, or its further fields are ignored | No unbounded memory
#[tokio::test]
async fn a_form_has_a_maximum_size() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway_with(builder(&["ann"]), [test_env.fixture("a")]).await;
    let mut browser = Browser::new(router_with_keys(&gateway));
    let long = "x".repeat(64 << 10);
    let form = form_token(&browser.get("/console/sign-in").await.text);
    let fields = [("form-token", &*form), ("credential", &long)];
    let refused = browser.post("/console/sign-in", &fields, &[]).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
    let token = form_token(&browser.sign_in(KEYS[0]).await.text);
    let long = "x".repeat(8 << 20);
    let fields = [("form-token", &*token), ("f0", &long)];
    let refused = browser.post("/console/tool?name=a.echo", &fields, &[]).await;
    assert_eq!(refused.status, StatusCode::PAYLOAD_TOO_LARGE);
}
