//! Manifests: what a user wrote, with the place where it stands, so that every complaint can name it.

use std::fs::DirEntry;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use krafla_schema::decode::{Finding, duplicates};
use krafla_schema::yaml;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::screen::tell;

/// A file larger than this is no manifest.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// One object that a user wrote. Only a cluster knows whether there is such a kind.
pub(crate) struct Document {
    /// File and document, for messages.
    pub(crate) place: String,
    pub(crate) api_version: String,
    pub(crate) kind: String,
    pub(crate) object: Value,
}

/// Mistakes that are named; of more only their number is.
const MISTAKES_NAMED_MAX: usize = 20;

/// So many entries of directories are looked at to find out whether manifests are left out. It is only a remark.
const ENTRIES_LOOKED_AT_MAX: usize = 10_000;

/// Reads all objects of all files, or says what is wrong with those that cannot be used. Nothing is applied before
/// everything has been read. A directory stands for the manifests right in it, or for all below it if `recursive`.
pub(crate) fn read_all(files: &[impl AsRef<Path>], recursive: bool) -> Result<Vec<Document>> {
    let mut found: Vec<Document> = Vec::new();
    let mut mistakes: Vec<String> = Vec::new();
    let expanded = files.iter().map(|file| expand(file.as_ref(), recursive)).collect::<Result<Vec<_>>>()?;
    for file in expanded.iter().flatten() {
        let name = name_of(file);
        let text = match read_text(file).with_context(|| format!("{name}: cannot read it")) {
            Ok(text) => text,
            Err(error) => {
                mistakes.push(format!("{error:#}"));
                continue;
            }
        };
        let documents = documents(&text);
        for (index, (n_lines_before, document)) in documents.iter().enumerate() {
            let place =
                if documents.len() == 1 { name.clone() } else { format!("{name}, document {}", index + 1) };
            match parse(document, *n_lines_before) {
                Err(error) => mistakes.push(format!("{place}: {error}")),
                Ok(object) => {
                    for (place, object) in items(place, object) {
                        match Document::new(place, object) {
                            Ok(document) => found.push(document),
                            Err(error) => mistakes.push(format!("{error:#}")),
                        }
                    }
                }
            }
        }
    }
    none_of(mistakes)?;
    if found.is_empty() {
        let named: Vec<_> = files.iter().map(|file| name_of(file.as_ref())).collect();
        let named = named.join(", ");
        bail!("no objects found in {named}: a manifest needs at least apiVersion, kind and metadata.name");
    }
    Ok(found)
}

/// An error that names all mistakes, if there are any.
pub(crate) fn none_of(mistakes: Vec<String>) -> Result<()> {
    let n_more = mistakes.len().saturating_sub(MISTAKES_NAMED_MAX);
    match mistakes.as_slice() {
        [] => Ok(()),
        [only] => Err(anyhow!("{only}")),
        all => {
            let named = all.iter().take(MISTAKES_NAMED_MAX).map(|mistake| format!("\n  {mistake}"));
            let more = if n_more == 0 { String::new() } else { format!("\n  and {n_more} more") };
            Err(anyhow!("{} mistakes:{}{more}", all.len(), named.collect::<String>()))
        }
    }
}

/// The items of a list, as `kubectl get -o yaml` prints them, each with its place. Those of a list of one kind, a JobList, are
/// of that kind if they do not say. Anything else stands for itself.
fn items(place: String, mut object: Value) -> Vec<(String, Value)> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let Some(kind) = kind.strip_suffix("List").filter(|_| !api_version.is_empty()) else {
        return vec![(place, object)];
    };
    match object.get_mut("items").map(Value::take) {
        Some(Value::Array(items)) => {
            let typed = |mut item: Value| {
                let says_nothing = ["apiVersion", "kind"].iter().all(|field| item.get(*field).is_none());
                if let Some(fields) = item.as_object_mut().filter(|_| says_nothing && !kind.is_empty()) {
                    fields.insert("apiVersion".to_owned(), api_version.as_str().into());
                    fields.insert("kind".to_owned(), kind.into());
                }
                item
            };
            let numbered = items.into_iter().enumerate();
            numbered
                .flat_map(|(index, item)| self::items(format!("{place}, items[{index}]"), typed(item)))
                .collect()
        }
        Some(Value::Null) => Vec::new(),
        // What is no list of items is refused in its own name.
        Some(_) | None => vec![(place, object)],
    }
}

/// Reads a document. Where it can not be read, the line is that of the file.
pub(crate) fn parse(document: &str, n_lines_before: usize) -> Result<Value, String> {
    let parse = |text: &str| {
        let node = yaml::read(text.as_bytes())?;
        // The last would count, and nobody means that.
        match duplicates(&node).first() {
            Some(Finding::Duplicate(path)) => Err(format!("{path} is given twice: remove one of them")),
            _ => Ok(node.into_value()),
        }
    };
    parse(document).map_err(|error| {
        let in_its_place = "\n".repeat(n_lines_before) + document;
        in_plain_words(&parse(&in_its_place).err().unwrap_or(error))
    })
}

/// What the reader of YAML says, as users would.
fn in_plain_words(error: &str) -> String {
    if error.contains("budget breached") {
        return "it is too large for one manifest, or its aliases make it so: divide it into several files"
            .to_owned();
    }
    error.to_owned()
}

/// A directory stands for the manifests in it, in order of their names. Says of one that has more of them further below that
/// these are left out.
fn expand(path: &Path, recursive: bool) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let name = path.display();
    let (mut files, mut left_out) = (Vec::new(), Vec::new());
    gather(path, recursive, &mut files, &mut left_out)?;
    let mut n_left = ENTRIES_LOOKED_AT_MAX;
    let left_out = left_out.iter().find(|dir| holds_manifests(dir, &mut n_left));
    match (files.is_empty(), left_out) {
        (true, Some(dir)) => bail!(
            "{name}: it contains no manifests itself, but {} does: use that one, or read all of them with -R",
            dir.display()
        ),
        (true, None) => {
            bail!("{name}: it contains no manifests: no file in it ends in .yaml, .yml or .json")
        }
        (false, Some(dir)) => {
            tell(&format!(
                "krafla: {name}: subdirectories with manifests, such as {}, are skipped; -R reads them\n",
                dir.display()
            ));
        }
        (false, None) => {}
    }
    Ok(files)
}

/// The manifests of a directory, with those of the directories in it if `recursive`, and else these directories.
fn gather(dir: &Path, recursive: bool, files: &mut Vec<PathBuf>, left_out: &mut Vec<PathBuf>) -> Result<()> {
    for entry in entries(dir).with_context(|| format!("{}: cannot read it", dir.display()))? {
        match what(&entry) {
            Entry::Manifest => files.push(entry.path()),
            Entry::Directory if recursive => gather(&entry.path(), recursive, files, left_out)?,
            Entry::Directory => left_out.push(entry.path()),
            Entry::Other => {}
        }
    }
    Ok(())
}

/// Whether a manifest is found in a directory or below it among the first `n_left` entries.
fn holds_manifests(dir: &Path, n_left: &mut usize) -> bool {
    entries(dir).unwrap_or_default().iter().any(|entry| {
        *n_left = n_left.saturating_sub(1);
        *n_left > 0
            && match what(entry) {
                Entry::Manifest => true,
                Entry::Directory => holds_manifests(&entry.path(), n_left),
                Entry::Other => false,
            }
    })
}

/// What is in a directory, in order of the names.
fn entries(dir: &Path) -> std::io::Result<Vec<DirEntry>> {
    let mut entries: Vec<DirEntry> = std::fs::read_dir(dir)?.filter_map(Result::ok).collect();
    entries.sort_by_key(DirEntry::file_name);
    Ok(entries)
}

/// What something in a directory is to us.
enum Entry {
    Manifest,
    Directory,
    Other,
}

/// Directories whose names begin with a dot, such as that of `krafla up`, hold nothing to run, and links to directories may lead
/// around in a ring.
fn what(entry: &DirEntry) -> Entry {
    let path = entry.path();
    let is_link = entry.file_type().is_ok_and(|file_type| file_type.is_symlink());
    let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
    let extension = path.extension().and_then(|extension| extension.to_str());
    match extension {
        _ if path.is_dir() => {
            if is_link || is_hidden {
                Entry::Other
            } else {
                Entry::Directory
            }
        }
        Some("yaml" | "yml" | "json") => Entry::Manifest,
        _ => Entry::Other,
    }
}

/// The documents of a YAML stream that say something, each with the number of lines before it. JSON is YAML, but its documents
/// need nothing between them.
pub(crate) fn documents(text: &str) -> Vec<(usize, String)> {
    let mut documents = vec![(0, String::new())];
    for (index, line) in text.lines().enumerate() {
        if is_marker(line, "...") || line == "---" {
            documents.push((index + 1, String::new()));
        } else if is_marker(line, "---") {
            documents.push((index, format!("{}\n", line.trim_start_matches('-'))));
        } else if let Some((_, document)) = documents.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    // A line of directives before the first `---`, such as `%YAML 1.2`, says nothing that matters here.
    let says_something = |(_, document): &(usize, String)| {
        document.lines().any(|line| !line.starts_with('%') && !is_blank(line.trim()))
    };
    documents.into_iter().flat_map(one_by_one).filter(says_something).collect()
}

/// Whether a line begins or ends a document: what may stand behind the marker is divided from it.
fn is_marker(line: &str, marker: &str) -> bool {
    line.strip_prefix(marker).is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}

fn is_blank(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

/// The JSON documents that follow each other. What is no JSON stays together.
fn one_by_one((n_lines_before, text): (usize, String)) -> Vec<(usize, String)> {
    if !text.trim_start().starts_with('{') {
        return vec![(n_lines_before, text)];
    }
    let (mut documents, mut n_lines, mut rest) = (Vec::new(), n_lines_before, text.as_str());
    loop {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        let is_json = matches!(values.next(), Some(Ok(_)));
        let (first, others) = rest.split_at_checked(values.byte_offset()).unwrap_or((rest, ""));
        if !is_json || others.lines().map(str::trim).all(is_blank) {
            documents.push((n_lines, rest.to_owned()));
            return documents;
        }
        documents.push((n_lines, first.to_owned()));
        n_lines += first.matches('\n').count();
        rest = others;
    }
}

fn name_of(file: &Path) -> String {
    if is_standard_input(file) { "standard input".to_owned() } else { file.display().to_string() }
}

fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

pub(crate) fn read_text(file: &Path) -> Result<String> {
    let mut text = String::new();
    let reader: Box<dyn Read> = if is_standard_input(file) {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file)?)
    };
    let read = reader.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    let n_bytes = read.map_err(|error| match error.kind() {
        ErrorKind::InvalidData => anyhow!("it is not text: a manifest is YAML or JSON in UTF-8"),
        _ => error.into(),
    })?;
    if n_bytes as u64 > FILE_BYTES_MAX {
        bail!("larger than {} MiB", FILE_BYTES_MAX >> 20);
    }
    // Some editors begin every file with a mark of its encoding.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

impl Document {
    fn new(place: String, object: Value) -> Result<Document> {
        if !object.is_object() {
            bail!("{place}: it is not a manifest: expected a map with apiVersion, kind, metadata and spec");
        }
        let field = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (api_version, kind) = (field("apiVersion"), field("kind"));
        if api_version.is_empty() || kind.is_empty() {
            bail!(
                "{place}: apiVersion and kind are required; a Volcano Job has `apiVersion: batch.volcano.sh/v1alpha1` and `kind: Job`"
            );
        }
        if object.get("metadata").is_some_and(|metadata| !metadata.is_object()) {
            bail!("{place}: metadata must be a map with at least a name");
        }
        for field in ["name", "namespace"] {
            let value = object.pointer(&format!("/metadata/{field}"));
            if let Some(value @ (Value::Bool(_) | Value::Number(_))) = value {
                bail!(
                    "{place}: metadata.{field}: YAML reads it as {value} and not as text: put it between quotes"
                );
            }
        }
        Ok(Document { place, api_version, kind, object })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// What is said about a file with this text.
    fn check(text: &str, expected: Expect) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("job.yaml");
        std::fs::write(&file, text).unwrap();
        let error = read_all(&[&file], false).err().map(|error| format!("{error:#}\n")).unwrap_or_default();
        expected.assert_eq(&error.replace(&format!("{}/", dir.path().display()), ""));
    }

    #[test]
    fn a_directory_stands_for_its_manifests_and_for_those_below_it_if_that_is_asked() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["b", "b/deep", ".krafla", "empty", "notes", "odd.yaml"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        for name in ["a.yaml", "c.json", "b/deep/1.yml", "b/0.yaml", ".krafla/x.yaml", "notes/n.txt"] {
            std::fs::write(path(name), "").unwrap();
        }
        std::os::unix::fs::symlink(dir.path(), path("b/ring")).unwrap();
        let found = |name: &str, recursive| {
            let found = expand(&path(name), recursive).map_err(|error| error.to_string())?;
            let relative = |file: PathBuf| file.strip_prefix(dir.path()).unwrap().display().to_string();
            Ok::<_, String>(found.into_iter().map(relative).collect::<Vec<_>>())
        };
        assert_eq!(found("", false).unwrap(), ["a.yaml", "c.json"]);
        assert_eq!(found("", true).unwrap(), ["a.yaml", "b/0.yaml", "b/deep/1.yml", "c.json"]);
        assert!(holds_manifests(&path("b"), &mut 100) && !holds_manifests(&path("notes"), &mut 100));
        assert!(!holds_manifests(&path("b"), &mut 0));
        assert!(found("notes", true).unwrap_err().contains("it contains no manifests: no file"));
        std::fs::rename(path("b/deep"), path("empty/deep")).unwrap();
        let refusal = found("empty", false).unwrap_err();
        assert!(refusal.contains("empty/deep does: use that one, or read all of them with -R"), "{refusal}");
    }

    #[test]
    fn all_mistakes_of_a_directory_are_named_at_once() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("a.yaml"), "a: 1\nb: [\n").unwrap();
        std::fs::write(
            dir.path().join("b.yaml"),
            "kind: Job\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\n",
        )
        .unwrap();
        let error = read_all(&[dir.path()], false).err().unwrap().to_string();
        let lines: Vec<&str> = error.lines().collect();
        assert_eq!(lines[0], "2 mistakes:");
        assert!(lines[1].contains("a.yaml: ") && lines[1].contains("line"), "{error}");
        assert!(lines[2].contains("b.yaml, document 1: "), "{error}");
        let many = (0..30).map(|n| n.to_string()).collect();
        assert!(none_of(many).unwrap_err().to_string().ends_with("\n  and 10 more"));
    }

    #[test]
    fn a_document_may_begin_on_the_line_that_divides() {
        let text = "--- {a: 1}\n---\t\nb: 2\n--- # the last one\nc: 3\n----\n";
        let expected = [(0, " {a: 1}\n"), (1, "\t\nb: 2\n"), (3, " # the last one\nc: 3\n----\n")];
        assert_eq!(documents(text), expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn directives_and_ends_of_documents_are_understood() {
        let text = "%YAML 1.2\n# begins\n---\na: 1\n...\n%TAG ! !\n---\nb: 2\n... # over\nc: 3\n";
        let expected = [(3, "a: 1\n"), (7, "b: 2\n"), (9, "c: 3\n")];
        assert_eq!(documents(text), expected.map(|(line, text)| (line, text.to_owned())));
        // In the middle of a document they are something else.
        let text = "a: |\n  ...\n  %b\n";
        assert_eq!(documents(text), [(0, text.to_owned())]);
    }

    #[test]
    fn json_documents_may_follow_each_other() {
        let check = |text: &str, expected: &[(usize, &str)]| {
            let expected: Vec<_> = expected.iter().map(|(line, text)| (*line, (*text).to_owned())).collect();
            assert_eq!(documents(text), expected, "{text}");
        };
        check("{\"a\":\n1}\n{\"b\": 2} {}\n", &[(0, "{\"a\":\n1}"), (1, "\n{\"b\": 2}"), (2, " {}\n")]);
        check("{\"a\": 1}{\"b\": ]}\n", &[(0, "{\"a\": 1}"), (0, "{\"b\": ]}\n")]);
        check("{\"a\": 1} # one\n# two\n", &[(0, "{\"a\": 1} # one\n# two\n")]);
        check("{a: 1,\n b: 2}\n", &[(0, "{a: 1,\n b: 2}\n")]);
    }

    #[test]
    fn the_items_of_a_list_are_objects_each_with_its_place() {
        let list =
            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n";
        check(list, expect![[""]]);
        let kinds = |list: &str| {
            let list = krafla_schema::yaml::parse(list.as_bytes()).unwrap().into_value();
            let found = items("f".to_owned(), list);
            let of =
                |(place, item): (String, Value)| format!("{place}: {} {}", item["apiVersion"], item["kind"]);
            found.into_iter().map(of).collect::<Vec<_>>()
        };
        assert_eq!(
            kinds("{apiVersion: batch/v1, kind: JobList, items: [{spec: {}}, {apiVersion: v1, kind: Pod}]}"),
            [r#"f, items[0]: "batch/v1" "Job""#, r#"f, items[1]: "v1" "Pod""#]
        );
        assert_eq!(
            kinds("{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: PodList, items: [{}]}]}"),
            [r#"f, items[0], items[0]: "v1" "Pod""#]
        );
        assert_eq!(kinds("{apiVersion: example.com/v1, kind: Wishlist, items: [1]}").len(), 1);
        assert_eq!(kinds("{apiVersion: example.com/v1, kind: PriceList, prices: [1]}").len(), 1);
        check(
            &format!("{list}- {{kind: ConfigMap, metadata: {{name: b}}}}\n"),
            expect![[r#"
                job.yaml, items[1]: apiVersion and kind are required; a Volcano Job has `apiVersion: batch.volcano.sh/v1alpha1` and `kind: Job`
            "#]],
        );
    }

    #[test]
    fn a_complaint_names_the_file_the_document_and_the_remedy() {
        check(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\nkind: Job\n",
            expect![[r#"
            job.yaml, document 2: apiVersion and kind are required; a Volcano Job has `apiVersion: batch.volcano.sh/v1alpha1` and `kind: Job`
        "#]],
        );
        check(
            "apiVersion: v1\nkind: Pod\nmetadata: 7\n",
            expect![[r#"
            job.yaml: metadata must be a map with at least a name
        "#]],
        );
        check(
            "apiVersion: v1\nkind: Pod\nmetadata: {name: on}\n",
            expect![[r#"
                job.yaml: metadata.name: YAML reads it as true and not as text: put it between quotes
            "#]],
        );
        check(
            "a: [\n",
            expect![[r#"
            job.yaml: yaml: unclosed bracket '[' at line 1, column 4
        "#]],
        );
        check(
            "apiVersion: v1\nkind: Pod\n---\n---\na: 1\nb: [\n",
            expect![[r#"
            job.yaml, document 2: yaml: unclosed bracket '[' at line 6, column 4
        "#]],
        );
        check(
            "just some words\n",
            expect![[r#"
            job.yaml: it is not a manifest: expected a map with apiVersion, kind, metadata and spec
        "#]],
        );
        check(
            &"- [1, 2, 3, 4, 5, 6, 7, 8, 9]\n".repeat(100_000),
            expect![[r#"
            job.yaml: it is too large for one manifest, or its aliases make it so: divide it into several files
        "#]],
        );
        check(
            "# nothing\n",
            expect![[r#"
            no objects found in job.yaml: a manifest needs at least apiVersion, kind and metadata.name
        "#]],
        );
    }
}
