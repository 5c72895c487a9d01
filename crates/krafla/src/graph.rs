//! `krafla graph`: the steps of a JobFlow with their states and durations, as text, SVG or Mermaid.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Result;
use krafla_api::volcano::JobPhase;
use krafla_api::{Kind, Time};
use krafla_apiserver::table::age;
use krafla_plan::Object;
use krafla_plan::jobflow::JobFlow;
use serde_json::{Value, json};

use crate::cli::everyday::{Graph, GraphFormat};
use crate::connection::Connection;
use crate::failure::Failure;
use crate::room::State;
use crate::screen::print;
use crate::steps::{self, StepView};
use crate::targets;

/// Prints the graph of a flow.
pub(crate) async fn graph(args: Graph) -> Result<ExitCode> {
    let connection = Connection::open(&args.cluster)?;
    let [target] = targets::find(&connection, std::slice::from_ref(&args.word))
        .await?
        .try_into()
        .map_err(|_| Failure::usage("name one flow: krafla graph jobflow/NAME"))?;
    if target.of.known() != Some(Kind::JobFlow) {
        return Err(Failure::usage(format!(
            "{} is not a JobFlow; fix: name one as jobflow/NAME",
            target.title
        ))
        .into());
    }
    let object = Object::decode(Kind::JobFlow, target.object.to_string().as_bytes());
    let unreadable = || Failure::Failed(format!("{} cannot be read", target.title));
    let flow = object.as_jobflow().ok_or_else(unreadable)?;
    let drawing = Drawing::new(&target.key.name, flow, Time(jiff::Timestamp::now()));
    print(&match args.output {
        GraphFormat::Text => drawing.text(),
        GraphFormat::Svg => drawing.svg(),
        GraphFormat::Mermaid => drawing.mermaid(),
        GraphFormat::Json => format!("{:#}\n", drawing.json()),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// A flow as it is drawn.
struct Drawing {
    name: String,
    phase: String,
    steps: Vec<Step>,
}

struct Step {
    view: StepView,
    /// Steps that come before it.
    targets: Vec<String>,
    /// How long its job has run; empty before it starts.
    duration: String,
}

impl Step {
    fn state(&self) -> String {
        match (&self.view.phase, self.view.waits_for.is_empty()) {
            (Some(phase), _) => phase.to_string(),
            (None, true) => "starts".to_owned(),
            (None, false) => "waits".to_owned(),
        }
    }

    /// State and duration.
    fn label(&self) -> String {
        let separator = if self.duration.is_empty() { "" } else { " " };
        format!("{}{separator}{}", self.state(), self.duration)
    }

    /// Fill and border of its box.
    fn colours(&self) -> (&'static str, &'static str) {
        match self.view.state() {
            State::Succeeded => ("#d7f5dd", "#2e7d32"),
            State::Failed => ("#fbdcdc", "#c62828"),
            State::Running => ("#dbeafe", "#1565c0"),
            State::Pending | State::Waiting => ("#f3f4f6", "#6b7280"),
        }
    }
}

impl Drawing {
    fn new(name: &str, flow: &JobFlow, now: Time) -> Drawing {
        let views = steps::steps(name, flow);
        let step = |view: StepView| {
            let job = format!("{name}-{}", view.name);
            let known = flow.status.job_status_list.iter().find(|known| known.name == job);
            let is_over = matches!(view.state(), State::Succeeded | State::Failed);
            let duration =
                known.and_then(|known| known.start_timestamp.map(|start| (start, known.end_timestamp)));
            let duration = match duration {
                Some((start, Some(end))) if is_over => age(Some(start), end),
                Some((start, _)) if !is_over && view.phase != Some(JobPhase::Pending) => {
                    age(Some(start), now)
                }
                _ => String::new(),
            };
            let targets = flow.spec.flows.iter().find(|flow| flow.name == view.name);
            let targets = targets.into_iter().flat_map(|flow| flow.targets()).map(str::to_owned).collect();
            Step { view, targets, duration }
        };
        let phase = flow.status.state.phase.to_string();
        let phase = if phase.is_empty() { "Pending".to_owned() } else { phase };
        Drawing { name: name.to_owned(), phase, steps: views.into_iter().map(step).collect() }
    }

    fn text(&self) -> String {
        let views: Vec<StepView> = self.steps.iter().map(|step| step.view.clone()).collect();
        let title = steps::title(&self.name, &self.phase, &views);
        let lines = steps::lines(&views).into_iter().zip(&self.steps).map(|(line, step)| {
            if step.duration.is_empty() { line } else { format!("{line} ({})", step.duration) }
        });
        std::iter::once(title).chain(lines).map(|line| line + "\n").collect()
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.steps.iter().position(|step| step.view.name == name)
    }

    /// Edges between steps that exist, by their numbers.
    fn edges(&self) -> Vec<(usize, usize)> {
        let of = |(to, step): (usize, &Step)| {
            step.targets.iter().filter_map(move |target| Some((self.index(target)?, to))).collect::<Vec<_>>()
        };
        self.steps.iter().enumerate().flat_map(of).collect()
    }

    fn mermaid(&self) -> String {
        let mut text =
            format!("---\ntitle: \"{}: {}\"\n---\nflowchart LR\n", escaped(&self.name), self.phase);
        for (index, step) in self.steps.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ =
                writeln!(text, "  s{index}[\"{}<br/>{}\"]", escaped(&step.view.name), escaped(&step.label()));
        }
        for (from, to) in self.edges() {
            let _ = writeln!(text, "  s{from} --> s{to}");
        }
        for (index, step) in self.steps.iter().enumerate() {
            let (fill, stroke) = step.colours();
            let _ = writeln!(text, "  style s{index} fill:{fill},stroke:{stroke}");
        }
        text
    }

    fn svg(&self) -> String {
        const BOX: (usize, usize) = (180, 44);
        const GAP: (usize, usize) = (60, 16);
        const MARGIN: usize = 12;
        const TITLE: usize = 28;
        // Steps of one depth stand below each other.
        let mut n_at_depth: Vec<usize> = Vec::new();
        let places: Vec<(usize, usize)> = self
            .steps
            .iter()
            .map(|step| {
                let depth = step.view.depth;
                if n_at_depth.len() <= depth {
                    n_at_depth.resize(depth.saturating_add(1), 0);
                }
                let row = n_at_depth.get_mut(depth).map_or(0, |n| {
                    *n = n.saturating_add(1);
                    n.saturating_sub(1)
                });
                (MARGIN + depth * (BOX.0 + GAP.0), MARGIN + TITLE + row * (BOX.1 + GAP.1))
            })
            .collect();
        let width = places.iter().map(|(x, _)| x + BOX.0).max().unwrap_or(BOX.0) + MARGIN;
        let height = places.iter().map(|(_, y)| y + BOX.1).max().unwrap_or(TITLE) + MARGIN;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n\
             <text x=\"{MARGIN}\" y=\"24\" font-weight=\"bold\">{}: {}</text>\n",
            escaped(&self.name),
            escaped(&self.phase)
        );
        for (from, to) in self.edges() {
            let (Some((x1, y1)), Some((x2, y2))) = (places.get(from), places.get(to)) else { continue };
            let (x1, y1, y2) = (x1 + BOX.0, y1 + BOX.1 / 2, y2 + BOX.1 / 2);
            let middle = x1 + GAP.0 / 2;
            let _ = writeln!(
                svg,
                "<path d=\"M {x1} {y1} C {middle} {y1}, {middle} {y2}, {x2} {y2}\" fill=\"none\" stroke=\"#6b7280\"/>"
            );
        }
        for (step, (x, y)) in self.steps.iter().zip(&places) {
            let (fill, stroke) = step.colours();
            let name = escaped(&crate::printable::cut_in_the_middle(&step.view.name, 22));
            let _ = writeln!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"6\" fill=\"{fill}\" stroke=\"{stroke}\"/>\n\
                 <text x=\"{tx}\" y=\"{ty}\">{name}</text>\n\
                 <text x=\"{tx}\" y=\"{ly}\" fill=\"{stroke}\" font-size=\"11\">{}</text>",
                BOX.0,
                BOX.1,
                escaped(&step.label()),
                tx = x + 10,
                ty = y + 19,
                ly = y + 35,
            );
        }
        svg + "</svg>\n"
    }

    fn json(&self) -> Value {
        let step = |step: &Step| {
            json!({
                "name": step.view.name, "state": step.state(), "dependsOn": step.targets,
                "duration": Some(&step.duration).filter(|duration| !duration.is_empty()),
            })
        };
        json!({ "name": self.name, "phase": self.phase, "steps": self.steps.iter().map(step).collect::<Vec<_>>() })
    }
}

/// A text within SVG, or within quotes of Mermaid.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn drawing() -> Drawing {
        let at = |seconds: u32| format!("2026-11-18T12:00:{seconds:02}Z");
        let job = |name: &str, state: &str, end: Value| json!({ "name": name, "state": state, "startTimestamp": at(0), "endTimestamp": end });
        let flow = json!({
            "metadata": { "name": "etl", "namespace": "ns" },
            "spec": { "flows": [
                { "name": "load" }, { "name": "train", "dependsOn": { "targets": ["load"] } },
                { "name": "report", "dependsOn": { "targets": ["train", "load"] } },
            ] },
            "status": { "state": { "phase": "Running" }, "jobStatusList": [
                job("etl-load", "Completed", json!(at(12))), job("etl-train", "Running", Value::Null),
            ] },
        });
        let now = serde_json::from_value(json!(at(42))).unwrap();
        let object = Object::decode(Kind::JobFlow, flow.to_string().as_bytes());
        Drawing::new("etl", object.as_jobflow().unwrap(), now)
    }

    #[test]
    fn a_flow_is_drawn_with_states_and_durations() {
        expect![[r#"
            etl: Running, 1 of 3 jobs completed
              █ load        Completed (12s)
                ▒ train     Running (42s)
                  ░ report  waits for train
        "#]]
        .assert_eq(&drawing().text());
        expect![[r#"
            ---
            title: "etl: Running"
            ---
            flowchart LR
              s0["load<br/>Completed 12s"]
              s1["train<br/>Running 42s"]
              s2["report<br/>waits"]
              s0 --> s1
              s1 --> s2
              s0 --> s2
              style s0 fill:#d7f5dd,stroke:#2e7d32
              style s1 fill:#dbeafe,stroke:#1565c0
              style s2 fill:#f3f4f6,stroke:#6b7280
        "#]]
        .assert_eq(&drawing().mermaid());
        expect![[r##"
            <svg xmlns="http://www.w3.org/2000/svg" width="684" height="96" font-family="sans-serif" font-size="13">
            <text x="12" y="24" font-weight="bold">etl: Running</text>
            <path d="M 192 62 C 222 62, 222 62, 252 62" fill="none" stroke="#6b7280"/>
            <path d="M 432 62 C 462 62, 462 62, 492 62" fill="none" stroke="#6b7280"/>
            <path d="M 192 62 C 222 62, 222 62, 492 62" fill="none" stroke="#6b7280"/>
            <rect x="12" y="40" width="180" height="44" rx="6" fill="#d7f5dd" stroke="#2e7d32"/>
            <text x="22" y="59">load</text>
            <text x="22" y="75" fill="#2e7d32" font-size="11">Completed 12s</text>
            <rect x="252" y="40" width="180" height="44" rx="6" fill="#dbeafe" stroke="#1565c0"/>
            <text x="262" y="59">train</text>
            <text x="262" y="75" fill="#1565c0" font-size="11">Running 42s</text>
            <rect x="492" y="40" width="180" height="44" rx="6" fill="#f3f4f6" stroke="#6b7280"/>
            <text x="502" y="59">report</text>
            <text x="502" y="75" fill="#6b7280" font-size="11">waits</text>
            </svg>
        "##]].assert_eq(&drawing().svg());
        assert_eq!(drawing().json()["steps"][1]["duration"], "42s");
    }

    #[test]
    fn names_do_not_leave_their_place() {
        assert_eq!(escaped("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
    }
}
