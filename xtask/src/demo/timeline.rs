//! From events and triggers to a timeline in milliseconds.

use serde_json::Value;

/// One thing that happened.
struct Moment {
    at: f64,
    what: String,
}

/// Milliseconds since midnight of the day, of a time such as `2026-01-01T10:15:30.123456Z`. The
/// demo's times are all of one clock; a run across midnight only looks odd.
fn millis(time: &str) -> Option<f64> {
    let (_, clock) = time.trim_end_matches('Z').split_once('T')?;
    let mut parts = clock.split(':').map(str::parse::<f64>);
    let (hours, minutes, seconds) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    Some(((hours * 60.0 + minutes) * 60.0 + seconds) * 1000.0)
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The time of day of a commit, from milliseconds since 1970.
fn commit_time(event: &Value) -> Option<f64> {
    let since_1970 = event.pointer("/commit/commitTime")?.as_f64()?;
    Some(since_1970 % 86_400_000.0)
}

fn moments(events: &[(&str, Value)], triggers: &[Value]) -> Vec<Moment> {
    let mut moments = Vec::new();
    let mut add = |at: Option<f64>, what: String| moments.extend(at.map(|at| Moment { at, what }));
    for (asset, event) in events {
        let table = asset.rsplit('/').next().unwrap_or(asset);
        let snapshot = text(event, "/commit/snapshotId");
        add(
            commit_time(event),
            format!("commit    {table} snapshot {snapshot} ({})", text(event, "/commit/commitKind")),
        );
        let outcome = text(event, "/outcome");
        add(millis(text(event, "/recordedAt")), format!("state     {table} at snapshot {snapshot}: {outcome}"));
    }
    for trigger in triggers {
        let target = text(trigger, "/target").rsplit('/').next().unwrap_or_default();
        let key: String = text(trigger, "/key").chars().take(8).collect();
        add(millis(text(trigger, "/claimedAt")), format!("verdict   {target} READY, trigger {key} claimed"));
        let passages = trigger["log"].as_array().into_iter().flatten();
        for passage in passages.filter(|passage| passage["arrow"] == "succeed") {
            let instance = trigger["instance"].as_i64().map_or_else(|| "?".to_owned(), |id| id.to_string());
            add(millis(text(passage, "/at")), format!("started   {target}, workflow instance {instance}"));
        }
    }
    moments.sort_by(|one, other| one.at.total_cmp(&other.at));
    moments
}

/// What happened when.
pub(super) fn timeline(events: &[(&str, Value)], triggers: &[Value]) -> String {
    let moments = moments(events, triggers);
    let first = moments.first().map_or(0.0, |moment| moment.at);
    let mut lines = vec!["\nTimeline, in milliseconds since the first commit:".to_owned()];
    lines.extend(moments.iter().map(|moment| format!("{:>9.0}  {}", moment.at - first, moment.what)));
    lines.join("\n")
}

/// How many, and how long from the commit that made each target ready to its started workflow.
pub(super) fn summary(events: &[(&str, Value)], triggers: &[Value]) -> String {
    let mut lines = vec![format!(
        "\nSummary: {} commits seen, {} workflows started, each once; a redelivered notification started none.",
        events.len(),
        triggers.len()
    )];
    for trigger in triggers.iter().rev() {
        let target = text(trigger, "/target").rsplit('/').next().unwrap_or_default();
        let ranges = trigger["ranges"].as_array().into_iter().flatten();
        let ready = ranges.filter_map(|range| {
            let is_taken = |event: &&(&str, Value)| {
                event.0 == text(range, "/key") && text(&event.1, "/commit/snapshotId") == text(range, "/to/snapshotId")
            };
            events.iter().find(is_taken).and_then(|(_, event)| commit_time(event))
        });
        let ready = ready.fold(0.0, f64::max);
        let started = trigger["log"].as_array().into_iter().flatten().find(|passage| passage["arrow"] == "succeed");
        if let Some(started) = started.and_then(|passage| millis(text(passage, "/at"))) {
            lines.push(format!("  {target}: started {:.0} ms after the commit that made it ready", started - ready));
        }
    }
    lines.join("\n")
}
