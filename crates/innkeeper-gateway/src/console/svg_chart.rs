//! A chart of one number per minute as inline SVG.
//!
//! The attributes of the elements are numbers of the gateway; colours are in the stylesheet.

use super::html::{Decimal, Html, Plain, html};

const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 130.0;

/// The place of the labels.
const LEFT: f64 = 44.0;
const BOTTOM: f64 = 20.0;
const TOP: f64 = 8.0;

/// The values of a chart, the oldest first.
#[derive(Clone, Copy, Debug)]
pub(super) struct Series<'a> {
    pub(super) values: &'a [f64],
    /// The class of the bars in the stylesheet.
    pub(super) class: &'static str,
}

/// Returns the smallest of 1, 2 and 5 times a power of ten that is not below a value.
fn axis_maximum(value: f64) -> f64 {
    if !value.is_finite() || value <= 1.0 {
        return 1.0;
    }
    let power = 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|axis| *axis >= value)
        .unwrap_or(10.0 * power)
}

/// Writes a chart with bars for the series, drawn over each other. `label` describes it to a reader
/// who does not see it.
pub(super) fn write(out: &mut Html, label: &str, minutes: usize, series: &[Series<'_>]) {
    let largest = series.iter().flat_map(|one| one.values).copied().fold(0.0, f64::max);
    let maximum = axis_maximum(largest);
    let width = WIDTH - LEFT;
    let height = HEIGHT - BOTTOM - TOP;
    html!(
        out,
        "<svg class=\"chart\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">",
        Decimal(WIDTH),
        Decimal(HEIGHT),
        label
    );
    for share in [0.0, 0.5, 1.0] {
        let y = TOP + height * (1.0 - share);
        html!(
            out,
            "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"></line>\
             <text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>",
            Decimal(LEFT),
            Decimal(WIDTH),
            Decimal(y),
            Decimal(y),
            Decimal(LEFT - 6.0),
            Decimal(y + 4.0),
            Plain(maximum * share)
        );
    }
    let step = width / minutes.max(1) as f64;
    for Series { values, class } in series {
        // A short series ends at the current minute.
        let first = minutes.saturating_sub(values.len());
        for (index, value) in values.iter().enumerate().filter(|(_, value)| **value > 0.0) {
            let bar = (height * value / maximum).clamp(1.0, height);
            html!(
                out,
                "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"></rect>",
                *class,
                Decimal(LEFT + step * (first + index) as f64 + 1.0),
                Decimal(TOP + height - bar),
                Decimal((step - 2.0).max(1.0)),
                Decimal(bar)
            );
        }
    }
    html!(
        out,
        "<text class=\"axis\" x=\"{}\" y=\"{}\">{} minutes ago</text>\
         <text class=\"axis\" x=\"{}\" y=\"{}\" text-anchor=\"end\">now</text></svg>\n",
        Decimal(LEFT),
        Decimal(HEIGHT - 4.0),
        minutes,
        Decimal(WIDTH),
        Decimal(HEIGHT - 4.0)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_ends_at_a_round_number() {
        for (value, axis) in
            [(0.0, 1.0), (1.0, 1.0), (1.5, 2.0), (2.0, 2.0), (30.0, 50.0), (51.0, 100.0)]
        {
            assert_eq!(axis_maximum(value), axis, "{value}");
        }
        assert_eq!(axis_maximum(f64::INFINITY), 1.0);
    }

    #[test]
    fn a_bar_stands_at_its_minute_and_ends_at_its_value() {
        let mut out = Html::new();
        write(&mut out, "label", 2, &[Series { values: &[5.0], class: "bar" }]);
        let bar = "<rect class=\"bar\" x=\"223.0\" y=\"8.0\" width=\"176.0\" height=\"102.0\">";
        assert!(out.as_str().contains(bar), "{}", out.as_str());
        for y in ["110.0", "59.0", "8.0"] {
            let grid = format!("y1=\"{y}\" y2=\"{y}\">");
            assert!(out.as_str().contains(&grid), "{y}: {}", out.as_str());
        }
    }
}
