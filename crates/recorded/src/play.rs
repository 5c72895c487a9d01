//! Plays one case against the server.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Request;
use regex::{Captures, Regex};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::answers;
use crate::case::{Case, Operation, Step, Who};
use crate::client::{Answer, Client, Outcome, Reading, Watch};
use crate::comparable::Normaliser;
use crate::pointer;

/// How long anything that should happen may take. It is long because other work may keep the machine busy; a case
/// that passes waits for nothing.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait for events. It is less, because cases that are known to differ wait in vain.
const EVENTS_WITHIN: Duration = Duration::from_secs(15);
/// How long to look for events that should not come.
const SETTLE: Duration = Duration::from_millis(300);
/// How often to ask again for what must come about by itself.
const POLL_EVERY: Duration = Duration::from_millis(20);

static VARIABLE: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\{\{(\w+)\}\}").expect("a pattern"));

/// One case on its way.
struct Play {
    client: Client,
    variables: BTreeMap<String, Value>,
    normaliser: Normaliser,
    watches: BTreeMap<String, Watch>,
    namespaces: Vec<String>,
    /// Objects outside namespaces that the case has made.
    made: Vec<String>,
}

/// Plays all steps in namespaces of the case's own and returns their answers, in the form of the records. A step that
/// could not be played is the last.
pub async fn play(client: Client, case: &Case, steps: &[Step]) -> Outcome<Vec<Value>> {
    let unique = unique();
    let mut play = Play::new(client, case, &unique);
    if !case.is_bare {
        let namespace = format!("g-{unique}");
        if case.text().contains("{{ns}}-b") {
            play.namespaces.push(format!("{namespace}-b"));
        }
        play.namespaces.insert(0, namespace);
    }
    play.make_namespaces().await?;
    let answers = play.steps(steps).await;
    play.tidy().await;
    Ok(answers)
}

/// Plays all steps in a namespace that other cases share, and that stays. The client is handed back for the next case.
pub async fn play_in(unique: &str, client: Client, case: &Case, steps: &[Step]) -> (Client, Vec<Value>) {
    let mut play = Play::new(client, case, unique);
    let answers = play.steps(steps).await;
    play.tidy().await;
    (play.client, answers)
}

/// Eight letters that no other case has, and that no word contains.
pub fn unique() -> String {
    const LETTERS: &[u8] = b"bcdfghjkmnpqrstvwxz";
    let mut random = [0; 8];
    getrandom::fill(&mut random).expect("randomness");
    random.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect()
}

impl Play {
    fn new(client: Client, case: &Case, unique: &str) -> Play {
        let namespace = format!("g-{unique}");
        Play {
            client,
            normaliser: Normaliser::new(unique, case.text(), case.compares_managed_fields),
            variables: [("u".to_owned(), json!(unique)), ("ns".to_owned(), json!(namespace))].into(),
            watches: BTreeMap::new(),
            namespaces: Vec::new(),
            made: Vec::new(),
        }
    }

    /// The answers to all steps, up to the first that could not be played.
    async fn steps(&mut self, steps: &[Step]) -> Vec<Value> {
        let mut answers = Vec::new();
        for step in steps {
            match self.step(step).await {
                Ok(answer) => answers.push(answer),
                Err(error) => {
                    answers.push(json!({"error": error}));
                    break;
                }
            }
        }
        answers::rank_versions(&mut answers);
        answers
    }

    async fn make_namespaces(&mut self) -> Outcome<()> {
        for name in self.namespaces.clone() {
            let body = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            let answer = self.admin("POST", "/api/v1/namespaces", "application/json", body).await?;
            if answer.code != 201 {
                return Err(format!("namespace {name}: {}", String::from_utf8_lossy(&answer.body)));
            }
            self.wait_until_furnished(&name).await?;
        }
        Ok(())
    }

    /// Waits for what the server puts into every namespace: if that came in the middle of a case, a quota would count it
    /// now and then.
    async fn wait_until_furnished(&mut self, namespace: &str) -> Outcome<()> {
        let last = format!("/api/v1/namespaces/{namespace}/configmaps/kube-root-ca.crt");
        let request = Request::builder().uri(last).body(Bytes::new()).map_err(|error| error.to_string())?;
        match self.ask_until(Who::Admin, &request, |answer| answer.code == 200).await? {
            (_, true) => Ok(()),
            (_, false) => Err(format!("namespace {namespace}: nothing was put into it")),
        }
    }

    /// Asks until the answer is as it should be. Returns the last answer, and whether it is.
    async fn ask_until(
        &mut self,
        who: Who,
        request: &Request<Bytes>,
        is_so: impl Fn(&Answer) -> bool,
    ) -> Outcome<(Answer, bool)> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let answer = self.client.ask(who, request.clone()).await?;
            let is_so = is_so(&answer);
            if is_so || Instant::now() > deadline {
                return Ok((answer, is_so));
            }
            tokio::time::sleep(POLL_EVERY).await;
        }
    }

    async fn admin(&mut self, method: &str, path: &str, content_type: &str, body: Value) -> Outcome<Answer> {
        let request = Request::builder().method(method).uri(path).header("Content-Type", content_type);
        let request = request.body(Bytes::from(body.to_string())).map_err(|error| error.to_string())?;
        self.client.ask(Who::Admin, request).await
    }

    /// Removes what the case has made; what another step has removed already is no matter.
    async fn tidy(&mut self) {
        self.watches.clear();
        for path in std::mem::take(&mut self.made).into_iter().rev() {
            let options = json!({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0});
            let Ok(answer) = self.admin("DELETE", &path, "application/json", options).await else { continue };
            let text = String::from_utf8_lossy(&answer.body);
            if answer.code == 200
                && text.contains("\"finalizers\"")
                && !text.contains("customresourcecleanup")
            {
                let patch = json!({"metadata": {"finalizers": null}});
                let _ = self.admin("PATCH", &path, "application/merge-patch+json", patch).await;
            }
        }
        for name in std::mem::take(&mut self.namespaces) {
            let path = format!("/api/v1/namespaces/{name}");
            let _ = self.admin("DELETE", &path, "application/json", json!({})).await;
        }
    }

    async fn step(&mut self, step: &Step) -> Outcome<Value> {
        match step.op {
            Operation::Request => self.request(step).await,
            Operation::Poll => self.poll(step).await,
            Operation::Watch => self.watch(step).await,
            Operation::Read => self.read(step).await,
            Operation::Close => {
                self.watches.remove(&step.watch);
                Ok(json!({}))
            }
        }
    }

    async fn request(&mut self, step: &Step) -> Outcome<Value> {
        let request = self.built(step)?;
        let path = request.uri().path().to_owned();
        let answer = self.client.ask(step.who, request).await?;
        let (shown, document) = answers::comparable(step, &answer, &mut self.normaliser);
        self.save(step, document.as_ref());
        let is_dry = step.path.contains("dryRun=All");
        let is_outside_namespaces = !path.contains("/namespaces/") && answer.code == 201 && !is_dry;
        let name = document.as_ref().and_then(|document| document.pointer("/metadata/name")?.as_str());
        match (step.method.as_str(), name) {
            ("POST", Some(name)) if is_outside_namespaces => self.made.push(format!("{path}/{name}")),
            ("PATCH", _) if is_outside_namespaces => self.made.push(path),
            _ => {}
        }
        Ok(shown)
    }

    async fn poll(&mut self, step: &Step) -> Outcome<Value> {
        let until = self.filled(step.until.as_ref().unwrap_or(&Value::Null));
        let has_come = |answer: &Answer| {
            let document = serde_json::from_slice(&answer.body).unwrap_or(Value::Null);
            holds(&until, answer.code, &document)
        };
        let request = self.built(step)?;
        let (answer, has_come) = self.ask_until(step.who, &request, has_come).await?;
        let (mut shown, document) = answers::comparable(step, &answer, &mut self.normaliser);
        self.save(step, document.as_ref());
        if !has_come {
            shown["never"] = json!(format!("condition not reached: {until}"));
        }
        Ok(shown)
    }

    async fn watch(&mut self, step: &Step) -> Outcome<Value> {
        match self.client.watch(step.who, self.built(step)?).await? {
            Err(answer) => Ok(answers::comparable(step, &answer, &mut self.normaliser).0),
            Ok(watch) => {
                let content_type = watch.headers.get("content-type").and_then(|value| value.to_str().ok());
                let shown = json!({"code": 200, "headers": {"Content-Type": content_type}});
                self.watches.insert(step.watch.clone(), watch);
                Ok(shown)
            }
        }
    }

    async fn read(&mut self, step: &Step) -> Outcome<Value> {
        let watch = self.watches.get_mut(&step.watch).ok_or_else(|| format!("no watch {}", step.watch))?;
        let reading = Reading {
            count: step.count,
            until_closed: step.closed,
            keeps_bookmarks: step.bookmarks,
            patience: EVENTS_WITHIN,
            settle: step.settle.map_or(SETTLE, Duration::from_secs_f64),
        };
        let (events, has_ended) = watch.read(&reading).await;
        let mut shown = json!({"events": answers::events(step, &events, &mut self.normaliser)});
        if has_ended || step.closed {
            shown["closed"] = json!(has_ended);
        }
        Ok(shown)
    }

    fn save(&mut self, step: &Step, document: Option<&Value>) {
        let Some(document) = document else { return };
        for (name, at) in &step.save {
            self.variables.insert(name.clone(), pointer::at(document, at));
        }
    }

    fn built(&self, step: &Step) -> Outcome<Request<Bytes>> {
        let body = self.body(step)?;
        let mut headers: BTreeMap<String, String> =
            [("accept".to_owned(), "application/json".to_owned())].into();
        if body.is_some() {
            headers.insert("content-type".to_owned(), "application/json".to_owned());
        }
        for (name, value) in &step.headers {
            match value {
                Some(value) => headers.insert(name.to_lowercase(), self.filled_text(value)),
                None => headers.remove(&name.to_lowercase()),
            };
        }
        let mut request = Request::builder().method(step.method.as_str()).uri(self.filled_text(&step.path));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        request.body(body.unwrap_or_default()).map_err(|error| error.to_string())
    }

    fn body(&self, step: &Step) -> Outcome<Option<Bytes>> {
        if let Some(text) = &step.text {
            return Ok(Some(Bytes::from(self.filled_text(text))));
        }
        if let Some(base64) = &step.base64 {
            return Ok(Some(Bytes::from(STANDARD.decode(base64).map_err(|error| error.to_string())?)));
        }
        if let Some(name) = &step.base {
            let mut document = self
                .variables
                .get(name)
                .cloned()
                .ok_or_else(|| format!("needs {name}, which an earlier step did not give"))?;
            for (at, value) in &step.set {
                pointer::put(&mut document, at, self.filled(value));
            }
            step.unset.iter().for_each(|at| pointer::remove(&mut document, at));
            return Ok(Some(Bytes::from(document.to_string())));
        }
        let Some(body) = &step.body else { return Ok(None) };
        if let Some(depth) = step.nest {
            let text = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
            return Ok(Some(Bytes::from(text)));
        }
        // Variables are names: filled into the text as it stands, the order of fields is the record's.
        let text = spaced(&self.filled_text(body.get()));
        let Some(pad) = &step.pad else { return Ok(Some(Bytes::from(text))) };
        let mut document: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        pointer::put(&mut document, &pad.at, json!("x".repeat(pad.bytes)));
        Ok(Some(Bytes::from(document.to_string())))
    }

    fn filled(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => json!(self.filled_text(text)),
            Value::Array(items) => items.iter().map(|item| self.filled(item)).collect(),
            Value::Object(map) => {
                map.iter().map(|(key, value)| (self.filled_text(key), self.filled(value))).collect()
            }
            other => other.clone(),
        }
    }

    fn filled_text(&self, text: &str) -> String {
        VARIABLE
            .replace_all(text, |found: &Captures<'_>| match self.variables.get(&found[1]) {
                Some(value) => pointer::plain(value),
                None => found[0].to_owned(),
            })
            .into_owned()
    }
}

/// JSON with a space after each comma and colon, as it was sent when the answers were recorded: some quote it.
fn spaced(json: &str) -> String {
    let mut text = String::with_capacity(json.len() + json.len() / 4);
    let (mut is_in_string, mut is_escaped) = (false, false);
    for character in json.chars() {
        text.push(character);
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' if is_in_string => is_escaped = true,
            '"' => is_in_string = !is_in_string,
            ',' | ':' if !is_in_string => text.push(' '),
            _ => {}
        }
    }
    text
}

/// Whether what a poll waits for has come about.
fn holds(until: &Value, code: u16, document: &Value) -> bool {
    let has_code = until.get("code").is_none_or(|wanted| *wanted == json!(code));
    let Some(at) = until.get("at").and_then(Value::as_str) else { return has_code };
    let found = pointer::at(document, at);
    let is_as_wanted = match until.get("is") {
        Some(wanted) => found == *wanted,
        None => found.is_null() != until.get("exists").and_then(Value::as_bool).unwrap_or(true),
    };
    has_code && is_as_wanted
}
