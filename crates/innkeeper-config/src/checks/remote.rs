//! Connection settings of a remote server: URL and headers.

use indexmap::IndexMap;

use crate::checks::entry_checker::EntryChecker;
use crate::checks::{launch, secret_scan};
use crate::form::raw;
use crate::secret::{ExpandedValue, Secret};
use crate::settings::server::TransportConfig;
use crate::text::key_location::{PathSegment, key_segment};
use crate::text::key_path::KeyPath;
use crate::variables::expand::VariableSource as _;

const HTTP_SCHEMES: [&str; 2] = ["http", "https"];
const WEBSOCKET_SCHEMES: [&str; 2] = ["ws", "wss"];
/// URL scheme for HTTP over a Unix socket: `unix:///path/of/socket#/request/path`.
const UNIX_SCHEME: &str = "unix";

/// Returns the transport for a URL of an entry without `type`.
pub(crate) fn transport_for_url(url: &str) -> raw::Transport {
    if strip_scheme(url, WEBSOCKET_SCHEMES).is_some() {
        raw::Transport::WebSocket
    } else {
        raw::Transport::Http
    }
}

/// Returns the transport of a remote server, or `None` after an error.
pub(crate) fn remote(
    checker: &mut EntryChecker<'_>,
    kind: raw::Transport,
    typed: &mut raw::Server,
) -> Option<TransportConfig> {
    let url = url(checker, kind, typed.url.take());
    let headers = headers(checker, typed.headers.take().unwrap_or_default());
    let url = url?;
    let headers = headers?;
    match kind {
        raw::Transport::Stdio | raw::Transport::InProcess => None,
        raw::Transport::Http => Some(TransportConfig::Http { url, headers }),
        raw::Transport::Sse => Some(TransportConfig::Sse { url, headers }),
        raw::Transport::WebSocket => Some(TransportConfig::WebSocket { url, headers }),
    }
}

fn url(
    checker: &mut EntryChecker<'_>,
    kind: raw::Transport,
    typed: Option<String>,
) -> Option<ExpandedValue> {
    let segments = [key_segment("url")];
    let Some(source_text) = typed else {
        if !checker.has("url") {
            let server_path = KeyPath::from_prefix(&checker.entry.path);
            let message = format!("missing; required for server type `{}`", kind.name());
            checker.report.error(checker.entry.node.at, server_path.key("url"), message);
        }
        return None;
    };
    let replaced = checker.expand(&segments, &source_text)?;
    if kind == raw::Transport::Http
        && let Some(rest) = strip_scheme(&replaced.value, [UNIX_SCHEME; 1])
    {
        return unix(checker, &segments, rest)
            .then(|| ExpandedValue::new(replaced.value.clone(), source_text));
    }
    let schemes = if kind == raw::Transport::WebSocket { WEBSOCKET_SCHEMES } else { HTTP_SCHEMES };
    let Some(rest) = strip_scheme(&replaced.value, schemes) else {
        checker.error(&segments, format!("expected `{}://` or `{}://`", schemes[0], schemes[1]));
        return None;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    if host.is_empty()
        || host.starts_with(':')
        || replaced.value.contains(|c: char| c.is_whitespace() || c.is_control())
    {
        checker.error(&segments, "not a valid URL");
        return None;
    }
    if authority.contains('@') && replaced.variables.is_empty() {
        checker.warning(&segments, "contains a password");
        checker.report.hint("send the password in `headers`");
    }
    let masked = secret_scan::redact_url(&source_text);
    Some(ExpandedValue::new(replaced.value, source_text).with_masked(masked))
}

/// Checks the URL of a Unix socket.
fn unix(checker: &mut EntryChecker<'_>, segments: &[PathSegment<'_>], rest: &str) -> bool {
    let (path, request_path) = rest.split_once('#').unwrap_or((rest, "/"));
    if !cfg!(unix) {
        checker.error(segments, "Unix sockets are not supported on this system");
    } else if !path.starts_with('/') || path.contains('\0') {
        checker.error(segments, "expected `unix://` with the absolute path of a socket");
    } else if !request_path.starts_with('/') {
        checker.error(segments, "the request path must start with `/`: `unix:///socket#/path`");
    } else {
        return true;
    }
    false
}

/// Returns the URL after its scheme, if it has one of these schemes.
fn strip_scheme<'u, const N: usize>(url: &'u str, schemes: [&str; N]) -> Option<&'u str> {
    let (scheme, rest) = url.split_once("://")?;
    schemes.iter().any(|known_scheme| known_scheme.eq_ignore_ascii_case(scheme)).then_some(rest)
}

fn headers(
    checker: &mut EntryChecker<'_>,
    typed: IndexMap<String, String>,
) -> Option<IndexMap<String, Secret>> {
    let mut complete = true;
    let mut headers = IndexMap::with_capacity(typed.len());
    for (name, source_text) in typed {
        let segments = [key_segment("headers"), key_segment(&name)];
        if !is_header_name(&name) {
            checker.error(&segments, "not a valid header name");
            complete = false;
            continue;
        }
        let Some(replaced) = checker.expand(&segments, &source_text) else {
            complete = false;
            continue;
        };
        if replaced
            .value
            .contains(|character: char| character.is_ascii_control() && character != '\t')
        {
            checker.error(
                &segments,
                "a header value must not contain a line break or control character",
            );
            complete = false;
            continue;
        }
        let scope = checker.scope;
        for variable in &replaced.variables {
            if scope.variable(variable).is_none_or(|value| !value.trim().is_empty()) {
                continue;
            }
            checker.warning(&segments, format!("variable `{variable}` is empty"));
        }
        headers.insert(name, Secret::new(replaced.value));
    }
    complete.then_some(headers)
}

/// Returns the headers helper with its arguments, or `None` after an error.
pub(crate) fn helper(
    checker: &mut EntryChecker<'_>,
    typed: raw::HeadersHelper,
) -> Option<Vec<ExpandedValue>> {
    let segments = [key_segment("headersHelper")];
    let argv = match typed {
        raw::HeadersHelper::CommandLine(command_line) => {
            launch::expand_list(checker, "headersHelper", command_line)?
        }
        raw::HeadersHelper::Program(line) if line.contains(char::is_whitespace) => {
            checker
                .error(&segments, "contains whitespace; a command with arguments must be a list");
            // Other hosts give the line to a shell.
            let words = shlex::split(&line)
                .unwrap_or_else(|| line.split_whitespace().map(str::to_owned).collect());
            checker.report.hint(format!("write a list, such as `{}`", serde_json::json!(words)));
            return None;
        }
        raw::HeadersHelper::Program(program) => {
            let replaced = checker.expand(&segments, &program)?;
            vec![ExpandedValue::new(replaced.value, program)]
        }
    };
    if argv.first().is_none_or(|program| program.expose().trim().is_empty()) {
        checker.error(&segments, "no program given");
        return None;
    }
    if checker.has("oauth") {
        checker.error(&[key_segment("oauth")], "not allowed together with `headersHelper`");
        return None;
    }
    Some(argv)
}

/// Returns whether HTTP allows this header name.
fn is_header_name(name: &str) -> bool {
    let other = b"!#$%&'*+-.^_`|~";
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || other.contains(&byte))
}
