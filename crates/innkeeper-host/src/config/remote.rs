//! How a remote server is reached: address and headers.

use indexmap::IndexMap;

use super::check::Checker;
use super::place::{Step, key};
use super::raw;
use super::secret::{Expanded, Secret};
use super::server::TransportConfig;
use super::trail::Trail;
use super::{launch, leak};

/// The schemes of an address for each way of reaching it.
const WEB: [&str; 2] = ["http", "https"];
const SOCKET: [&str; 2] = ["ws", "wss"];
/// A socket of this machine that HTTP is spoken on: `unix:///path/of/it#/path/to/ask/for`.
const LOCAL: &str = "unix";

/// The transport that an address speaks of when `type` does not.
pub(super) fn kind_of(url: &str) -> raw::Transport {
    if rest_of(url, SOCKET).is_some() { raw::Transport::WebSocket } else { raw::Transport::Http }
}

/// The transport of a server that is reached by an address, unless an error has been told.
pub(super) fn remote(
    checker: &mut Checker<'_>,
    kind: raw::Transport,
    typed: &mut raw::Server,
) -> Option<TransportConfig> {
    let url = url(checker, kind, typed.url.take());
    let headers = headers(checker, typed.headers.take().unwrap_or_default());
    let (url, headers) = (url?, headers?);
    match kind {
        raw::Transport::Stdio => None,
        raw::Transport::Http => Some(TransportConfig::Http { url, headers }),
        raw::Transport::Sse => Some(TransportConfig::Sse { url, headers }),
        raw::Transport::WebSocket => Some(TransportConfig::WebSocket { url, headers }),
    }
}

fn url(checker: &mut Checker<'_>, kind: raw::Transport, typed: Option<String>) -> Option<Expanded> {
    let steps = [key("url")];
    let Some(written) = typed else {
        if !checker.has("url") {
            let wanted = Trail::from(&checker.entry.path);
            let message = format!("missing; a server of type `{}` needs it", kind.name());
            checker.report.error(checker.entry.node.at, wanted.key("url"), message);
        }
        return None;
    };
    let replaced = checker.expand(&steps, &written)?;
    if kind == raw::Transport::Http
        && let Some(rest) = rest_of(&replaced.value, [LOCAL; 1])
    {
        return unix(checker, &steps, rest).then(|| Expanded::new(replaced.value.clone(), written));
    }
    let schemes = if kind == raw::Transport::WebSocket { SOCKET } else { WEB };
    let Some(rest) = rest_of(&replaced.value, schemes) else {
        checker.error(&steps, format!("expected `{}://` or `{}://`", schemes[0], schemes[1]));
        return None;
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let odd = |c: char| c.is_whitespace() || c.is_control();
    if host.is_empty() || host.starts_with(':') || replaced.value.contains(odd) {
        checker.error(&steps, "not an address");
        return None;
    }
    if authority.contains('@') && replaced.variables.is_empty() {
        checker.warning(&steps, "has a password in it");
        checker.report.hint("send it in `headers`");
    }
    Some(Expanded::new(replaced.value, leak::without_secrets(&written)))
}

/// Whether a Unix socket can be where an address says it is.
fn unix(checker: &mut Checker<'_>, steps: &[Step<'_>], rest: &str) -> bool {
    let (path, asked) = rest.split_once('#').unwrap_or((rest, "/"));
    if !cfg!(unix) {
        checker.error(steps, "there are no Unix sockets on this system");
    } else if !path.starts_with('/') || path.contains('\0') {
        checker.error(steps, "expected `unix://` with the full path of a socket");
    } else if !asked.starts_with('/') {
        checker.error(steps, "what is asked for there begins with `/`: `unix:///socket#/path`");
    } else {
        return true;
    }
    false
}

/// What follows the scheme of an address, if it is one of these.
fn rest_of<'u, const N: usize>(url: &'u str, schemes: [&str; N]) -> Option<&'u str> {
    let (scheme, rest) = url.split_once("://")?;
    schemes.iter().any(|known| known.eq_ignore_ascii_case(scheme)).then_some(rest)
}

fn headers(
    checker: &mut Checker<'_>,
    typed: IndexMap<String, String>,
) -> Option<IndexMap<String, Secret>> {
    let mut whole = true;
    let mut headers = IndexMap::with_capacity(typed.len());
    for (name, written) in typed {
        let steps = [key("headers"), key(&name)];
        if !is_token(&name) {
            checker.error(&steps, "not the name of a header");
            whole = false;
            continue;
        }
        let Some(replaced) = checker.expand(&steps, &written) else {
            whole = false;
            continue;
        };
        if replaced.value.contains(['\r', '\n']) {
            checker.error(&steps, "a header cannot have a line break");
            whole = false;
            continue;
        }
        headers.insert(name, Secret::new(replaced.value));
    }
    whole.then_some(headers)
}

/// The program that prints headers, with its arguments; `None` once an error has been told.
pub(super) fn helper(
    checker: &mut Checker<'_>,
    typed: raw::HeadersHelper,
) -> Option<Vec<Expanded>> {
    let steps = [key("headersHelper")];
    let words = match typed {
        raw::HeadersHelper::Words(words) => launch::words(checker, "headersHelper", words)?,
        raw::HeadersHelper::Program(line) if line.contains(char::is_whitespace) => {
            checker.error(&steps, "has white space, and no shell takes it apart");
            let words: Vec<&str> = line.split_whitespace().collect();
            checker.report.hint(format!("write a list, such as `{}`", serde_json::json!(words)));
            return None;
        }
        raw::HeadersHelper::Program(program) => {
            let replaced = checker.expand(&steps, &program)?;
            vec![Expanded::new(replaced.value, program)]
        }
    };
    if words.first().is_none_or(|program| program.expose().trim().is_empty()) {
        checker.error(&steps, "names no program");
        return None;
    }
    if checker.has("oauth") {
        checker.error(&[key("oauth")], "has no use beside `headersHelper`");
        return None;
    }
    Some(words)
}

/// Whether HTTP allows this as a header's name.
fn is_token(name: &str) -> bool {
    let other = b"!#$%&'*+-.^_`|~";
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || other.contains(&byte))
}
