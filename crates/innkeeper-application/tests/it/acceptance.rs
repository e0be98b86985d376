//! The acceptance test of specification document 000: an application starts the servers of its
//! `mcp.json`, checks their tools, answers them, and stops them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use innkeeper::{
    CallError, CallbackCapabilities, Catalog, Config, Host, ServerRequest, ServerState, StartError,
};
use innkeeper_testkit::{Journal, fixture_program, recorded_tools};
use serde_json::{Value, json};

/// A tool with its parameters in the form of [`parameters_of`].
type ExpectedTool = (&'static str, &'static str);

/// The published servers with their tools and parameters. Each server is a fixture server with the
/// recorded tools.
const EXPECTED: &[(&str, &[ExpectedTool])] = &[
    (
        "filesystem",
        &[
            ("read_file", "path: string, tail?: number, head?: number"),
            ("read_text_file", "path: string, tail?: number, head?: number"),
            ("read_media_file", "path: string"),
            ("read_multiple_files", "paths: array"),
            ("write_file", "path: string, content: string"),
            ("edit_file", "path: string, edits: array, dryRun?: boolean"),
            ("create_directory", "path: string"),
            ("list_directory", "path: string"),
            ("list_directory_with_sizes", "path: string, sortBy?: string"),
            ("directory_tree", "path: string, excludePatterns?: array"),
            ("move_file", "source: string, destination: string"),
            ("search_files", "path: string, pattern: string, excludePatterns?: array"),
            ("get_file_info", "path: string"),
            ("list_allowed_directories", ""),
        ],
    ),
    (
        "brave-search",
        &[
            (
                "brave_web_search",
                "query: string, country?: string, search_lang?: string, ui_lang?: string, \
                 count?: integer, offset?: integer, safesearch?: string, freshness?: \
                 string, text_decorations?: boolean, spellcheck?: boolean, \
                 result_filter?: array, goggles?: string|array, units?: string, \
                 extra_snippets?: boolean, summary?: boolean",
            ),
            (
                "brave_local_search",
                "query: string, country?: string, search_lang?: string, ui_lang?: string, \
                 count?: integer, offset?: integer, safesearch?: string, freshness?: \
                 string, text_decorations?: boolean, spellcheck?: boolean, \
                 result_filter?: array, goggles?: string|array, units?: string, \
                 extra_snippets?: boolean, summary?: boolean",
            ),
            (
                "brave_video_search",
                "query: string, country?: string, search_lang?: string, ui_lang?: string, \
                 count?: integer, offset?: integer, spellcheck?: boolean, safesearch?: \
                 string, freshness?: string",
            ),
            (
                "brave_image_search",
                "query: string, country?: string, search_lang?: string, count?: integer, \
                 safesearch?: string, spellcheck?: boolean",
            ),
            (
                "brave_news_search",
                "query: string, country?: string, search_lang?: string, ui_lang?: string, \
                 count?: integer, offset?: integer, spellcheck?: boolean, safesearch?: \
                 string, freshness?: string, extra_snippets?: boolean, goggles?: \
                 string|array",
            ),
            ("brave_summarizer", "key: string, entity_info?: boolean, inline_references?: boolean"),
            (
                "brave_llm_context",
                "query: string, country?: string, search_lang?: string, count?: integer, \
                 spellcheck?: boolean, maximum_number_of_urls?: integer, \
                 maximum_number_of_tokens?: integer, maximum_number_of_snippets?: \
                 integer, context_threshold_mode?: string, \
                 maximum_number_of_tokens_per_url?: integer, \
                 maximum_number_of_snippets_per_url?: integer, goggles?: string|array, \
                 freshness?: string, enable_local?: boolean, enable_source_metadata?: \
                 boolean, x-loc-lat?: number, x-loc-long?: number, x-loc-city?: string, \
                 x-loc-state?: string, x-loc-state-name?: string, x-loc-country?: string, \
                 x-loc-postal-code?: string, api-version?: string, accept?: string, \
                 cache-control?: string, user-agent?: string",
            ),
            (
                "brave_place_search",
                "query?: string, radius?: number, count?: integer, latitude?: number, \
                 longitude?: number, location?: string, country?: string, search_lang?: \
                 string, ui_lang?: string, units?: string, safesearch?: string, \
                 spellcheck?: boolean, geoloc?: string, api-version?: string, accept?: \
                 string, cache-control?: string, user-agent?: string",
            ),
        ],
    ),
];

/// The directory of the application, with its `mcp.json`.
struct Application {
    directory: tempfile::TempDir,
}

impl Application {
    /// Creates the directory. `.env` has the variable that `mcp.json` names.
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for (server, _) in EXPECTED {
            let tools = recorded_tools(server).to_string();
            fs::write(path(&format!("{server}.json")), tools).unwrap();
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

/// Returns the types of a parameter, each once.
fn types_of(schema: &Value) -> Vec<String> {
    match (&schema["type"], &schema["anyOf"]) {
        (Value::String(kind), _) => vec![kind.clone()],
        (_, Value::Array(choices)) => {
            let mut types: Vec<String> = choices.iter().flat_map(types_of).collect();
            types.dedup();
            types
        }
        _ => panic!("a parameter without a type: {schema}"),
    }
}

/// Returns the parameters of each tool of a server: `NAME: TYPE`, or `NAME?: TYPE` for a parameter
/// that is not required.
fn parameters_of(catalog: &Catalog, server: &str) -> BTreeMap<String, String> {
    let listing = catalog.server(server).unwrap().listing().unwrap();
    let parameters = |schema: &str| {
        let schema: Value = serde_json::from_str(schema).unwrap();
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let of_schema = schema["properties"].as_object().unwrap().clone();
        let parameter = |(name, schema): (String, Value)| {
            let mark = if required.contains(&Value::from(name.as_str())) { "" } else { "?" };
            format!("{name}{mark}: {}", types_of(&schema).join("|"))
        };
        of_schema.into_iter().map(parameter).collect::<Vec<_>>().join(", ")
    };
    let tools = listing.tools.iter();
    tools.map(|tool| (tool.view.name.clone(), parameters(tool.view.input_schema.get()))).collect()
}

/// Proves: N31, TR7.2
#[tokio::test]
async fn the_servers_start_with_the_expected_tools_and_parameters_and_stop_without_errors() {
    let application = Application::new();
    let host = Host::start(application.config()).await.unwrap();
    let catalog = host.catalog();
    let servers: Vec<&str> = catalog.servers().map(|(name, _)| name).collect();
    assert_eq!(servers, ["filesystem", "brave-search"]);
    for (server, tools) in EXPECTED {
        assert_eq!(catalog.server(server).unwrap().state(), ServerState::Ready);
        let expected: BTreeMap<String, String> = tools
            .iter()
            .map(|(name, parameters)| ((*name).to_owned(), (*parameters).to_owned()))
            .collect();
        assert_eq!(parameters_of(&catalog, server), expected, "{server}");
        for (tool, _) in *tools {
            let public_name = format!("{server}.{tool}");
            assert!(catalog.tool_names().any(|name| name == public_name), "{public_name}");
        }
    }
    assert_eq!(EXPECTED.iter().map(|(_, tools)| tools.len()).sum::<usize>(), 22);
    let report = host.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
    let journal = application.journal();
    assert_eq!(journal.pids().len(), 2);
    assert_eq!(journal.events("exit").len(), 2, "each server has exited by itself");
    assert!(journal.events("exit").iter().all(|exit| exit.message["code"] == 0));
    assert!(journal.events("signal").is_empty(), "no server has received a signal");
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
