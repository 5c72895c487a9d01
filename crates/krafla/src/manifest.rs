//! Manifests: what a user wrote, with the place where it stands, so that every complaint can name it.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use krafla_apiserver::schema::json::Node;
use krafla_apiserver::schema::yaml;
use serde_json::Value;

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

/// Reads all objects of all files, or says what is wrong with the first that can not be used. Nothing is applied before
/// everything has been read.
pub(crate) fn read_all(files: &[impl AsRef<Path>]) -> Result<Vec<Document>> {
    let mut found: Vec<Document> = Vec::new();
    for file in files.iter().map(|file| expand(file.as_ref())).collect::<Result<Vec<_>>>()?.iter().flatten() {
        let name = name_of(file);
        let text = read_text(file).with_context(|| format!("{name}: can not be read"))?;
        let documents = documents(&text);
        for (index, (n_lines_before, document)) in documents.iter().enumerate() {
            let place =
                if documents.len() == 1 { name.clone() } else { format!("{name}, document {}", index + 1) };
            let object = parse(document, *n_lines_before).map_err(|error| anyhow!("{place}: {error}"))?;
            for (place, object) in items(place, object) {
                found.push(Document::new(place, object)?);
            }
        }
    }
    if found.is_empty() {
        let named: Vec<_> = files.iter().map(|file| name_of(file.as_ref())).collect();
        let named = named.join(", ");
        bail!("no objects found in {named}: a manifest needs at least apiVersion, kind and metadata.name");
    }
    Ok(found)
}

/// The items of a list, as `kubectl get -o yaml` prints them, each with its place. Anything else stands for itself.
fn items(place: String, mut object: Value) -> Vec<(String, Value)> {
    let is_list =
        object.get("apiVersion") == Some(&"v1".into()) && object.get("kind") == Some(&"List".into());
    match object.get_mut("items").filter(|_| is_list).map(Value::take) {
        Some(Value::Array(items)) => items
            .into_iter()
            .enumerate()
            .map(|(index, item)| (format!("{place}, items[{index}]"), item))
            .collect(),
        Some(Value::Null) => Vec::new(),
        // What is no list of items is refused in its own name.
        Some(_) | None => vec![(place, object)],
    }
}

/// Reads a document. Where it can not be read, the line is that of the file.
fn parse(document: &str, n_lines_before: usize) -> Result<Value, String> {
    let parse = |text: &str| yaml::parse(text.as_bytes()).map(Node::into_value);
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

/// A directory stands for the manifests in it, in order of their names.
fn expand(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).with_context(|| format!("{}: can not be read", path.display()))?;
    let is_manifest = |file: &PathBuf| {
        let extension = file.extension().and_then(|extension| extension.to_str());
        matches!(extension, Some("yaml" | "yml" | "json"))
    };
    let mut files: Vec<PathBuf> =
        entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_manifest).collect();
    if files.is_empty() {
        bail!("{}: it holds no manifests: no file right in it ends in .yaml, .yml or .json", path.display());
    }
    files.sort();
    Ok(files)
}

/// The documents of a YAML stream that say something, each with the number of lines before it. JSON is YAML.
fn documents(text: &str) -> Vec<(usize, String)> {
    let mut documents = vec![(0, String::new())];
    for (index, line) in text.lines().enumerate() {
        if line == "---" {
            documents.push((index + 1, String::new()));
        } else if let Some(beginning) = line.strip_prefix("---").filter(|rest| rest.starts_with([' ', '\t']))
        {
            documents.push((index, format!("{beginning}\n")));
        } else if let Some((_, document)) = documents.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    let says_something = |(_, document): &(usize, String)| {
        document.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#'))
    };
    documents.into_iter().filter(says_something).collect()
}

fn name_of(file: &Path) -> String {
    if is_standard_input(file) { "standard input".to_owned() } else { file.display().to_string() }
}

fn is_standard_input(file: &Path) -> bool {
    file.as_os_str() == "-"
}

fn read_text(file: &Path) -> Result<String> {
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
    Ok(text)
}

impl Document {
    fn new(place: String, object: Value) -> Result<Document> {
        if !object.is_object() {
            bail!("{place}: it is no manifest: a map with apiVersion, kind, metadata and spec is expected");
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
        let error = read_all(&[&file]).err().map(|error| format!("{error:#}\n")).unwrap_or_default();
        expected.assert_eq(&error.replace(&format!("{}/", dir.path().display()), ""));
    }

    #[test]
    fn a_document_may_begin_on_the_line_that_divides() {
        let text = "--- {a: 1}\n---\t\nb: 2\n--- # the last one\nc: 3\n----\n";
        let expected = [(0, " {a: 1}\n"), (1, "\t\nb: 2\n"), (3, " # the last one\nc: 3\n----\n")];
        assert_eq!(documents(text), expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn the_items_of_a_list_are_objects_each_with_its_place() {
        let list =
            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n";
        check(list, expect![[""]]);
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
            job.yaml: it is no manifest: a map with apiVersion, kind, metadata and spec is expected
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
