//! `krafla get`: lists of objects, and objects in full.

mod rows;
mod watch;

use std::cmp::{Ordering, Reverse};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Result;
use futures_util::future::try_join_all;
use krafla_api::{Key, Kind, Scope, Served, Time};
use krafla_apiserver::table::Path;
use krafla_client::{Request, collection_path, encoded, object_path};
use krafla_schema::yaml_out;
use serde_json::{Value, json};

use self::rows::{Making, Page};
use crate::cli::everyday::Get;
use crate::cli::target::Format;
use crate::connection::Connection;
use crate::failure::Failure;
use crate::layout;
use crate::resources::{self, Word};
use crate::screen::{self, print, tell};

pub(crate) use self::rows::{Column, Row};

/// Objects of a page. Pages keep the memory of the server small; each costs a round trip.
const PAGE: usize = 2500;
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

/// Lists objects.
pub(crate) async fn get(args: Get) -> Result<ExitCode> {
    let order = args.sort_by.as_deref().map(Order::parse).transpose()?;
    let words = if args.words.is_empty() { vec!["jobs".to_owned()] } else { args.words.clone() };
    let words = resources::parse(&words)?;
    let has_names = words.iter().any(|word| word.name.is_some());
    if has_names && args.all_namespaces {
        return Err(
            Failure::usage("--all-namespaces lists objects, and you name one; fix: use --namespace").into()
        );
    }
    if has_names && (args.selector.is_some() || args.field_selector.is_some()) {
        return Err(Failure::usage(
            "--selector and --field-selector choose from all objects, and you name one",
        )
        .into());
    }
    let connection = Connection::open(&args.cluster)?;
    let sections = sections(&connection, words).await?;
    if args.watch && sections.len() > 1 {
        return Err(
            Failure::usage("--watch follows one kind, or jobs of both kinds; fix: name one kind").into()
        );
    }
    let lister = Lister { connection: &connection, args: &args, order };
    let mut sheets = Vec::new();
    let mut missing = Vec::new();
    for section in &sections {
        let sheet = lister.sheet(section, &mut missing).await?;
        sheets.push(sheet);
    }
    match args.output {
        Some(Format::Json | Format::Yaml) => lister.print_objects(&sections, &sheets)?,
        Some(Format::Name) => print(&sheets.iter().map(Sheet::names).collect::<String>())?,
        None | Some(Format::Wide) => lister.print_tables(&sections, &sheets, missing.is_empty())?,
    }
    for message in &missing {
        tell(&format!("krafla: {message}\n"));
    }
    if args.watch
        && let (Some(section), Some(sheet)) = (sections.first(), sheets.into_iter().next())
    {
        lister.watch(section, sheet).await?;
    }
    Ok(if missing.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(Failure::NotFound(String::new()).code())
    })
}

/// Objects of one word of the command line: of one kind, or of both kinds of jobs.
pub(crate) struct Section {
    /// As the user wrote it.
    word: String,
    kinds: Vec<Arc<Served>>,
    /// Empty for all.
    names: Vec<String>,
}

async fn sections(connection: &Connection, words: Vec<Word>) -> Result<Vec<Section>, Failure> {
    let mut sections: Vec<Section> = Vec::new();
    for Word { kind, name } in words {
        if let Some(section) = sections.iter_mut().find(|it| it.word == kind && name.is_some()) {
            section.names.extend(name);
            continue;
        }
        let kinds = resources::resolve(connection, &kind).await?.into_iter().map(Arc::new).collect();
        sections.push(Section { word: kind, kinds, names: name.into_iter().collect() });
    }
    Ok(sections)
}

/// How rows are ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Order {
    /// By a column, without regard to case.
    Column(String),
    Path(Path),
}

impl Order {
    fn parse(text: &str) -> Result<Order, Failure> {
        if !text.starts_with(['.', '{', '$']) {
            return Ok(Order::Column(text.to_uppercase()));
        }
        let wrong = || {
            Failure::usage(format!("--sort-by: {text:?} is not a path such as .metadata.name, nor a column"))
        };
        Path::parse(text).map(Order::Path).ok_or_else(wrong)
    }
}

/// Rows with their columns.
#[derive(Default)]
pub(crate) struct Sheet {
    columns: Vec<Column>,
    entries: Vec<Entry>,
    /// Whether a column says of which kind each object is.
    has_kind: bool,
    /// The revisions of the lists, by kind.
    revisions: Vec<(Arc<Served>, String)>,
}

struct Entry {
    of: Arc<Served>,
    row: Row,
}

/// What of a sheet is shown.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) is_wide: bool,
    pub(crate) has_namespace: bool,
    /// What stands before names, where several lists follow each other.
    pub(crate) kind_in_name: Option<String>,
    pub(crate) has_header: bool,
}

impl Sheet {
    /// Adds a page. `has_kind` says that objects of several kinds share the sheet.
    pub(crate) fn add(&mut self, of: &Served, page: Page, has_kind: bool) {
        let of = Arc::new(of.clone());
        self.has_kind = has_kind;
        if self.columns.is_empty() {
            self.columns = page.columns;
        }
        self.revisions.push((of.clone(), page.revision));
        self.entries.extend(page.rows.into_iter().map(|row| Entry { of: of.clone(), row }));
    }

    fn keep(&mut self, queue: Option<&str>, phases: &[String]) {
        self.entries.retain(|entry| is_wanted(&entry.row, queue, phases));
    }

    fn sort(&mut self, order: Option<&Order>) -> Result<(), Failure> {
        match order {
            None => self
                .entries
                .sort_by(|a, b| (&a.row.namespace, &a.row.name).cmp(&(&b.row.namespace, &b.row.name))),
            Some(Order::Path(path)) => {
                let value = |entry: &Entry| path.first(&entry.row.object).cloned().unwrap_or(Value::Null);
                self.entries.sort_by(|a, b| compare_values(&value(a), &value(b)));
            }
            Some(Order::Column(name)) if name == "NAMESPACE" => {
                self.entries.sort_by(|a, b| a.row.namespace.cmp(&b.row.namespace));
            }
            Some(Order::Column(name)) if name == "AGE" => {
                self.entries.sort_by_key(|entry| Reverse(entry.row.created))
            }
            Some(Order::Column(name)) if name == "KIND" => {
                self.entries.sort_by(|a, b| a.of.kind.cmp(&b.of.kind))
            }
            Some(Order::Column(name)) => {
                let Some(index) = self.columns.iter().position(|column| column.name == *name) else {
                    let names: Vec<String> =
                        self.columns.iter().map(|column| column.name.to_lowercase()).collect();
                    return Err(Failure::usage(format!(
                        "--sort-by: there is no column {:?}; columns: {}",
                        name.to_lowercase(),
                        names.join(", ")
                    )));
                };
                let cell = |entry: &Entry| entry.row.cells.get(index).cloned().unwrap_or_default();
                self.entries.sort_by(|a, b| compare_cells(&cell(a), &cell(b)));
            }
        }
        Ok(())
    }

    fn headers(&self, shown: &Shown) -> Vec<String> {
        let mut headers = Vec::new();
        if shown.has_namespace {
            headers.push("NAMESPACE".to_owned());
        }
        if self.has_kind {
            headers.push("KIND".to_owned());
        }
        headers
            .extend(self.columns.iter().filter(|it| shown.is_wide || !it.is_wide).map(|it| it.name.clone()));
        headers
    }

    fn cells(&self, entry: &Entry, shown: &Shown) -> Vec<String> {
        let mut cells = Vec::new();
        if shown.has_namespace {
            cells.push(entry.row.namespace.clone());
        }
        if self.has_kind {
            cells.push(resources::word_of(&entry.of));
        }
        let visible =
            self.columns.iter().zip(&entry.row.cells).filter(|(it, _)| shown.is_wide || !it.is_wide);
        cells.extend(visible.map(|(column, cell)| match &shown.kind_in_name {
            Some(kind) if column.name == "NAME" => format!("{kind}/{cell}"),
            _ => cell.clone(),
        }));
        cells
    }

    /// The text of a table for a terminal of so many columns.
    pub(crate) fn render(&self, shown: &Shown, width: Option<usize>) -> String {
        let rows: Vec<Vec<String>> = self.entries.iter().map(|entry| self.cells(entry, shown)).collect();
        let text = layout::table(&self.headers(shown), &rows, width);
        if shown.has_header {
            text
        } else {
            text.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap_or_default()
        }
    }

    /// The revision at which a kind was listed; none if the cluster does not serve it.
    fn revision(&self, of: &Served) -> Option<&str> {
        let mut of_kind = self.revisions.iter().filter(|(kind, _)| **kind == *of);
        of_kind.next_back().map(|(_, revision)| revision.as_str())
    }

    fn names(&self) -> String {
        let name = |entry: &Entry| format!("{}\n", resources::qualified(&entry.of, &entry.row.name));
        self.entries.iter().map(name).collect()
    }
}

/// Whether a row passes the filters.
fn is_wanted(row: &Row, queue: Option<&str>, phases: &[String]) -> bool {
    let is_of_queue = queue.is_none_or(|queue| row.queue == queue);
    is_of_queue && (phases.is_empty() || phases.iter().any(|phase| phase.eq_ignore_ascii_case(&row.phase)))
}

/// Cells in the order of their numbers, or else of their letters.
pub(crate) fn compare_cells(a: &str, b: &str) -> Ordering {
    let number = |cell: &str| cell.split('/').next().and_then(|part| part.parse::<f64>().ok());
    match (number(a), number(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => a.cmp(b),
    }
}

/// Values of one field; those that are missing come first.
fn compare_values(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        (Value::Number(a), Value::Number(b)) => {
            a.as_f64().unwrap_or_default().total_cmp(&b.as_f64().unwrap_or_default())
        }
        (Value::String(a), Value::String(b)) => a.cmp(b),
        (a, b) => a.to_string().cmp(&b.to_string()),
    }
}

/// Reads what a command line asks for.
pub(crate) struct Lister<'a> {
    connection: &'a Connection,
    args: &'a Get,
    order: Option<Order>,
}

impl Lister<'_> {
    fn making(&self) -> Making {
        let is_whole = matches!(self.args.output, Some(Format::Json | Format::Yaml));
        let keeps_objects = is_whole || matches!(self.order, Some(Order::Path(_)));
        Making { now: Time(jiff::Timestamp::now()), keeps_objects }
    }

    /// The namespace to ask; empty for all.
    fn namespace(&self) -> &str {
        if self.args.all_namespaces { "" } else { &self.connection.namespace }
    }

    /// The query of a list, besides the page.
    fn query(&self, name: Option<&str>) -> String {
        let mut query = String::new();
        let fields = [self.args.field_selector.clone(), name.map(|name| format!("metadata.name={name}"))];
        let fields: Vec<String> = fields.into_iter().flatten().collect();
        if !fields.is_empty() {
            query += &format!("&fieldSelector={}", encoded(&fields.join(",")));
        }
        if let Some(labels) = &self.args.selector {
            query += &format!("&labelSelector={}", encoded(labels));
        }
        // A table has the metadata of each object; its queue is not there.
        let needs_object = self.making().keeps_objects || self.args.queue.is_some();
        query + if needs_object { "&includeObject=Object" } else { "" }
    }

    /// All objects of a section, filtered and in order. Names that do not exist are `missing`.
    async fn sheet(&self, section: &Section, missing: &mut Vec<String>) -> Result<Sheet, Failure> {
        let mut sheet = Sheet::default();
        let has_kind = section.kinds.len() > 1;
        if section.names.is_empty() {
            let listed = try_join_all(section.kinds.iter().map(|of| self.list(of))).await?;
            let is_served = listed.iter().any(Option::is_some);
            for (of, pages) in section.kinds.iter().zip(listed) {
                for page in pages.into_iter().flatten() {
                    sheet.add(of, page, has_kind);
                }
            }
            if let (false, Some(of)) = (is_served, section.kinds.first()) {
                return Err(not_served(of));
            }
        }
        for name in &section.names {
            let n_before = sheet.entries.len();
            for of in &section.kinds {
                if let Some(page) = self.one(of, name).await? {
                    sheet.add(of, page, has_kind);
                }
            }
            if sheet.entries.len() == n_before {
                missing.push(missing_object(&section.word, &section.kinds, name, &self.connection.namespace));
            }
        }
        sheet.keep(self.args.queue.as_deref(), &self.args.phase);
        sheet.sort(self.order.as_ref())?;
        Ok(sheet)
    }

    /// All pages of a kind; none if the cluster does not serve it.
    async fn list(&self, of: &Served) -> Result<Option<Vec<Page>>, Failure> {
        let path = collection_path(of, self.namespace());
        let mut pages: Vec<Page> = Vec::new();
        let mut rest = String::new();
        loop {
            let path = format!("{path}?limit={PAGE}{}{rest}", self.query(None));
            let body = match self.connection.read(&self.request(of, path)).await {
                Err(Failure::NotFound(_)) => return Ok(None),
                body => body?,
            };
            let page = self.page(of, &body)?;
            rest = format!("&continue={}", encoded(&page.rest));
            let is_last = page.rest.is_empty();
            pages.push(page);
            if is_last {
                return Ok(Some(pages));
            }
        }
    }

    /// One object as a page; none if it does not exist.
    async fn one(&self, of: &Served, name: &str) -> Result<Option<Page>, Failure> {
        let key = Key::new(self.namespace(), name);
        let query = self.query(None);
        let path = format!("{}?{}", object_path(of, &key), query.trim_start_matches('&'));
        let body = match self.connection.read(&self.request(of, path)).await {
            Err(Failure::NotFound(_)) => return Ok(None),
            body => body?,
        };
        if !rows::has_own_columns(of) {
            return self.page(of, &body).map(Some);
        }
        let row = rows::own_row(of, &body, self.making()).map_err(unreadable)?;
        let revision = row.revision.clone();
        Ok(Some(Page { columns: rows::own_columns(of), rows: vec![row], revision, rest: String::new() }))
    }

    fn request(&self, of: &Served, path: String) -> Request {
        let request = Request::get(path);
        if rows::has_own_columns(of) { request } else { request.accepting(TABLE) }
    }

    fn page(&self, of: &Served, body: &[u8]) -> Result<Page, Failure> {
        let making = self.making();
        let page = if rows::has_own_columns(of) {
            rows::own_page(of, body, making)
        } else {
            let keeps_objects = making.keeps_objects || self.args.queue.is_some();
            rows::table_page(body, Making { keeps_objects, ..making })
        };
        page.map_err(unreadable)
    }

    fn print_tables(&self, sections: &[Section], sheets: &[Sheet], all_found: bool) -> Result<()> {
        let width = screen::terminal_width();
        let shown = |section: &Section, sheet: &Sheet| {
            let kind = section.kinds.first().map(|of| resources::word_of(of));
            Shown {
                is_wide: self.args.output == Some(Format::Wide),
                has_namespace: self.args.all_namespaces
                    && section.kinds.iter().any(|of| of.scope == Scope::Namespaced),
                kind_in_name: kind.filter(|_| sections.len() > 1 && !sheet.has_kind),
                has_header: !self.args.no_headers,
            }
        };
        let full = sections.iter().zip(sheets).filter(|(_, sheet)| !sheet.entries.is_empty());
        let texts: Vec<String> =
            full.map(|(section, sheet)| sheet.render(&shown(section, sheet), width)).collect();
        if texts.is_empty() && all_found {
            tell(&self.nothing(sections));
        }
        print(&texts.join("\n"))
    }

    /// What is said of an empty list.
    fn nothing(&self, sections: &[Section]) -> String {
        let words: Vec<&str> = sections.iter().map(|section| section.word.as_str()).collect();
        let args = self.args;
        let is_filtered = args.selector.is_some()
            || args.field_selector.is_some()
            || args.queue.is_some()
            || !args.phase.is_empty();
        let which = if is_filtered { " with these properties" } else { "" };
        let is_namespaced = sections.iter().any(|it| it.kinds.iter().any(|of| of.scope == Scope::Namespaced));
        let place = match (is_namespaced, args.all_namespaces) {
            (true, false) => format!(" in namespace {}", self.connection.namespace),
            _ => String::new(),
        };
        format!("no {}{which}{place}\n", words.join(" or "))
    }

    fn print_objects(&self, sections: &[Section], sheets: &[Sheet]) -> Result<()> {
        let objects: Vec<Value> = sheets.iter().flat_map(|sheet| &sheet.entries).map(whole).collect();
        let is_one = matches!(sections, [section] if section.names.len() == 1) && objects.len() == 1;
        let document = match objects.into_iter().next().filter(|_| is_one) {
            Some(object) => object,
            None => {
                let all = sheets.iter().flat_map(|sheet| &sheet.entries).map(whole);
                json!({ "apiVersion": "v1", "kind": "List", "items": all.collect::<Vec<Value>>() })
            }
        };
        print(&written(&document, self.args.output))
    }
}

/// An object as it is printed in full.
fn whole(entry: &Entry) -> Value {
    let mut object = entry.row.object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), entry.of.api_version().into());
        fields.insert("kind".to_owned(), entry.of.kind.as_str().into());
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}

/// A document in a format for programs.
pub(crate) fn written(document: &Value, format: Option<Format>) -> String {
    if format == Some(Format::Yaml) { yaml_out::write(document) } else { format!("{document:#}\n") }
}

/// A cluster does not have a kind.
pub(crate) fn not_served(of: &Served) -> Failure {
    let group = if of.group.is_empty() { String::new() } else { format!(".{}", of.group) };
    let is_volcano = of.known().is_some_and(|kind| Kind::VOLCANO.contains(&kind));
    let fix = if is_volcano {
        "; fix: install Volcano's kinds with `krafla crds | kubectl apply --server-side -f -`"
    } else {
        ""
    };
    Failure::NotFound(format!("the cluster does not serve {}{group}{fix}", of.plural))
}

/// An object does not exist.
pub(crate) fn missing_object(word: &str, kinds: &[Arc<Served>], name: &str, namespace: &str) -> String {
    let is_namespaced = kinds.iter().any(|of| of.scope == Scope::Namespaced);
    let (place, flag) =
        if is_namespaced { (format!(" in namespace {namespace}"), " -A") } else { (String::new(), "") };
    format!("{word}/{name} does not exist{place}; fix: list the names with `krafla get {word}{flag}`")
}

fn unreadable(error: serde_json::Error) -> Failure {
    Failure::Unreachable(format!("cannot read the answer of the server: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(rows: &[(&str, &str, &str)]) -> Sheet {
        let columns =
            ["NAME", "PHASE", "RUNNING"].map(|name| Column { name: name.to_owned(), is_wide: false });
        let row = |(name, phase, running): &(&str, &str, &str)| Row {
            name: (*name).to_owned(),
            phase: (*phase).to_owned(),
            queue: "q".to_owned(),
            cells: vec![(*name).to_owned(), (*phase).to_owned(), (*running).to_owned()],
            object: json!({ "status": { "n": running.len() } }),
            ..Row::default()
        };
        let page = Page { columns: columns.into(), rows: rows.iter().map(row).collect(), ..Page::default() };
        let mut sheet = Sheet::default();
        sheet.add(&Served::from(Kind::Pod), page, false);
        sheet
    }

    fn names(sheet: &Sheet) -> Vec<&str> {
        sheet.entries.iter().map(|entry| entry.row.name.as_str()).collect()
    }

    #[test]
    fn rows_are_ordered_by_numbers_letters_or_paths() {
        let mut all = sheet(&[("b", "Running", "10"), ("a", "Failed", "9"), ("c", "Pending", "100")]);
        all.sort(None).unwrap();
        assert_eq!(names(&all), ["a", "b", "c"]);
        all.sort(Some(&Order::parse("running").unwrap())).unwrap();
        assert_eq!(names(&all), ["a", "b", "c"]);
        all.sort(Some(&Order::parse("Phase").unwrap())).unwrap();
        assert_eq!(names(&all), ["a", "c", "b"]);
        all.sort(Some(&Order::parse("{.status.n}").unwrap())).unwrap();
        assert_eq!(names(&all), ["a", "b", "c"]);
        let wrong = all.sort(Some(&Order::parse("size").unwrap())).unwrap_err().to_string();
        assert_eq!(wrong, "--sort-by: there is no column \"size\"; columns: name, phase, running");
        assert!(Order::parse(".a[").is_err());
    }

    #[test]
    fn filters_keep_what_has_the_queue_and_one_of_the_phases() {
        let all = || sheet(&[("b", "Running", "1"), ("a", "Failed", "2"), ("c", "Pending", "3")]);
        let kept = |queue: Option<&str>, phases: &[&str]| {
            let mut sheet = all();
            sheet.keep(queue, &phases.iter().map(|phase| (*phase).to_owned()).collect::<Vec<_>>());
            names(&sheet).join(" ")
        };
        assert_eq!(kept(None, &["running", "Pending"]), "b c");
        assert_eq!(kept(Some("q"), &[]), "b a c");
        assert_eq!(kept(Some("other"), &[]), "");
    }

    #[test]
    fn a_missing_object_is_named_with_a_remedy() {
        let kinds = |kind: Kind| vec![Arc::new(Served::from(kind))];
        assert_eq!(
            missing_object("job", &kinds(Kind::VcJob), "a", "ml"),
            "job/a does not exist in namespace ml; fix: list the names with `krafla get job -A`"
        );
        assert_eq!(
            missing_object("queue", &kinds(Kind::Queue), "a", "ml"),
            "queue/a does not exist; fix: list the names with `krafla get queue`"
        );
    }
}
