//! The console: pages for operators, in front of real servers.

mod attacks;
pub(crate) mod browser;

use http::StatusCode;
use innkeeper_gateway::origin::{OriginCheck, OriginSettings};
use innkeeper_gateway::policy::ToolPolicy;
use innkeeper_gateway::rate_limits::RateLimits;
use innkeeper_gateway::{ConsoleOptions, GatewayBuilder, GatewayOptions, HttpAccess, Principal};
use innkeeper_host::config::{Rate, RateConfig, ToolFilter};
use innkeeper_testkit::{Fixture, Journal};
use serde_json::json;

use crate::limits::{KEYS, local_access};
use crate::setup::{TEST_TIMEOUT, TestEnv, TestGateway};
use browser::{Browser, router_with_keys};

/// A builder of a gateway with these operators.
fn builder(operators: &[&str]) -> GatewayBuilder {
    let operators = operators.iter().map(|name| Principal::new(*name)).collect();
    GatewayBuilder::new(GatewayOptions::default()).console(ConsoleOptions { operators })
}

async fn local_gateway(
    test_env: &TestEnv,
    servers: impl IntoIterator<Item = Fixture>,
) -> (TestGateway, Browser) {
    let gateway = test_env.gateway_with(builder(&[]), servers).await;
    let browser = Browser::new(gateway.router());
    (gateway, browser)
}

#[tokio::test]
async fn the_servers_of_all_hosts_are_shown_with_their_state_protocol_processes_and_output() {
    let test_env = TestEnv::new();
    let servers = [
        test_env.fixture("a").with("--stderr", "indexed 12 files"),
        test_env.fixture("m").with("--era", "modern"),
        test_env
            .fixture("x")
            .with("--exit-at-start", 3)
            .config_key("required", false)
            .config_key("restart", "never")
            .config_key("initTimeout", 0.5),
        test_env.fixture("p").config_key("share", "principal"),
    ];
    let (gateway, mut browser) = local_gateway(&test_env, servers).await;
    let first = browser.get("/console").await;
    assert_eq!(
        (first.status, first.location.as_deref()),
        (StatusCode::SEE_OTHER, Some("console/servers"))
    );
    let page = browser.get("/console/servers").await.text;
    let row = |name: &str| {
        let row = page.split("<tr>").find(|row| row.contains(&format!(">{name}</a></th>")));
        row.unwrap_or_else(|| panic!("no row of {name}: {page}")).to_owned()
    };
    for part in [
        ">ready<",
        "2025-11-25",
        "legacy",
        "<td>all clients</td>",
        "indexed 12 files",
        "<td class=\"n\">1</td>",
    ] {
        assert!(row("a").contains(part), "{part}: {}", row("a"));
    }
    assert!(row("m").contains("2026-07-28") && row("m").contains("modern"));
    assert!(row("x").contains(">unavailable<") && row("x").contains("exit code 3"), "{}", row("x"));
    assert!(
        page.contains("<th scope=\"row\">p</th><td>principal</td><td class=\"n\">0</td>"),
        "{page}"
    );
    // A request of a principal starts the private server.
    gateway.initialized("ann", json!({})).await.call("p.echo", json!({"message": "hi"})).await;
    let page = browser.get("/console/servers").await.text;
    assert!(page.contains("principal of <code>ann</code>"), "{page}");
    assert!(page.contains("<td>principal</td><td class=\"n\">1</td>"), "{page}");
    let detail = browser.get("/console/server?name=a").await;
    assert!(detail.text.contains("<dd>1</dd>") && detail.text.contains("indexed 12 files"));
    assert_eq!(browser.get("/console/server?name=absent").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_tool_is_called_with_the_values_of_its_form() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").journal(&test_env.journal());
    let (_gateway, mut browser) = local_gateway(&test_env, [server]).await;
    let tools = browser.get("/console/tools?q=ECHO").await.text;
    assert!(tools.contains("href=\"tool?name=a.echo\"") && !tools.contains("a.fail"), "{tools}");
    let form = browser.get("/console/tool?name=a.echo").await;
    assert!(form.text.contains("<label for=\"f0\">message"), "{}", form.text);
    let result = browser.submit("/console/tool?name=a.echo", &[("f0", "line 1\r\nline 2")]).await;
    assert!(
        result.text.contains(">done<") && result.text.contains("line 1\nline 2"),
        "{}",
        result.text
    );
    let journal = Journal::read(&test_env.journal());
    assert_eq!(journal.params("tools/call")[0]["arguments"], json!({"message": "line 1\nline 2"}));
    let failed = browser.submit("/console/tool?name=a.fail", &[]).await.text;
    assert!(failed.contains(">tool error<") && failed.contains("failed as asked"), "{failed}");
    let raw = r#"{"message":"x","n":123456789012345678901234567890}"#;
    browser.submit("/console/tool?name=a.echo", &[("json", raw)]).await;
    let journal = Journal::read(&test_env.journal());
    assert!(journal.received("tools/call")[2].raw.contains(&format!(r#""arguments":{raw}"#)));
}

#[tokio::test]
async fn an_operator_restarts_one_server_and_the_others_run_on() {
    let test_env = TestEnv::new();
    let servers = ["a", "b"].map(|name| test_env.fixture(name));
    let (_gateway, mut browser) = local_gateway(&test_env, servers).await;
    let pid = |page: &str| {
        let (_, rest) = page.split_once("<dt>Process id</dt><dd>")?;
        rest.split_once('<').map(|(pid, _)| pid.to_owned())
    };
    let [a, b] = ["/console/server?name=a", "/console/server?name=b"];
    let (first, other) = (pid(&browser.get(a).await.text), pid(&browser.get(b).await.text));
    assert!(first.is_some());
    browser.submit_at(a, "/console/server", &[("name", "a")]).await;
    browser.wait_for(a, |page| pid(page).is_some_and(|pid| Some(pid) != first)).await;
    assert_eq!(pid(&browser.get(b).await.text), other);
    let audit = browser.get("/console/audit").await.text;
    assert!(audit.contains("restart of the server `a`"), "{audit}");
    assert_eq!(
        browser.submit_at(a, "/console/server", &[("name", "c")]).await.status,
        StatusCode::NOT_FOUND
    );
}

#[tokio::test]
async fn a_problem_of_the_arguments_is_shown_at_the_form_and_nothing_is_sent() {
    let test_env = TestEnv::new();
    let tools = json!([{ "name": "t", "inputSchema": { "type": "object", "required": ["n"],
        "properties": { "n": { "type": "integer", "minimum": 3 }, "s": { "type": "string" } } } }]);
    let server = test_env.fixture("a").with("--tools", tools).journal(&test_env.journal());
    let (_gateway, mut browser) = local_gateway(&test_env, [server]).await;
    let page = "/console/tool?name=a.t";
    let wrong = browser.submit(page, &[("f0", "x"), ("f1", "keep <me>")]).await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(wrong.text.contains("enter a whole number") && wrong.text.contains("keep &lt;me&gt;"));
    assert!(wrong.text.contains("aria-invalid=\"true\""));
    // Only the schema knows the minimum.
    let small = browser.submit(page, &[("f0", "2"), ("f1", "")]).await;
    assert_eq!(small.status, StatusCode::UNPROCESSABLE_ENTITY, "{}", small.text);
    assert!(small.text.contains("role=\"alert\"") && small.text.contains("value=\"2\""));
    let array = browser.submit(page, &[("json", "[1]")]).await.text;
    assert!(array.contains("the arguments must be a JSON object"), "{array}");
    assert_eq!(Journal::read(&test_env.journal()).count("tools/call"), 0);
    assert_eq!(browser.submit(page, &[("f0", "3"), ("f1", "")]).await.status, StatusCode::OK);
    assert_eq!(browser.get("/console/tool?name=a.absent").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_running_call_shows_its_progress_and_can_be_cancelled() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").with("--progress", 1_000).with("--progress-delay", 60);
    let server = server.journal(&test_env.journal());
    let (gateway, mut browser) = local_gateway(&test_env, [server]).await;
    let page = browser.submit("/console/tool?name=a.echo", &[("f0", "hi")]).await;
    assert!(
        page.text.contains(">running<") && page.text.contains("data-refresh=\"1\""),
        "{}",
        page.text
    );
    let calls = browser.get("/console/calls").await.text;
    assert!(calls.contains("<code>local</code></td><td>a</td><td>console</td>"), "{calls}");
    let call = page.path.clone();
    let shown = browser.wait_for(&call, |text| text.contains("<progress")).await;
    assert!(!shown.contains("value=\"100.0\""), "the call has made its first steps: {shown}");
    let cancelled = browser.submit_at(&call, "/console/call", &[("number", "1")]).await;
    assert!(cancelled.text.contains(">cancelled<"), "{}", cancelled.text);
    let is_cancelled = |journal: &Journal| journal.count("notifications/cancelled") == 1;
    Journal::wait_for(&test_env.journal(), TEST_TIMEOUT, is_cancelled).await;
    assert!(gateway.host.status()["a"].in_flight == 0);
    let calls = browser.get("/console/calls").await.text;
    assert!(
        calls.contains("No call is in flight") && calls.contains(">cancelled</span>"),
        "{calls}"
    );
}

#[tokio::test]
async fn the_call_of_a_client_is_shown_in_flight_and_cancelled_with_an_error() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").journal(&test_env.journal());
    let (gateway, mut browser) = local_gateway(&test_env, [server]).await;
    for modern in [false, true] {
        let mut client = match modern {
            false => gateway.initialized("ann", json!({})).await,
            true => gateway.modern("ann", json!({})),
        };
        let params = json!({ "name": "a.sleep", "arguments": { "ms": 600_000 } });
        let id = client.start("tools/call", params).await;
        let in_flight = |text: &str| text.contains("a.sleep</th><td><form");
        let page = browser.wait_for("/console/calls", in_flight).await;
        assert!(page.contains("<code>ann</code></td><td>a</td><td>connection</td>"), "{page}");
        let number =
            page.split("name=\"number\" value=\"").nth(1).unwrap().split('"').next().unwrap();
        let done =
            browser.submit_at("/console/calls", "/console/calls", &[("number", number)]).await;
        assert_eq!(done.path, "/console/calls");
        let error = client.response(&id).await["error"].clone();
        assert_eq!(error["message"], "an operator of the gateway cancelled the call");
        assert_eq!(error["data"], json!({ "kind": "cancelled", "mayHaveRun": true }));
        let count = 1 + usize::from(modern);
        let is_cancelled = |journal: &Journal| journal.count("notifications/cancelled") == count;
        Journal::wait_for(&test_env.journal(), TEST_TIMEOUT, is_cancelled).await;
    }
    let page = browser.get("/console/calls").await.text;
    assert_eq!(page.matches(">cancelled by an operator</span>").count(), 2, "{page}");
    let audit = browser.get("/console/audit").await.text;
    assert!(audit.contains(">call-cancelled</th><td>local</td>"), "{audit}");
}

#[tokio::test]
async fn finished_calls_have_their_outcome_and_the_charts_their_numbers() {
    let test_env = TestEnv::new();
    let (gateway, mut browser) = local_gateway(&test_env, [test_env.fixture("a")]).await;
    let mut client = gateway.initialized("ann", json!({})).await;
    client.call("a.echo", json!({"message": "hi"})).await;
    client.call("a.fail", json!({})).await;
    client.respond("tools/call", json!({ "name": "a.absent", "arguments": {} })).await;
    let calls = browser.get("/console/calls").await.text;
    assert!(calls.contains("a.echo</th><td><span class=\"state good\">ok</span>"), "{calls}");
    assert!(
        calls.contains("a.fail</th><td><span class=\"state bad\">tool error</span>"),
        "{calls}"
    );
    assert!(!calls.contains("a.absent"), "a call of no tool is no call of a server");
    let charts = browser.get("/console/charts").await.text;
    assert!(
        charts.contains("aria-label=\"Calls per minute: 2 in the last 60 minutes\""),
        "{charts}"
    );
    assert!(charts.contains("aria-label=\"Errors per minute: 1 in the last 60 minutes\""));
    assert!(charts.contains("<rect class=\"bar\""));
    browser.send(("POST", "/tools/a.none"), &[], "{}".to_owned()).await;
    let audit = browser.get("/console/audit").await.text;
    for (client, tool) in [("ann", "`a.absent`"), ("local", "`a.none`")] {
        let is_shown = audit.contains(&format!(">tool-refused</th><td>{client}</td>"));
        assert!(is_shown && audit.contains(tool), "{audit}");
    }
}

#[tokio::test]
async fn an_operator_has_the_rules_and_the_rates_of_a_client() {
    let test_env = TestEnv::new();
    let rules = ToolFilter { deny: vec!["a.fail".to_owned()], ..ToolFilter::default() };
    let policy = ToolPolicy::new([(Principal::local_user(), rules)], ToolFilter::default());
    let rate = Rate { per_minute: 1, burst: 1 };
    let rates = RateConfig { tools: [("a.pid".to_owned(), rate)].into(), ..RateConfig::default() };
    let builder = builder(&[]).policy(policy).rate_limits(RateLimits::new(rates, []));
    let gateway = test_env.gateway_with(builder, [test_env.fixture("a")]).await;
    let mut browser = Browser::new(gateway.router());
    let tools = browser.get("/console/tools").await.text;
    assert!(tools.contains("a.echo") && !tools.contains("a.fail"), "{tools}");
    assert_eq!(browser.get("/console/tool?name=a.fail").await.status, StatusCode::NOT_FOUND);
    assert!(browser.submit("/console/tool?name=a.pid", &[]).await.text.contains(">done<"));
    let second = browser.submit("/console/tool?name=a.pid", &[]).await.text;
    assert!(
        second.contains(">failed<") && second.contains("more than 1 calls of this tool"),
        "{second}"
    );
    let requests = Rate { per_minute: 2, burst: 2 };
    let common = RateConfig { requests: Some(requests), ..RateConfig::default() };
    let builder = self::builder(&[]).rate_limits(RateLimits::new(common, []));
    let gateway = test_env.gateway_with(builder, [test_env.fixture("b")]).await;
    let mut browser = Browser::new(gateway.router());
    let statuses = [browser.get("/console/tools").await, browser.get("/console/tools").await];
    assert!(statuses.iter().all(|page| page.status == StatusCode::OK));
    let third = browser.get("/console/tools").await;
    assert_eq!(third.status, StatusCode::TOO_MANY_REQUESTS);
    assert!(third.headers.contains_key("retry-after"));
    // Files are the same for everyone.
    assert_eq!(browser.get("/console/console.css").await.status, StatusCode::OK);
}

#[tokio::test]
async fn an_operator_signs_in_and_out_and_another_client_is_told_which_key_to_set() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway_with(builder(&["ann"]), [test_env.fixture("a")]).await;
    let router = router_with_keys(&gateway);
    let mut browser = Browser::new(router.clone());
    let start = browser.get("/console/servers").await;
    assert_eq!((start.status, start.location.as_deref()), (StatusCode::SEE_OTHER, Some("sign-in")));
    let wrong = browser.sign_in("wrong key").await;
    assert_eq!(wrong.status, StatusCode::UNAUTHORIZED);
    assert!(wrong.text.contains("role=\"alert\"") && browser.cookie().is_none(), "{}", wrong.text);
    let page = browser.sign_in(KEYS[0]).await;
    assert_eq!((page.status, &*page.path), (StatusCode::OK, "/console/servers"));
    assert!(page.text.contains("<span>ann</span>") && page.text.contains("Sign out"));
    let result = browser.submit("/console/tool?name=a.echo", &[("f0", "hi")]).await.text;
    assert!(result.contains(">done<"), "{result}");
    let out = browser.submit_at("/console/servers", "/console/sign-out", &[]).await;
    assert_eq!(out.path, "/console/sign-in");
    assert!(browser.cookie().is_none());
    let mut other = Browser::new(router);
    let refused = other.sign_in(KEYS[1]).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert!(refused.text.contains("serve.console.operators") && other.cookie().is_none());
    let audit = {
        browser.sign_in(KEYS[0]).await;
        browser.get("/console/audit").await.text
    };
    for kind in ["console-signed-in", "console-signed-out", "console-refused", "request-rejected"] {
        assert!(audit.contains(&format!(">{kind}</th>")), "{kind}: {audit}");
    }
}

#[tokio::test]
async fn a_wrong_credential_is_an_attack_and_a_missing_one_is_a_rejected_request() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway_with(builder(&["ann"]), [test_env.fixture("a")]).await;
    let mut browser = Browser::new(router_with_keys(&gateway));
    for (path, headers) in [
        ("/mcp", &[("authorization", "Bearer wrong")][..]),
        ("/tools", &[("x-api-key", "wrong")]),
        ("/tools/a.echo", &[]),
    ] {
        let page = browser.send(("GET", path), headers, String::new()).await;
        assert_eq!(page.status, StatusCode::UNAUTHORIZED, "{path}");
    }
    browser.sign_in(KEYS[0]).await;
    let audit = browser.get("/console/audit").await.text;
    for (path, kind) in [
        ("/mcp", "credential-refused"),
        ("/tools", "credential-refused"),
        ("/tools/a.echo", "request-rejected"),
    ] {
        let row = audit.split("<tr>").find(|row| row.contains(&format!("{path}: 401 ")));
        assert!(row.is_some_and(|row| row.contains(&format!(">{kind}</th>"))), "{path}: {audit}");
    }
}

#[tokio::test]
async fn a_credential_in_the_headers_needs_no_sign_in() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway_with(builder(&["ann"]), [test_env.fixture("a")]).await;
    let mut browser = Browser::new(router_with_keys(&gateway));
    let bearer = format!("Bearer {}", KEYS[0]);
    for (header, value, expected) in [
        ("x-api-key", KEYS[0], StatusCode::OK),
        ("authorization", &bearer, StatusCode::OK),
        ("x-api-key", KEYS[1], StatusCode::FORBIDDEN),
        ("x-api-key", "wrong", StatusCode::UNAUTHORIZED),
    ] {
        browser.header = Some((header, value.to_owned()));
        assert_eq!(browser.get("/console/servers").await.status, expected, "{header}: {value}");
    }
    browser.header = Some(("x-api-key", KEYS[0].to_owned()));
    for cookie in [None, Some("the id of an ended session")] {
        browser.cookies.extend(cookie.map(|id| ("innkeeper_console".to_owned(), id.to_owned())));
        let result = browser.submit("/console/tool?name=a.echo", &[("f0", "hi")]).await.text;
        assert!(result.contains(">done<"), "{cookie:?}: {result}");
    }
}

#[tokio::test]
async fn with_authentication_and_no_operators_nobody_uses_the_console() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway_with(builder(&[]), [test_env.fixture("a")]).await;
    let mut browser = Browser::new(router_with_keys(&gateway));
    let page = browser.sign_in(KEYS[0]).await;
    assert_eq!(page.status, StatusCode::FORBIDDEN);
    assert!(page.text.contains(
        "{&quot;serve&quot;:{&quot;console&quot;:{&quot;operators&quot;:[&quot;ann&quot;]}}}"
    ));
    let without = test_env.gateway([test_env.fixture("b")]).await;
    let mut browser = Browser::new(without.router());
    assert_eq!(browser.get("/console/servers").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn on_an_address_of_the_network_the_local_user_is_no_operator_by_default() {
    let test_env = TestEnv::new();
    for (operators, expected) in [(&[][..], StatusCode::FORBIDDEN), (&["local"], StatusCode::OK)] {
        let gateway = test_env.gateway_with(builder(operators), [test_env.fixture("a")]).await;
        let origin = OriginCheck::new([10, 0, 0, 1].into(), OriginSettings::default());
        let access = HttpAccess { origin, ..local_access() };
        let router = gateway.gateway.router(access);
        assert_eq!(Browser::new(router).get("/console/servers").await.status, expected);
    }
}

#[tokio::test]
async fn the_pages_work_below_the_prefix_of_an_application() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway_with(builder(&["ann"]), [test_env.fixture("a")]).await;
    let router = axum::Router::new().nest("/ai", router_with_keys(&gateway));
    let mut browser = Browser::new(router);
    browser.prefix = "/ai";
    assert_eq!(browser.get("/ai/console").await.location.as_deref(), Some("console/servers"));
    let page = browser.sign_in(KEYS[0]).await;
    assert_eq!((page.status, &*page.path), (StatusCode::OK, "/ai/console/servers"));
    let result = browser.submit("/ai/console/tool?name=a.echo", &[("f0", "hi")]).await;
    assert!(result.text.contains(">done<") && result.path.starts_with("/ai/console/call?"));
}
