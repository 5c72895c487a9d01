//! A pod's volumes: which directory each one is, and which files are in it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use krafla_api::Kind;

use super::fields::{Facts, field, resource};
use super::sources::{Data, Missing, Sources};
use crate::pod::{DownwardApi, KeyToPath, Pod, Volume};

/// Kubernetes' default for files from ConfigMaps, Secrets and fields.
const FILE_MODE: u32 = 0o644;
/// Tokens are for the pod's processes alone, which run as whoever runs the node.
const TOKEN_MODE: u32 = 0o600;

/// What is said of a volume that will never be made.
pub const NO_SUCH_KIND: &str = "is of a kind that this node does not support";

/// By this, and by being empty, files are known that are there for another volume to be mounted on.
pub(crate) const MOUNT_POINT_MODE: u32 = 0o444;

/// One volume of a pod, ready to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct Desired {
    /// Its name in the pod.
    pub name: String,
    /// Where it is on this machine.
    pub path: PathBuf,
    /// What is to be there.
    pub content: Content,
    /// The group that it belongs to, if the pod asks for one and krafla runs as root.
    pub group: Option<u32>,
}

/// What a volume holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// A directory that exists, or is made empty.
    Directory,
    /// The same, in which every user of the pod may write.
    Scratch,
    /// A path of the machine, and what must be there or is made (`Directory`, `FileOrCreate`, ...).
    OfHost(String),
    /// Exactly these files, by their path below the volume.
    Files(BTreeMap<PathBuf, File>),
}

/// One file of a volume.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// What it says.
    pub bytes: Vec<u8>,
    /// Its permissions.
    pub mode: u32,
}

/// Where volumes are kept.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// The pod's own volumes; they go with it.
    pub of_pod: &'a Path,
    /// Those of claims, by name; they stay.
    pub of_claims: &'a BTreeMap<String, PathBuf>,
    /// The pod's own volumes in memory, where the machine has such a place; they go with it.
    pub in_memory: Option<&'a Path>,
}

impl Places<'_> {
    /// Where a volume of the pod's own is.
    pub fn own(&self, volume: &Volume) -> PathBuf {
        let wants_memory = volume.empty_dir.as_ref().is_some_and(|empty| empty.medium == "Memory");
        self.in_memory.filter(|_| wants_memory).unwrap_or(self.of_pod).join(&volume.name)
    }
}

/// All volumes of a pod, or what those lack that can not be made.
pub fn desired(
    pod: &Pod,
    places: Places<'_>,
    facts: &Facts,
    sources: &Sources,
) -> Vec<Result<Desired, Missing>> {
    pod.spec.volumes.iter().map(|volume| desired_volume(pod, volume, places, facts, sources)).collect()
}

fn desired_volume(
    pod: &Pod,
    volume: &Volume,
    places: Places<'_>,
    facts: &Facts,
    sources: &Sources,
) -> Result<Desired, Missing> {
    let (path, content) = if let Some(host) = &volume.host_path {
        (PathBuf::from(&host.path), Content::OfHost(host.path_type.clone()))
    } else if let Some(claim) = &volume.persistent_volume_claim {
        let missing =
            || Missing::Object { kind: Kind::PersistentVolumeClaim, name: claim.claim_name.clone() };
        (places.of_claims.get(&claim.claim_name).ok_or_else(missing)?.clone(), Content::Directory)
    } else {
        let path = places.own(volume);
        match files(pod, volume, facts, sources)? {
            Some(files) => (path, Content::Files(files)),
            None if volume.empty_dir.is_some() => (path, Content::Scratch),
            None => {
                let message = format!(
                    "volume {:?} {NO_SUCH_KIND}: use emptyDir, hostPath, configMap, secret, \
                     downwardAPI, projected or persistentVolumeClaim",
                    volume.name
                );
                return Err(Missing::Field(message));
            }
        }
    };
    let group = pod.volume_group().filter(|_| rustix::process::geteuid().is_root());
    Ok(Desired { name: volume.name.clone(), path, content, group })
}

/// The files of a volume that is made of files.
fn files(
    pod: &Pod,
    volume: &Volume,
    facts: &Facts,
    sources: &Sources,
) -> Result<Option<BTreeMap<PathBuf, File>>, Missing> {
    let mut files = Files { pod, facts, sources, found: BTreeMap::new() };
    if let Some(map) = &volume.config_map {
        files.of_object((Kind::ConfigMap, &map.name), &map.items, map.default_mode, map.optional)?;
    } else if let Some(secret) = &volume.secret {
        files.of_object(
            (Kind::Secret, secret.name()),
            &secret.items,
            secret.default_mode,
            secret.optional,
        )?;
    } else if let Some(downward) = &volume.downward_api {
        files.of_fields(downward, None)?;
    } else if let Some(projected) = &volume.projected {
        let mode = projected.default_mode;
        for source in &projected.sources {
            if let Some(map) = &source.config_map {
                files.of_object((Kind::ConfigMap, &map.name), &map.items, mode, map.optional)?;
            }
            if let Some(secret) = &source.secret {
                files.of_object((Kind::Secret, secret.name()), &secret.items, mode, secret.optional)?;
            }
            if let Some(downward) = &source.downward_api {
                files.of_fields(downward, mode)?;
            }
            if let Some(wanted) = &source.service_account_token
                && let Some(token) = sources.token(wanted)
            {
                files.add(&wanted.path, token.as_bytes().to_vec(), Some(TOKEN_MODE))?;
            }
        }
    } else {
        return Ok(None);
    }
    Ok(Some(files.found))
}

struct Files<'a> {
    pod: &'a Pod,
    facts: &'a Facts,
    sources: &'a Sources,
    found: BTreeMap<PathBuf, File>,
}

impl Files<'_> {
    /// All keys of a ConfigMap or Secret, or the listed ones under the listed paths.
    fn of_object(
        &mut self,
        (kind, name): (Kind, &str),
        items: &[KeyToPath],
        mode: Option<u32>,
        optional: Option<bool>,
    ) -> Result<(), Missing> {
        let Some(data) = self.sources.all(kind, name, optional)? else { return Ok(()) };
        if items.is_empty() {
            return data.iter().try_for_each(|(key, bytes)| self.add(key, bytes.clone(), mode));
        }
        for item in items {
            if let Some(bytes) = key_of(data, (kind, name), &item.key, optional)? {
                self.add(&item.path, bytes.clone(), item.mode.or(mode))?;
            }
        }
        Ok(())
    }

    fn of_fields(&mut self, downward: &DownwardApi, mode: Option<u32>) -> Result<(), Missing> {
        let mode = downward.default_mode.or(mode);
        for item in &downward.items {
            let text = match (&item.field_ref, &item.resource_field_ref) {
                (Some(reference), _) => field(self.pod, self.facts, &reference.field_path)?,
                (None, Some(reference)) => resource(self.pod, self.facts, reference, None)?,
                (None, None) => String::new(),
            };
            self.add(&item.path, text.into_bytes(), item.mode.or(mode))?;
        }
        Ok(())
    }

    fn add(&mut self, path: &str, bytes: Vec<u8>, mode: Option<u32>) -> Result<(), Missing> {
        let path = PathBuf::from(path);
        let stays_inside = path.components().all(|part| matches!(part, Component::Normal(_)));
        // Upstream keeps names that begin so for itself.
        let is_kept = path.as_os_str().as_encoded_bytes().starts_with(b"..");
        if !stays_inside || is_kept || path.as_os_str().is_empty() {
            return Err(Missing::Field(format!("path {path:?} leads out of its volume")));
        }
        self.found.insert(path, File { bytes, mode: mode.unwrap_or(FILE_MODE) & 0o777 });
        Ok(())
    }
}

fn key_of<'a>(
    data: &'a Data,
    (kind, name): (Kind, &str),
    key: &str,
    optional: Option<bool>,
) -> Result<Option<&'a Vec<u8>>, Missing> {
    match data.get(key) {
        None if optional != Some(true) => {
            Err(Missing::Key { kind, name: name.to_owned(), key: key.to_owned() })
        }
        found => Ok(found),
    }
}

/// Makes a volume. Doing it again changes nothing, and replaces files one by one and each as a whole.
pub fn write(volume: &Desired) -> io::Result<()> {
    match &volume.content {
        Content::Directory => fs::create_dir_all(&volume.path),
        Content::Scratch => {
            // What is in it is for everybody who sees it, and those are the pod's containers.
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&volume.path)?;
            give_to(volume.group, &volume.path, 0o777)
        }
        Content::OfHost(path_type) => make_or_check(&volume.path, path_type),
        Content::Files(files) => {
            fs::create_dir_all(&volume.path)?;
            let _lock = lock_beside(&volume.path);
            for (path, file) in files {
                write_file(&volume.path.join(path), file)?;
                if volume.group.is_some() {
                    give_to(volume.group, &volume.path.join(path), file.mode | GROUP_READS)?;
                }
            }
            remove_others(&volume.path, Path::new(""), files)
        }
    }
}

/// A group that volumes belong to may read them.
const GROUP_READS: u32 = 0o440;
/// What is made in such a directory belongs to its group, too.
const GROUP_STAYS: u32 = 0o2000;

/// Gives a file or a directory to a group, if there is one, with these permissions.
fn give_to(group: Option<u32>, path: &Path, mode: u32) -> io::Result<()> {
    let Some(group) = group else { return fs::set_permissions(path, fs::Permissions::from_mode(mode)) };
    std::os::unix::fs::chown(path, None, Some(group))?;
    let mode = if path.is_dir() { mode | GROUP_STAYS } else { mode };
    fs::set_permissions(path, fs::Permissions::from_mode(mode))
}

/// Keeps others from writing a volume until it is dropped: what a worker had begun goes on for a moment after the worker has
/// ended, and the next one would find its files half-written or gone. Not the volume itself is locked, since its pod
/// may do that. Some file systems have no locks, and there the files are written all the same.
fn lock_beside(volume: &Path) -> Option<fs::File> {
    let directory = fs::File::open(volume.parent()?).ok()?;
    directory.lock().ok()?;
    Some(directory)
}

/// Removes files whose key is no more. Directories stay: they do no harm. So do mount points: what is mounted there would go with them.
fn remove_others(volume: &Path, below: &Path, files: &BTreeMap<PathBuf, File>) -> io::Result<()> {
    for entry in fs::read_dir(volume.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            remove_others(volume, &path, files)?;
        } else if !files.contains_key(&path) && !is_mount_point(&entry.metadata()?) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

fn is_mount_point(found: &fs::Metadata) -> bool {
    found.len() == 0 && found.permissions().mode() & 0o777 == MOUNT_POINT_MODE
}

/// Makes what a pod wants to find at a path of the machine, if its type allows that, and refuses what is something else.
fn make_or_check(path: &Path, path_type: &str) -> io::Result<()> {
    let is_there = path.exists();
    match path_type {
        // A kubelet looks away, and what mounts it then makes a directory.
        "" | "DirectoryOrCreate" if !is_there => return fs::create_dir_all(path),
        "" => return Ok(()),
        "FileOrCreate" if !is_there => {
            return fs::File::options().create(true).append(true).open(path).map(drop);
        }
        _ => {}
    }
    let found = fs::metadata(path).map(|found| found.file_type());
    let is = |fits: fn(&fs::FileType) -> bool| found.as_ref().is_ok_and(fits);
    let (is_right, what) = match path_type {
        "Directory" | "DirectoryOrCreate" => (is(fs::FileType::is_dir), "a directory"),
        "File" | "FileOrCreate" => (is(fs::FileType::is_file), "a file"),
        "Socket" => (is(fs::FileType::is_socket), "a socket file"),
        "CharDevice" => (is(fs::FileType::is_char_device), "a character device"),
        "BlockDevice" => (is(fs::FileType::is_block_device), "a block device"),
        other => (false, other),
    };
    if is_right {
        return Ok(());
    }
    let path = path.display();
    let message = format!(
        "hostPath type check failed: {path} is not {what}: create it, or change the type of the volume"
    );
    Err(io::Error::new(io::ErrorKind::NotFound, message))
}

fn write_file(path: &Path, file: &File) -> io::Result<()> {
    if fs::read(path).is_ok_and(|bytes| bytes == file.bytes) {
        return Ok(());
    }
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push("..new");
    // Never readable by more than it should be, not even while it is written.
    let mut open =
        fs::File::options().create(true).write(true).truncate(true).mode(file.mode).open(&beside)?;
    io::Write::write_all(&mut open, &file.bytes)?;
    open.set_permissions(fs::Permissions::from_mode(file.mode))?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::pod::AccountToken;

    fn check(volume: serde_json::Value, expected: Expect) {
        let pod: Pod = serde_json::from_value(serde_json::json!({
            "metadata": {"name": "p", "namespace": "ns", "labels": {"app": "x"}}, "spec": {"volumes": [volume]}
        }))
        .unwrap();
        let mut sources = Sources::default();
        let data: Data = [("a.txt".to_owned(), b"A".to_vec()), ("b.txt".to_owned(), b"B".to_vec())].into();
        sources.insert((Kind::ConfigMap, "cm".to_owned()), Some(data.clone()));
        sources.insert((Kind::Secret, "s".to_owned()), Some(data));
        let wanted =
            AccountToken { path: "token".into(), expiration_seconds: Some(3607), ..Default::default() };
        sources.insert_token(wanted, "TOKEN".to_owned());
        let of_claims = BTreeMap::from([("data".to_owned(), PathBuf::from("/claims/ns/data-u"))]);
        let places = Places { of_pod: Path::new("/pod"), of_claims: &of_claims, in_memory: None };
        let text =
            desired(&pod, places, &Facts::default(), &sources).into_iter().map(|volume| match volume {
                Ok(volume) => print(&volume),
                Err(missing) => format!("{missing}\n"),
            });
        expected.assert_eq(&text.collect::<String>());
    }

    fn print(volume: &Desired) -> String {
        let path = volume.path.display();
        match &volume.content {
            Content::Directory => format!("{path}\n"),
            Content::Scratch => format!("{path} for everybody\n"),
            Content::OfHost(path_type) => format!("{path} must be {path_type:?}\n"),
            Content::Files(files) => files
                .iter()
                .map(|(name, file)| {
                    let text = String::from_utf8_lossy(&file.bytes);
                    format!("{path}/{} {:o} {text}\n", name.display(), file.mode)
                })
                .collect(),
        }
    }

    #[test]
    fn each_kind_of_volume_is_a_directory_of_this_machine() {
        check(
            serde_json::json!({"name": "v", "emptyDir": {}}),
            expect![[r#"
            /pod/v for everybody
        "#]],
        );
        check(
            serde_json::json!({"name": "v", "persistentVolumeClaim": {"claimName": "data"}}),
            expect![[r#"
            /claims/ns/data-u
        "#]],
        );
        check(
            serde_json::json!({"name": "v", "persistentVolumeClaim": {"claimName": "other"}}),
            expect![[r#"
            persistentvolumeclaim "other" not found
        "#]],
        );
        check(
            serde_json::json!({"name": "v", "hostPath": {"path": "/data", "type": "Directory"}}),
            expect![[r#"
            /data must be "Directory"
        "#]],
        );
        check(
            serde_json::json!({"name": "v", "hostPath": {"path": "/data", "type": "DirectoryOrCreate"}}),
            expect![[r#"
                /data must be "DirectoryOrCreate"
            "#]],
        );
    }

    #[test]
    fn configmaps_and_secrets_become_files() {
        check(
            serde_json::json!({"name": "v", "configMap": {"name": "cm"}}),
            expect![[r#"
            /pod/v/a.txt 644 A
            /pod/v/b.txt 644 B
        "#]],
        );
        let items = serde_json::json!([{"key": "a.txt", "path": "deep/a", "mode": 0o400}]);
        check(
            serde_json::json!({"name": "v", "secret": {"secretName": "s", "items": items, "defaultMode": 0o600}}),
            expect![[r#"
                /pod/v/deep/a 400 A
            "#]],
        );
    }

    #[test]
    fn a_projected_volume_holds_all_its_sources() {
        let sources = serde_json::json!([
            {"configMap": {"name": "cm", "items": [{"key": "a.txt", "path": "a"}]}},
            {"secret": {"name": "s", "items": [{"key": "b.txt", "path": "b"}]}},
            {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"serviceAccountToken": {"path": "vault", "audience": "nobody gives this one"}},
        ]);
        check(
            serde_json::json!({"name": "v", "projected": {"sources": sources, "defaultMode": 0o440}}),
            expect![[r#"
                /pod/v/a 440 A
                /pod/v/b 440 B
                /pod/v/labels 440 app="x"
                /pod/v/token 600 TOKEN
            "#]],
        );
    }

    #[test]
    fn what_can_not_be_offered_is_said() {
        check(
            serde_json::json!({"name": "v", "configMap": {"name": "none"}}),
            expect![[r#"
            configmap "none" not found
        "#]],
        );
        check(
            serde_json::json!({"name": "v", "nfs": {"server": "x"}}),
            expect![[r#"
            volume "v" is of a kind that this node does not support: use emptyDir, hostPath, configMap, secret, downwardAPI, projected or persistentVolumeClaim
        "#]],
        );
        let items = serde_json::json!([{"key": "a.txt", "path": "../../etc/passwd"}]);
        check(
            serde_json::json!({"name": "v", "configMap": {"name": "cm", "items": items}}),
            expect![[r#"
            path "../../etc/passwd" leads out of its volume
        "#]],
        );
        let items = serde_json::json!([{"key": "a.txt", "path": "..data"}]);
        check(
            serde_json::json!({"name": "v", "configMap": {"name": "cm", "items": items}}),
            expect![[r#"
                path "..data" leads out of its volume
            "#]],
        );
    }

    #[test]
    fn a_path_of_the_machine_must_be_what_the_pod_says() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::create_dir(path("directory")).unwrap();
        fs::write(path("file"), "").unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        let made = |name: &str, path_type: &str| {
            let content = Content::OfHost(path_type.to_owned());
            let volume = Desired { name: "v".to_owned(), path: path(name), content, group: None };
            let place = format!("{}/", directory.path().display());
            write(&volume).map_err(|error| error.to_string().replace(&place, ""))
        };
        let refused = |what: &str| {
            Err(format!("hostPath type check failed: {what}: create it, or change the type of the volume"))
        };
        for (path_type, fits, what) in [
            ("Directory", "directory", "a directory"),
            ("DirectoryOrCreate", "directory", "a directory"),
            ("File", "file", "a file"),
            ("FileOrCreate", "file", "a file"),
            ("Socket", "socket", "a socket file"),
        ] {
            for name in ["directory", "file", "socket"] {
                let expected = if name == fits { Ok(()) } else { refused(&format!("{name} is not {what}")) };
                assert_eq!(made(name, path_type), expected, "{name} as {path_type}");
                assert_eq!(made(name, ""), Ok(()), "{name}");
            }
        }
        assert_eq!(made("file", "CharDevice"), refused("file is not a character device"));
        assert_eq!(made("file", "BlockDevice"), refused("file is not a block device"));
        assert_eq!(made("/dev/null", "CharDevice"), Ok(()));
        for path_type in ["Directory", "File", "Socket", "CharDevice", "BlockDevice"] {
            assert!(made("none", path_type).is_err(), "{path_type}");
            assert!(!path("none").exists());
        }
        for (name, path_type, is_file) in
            [("new/1", "", false), ("new/2", "DirectoryOrCreate", false), ("new/3", "FileOrCreate", true)]
        {
            assert_eq!(made(name, path_type), Ok(()), "{path_type}");
            assert_eq!((path(name).is_file(), path(name).is_dir()), (is_file, !is_file), "{path_type}");
        }
    }

    #[test]
    fn everybody_may_write_to_an_empty_directory() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("v");
        write(&Desired { name: "v".to_owned(), path: path.clone(), content: Content::Scratch, group: None })
            .unwrap();
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o777);
    }

    #[test]
    fn a_node_that_has_not_quite_ended_does_not_hinder_the_next_one() {
        let directory = tempfile::tempdir().unwrap();
        let volume = |text: &str| {
            let file = File { bytes: text.as_bytes().to_vec(), mode: TOKEN_MODE };
            let files = BTreeMap::from([(PathBuf::from("token"), file)]);
            Desired {
                name: "v".to_owned(),
                path: directory.path().join("v"),
                content: Content::Files(files),
                group: None,
            }
        };
        let write_often = |texts: [&str; 2]| {
            (0..200).for_each(|_| texts.iter().for_each(|text| write(&volume(text)).unwrap()));
        };
        std::thread::scope(|scope| {
            scope.spawn(|| write_often(["one", "two"]));
            scope.spawn(|| write_often(["three", "four"]));
        });
    }

    #[test]
    fn files_whose_key_is_gone_go_too() {
        let directory = tempfile::tempdir().unwrap();
        let volume = |paths: &[&str]| {
            let files =
                paths.iter().map(|path| (path.into(), File { bytes: Vec::new(), mode: 0o644 })).collect();
            Desired {
                name: "v".to_owned(),
                path: directory.path().join("v"),
                content: Content::Files(files),
                group: None,
            }
        };
        write(&volume(&["a", "deep/b", "deep/c"])).unwrap();
        write(&volume(&["deep/c"])).unwrap();
        let exists = ["a", "deep/b", "deep/c"].map(|path| directory.path().join("v").join(path).exists());
        assert_eq!(exists, [false, false, true]);

        let mount_point = directory.path().join("v/a");
        fs::write(&mount_point, "").unwrap();
        fs::set_permissions(&mount_point, fs::Permissions::from_mode(MOUNT_POINT_MODE)).unwrap();
        write(&volume(&["deep/c"])).unwrap();
        assert!(mount_point.exists(), "something else may be mounted there");
    }

    #[test]
    fn files_are_written_with_their_permissions_and_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let volume = |text: &str| Desired {
            name: "v".to_owned(),
            path: directory.path().join("v"),
            group: None,
            content: Content::Files(
                [(PathBuf::from("x/y"), File { bytes: text.into(), mode: 0o400 })].into(),
            ),
        };
        for text in ["one", "two", "two"] {
            write(&volume(text)).unwrap();
            let path = directory.path().join("v/x/y");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o400);
        }
    }
}
