//! Every switch of the fixture server, in one table.

use super::{malformed, task};

/// What a switch takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Flag,
    Number,
    Text,
    OneOf(&'static [&'static str]),
}

/// One switch.
#[derive(Debug)]
pub(super) struct Switch {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) does: &'static str,
}

const fn flag(name: &'static str, does: &'static str) -> Switch {
    Switch { name, kind: Kind::Flag, does }
}

const fn number(name: &'static str, does: &'static str) -> Switch {
    Switch { name, kind: Kind::Number, does }
}

const fn text(name: &'static str, does: &'static str) -> Switch {
    Switch { name, kind: Kind::Text, does }
}

const fn one_of(name: &'static str, words: &'static [&'static str], does: &'static str) -> Switch {
    Switch { name, kind: Kind::OneOf(words), does }
}

/// The switches, grouped by what they change.
pub(super) const TABLE: &[Switch] = &[
    // Who it is.
    text("--name", "its name in journals, addresses and its introduction (default fx)"),
    text("--server-name", "another name in serverInfo"),
    text("--instructions", "the instructions it gives"),
    text("--journal", "the file it appends what it receives to"),
    // Starting.
    number("--exit-at-start", "exits with this code at once"),
    number("--fail-starts", "fails the first N starts, counted in the file of --state"),
    text("--state", "the file that counts starts"),
    number("--start-delay", "milliseconds before it reads anything"),
    text("--stderr", "a line written to stderr at the start"),
    number("--stderr-flood", "this many bytes of lines on stderr"),
    number("--stderr-endless", "this many bytes on stderr without a line end"),
    // Handshake.
    one_of("--era", &["legacy", "modern", "dual"], "which handshakes it speaks (default legacy)"),
    text("--revision", "the revision it answers, known or not"),
    flag("--silent-discover", "never answers server/discover"),
    flag("--exit-on-discover", "exits with code 1 when it receives server/discover"),
    number("--discover-delay", "milliseconds before it answers server/discover"),
    number("--discover-error", "the error code server/discover is answered with"),
    flag("--poison", "refuses initialize with -32022 once it has received server/discover"),
    flag("--hang-init", "never answers initialize"),
    number("--init-delay", "milliseconds before it answers initialize"),
    number("--init-error", "the error code initialize is answered with"),
    flag("--init-twice", "answers initialize twice"),
    flag("--wrong-init", "answers initialize with wrong types"),
    flag("--early-request", "sends a request before the handshake"),
    // Lists.
    text("--tools", "its tools: JSON, or a file of it"),
    text("--prompts", "its prompts: JSON, or a file of it"),
    text("--resources", "its resources: JSON, or a file of it"),
    text("--templates", "its resource templates: JSON, or a file of it"),
    number("--pages", "splits each list into N pages"),
    flag("--empty-cursor", "the first cursor is the empty string"),
    flag("--same-cursor", "tools/list gives the same cursor for ever"),
    flag("--endless-cursor", "tools/list gives a new cursor for ever"),
    number("--big-cursor", "cursors are this many bytes longer"),
    flag("--no-prompts", "has no prompts"),
    flag("--no-resources", "has no resources"),
    flag("--undeclared", "answers lists it does not declare with -32601"),
    flag("--declares-but-32601", "declares prompts and resources, answers their lists with -32601"),
    flag("--bad-tool", "one invalid tool among good ones"),
    flag("--dup-tool", "two tools named echo"),
    flag("--odd-names", "tools with empty, long and control-character names"),
    number("--many-tools", "this many tools more"),
    flag("--wrong-list", "answers tools/list with wrong types"),
    flag("--hang-lists", "never answers a list"),
    number("--list-delay", "milliseconds before it answers a list"),
    number("--list-error", "the error code lists are answered with"),
    number("--list-ttl", "milliseconds a list of the newer era may be kept (default 0)"),
    // Changes.
    flag("--list-changed", "adds the tools grow and shrink, which change lists and say so"),
    number("--list-changed-burst", "says so this many times"),
    flag("--relist-loop", "says that the tools have changed after every tools/list"),
    flag("--touch", "adds the tool touch, which says that a resource has changed"),
    flag("--no-listen", "does not know subscriptions/listen"),
    // Calls.
    number("--slow", "milliseconds before each tool call runs"),
    flag("--hang-calls", "never answers a tool call"),
    number("--crash-after", "exits with code 3 on the N-th tool call"),
    flag("--crash-signal", "crashes by SIGKILL instead; on the first call unless --crash-after"),
    number("--server-error", "the error code tool calls are answered with"),
    flag("--odd-result", "a valid result with much that no reader expects"),
    flag("--bad-structured", "structured content of add that its schema forbids"),
    number("--huge", "a result of this many bytes"),
    number("--out-of-order", "answers N collected calls in reverse, or what it has after 20 ms"),
    flag("--dup-reply", "answers each call twice"),
    flag("--unknown-id", "sends a response nobody asked for before each answer"),
    number("--progress", "this many progress notifications before each answer"),
    number("--progress-delay", "milliseconds before each of them"),
    flag("--bad-progress", "their tokens and numbers are wrong"),
    number("--log-flood", "this many log notifications before each answer"),
    flag("--ignore-cancel", "answers calls that were cancelled"),
    flag("--cancel-ours", "cancels the client's own request before answering it"),
    number("--alloc", "takes this many bytes of memory on each call"),
    // Tasks.
    one_of("--task", task::KINDS, "makes a task of each tool call, which comes to this"),
    number("--task-polls", "how often a task is asked after before that"),
    number("--task-interval", "milliseconds a task wants between two questions"),
    number("--task-ttl", "milliseconds a task says it is kept (default 60000)"),
    text("--tally", "adds the tool tally, which notes each run in this file: faults on request"),
    // Bytes.
    flag("--bad-json", "a line that is not JSON before each response"),
    number("--noise", "this many of them"),
    one_of("--malformed", malformed::KINDS, "how the answers of tool calls are malformed"),
    flag("--crlf", "ends lines with CR LF"),
    flag("--bom", "starts with a byte order mark"),
    number("--chunk", "writes in pieces of this many bytes"),
    number("--chunk-delay", "milliseconds after each piece"),
    number("--stall", "milliseconds between the halves of a tool call's answer"),
    number("--endless-line", "a line of this many bytes before each tool call's answer"),
    // Requests of its own.
    flag("--ping-client", "pings the client once initialized"),
    number("--ping-count", "this many times"),
    flag("--ask-roots", "asks for the roots during each tool call"),
    flag("--ask-sampling", "asks for a completion during each tool call"),
    flag("--ask-elicit", "asks the user during each tool call"),
    number("--ask-count", "asks this many times at once"),
    flag("--ask-anyway", "asks modern clients that lack the capability too"),
    number("--rounds", "rounds of questions of a modern call (default 1)"),
    number("--state-bytes", "requestState is this many bytes longer"),
    flag("--same-request-id", "its requests carry the id of the call they belong to"),
    // Process.
    flag("--ignore-eof", "stays when its input ends"),
    flag("--ignore-sigterm", "stays on SIGTERM"),
    number("--exit-delay", "milliseconds it takes to end after its input has"),
    flag("--close-stdout", "closes stdout on the first tool call and stays"),
    flag("--stop-reading", "reads nothing after the first tool call"),
    number("--stop-reading-after", "reads nothing after this many messages"),
    flag("--stop-self", "stops itself by SIGSTOP on a tool call"),
    flag("--spin", "keeps one processor busy"),
    flag("--grandchild", "has a child in its process group"),
    flag("--grandchild-ignores-sigterm", "that ignores SIGTERM"),
    flag("--daemon", "has a child in a session of its own that ignores SIGTERM"),
    flag("--daemon-holds-stdout", "that keeps its stdout open"),
    flag("--double-fork", "has a child in its session whose parent has ended, ignores SIGTERM"),
    flag("--own-session", "has a child that leads a session of its own and ignores SIGTERM"),
    flag("--exit-while-grandchild", "exits on a tool call, leaving a child that holds its pipes"),
    number("--zombies", "has this many children that have ended and are not waited for"),
    number("--fork-loop", "a chain of this many processes"),
];

/// What `--help` prints.
pub(super) fn help() -> String {
    let mut text =
        String::from("innkeeper-fx: an MCP server over stdio that misbehaves on request\n\n");
    for switch in TABLE {
        let value = match switch.kind {
            Kind::Flag => String::new(),
            Kind::Number => " N".to_owned(),
            Kind::Text => " TEXT".to_owned(),
            Kind::OneOf(words) => format!(" {}", words.join("|")),
        };
        text.push_str(&format!("  {}{value}\n      {}\n", switch.name, switch.does));
    }
    text
}
