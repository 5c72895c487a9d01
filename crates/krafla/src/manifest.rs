//! Manifests: what a user wrote, with the place where it stands, so that every complaint can name it.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use krafla_api::{Kind, Scope};
use krafla_apiserver::registry::Registry;
use krafla_apiserver::schema::spelling::{closest, unknown_fields};
use serde_json::Value;

/// A file larger than this is no manifest.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// One object that a user wrote.
pub(crate) struct Manifest {
    /// File and document, for messages.
    pub(crate) place: String,
    pub(crate) kind: Kind,
    pub(crate) object: Value,
}

/// Reads all objects of all files, or says what is wrong with the first that can not be used. Nothing is applied before
/// everything has been read. What names no namespace is meant to be in `namespace`.
pub(crate) fn read_all(files: &[impl AsRef<Path>], namespace: &str) -> Result<Vec<Manifest>> {
    let mut manifests: Vec<Manifest> = Vec::new();
    for file in files.iter().map(|file| expand(file.as_ref())).collect::<Result<Vec<_>>>()?.iter().flatten() {
        let name =
            if is_standard_input(file) { "standard input".to_owned() } else { file.display().to_string() };
        let text = read_text(file).with_context(|| format!("{name}: can not be read"))?;
        let documents = documents(&text);
        for (index, document) in documents.iter().enumerate() {
            let place =
                if documents.len() == 1 { name.clone() } else { format!("{name}, document {}", index + 1) };
            let object = krafla_apiserver::schema::yaml::parse(document.as_bytes());
            let object = object.map_err(|error| anyhow!("{place}: {}", in_plain_words(&error)))?;
            for (place, object) in items(place, object.into_value()) {
                manifests.push(Manifest::new(place, object, namespace)?);
            }
        }
    }
    if manifests.is_empty() {
        let named: Vec<_> = files.iter().map(|file| file.as_ref().display().to_string()).collect();
        let named = named.join(", ");
        bail!("no objects found in {named}: a manifest needs at least apiVersion, kind and metadata.name");
    }
    refuse_doubles(&manifests)?;
    Ok(manifests)
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

/// Of two objects with one name, the second would be taken for a change of the first, and nobody means that.
fn refuse_doubles(manifests: &[Manifest]) -> Result<()> {
    let mut places: BTreeMap<(Kind, &str, &str), &str> = BTreeMap::new();
    for Manifest { place, kind, object } in manifests {
        let field = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
        let (namespace, name) = (field("/metadata/namespace"), field("/metadata/name"));
        // What has no name yet gets one of its own.
        let earlier = if name.is_empty() { None } else { places.insert((*kind, namespace, name), place) };
        if let Some(earlier) = earlier {
            let kind = kind.info().kind;
            bail!(
                "{place}: metadata.name: {kind} {name} is in {earlier} already: give one of them another name"
            );
        }
    }
    Ok(())
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
        bail!("{}: it holds no manifests: no file in it ends in .yaml, .yml or .json", path.display());
    }
    files.sort();
    Ok(files)
}

/// The documents of a YAML stream that say something. JSON is YAML.
fn documents(text: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in text.lines() {
        if line == "---" {
            documents.push(String::new());
        } else if let Some(beginning) = line.strip_prefix("---").filter(|rest| rest.starts_with([' ', '\t']))
        {
            documents.push(format!("{beginning}\n"));
        } else if let Some(document) = documents.last_mut() {
            document.push_str(line);
            document.push('\n');
        }
    }
    let says_something = |document: &String| {
        document.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#'))
    };
    documents.into_iter().filter(says_something).collect()
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

impl Manifest {
    fn new(place: String, mut object: Value, namespace: &str) -> Result<Manifest> {
        if !object.is_object() {
            bail!("{place}: it is no manifest: a map with apiVersion, kind, metadata and spec is expected");
        }
        let field = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
        let (api_version, kind_name) = (field("apiVersion"), field("kind"));
        if api_version.is_empty() || kind_name.is_empty() {
            bail!(
                "{place}: apiVersion and kind are required; a Volcano Job has `apiVersion: batch.volcano.sh/v1alpha1` and `kind: Job`"
            );
        }
        let Some(kind) = Kind::of_manifest(api_version, kind_name) else {
            bail!(
                "{place}: {api_version} {kind_name} is not a kind that krafla run makes{}",
                suggestion(api_version, kind_name)
            );
        };
        let unknown: Vec<String> =
            unknown_fields(kind, &object).iter().map(|field| field.to_string()).collect();
        if !unknown.is_empty() {
            bail!("{place}: {}", unknown.join("; "));
        }
        if kind.info().scope == Scope::Namespaced {
            let metadata = object
                .as_object_mut()
                .map(|object| object.entry("metadata").or_insert_with(|| Value::Object(Default::default())));
            let Some(metadata) = metadata.and_then(Value::as_object_mut) else {
                bail!("{place}: metadata must be a map with at least a name");
            };
            metadata.entry("namespace").or_insert_with(|| namespace.into());
        }
        Ok(Manifest { place, kind, object })
    }
}

/// Where such a kind can be made, or the one that was probably meant: misspelt, or of another group.
fn suggestion(api_version: &str, kind_name: &str) -> String {
    let is_served = Registry::builtin().table().of_manifest(api_version, kind_name).is_some();
    let closest = || closest(kind_name, Kind::ALL.into_iter().map(|kind| kind.info().kind));
    let Some(meant) = (!is_served).then(closest).flatten() else {
        return "; make it with kubectl in a `krafla up`, which serves more kinds, and run the jobs there"
            .to_owned();
    };
    // Where two kinds have one name, it is Volcano's that people run here.
    let mut of_that_name = Kind::ALL.into_iter().map(Kind::info).filter(|info| info.kind == meant);
    of_that_name.next().map_or_else(String::new, |info| {
        format!("; did you mean `apiVersion: {}` and `kind: {}`?", info.api_version(), info.kind)
    })
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
        let error =
            read_all(&[&file], "default").err().map(|error| format!("{error:#}\n")).unwrap_or_default();
        expected.assert_eq(&error.replace(&format!("{}/", dir.path().display()), ""));
    }

    #[test]
    fn a_document_may_begin_on_the_line_that_divides() {
        let text = "--- {a: 1}\n---\t\nb: 2\n--- # the last one\nc: 3\n----\n";
        assert_eq!(documents(text), [" {a: 1}\n", "\t\nb: 2\n", " # the last one\nc: 3\n----\n"]);
    }

    #[test]
    fn the_items_of_a_list_are_objects_each_with_its_place() {
        let list =
            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n";
        check(list, expect![[""]]);
        check(
            &format!("{list}- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: b}}, dta: {{}}}}\n"),
            expect![[r#"
            job.yaml, items[1]: unknown field dta, did you mean data?
        "#]],
        );
    }

    #[test]
    fn a_kind_that_only_the_server_knows_is_not_taken_for_another() {
        check(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a}\n",
            expect![[r#"
                job.yaml: rbac.authorization.k8s.io/v1 Role is not a kind that krafla run makes; make it with kubectl in a `krafla up`, which serves more kinds, and run the jobs there
            "#]],
        );
    }

    #[test]
    fn a_complaint_names_the_file_the_document_and_the_remedy() {
        check(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: batch/v1alpha1\nkind: job\n",
            expect![[r#"
                job.yaml, document 2: batch/v1alpha1 job is not a kind that krafla run makes; did you mean `apiVersion: batch.volcano.sh/v1alpha1` and `kind: Job`?
            "#]],
        );
        check(
            "apiVersion: batch.volcano.sh/v1alpha1\nkind: Jobb\n",
            expect![[r#"
                job.yaml: batch.volcano.sh/v1alpha1 Jobb is not a kind that krafla run makes; did you mean `apiVersion: batch.volcano.sh/v1alpha1` and `kind: Job`?
            "#]],
        );
        check(
            "kind: Job\n",
            expect![[r#"
            job.yaml: apiVersion and kind are required; a Volcano Job has `apiVersion: batch.volcano.sh/v1alpha1` and `kind: Job`
        "#]],
        );
        check(
            "apiVersion: v1\nkind: Pod\nmetadata: 7\n",
            expect![[r#"
            job.yaml: metadata must be a map with at least a name
        "#]],
        );
        check(
            "apiVersion: v1\nkind: Pod\nmetadata: {nmae: a}\nspec: {containers: [{comand: [a]}]}\n",
            expect![[r#"
            job.yaml: unknown field metadata.nmae, did you mean name?; unknown field spec.containers[0].comand, did you mean command?
        "#]],
        );
        check(
            "a: [\n",
            expect![[r#"
            job.yaml: yaml: unclosed bracket '[' at line 1, column 4
        "#]],
        );
        check(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
            expect![[r#"
                job.yaml, document 2: metadata.name: ConfigMap a is in job.yaml, document 1 already: give one of them another name
            "#]],
        );
        check(
            "apiVersion: v1\nkind: Sparkle\n",
            expect![[r#"
            job.yaml: v1 Sparkle is not a kind that krafla run makes; make it with kubectl in a `krafla up`, which serves more kinds, and run the jobs there
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
