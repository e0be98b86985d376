//! The table of the fixture server's switches.

use super::{malformed, task};

/// The value that a switch takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SwitchKind {
    Flag,
    Number,
    Text,
    Json,
    Choice(&'static [&'static str]),
}

/// A switch of the command line.
#[derive(Debug)]
pub(super) struct Switch {
    pub(super) name: &'static str,
    pub(super) kind: SwitchKind,
    pub(super) help: &'static str,
}

const fn flag(name: &'static str, help: &'static str) -> Switch {
    Switch { name, kind: SwitchKind::Flag, help }
}

const fn number(name: &'static str, help: &'static str) -> Switch {
    Switch { name, kind: SwitchKind::Number, help }
}

const fn text(name: &'static str, help: &'static str) -> Switch {
    Switch { name, kind: SwitchKind::Text, help }
}

const fn json(name: &'static str, help: &'static str) -> Switch {
    Switch { name, kind: SwitchKind::Json, help }
}

const fn one_of(
    name: &'static str,
    choices: &'static [&'static str],
    help: &'static str,
) -> Switch {
    Switch { name, kind: SwitchKind::Choice(choices), help }
}

/// All switches, grouped by the affected behaviour.
pub(super) const SWITCHES: &[Switch] = &[
    // Identity.
    text("--name", "name in journals, URIs and `serverInfo` (default fx)"),
    text("--server-name", "different name in serverInfo"),
    text("--instructions", "instructions of the server"),
    text("--journal", "journal file for received messages"),
    // Starting.
    number("--exit-at-start", "exit with this code at once"),
    number("--fail-starts", "fail the first N starts, counted in the file of --state"),
    text("--state", "file that counts the starts"),
    number("--start-delay", "milliseconds before the first read"),
    text("--stderr", "line on stderr at the start"),
    number("--stderr-flood", "lines with a total of this many bytes on stderr"),
    number("--stderr-endless", "this many bytes on stderr without a line end"),
    // Handshake.
    one_of("--era", &["legacy", "modern", "dual"], "supported handshakes (default legacy)"),
    text("--revision", "protocol version in responses, known or not"),
    flag("--silent-discover", "never respond to server/discover"),
    flag("--exit-on-discover", "exit with code 1 on server/discover"),
    number("--discover-delay", "milliseconds before the response to server/discover"),
    number("--discover-error", "error code of the response to server/discover"),
    flag("--poison", "reject initialize with -32022 after server/discover"),
    flag("--hang-init", "never respond to initialize"),
    number("--init-delay", "milliseconds before the response to initialize"),
    number("--init-error", "error code of the response to initialize"),
    flag("--init-twice", "respond to initialize twice"),
    flag("--wrong-init", "respond to initialize with wrong types"),
    flag("--early-request", "send a request before the handshake"),
    // Lists.
    text("--tools", "tools: JSON or a JSON file"),
    text("--prompts", "prompts: JSON or a JSON file"),
    text("--resources", "resources: JSON or a JSON file"),
    text("--templates", "resource templates: JSON or a JSON file"),
    number("--pages", "split each list into N pages"),
    flag("--empty-cursor", "use the empty string as first cursor"),
    flag("--same-cursor", "return the same tools/list cursor forever"),
    flag("--endless-cursor", "return a new tools/list cursor forever"),
    number("--big-cursor", "make cursors this many bytes longer"),
    json(
        "--completions",
        "values of arguments and variables: an object with a list of strings for each name",
    ),
    flag("--no-prompts", "no prompts"),
    flag("--no-resources", "no resources"),
    flag("--undeclared", "respond to undeclared lists with -32601"),
    flag(
        "--declares-but-32601",
        "declare prompts and resources, but respond to their lists with -32601",
    ),
    flag("--bad-tool", "one invalid tool among valid tools"),
    flag("--dup-tool", "two tools named echo"),
    flag("--odd-names", "tools with empty, long and control-character names"),
    number("--many-tools", "this many additional tools"),
    flag("--wrong-list", "respond to tools/list with wrong types"),
    flag("--hang-lists", "never respond to a list request"),
    number("--list-delay", "milliseconds before the response to a list request"),
    number("--list-error", "error code of responses to list requests"),
    text(
        "--faulty-lists",
        "the methods that --hang-lists and --list-error apply to, with commas; default: all lists",
    ),
    text("--list-faults-while", "a file; --hang-lists and --list-error apply while it exists"),
    number("--list-ttl", "ttlMs of modern lists (default 0)"),
    text("--list-scope", "cacheScope of modern lists (default private)"),
    // Changes.
    flag(
        "--list-changed",
        "add the tools grow and shrink, which change lists and notify the client",
    ),
    number("--list-changed-burst", "repeat each change notification this many times"),
    flag("--relist-loop", "send tools/list_changed after every tools/list"),
    flag("--notes", "add the tools note and notes, which keep texts in memory"),
    flag("--touch", "add the tool touch, which sends a resource update"),
    flag("--no-listen", "no subscriptions/listen"),
    // Calls.
    number("--slow", "milliseconds before each tool call runs"),
    flag("--hang-calls", "never respond to a tool call"),
    number("--crash-after", "exit with code 3 on the N-th tool call"),
    flag("--crash-signal", "crash by SIGKILL instead; on the first call unless --crash-after"),
    number("--server-error", "error code of responses to tool calls"),
    text("--error-text", "message of --init-error, --list-error and --server-error"),
    flag("--odd-result", "valid result with unusual members"),
    flag("--bad-structured", "structured content of add that violates its schema"),
    number("--huge", "result of this many bytes"),
    number("--out-of-order", "respond to N collected calls in reverse, or to fewer after 20 ms"),
    flag("--dup-reply", "respond to each call twice"),
    flag("--unknown-id", "send a response with an unknown id before each response"),
    number("--progress", "this many progress notifications before each response"),
    number("--progress-delay", "milliseconds before each of them"),
    flag("--bad-progress", "wrong tokens and numbers in them"),
    number("--log-flood", "this many log notifications before each response"),
    text("--log-level", "level of these notifications (default info)"),
    json("--call-result", "result of every tool call as JSON"),
    text(
        "--call-result-text",
        "the same, sent byte for byte, such as with two members of one name",
    ),
    flag(
        "--verbatim",
        "result with the bytes of the arguments, or of the JSON in their string `result`",
    ),
    json("--read-result", "result of every resources/read as JSON"),
    json("--prompt-result", "result of every prompts/get as JSON"),
    text(
        "--progress-message",
        "message of the progress notifications; `{}` stands for the argument `message`",
    ),
    flag("--ignore-cancel", "respond to cancelled calls"),
    flag("--cancel-ours", "cancel the client's own request before the response"),
    number("--alloc", "allocate this many bytes on each call"),
    // Tasks.
    one_of("--task", task::TASK_OUTCOMES, "create a task with this outcome for each tool call"),
    number("--task-polls", "number of polls before the outcome"),
    number("--task-interval", "pollInterval of a task in milliseconds"),
    number("--task-ttl", "ttl of a task in milliseconds (default 60000)"),
    flag("--task-notify", "name a legacy task in its result, and send its status at each poll"),
    text(
        "--tally",
        "add the tool tally, which logs each execution in this file, with faults on request",
    ),
    // Bytes.
    flag("--bad-json", "line that is not JSON before each response"),
    number("--noise", "number of these lines"),
    one_of("--malformed", malformed::MALFORMED_KINDS, "malformed form of responses to tool calls"),
    flag("--crlf", "end lines with CR LF"),
    flag("--bom", "start with a byte order mark"),
    number("--chunk", "write in chunks of this many bytes"),
    number("--chunk-delay", "milliseconds after each chunk"),
    number("--stall", "milliseconds between the halves of a tool call's response"),
    number("--endless-line", "line of this many bytes before each tool call's response"),
    // Requests to the client.
    flag("--ping-client", "ping the client after the handshake"),
    number("--ping-count", "number of pings"),
    flag("--ask-roots", "request the roots during each tool call"),
    flag("--ask-sampling", "request a completion during each tool call"),
    flag("--ask-elicit", "send an elicitation request during each tool call"),
    number("--ask-count", "number of concurrent requests"),
    text("--ask-of", "the only tool whose calls send requests"),
    flag("--ask-anyway", "also send requests to modern clients without the capability"),
    number("--rounds", "round trips of a modern call (default 1)"),
    number("--state-bytes", "make requestState this many bytes longer"),
    flag("--same-request-id", "use the id of the call in requests to the client"),
    // Process.
    flag("--ignore-eof", "keep running after the end of the input"),
    flag("--ignore-sigterm", "keep running on SIGTERM"),
    number("--exit-delay", "milliseconds from the end of the input to the exit"),
    flag("--close-stdout", "close stdout on the first tool call and keep running"),
    flag("--stop-reading", "stop reading after the first tool call"),
    number("--stop-reading-after", "stop reading after this many messages"),
    flag("--stop-self", "send itself SIGSTOP on a tool call"),
    flag("--spin", "keep one CPU busy"),
    flag("--grandchild", "start a child in the process group"),
    flag("--grandchild-ignores-sigterm", "make the child ignore SIGTERM"),
    flag("--daemon", "start a child in its own session that ignores SIGTERM"),
    flag("--daemon-holds-stdout", "make the child keep stdout open"),
    flag("--double-fork", "start a child in the session whose parent has exited, ignores SIGTERM"),
    flag("--own-session", "start a child that leads its own session and ignores SIGTERM"),
    flag("--exit-while-grandchild", "exit on a tool call, leaving a child that holds the pipes"),
    number("--zombies", "start this many children that exit and are not reaped"),
    number("--fork-loop", "fork chain of this many processes"),
];

/// The output of `--help`.
pub(super) fn help() -> String {
    let mut text = String::from(
        "innkeeper-fixture-server: an MCP server over stdio with faults on request\n\n",
    );
    for switch in SWITCHES {
        let value = match switch.kind {
            SwitchKind::Flag => String::new(),
            SwitchKind::Number => " N".to_owned(),
            SwitchKind::Text => " TEXT".to_owned(),
            SwitchKind::Json => " JSON".to_owned(),
            SwitchKind::Choice(choices) => format!(" {}", choices.join("|")),
        };
        text.push_str(&format!("  {}{value}\n      {}\n", switch.name, switch.help));
    }
    text
}
