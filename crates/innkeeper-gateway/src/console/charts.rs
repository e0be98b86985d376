//! The page of charts: calls, errors and latency per minute.

use super::html::{Decimal, Html, html};
use super::reply::{Page, Reply};
use super::request::ConsoleRequest;
use super::svg_chart::{self, Series};
use crate::call_monitor::{MAX_MINUTES, Minute};

pub(super) async fn show(request: &ConsoleRequest<'_>) -> Reply {
    let minutes = request.gateway.calls.monitor.minutes();
    let mut out = Html::new();
    html!(
        out,
        "<p class=\"hint\">Calls of tools of all clients, by the minute of their end.</p>\n"
    );
    html!(out, "<section id=\"charts\" data-refresh=\"15\" aria-label=\"Charts\">\n");
    let of = |value: fn(&Minute) -> f64| minutes.iter().map(value).collect::<Vec<f64>>();
    let calls = of(|minute| minute.calls as f64);
    let errors = of(|minute| minute.errors as f64);
    let p50 = of(|minute| minute.p50_millis);
    let p95 = of(|minute| minute.p95_millis);
    let label = format!("Calls per minute: {} in the last {MAX_MINUTES} minutes", total(&calls));
    let series = [Series { values: &calls, class: "bar" }];
    html!(out, "<div class=\"charts\">");
    write_chart(&mut out, "Calls per minute", &label, &series);
    let label = format!("Errors per minute: {} in the last {MAX_MINUTES} minutes", total(&errors));
    let series = [Series { values: &errors, class: "bar bad-bar" }];
    write_chart(&mut out, "Errors per minute", &label, &series);
    let largest = p95.iter().copied().fold(0.0, f64::max);
    let label = format!("Latency per minute: p95 at most {largest:.1} ms");
    let latency =
        [Series { values: &p95, class: "bar light-bar" }, Series { values: &p50, class: "bar" }];
    write_chart(&mut out, "Latency in ms: median, and 95th percentile behind it", &label, &latency);
    html!(out, "</div>");
    write_table(&mut out, &minutes);
    html!(out, "</section>");
    Page::new("Charts", out).into()
}

fn total(values: &[f64]) -> u64 {
    values.iter().sum::<f64>() as u64
}

fn write_chart(out: &mut Html, title: &'static str, label: &str, series: &[Series<'_>]) {
    html!(out, "<figure class=\"card\"><figcaption>{}</figcaption>", title);
    svg_chart::write(out, label, MAX_MINUTES, series);
    html!(out, "</figure>\n");
}

/// Writes the numbers of the charts.
fn write_table(out: &mut Html, minutes: &[Minute]) {
    html!(
        out,
        "<h2>Numbers</h2><div class=\"scroll tall\" tabindex=\"0\" role=\"region\" \
         aria-label=\"Table of minutes\"><table><thead><tr><th scope=\"col\">Minutes ago</th>\
         <th scope=\"col\" class=\"n\">Calls</th><th scope=\"col\" class=\"n\">Errors</th>\
         <th scope=\"col\" class=\"n\">Cancelled</th><th scope=\"col\" class=\"n\">p50 ms</th>\
         <th scope=\"col\" class=\"n\">p95 ms</th></tr></thead><tbody>\n"
    );
    for (ago, minute) in minutes.iter().rev().enumerate() {
        // A minute without calls tells nothing, except for the current one.
        if ago > 0 && minute.calls == 0 {
            continue;
        }
        html!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
            ago,
            minute.calls,
            minute.errors,
            minute.cancelled,
            Decimal(minute.p50_millis),
            Decimal(minute.p95_millis)
        );
    }
    html!(out, "</tbody></table></div>\n<p class=\"hint\">Minutes without calls are left out.</p>");
}
