//! The acceptance test of specification document 000: an application starts the servers of its
//! `mcp.json`, checks their tools, answers them, and stops them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use innkeeper::{
    CallError, CallbackCapabilities, Catalog, Config, Host, ServerRequest, ServerState, StartError,
};
use innkeeper_testkit::{Journal, fixture_program};
use serde_json::{Value, json};

/// A parameter: name, type, whether the tool requires the parameter.
type Parameter = (&'static str, &'static str, bool);

/// The name of a tool with its parameters.
type ExpectedTool = (&'static str, &'static [Parameter]);

/// The servers with their tools and parameters. Each server is a fixture server with these tools.
const EXPECTED: &[(&str, &[ExpectedTool])] = &[
    (
        "filesystem",
        &[
            (
                "read_text_file",
                &[("path", "string", true), ("head", "number", false), ("tail", "number", false)],
            ),
            ("list_directory", &[("path", "string", true)]),
            ("read_multiple_files", &[("paths", "array", true)]),
        ],
    ),
    (
        "brave-search",
        &[
            ("brave_web_search", &[("query", "string", true), ("count", "integer", false)]),
            (
                "brave_summarizer",
                &[("key", "string", true), ("inlineReferences", "boolean", false)],
            ),
        ],
    ),
];

/// Returns the tool definitions of a server.
fn definitions(tools: &[ExpectedTool]) -> Value {
    tools
        .iter()
        .map(|(name, parameters)| {
            let properties: serde_json::Map<String, Value> = parameters
                .iter()
                .map(|(name, kind, _)| ((*name).to_owned(), json!({"type": kind})))
                .collect();
            let required: Vec<&str> = parameters
                .iter()
                .filter(|(_, _, required)| *required)
                .map(|(name, ..)| *name)
                .collect();
            let schema = json!({"type": "object", "properties": properties, "required": required});
            json!({"name": name, "description": "A tool.", "inputSchema": schema})
        })
        .collect()
}

/// The directory of the application, with its `mcp.json`.
struct Application {
    directory: tempfile::TempDir,
}

impl Application {
    /// Creates the directory. `.env` has the variable that `mcp.json` names.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for (server, tools) in EXPECTED {
            fs::write(path(&format!("{server}.json")), definitions(tools).to_string()).unwrap();
        }
        fs::write(path(".env"), "BRAVE_API_KEY=key-of-the-application\n").unwrap();
        let application = Self { directory };
        application.write_config(|_| ());
        application
    }

    fn path(&self, name: &str) -> String {
        self.directory.path().join(name).display().to_string()
    }

    fn journal(&self) -> Journal {
        Journal::read(Path::new(&self.path("journal")))
    }

    /// Writes `mcp.json` with two servers, after a change.
    fn write_config(&self, change: impl FnOnce(&mut Value)) {
        let entry = |server: &str, more: &[&str]| {
            let (tools, journal) = (self.path(&format!("{server}.json")), self.path("journal"));
            let mut args = vec!["--name", server, "--tools", &tools, "--journal", &journal];
            args.extend(more);
            json!({"type": "stdio", "command": fixture_program().display().to_string(),
                "args": args})
        };
        let mut search = entry("brave-search", &["--ask-sampling", "--ask-elicit"]);
        search["env"] = json!({"BRAVE_API_KEY": "${BRAVE_API_KEY}"});
        let mut config =
            json!({"servers": {"filesystem": entry("filesystem", &[]), "brave-search": search}});
        change(&mut config);
        fs::write(self.path("mcp.json"), config.to_string()).unwrap();
    }

    fn config(&self) -> Config {
        Config::from_file(self.path("mcp.json")).unwrap()
    }
}

/// Returns the parameters of each tool of a server: the name, the type and whether the parameter
/// is required.
fn parameters_of(catalog: &Catalog, server: &str) -> BTreeMap<String, Vec<(String, String, bool)>> {
    let listing = catalog.server(server).unwrap().listing().unwrap();
    let parameters = |schema: &str| {
        let schema: Value = serde_json::from_str(schema).unwrap();
        let required = schema["required"].as_array().unwrap().clone();
        let of_schema = schema["properties"].as_object().unwrap().clone();
        let parameter = |(name, schema): (String, Value)| {
            let is_required = required.contains(&Value::from(name.as_str()));
            (name, schema["type"].as_str().unwrap().to_owned(), is_required)
        };
        of_schema.into_iter().map(parameter).collect()
    };
    let tools = listing.tools.iter();
    tools.map(|tool| (tool.view.name.clone(), parameters(tool.view.input_schema.get()))).collect()
}

/// Proves: TR7.2
#[tokio::test]
async fn the_servers_start_with_the_expected_tools_and_parameters_and_stop_without_errors() {
    let application = Application::new();
    let host = Host::start(application.config()).await.unwrap();
    let catalog = host.catalog();
    let servers: Vec<&str> = catalog.servers().map(|(name, _)| name).collect();
    assert_eq!(servers, ["filesystem", "brave-search"]);
    for (server, tools) in EXPECTED {
        assert_eq!(catalog.server(server).unwrap().state(), ServerState::Ready);
        let expected: BTreeMap<String, Vec<(String, String, bool)>> = tools
            .iter()
            .map(|(name, parameters)| {
                let owned = parameters
                    .iter()
                    .map(|(name, kind, required)| ((*name).into(), (*kind).into(), *required));
                ((*name).to_owned(), owned.collect())
            })
            .collect();
        assert_eq!(parameters_of(&catalog, server), expected, "{server}");
        for (tool, _) in *tools {
            let public_name = format!("{server}.{tool}");
            assert!(catalog.tool_names().any(|name| name == public_name), "{public_name}");
        }
    }
    let report = host.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
    let journal = application.journal();
    assert_eq!(journal.pids().len(), 2);
    assert_eq!(journal.events("exit").len(), 2, "each server has exited by itself");
}

#[tokio::test]
async fn calls_reach_the_named_server_and_invalid_calls_reach_none() {
    let application = Application::new();
    let host = Host::start(application.config()).await.unwrap();
    let arguments = json!({"path": "a.txt", "head": 3});
    let result = host.call_tool("filesystem.read_text_file", arguments.clone()).await.unwrap();
    assert!(result.raw().get().contains("a.txt"), "{}", result.raw());
    for (tool, arguments) in [
        ("filesystem.read_text_file", json!({"head": 3})),
        ("filesystem.read_text_file", json!({"path": ["a.txt"]})),
        ("filesystem.no_such_tool", json!({})),
        ("read_text_file", json!({"path": "a.txt"})),
    ] {
        let error = host.call_tool(tool, arguments).await.unwrap_err();
        let is_expected = match tool {
            "filesystem.read_text_file" => matches!(error, CallError::Validation { .. }),
            _ => matches!(error, CallError::Routing(_)),
        };
        assert!(is_expected, "{tool}: {error:?}");
    }
    host.shutdown().await;
    let calls = application.journal();
    assert_eq!(calls.for_server("filesystem").params("tools/call")[0]["arguments"], arguments);
    assert_eq!(calls.count("tools/call"), 1);
}

#[tokio::test]
async fn the_callback_of_the_application_answers_both_kinds_of_requests() {
    let application = Application::new();
    let requests = Arc::new(Mutex::new(Vec::new()));
    let received = requests.clone();
    let callback = move |request: ServerRequest| {
        received.lock().unwrap().push(format!("{} {}", request.server, request.method));
        let answer = match &*request.method {
            "sampling/createMessage" => json!({"role": "assistant", "model": "m",
                "content": {"type": "text", "text": "red"}}),
            _ => json!({"action": "accept", "content": {"colour": "blue"}}),
        };
        async { Ok(answer) }
    };
    let builder = Host::builder(application.config());
    let host = builder.callback(&CallbackCapabilities::all(), callback).start().await.unwrap();
    host.call_tool("brave-search.brave_web_search", json!({"query": "inn"})).await.unwrap();
    let mut seen = requests.lock().unwrap().clone();
    seen.sort();
    let expected = ["brave-search elicitation/create", "brave-search sampling/createMessage"];
    assert_eq!(seen, expected);
    // The server has received the answers.
    let journal = application.journal();
    let text: String = journal.responses().iter().map(|response| response.to_string()).collect();
    assert!(text.contains("red") && text.contains("blue"), "{text}");
    assert!(host.shutdown().await.is_clean());
}

#[tokio::test]
async fn a_server_gets_the_variable_of_its_configuration() {
    let application = Application::new();
    application.write_config(|config| {
        // The default tools of the fixture server contain `env`.
        let name = json!(["--name", "brave-search"]);
        config["servers"]["brave-search"]["args"] = name;
    });
    let host = Host::start(application.config()).await.unwrap();
    let arguments = json!({"name": "BRAVE_API_KEY"});
    let result = host.call_tool("brave-search.env", arguments).await.unwrap();
    assert!(result.raw().get().contains("key-of-the-application"), "{}", result.raw());
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_that_cannot_start_stops_the_other_server_and_is_named() {
    let application = Application::new();
    application.write_config(|config| {
        let args = config["servers"]["brave-search"]["args"].as_array_mut().unwrap();
        args.push(json!("--hang-init"));
        config["servers"]["brave-search"]["initTimeout"] = json!(0.5);
    });
    let error: StartError = Host::start(application.config()).await.unwrap_err();
    assert!(error.to_string().contains("`brave-search`"), "{error}");
    let filesystem = application.journal().for_server("filesystem");
    assert_eq!((filesystem.pids().len(), filesystem.events("exit").len()), (1, 1));
}
