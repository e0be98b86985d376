//! The page of one call that the operator started: progress, result, cancellation.

use super::call_result;
use super::console_calls::{CallOutcome, CallProgress, ConsoleCall, MAX_RESULT_BYTES};
use super::html::{Decimal, Html, Link, Time, html};
use super::reply::{Page, Reply};
use super::request::ConsoleRequest;

pub(super) async fn show(request: &ConsoleRequest<'_>) -> Reply {
    let number = request.query.get("number").and_then(|number| number.parse().ok());
    let principal = &request.visitor.principal;
    let Some(call) = number.and_then(|number| request.calls.find(principal, number)) else {
        let text =
            "You have no such call. The console keeps the last calls until the gateway ends.";
        return Page::not_found(text).into();
    };
    let mut out = Html::new();
    html!(
        out,
        "<p><a href=\"{}\">Call the tool again</a></p>\n",
        Link::to("tool").with("name", &call.tool)
    );
    let is_running = call.outcome().is_none();
    if is_running {
        html!(
            out,
            "<section id=\"call\" data-refresh=\"1\" aria-label=\"Call\" aria-live=\"polite\">\n"
        );
    } else {
        html!(out, "<section id=\"call\" aria-label=\"Call\" aria-live=\"polite\">\n");
    }
    write_call(&mut out, request, &call);
    html!(
        out,
        "</section>\n<details><summary>Arguments</summary><pre>{}</pre></details>",
        call.arguments.get()
    );
    Page { reloads: is_running, ..Page::new(format!("Call {}", call.tool), out) }.into()
}

pub(super) async fn cancel(request: &ConsoleRequest<'_>) -> Reply {
    let number = request.form.get("number").and_then(|number| number.parse().ok());
    let principal = &request.visitor.principal;
    let Some(call) = number.and_then(|number| request.calls.find(principal, number)) else {
        return Page::not_found("You have no such call.").into();
    };
    call.cancel();
    // The task of the call has nothing to wait for.
    call.ended().await;
    Reply::Redirect(Link::to("call").with("number", &call.number.to_string()))
}

fn write_call(out: &mut Html, request: &ConsoleRequest<'_>, call: &ConsoleCall) {
    let progress = call.progress();
    match call.outcome() {
        None => {
            let seconds = call.started.elapsed().as_secs();
            html!(
                out,
                "<p><span class=\"state busy\">running</span> since {} ({} s)</p>\n",
                Time(call.started_at()),
                seconds
            );
            write_progress(out, &progress);
            let action = Link::to("call");
            html!(
                out,
                "{}<input type=\"hidden\" name=\"number\" value=\"{}\">\
                 <button id=\"cancel\" class=\"danger\">Cancel the call</button></form>\n",
                request.form(&action),
                call.number
            );
        }
        Some((outcome, duration)) => {
            let millis = Decimal(duration.as_secs_f64() * 1000.0);
            html!(
                out,
                "<p>{} after {} ms, started at {}</p>\n",
                state(outcome),
                millis,
                Time(call.started_at())
            );
            write_outcome(out, outcome);
        }
    }
    if !progress.messages.is_empty() {
        html!(out, "<h2>Messages</h2><ol class=\"messages\">");
        for message in &progress.messages {
            html!(out, "<li>{}</li>", message);
        }
        html!(out, "</ol>\n");
    }
}

fn state(outcome: &CallOutcome) -> Html {
    let mut out = Html::new();
    match outcome {
        CallOutcome::Result(result) if call_result::is_error(result) => {
            html!(out, "<span class=\"state bad\">tool error</span>");
        }
        CallOutcome::Result(_) | CallOutcome::LargeResult(_) => {
            html!(out, "<span class=\"state good\">done</span>");
        }
        CallOutcome::Error(_) => html!(out, "<span class=\"state bad\">failed</span>"),
        CallOutcome::Cancelled => html!(out, "<span class=\"state muted\">cancelled</span>"),
    }
    out
}

fn write_progress(out: &mut Html, progress: &CallProgress) {
    match progress.value {
        Some((value, Some(total))) if total > 0.0 && value.is_finite() && total.is_finite() => {
            let percent = Decimal((value / total * 100.0).clamp(0.0, 100.0));
            html!(
                out,
                "<p><label>Progress <progress max=\"100\" value=\"{}\"></progress></label> {} %</p>\n",
                percent,
                percent
            );
        }
        Some((value, _)) => html!(out, "<p>Progress: {}</p>\n", Decimal(value)),
        None => {}
    }
}

fn write_outcome(out: &mut Html, outcome: &CallOutcome) {
    match outcome {
        CallOutcome::Result(result) => call_result::write(out, result),
        CallOutcome::LargeResult(bytes) => html!(
            out,
            "<p>The result has {} bytes. The console shows at most {} bytes.</p>\n",
            *bytes,
            MAX_RESULT_BYTES
        ),
        CallOutcome::Error(error) => {
            html!(out, "<p class=\"problem\" role=\"alert\">{}</p>\n", error.message);
            html!(out, "<p class=\"hint\">JSON-RPC error {}</p>\n", error.code);
            if let Some(data) = &error.data {
                html!(out, "<pre>{}</pre>\n", data.get());
            }
        }
        CallOutcome::Cancelled => {
            html!(out, "<p>The gateway told the server to stop. The tool may have run.</p>\n");
        }
    }
}
