//! `krafla backup` and `krafla restore`: a data directory in one file, and back.
//!
//! ```text
//!   krafla backup 1
//!   {"path":"ca.key","kind":"file","mode":384,...}   then its content: chunks of a length (4 bytes) and as many bytes, an empty one last
//!   {"path":"objects","kind":"objects",...}          the objects, as the store copies itself
//!   {"path":"node/claims/default","kind":"directory",...}
//!   {"sha256":"..."}                                 over all before it
//! ```

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, lchown, symlink};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail, ensure};
use aws_lc_rs::digest::{self, SHA256};
use futures_util::TryStreamExt;
use krafla_apiserver::store::{CopyHead, OpenError, Store};
use krafla_client::{Access, HttpsClient, Limits};
use serde::{Deserialize, Serialize};

use crate::cli;
use crate::data_dir;
use crate::run::BadInput;
use crate::screen::print;

/// The first line of a backup. Its number is the version of the format.
const MAGIC: &str = "krafla backup 1\n";
const MAGIC_OF_ANY: &str = "krafla backup ";
const CHUNK_BYTES: usize = 64 * 1024;
/// The last line: the name, 64 digits, and what is around them.
const LAST_LINE_BYTES: u64 = 78;
/// The longest line: a path and a target.
const LINE_BYTES_MAX: u64 = 64 * 1024;

/// The directory of the files of claims.
const CLAIMS: &str = "node/claims";
/// The file that names the cluster of the node's directory.
const MARK: &str = "node/cluster";
/// Files of a data directory that a backup does not hold: objects are copied, and the rest is made at the next start.
const NOT_COPIED: [&str; 5] = ["store.redb", "store.head", "lock", "reserve", "kubeconfig"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum EntryKind {
    Objects,
    File,
    Directory,
    Link,
}

/// One thing in a backup.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    /// Below the data directory; each character is one byte of it.
    path: String,
    kind: EntryKind,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    target: String,
    mode: u32,
    uid: u32,
    gid: u32,
}

/// A path as text, whatever its bytes are.
fn to_text(path: &OsStr) -> String {
    path.as_bytes().iter().map(|byte| char::from(*byte)).collect()
}

fn from_text(text: &str) -> Result<PathBuf> {
    let bytes: Option<Vec<u8>> = text.chars().map(|each| u8::try_from(u32::from(each)).ok()).collect();
    Ok(std::ffi::OsString::from_vec(bytes.context("the backup holds a path that is not one")?).into())
}

/// Writes a backup, and hashes it on the way.
struct Writer<W: Write> {
    out: W,
    hash: digest::Context,
}

impl<W: Write> Writer<W> {
    fn new(out: W) -> Result<Writer<W>> {
        let mut writer = Writer { out, hash: digest::Context::new(&SHA256) };
        writer.put(MAGIC.as_bytes())?;
        Ok(writer)
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hash.update(bytes);
        self.out.write_all(bytes)
    }

    fn entry(&mut self, entry: &Entry) -> Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        Ok(self.put(&line)?)
    }

    /// A piece of a content; an empty one ends it.
    fn chunk(&mut self, bytes: &[u8]) -> Result<()> {
        for piece in bytes.chunks(CHUNK_BYTES) {
            self.put(&u32::try_from(piece.len())?.to_be_bytes())?;
            self.put(piece)?;
        }
        Ok(())
    }

    fn end_of_content(&mut self) -> Result<()> {
        Ok(self.put(&0_u32.to_be_bytes())?)
    }

    fn content(&mut self, mut from: impl Read) -> Result<()> {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            let n_read = from.read(&mut buffer)?;
            if n_read == 0 {
                return self.end_of_content();
            }
            self.chunk(buffer.get(..n_read).unwrap_or_default())?;
        }
    }

    /// A file, link or directory below the data directory, and all below that.
    fn tree(&mut self, data_dir: &Path, path: &Path) -> Result<()> {
        let place = data_dir.join(path);
        let cannot_read = || format!("cannot read {}", place.display());
        let found = match place.symlink_metadata() {
            // A pod has just deleted it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            found => found.with_context(cannot_read)?,
        };
        let entry = |kind, target: &OsStr| Entry {
            path: to_text(path.as_os_str()),
            kind,
            target: to_text(target),
            mode: found.mode() & 0o7777,
            uid: found.uid(),
            gid: found.gid(),
        };
        if found.is_dir() {
            self.entry(&entry(EntryKind::Directory, OsStr::new("")))?;
            let names = fs::read_dir(&place).with_context(cannot_read)?.map(|found| Ok(found?.file_name()));
            let mut names = names.collect::<io::Result<Vec<_>>>().with_context(cannot_read)?;
            names.sort();
            return names.iter().try_for_each(|name| self.tree(data_dir, &path.join(name)));
        }
        if found.is_symlink() {
            let target = fs::read_link(&place).with_context(cannot_read)?;
            return self.entry(&entry(EntryKind::Link, target.as_os_str()));
        }
        if !found.is_file() {
            // Sockets and pipes mean nothing without their processes.
            return Ok(());
        }
        let file = File::open(&place).with_context(cannot_read)?;
        self.entry(&entry(EntryKind::File, OsStr::new("")))?;
        self.content(file).with_context(cannot_read)
    }

    fn finish(mut self) -> Result<W> {
        let last = last_line(self.hash.clone());
        self.out.write_all(last.as_bytes())?;
        self.out.flush()?;
        Ok(self.out)
    }
}

fn last_line(hash: digest::Context) -> String {
    let digits: String = hash.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{{\"sha256\":\"{digits}\"}}\n")
}

/// Copies a data directory into a file.
pub(crate) async fn backup(args: cli::Backup) -> Result<ExitCode> {
    let dir = &args.data_dir;
    let is_there = dir.join("store.redb").is_file();
    bad_unless(is_there, || format!("{} has no store: there is nothing to back up", dir.display()))?;
    bad_unless(!args.file.exists(), || format!("{} exists; choose another name", args.file.display()))?;
    let mut unfinished = args.file.clone().into_os_string();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    let written = write_backup(dir, args.kubeconfig.as_deref(), &unfinished).await;
    let renamed = match written {
        Ok(head) => fs::rename(&unfinished, &args.file).map(|()| head).map_err(Into::into),
        Err(error) => Err(error),
    };
    let head = renamed.inspect_err(|_| drop(fs::remove_file(&unfinished)));
    let head = head.with_context(|| format!("cannot write {}", args.file.display()))?;
    let (file, CopyHead { objects, revision, cluster, .. }) = (args.file.display(), head);
    print(&format!("{file}: {objects} objects of cluster {cluster} at revision {revision}\n"))?;
    Ok(ExitCode::SUCCESS)
}

async fn write_backup(dir: &Path, kubeconfig: Option<&Path>, file: &Path) -> Result<CopyHead> {
    // Keys and Secrets are in it.
    let out = File::options().write(true).create(true).truncate(true).mode(0o600).open(file)?;
    let mut writer = Writer::new(BufWriter::new(out))?;
    let names = fs::read_dir(dir)?.map(|found| Ok(found?.file_name()));
    let mut names = names.collect::<io::Result<Vec<_>>>()?;
    names.sort();
    for name in names {
        let is_file = dir.join(&name).symlink_metadata().is_ok_and(|found| found.is_file());
        let is_copied = !NOT_COPIED.iter().any(|other| name == **other);
        if is_file && is_copied && !name.as_bytes().ends_with(b".new") {
            writer.tree(dir, Path::new(&name))?;
        }
    }
    let objects = Entry {
        path: "objects".to_owned(),
        kind: EntryKind::Objects,
        target: String::new(),
        mode: 0o600,
        uid: 0,
        gid: 0,
    };
    writer.entry(&objects)?;
    let head = write_objects(dir, kubeconfig, &mut writer).await?;
    writer.end_of_content()?;
    let mark = fs::read_to_string(dir.join(MARK)).unwrap_or_default();
    ensure!(
        mark.is_empty() || mark.trim() == &*head.cluster.0,
        "{} belongs to cluster {}, and the objects are those of cluster {}; name the kubeconfig of the right cluster",
        dir.join("node").display(),
        mark.trim(),
        head.cluster
    );
    writer.tree(dir, Path::new(MARK))?;
    // Claims after objects: the files of each claim that is in the backup were there before it.
    writer.tree(dir, Path::new(CLAIMS))?;
    let out = writer.finish()?.into_inner().map_err(|error| anyhow!("{error}"))?;
    out.sync_all()?;
    Ok(head)
}

/// Copies all objects at one revision: of the store itself, or of the krafla that uses it.
async fn write_objects<W: Write>(
    dir: &Path,
    kubeconfig: Option<&Path>,
    writer: &mut Writer<W>,
) -> Result<CopyHead> {
    match Store::open(dir) {
        Ok(store) => {
            let mut lines = store.copy().context("the store has no disk")?.peekable();
            let head = CopyHead::parse(lines.peek().map_or(&[][..], |line| line))?;
            for line in lines {
                writer.chunk(&line)?;
            }
            Ok(head)
        }
        Err(OpenError::InUse { .. }) => {
            let kubeconfig = kubeconfig.map_or_else(|| dir.join("kubeconfig"), Path::to_owned);
            let access = Access::of_file(&kubeconfig)
                .map_err(|error| anyhow!("{error}; name its kubeconfig with --kubeconfig"))
                .with_context(|| format!("krafla runs in {}", dir.display()))?;
            let client = HttpsClient::new(access, Limits::default())?;
            let mut pieces = client.backup().await.context("krafla up does not hand out its objects")?;
            let (mut first, mut n_lines) = (Vec::new(), 0_usize);
            while let Some(piece) = pieces.try_next().await? {
                if n_lines == 0 {
                    first.extend(piece.iter().copied().take_while(|byte| *byte != b'\n'));
                }
                n_lines += piece.iter().filter(|byte| **byte == b'\n').count();
                writer.chunk(&piece)?;
            }
            let head = CopyHead::parse(&first)?;
            ensure!(n_lines == head.objects + 1, "the connection to krafla up was lost");
            Ok(head)
        }
        Err(error) => Err(error.into()),
    }
}

/// Makes a data directory from a backup.
pub(crate) fn restore(args: &cli::Restore) -> Result<ExitCode> {
    let dir = &args.data_dir;
    let has_data = match fs::read_dir(dir) {
        Ok(mut found) => found.next().is_some(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    };
    bad_unless(!has_data, || {
        format!("{} exists and is not empty; choose another --data-dir, or move it away", dir.display())
    })?;
    let named = || format!("cannot restore {}", args.file.display());
    let mut file = File::open(&args.file).map_err(anyhow::Error::from).with_context(named)?;
    verify(&mut file).map_err(BadInput).with_context(named)?;
    let absolute = crate::cluster::absolute(dir)?;
    let parent = absolute.parent().context("the data directory has no parent")?;
    fs::create_dir_all(parent)?;
    // It has its name once it is whole.
    let unfinished = tempfile::Builder::new().prefix(".krafla-restore-").tempdir_in(parent)?;
    let head = unpack(&mut file, unfinished.path()).with_context(named)?;
    if dir.exists() {
        fs::remove_dir(dir)?;
    }
    fs::rename(unfinished.path(), &absolute).with_context(named)?;
    let _ = unfinished.keep();
    File::open(parent)?.sync_all()?;
    let (dir, CopyHead { objects, revision, cluster, .. }) = (dir.display(), head);
    print(&format!("{dir}: {objects} objects of cluster {cluster} at revision {revision}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn bad_unless(is_good: bool, why: impl FnOnce() -> String) -> Result<()> {
    if is_good { Ok(()) } else { Err(BadInput(anyhow!(why())).into()) }
}

/// Checks the first line and the hash, and goes back to the first entry.
fn verify(file: &mut File) -> Result<()> {
    let mut first = Vec::new();
    file.rewind()?;
    BufReader::new(&*file).take(LINE_BYTES_MAX).read_until(b'\n', &mut first)?;
    if first != MAGIC.as_bytes() {
        let first = String::from_utf8_lossy(&first);
        match first.strip_prefix(MAGIC_OF_ANY) {
            Some(version) => bail!("its format is {}, and this krafla knows 1", version.trim()),
            None => bail!("it is not a backup of krafla"),
        }
    }
    let n_hashed = file.metadata()?.len().checked_sub(LAST_LINE_BYTES).context("it is cut off")?;
    file.rewind()?;
    let (mut hash, mut buffer) = (digest::Context::new(&SHA256), vec![0; CHUNK_BYTES]);
    let mut hashed = (&*file).take(n_hashed);
    loop {
        let n_read = hashed.read(&mut buffer)?;
        if n_read == 0 {
            break;
        }
        hash.update(buffer.get(..n_read).unwrap_or_default());
    }
    let mut last = String::new();
    file.read_to_string(&mut last).context("it is damaged or cut off")?;
    ensure!(last == last_line(hash), "it is damaged or cut off: its hash is not right");
    file.seek(io::SeekFrom::Start(MAGIC.len() as u64))?;
    Ok(())
}

/// The content of one entry.
struct Content<'a, R: BufRead> {
    from: &'a mut R,
    n_left: usize,
    is_over: bool,
}

impl<R: BufRead> Read for Content<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.n_left == 0 && !self.is_over {
            let mut length = [0; 4];
            self.from.read_exact(&mut length)?;
            self.n_left = u32::from_be_bytes(length) as usize;
            self.is_over = self.n_left == 0;
        }
        let n_wanted = buffer.len().min(self.n_left);
        let n_read = self.from.read(buffer.get_mut(..n_wanted).unwrap_or_default())?;
        if n_read == 0 && n_wanted > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.n_left -= n_read;
        Ok(n_read)
    }
}

fn unpack(file: &mut File, dir: &Path) -> Result<CopyHead> {
    let mut from = BufReader::new(file);
    let mut head = None;
    // Permissions last: a directory may not let its owner write.
    let mut modes = Vec::new();
    loop {
        let mut line = Vec::new();
        from.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        if line.starts_with(b"{\"sha256\":") {
            break;
        }
        let entry: Entry = serde_json::from_slice(&line).context("an entry cannot be read")?;
        let path = from_text(&entry.path)?;
        ensure!(is_expected(&path, entry.kind), "{} does not belong into a backup", path.display());
        let place = dir.join(&path);
        make_parents(dir, &path)?;
        let cannot_write = || format!("cannot write {}", path.display());
        match entry.kind {
            EntryKind::Objects => {
                let content = Content { from: &mut from, n_left: 0, is_over: false };
                let mut content = BufReader::new(content);
                head = Some(Store::from_copy(dir, &mut content)?);
                ensure!(content.read(&mut [0])? == 0, "there are more objects than expected");
                continue;
            }
            EntryKind::File => {
                let mut out = File::options()
                    .write(true)
                    .create_new(true)
                    .mode(0o600)
                    .open(&place)
                    .with_context(cannot_write)?;
                let mut content = Content { from: &mut from, n_left: 0, is_over: false };
                io::copy(&mut content, &mut out).with_context(cannot_write)?;
                out.sync_all()?;
            }
            EntryKind::Directory => {
                DirBuilder::new().mode(0o700).create(&place).with_context(cannot_write)?
            }
            EntryKind::Link => symlink(from_text(&entry.target)?, &place).with_context(cannot_write)?,
        }
        let found = place.symlink_metadata()?;
        if (found.uid(), found.gid()) != (entry.uid, entry.gid) && rustix::process::geteuid().is_root() {
            lchown(&place, Some(entry.uid), Some(entry.gid)).with_context(cannot_write)?;
        }
        if entry.kind != EntryKind::Link {
            modes.push((place, entry.mode));
        }
    }
    for (place, mode) in modes.into_iter().rev() {
        fs::set_permissions(&place, fs::Permissions::from_mode(mode))?;
    }
    head.context("it holds no objects")
}

/// Whether a backup can hold this: files of the data directory itself, and what is in claims.
fn is_expected(path: &Path, kind: EntryKind) -> bool {
    let parts: Option<Vec<&OsStr>> = path
        .components()
        .map(|part| if let Component::Normal(name) = part { Some(name) } else { None })
        .collect();
    let Some(parts) = parts else { return false };
    match (kind, parts.as_slice()) {
        (EntryKind::Objects, [name]) => *name == "objects",
        (EntryKind::File, [name]) => !NOT_COPIED.iter().any(|other| *name == *other),
        (EntryKind::File, [_, _]) if path == Path::new(MARK) => true,
        (EntryKind::Directory, [_, _]) => path == Path::new(CLAIMS),
        (EntryKind::File | EntryKind::Directory | EntryKind::Link, _) => {
            parts.len() > 2 && path.starts_with(CLAIMS)
        }
        _ => false,
    }
}

/// Makes the directories above a path. None of them may be a link, which could lead out of the data directory.
fn make_parents(dir: &Path, path: &Path) -> Result<()> {
    let mut place = dir.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        place.push(part);
        match place.symlink_metadata() {
            Ok(found) => ensure!(found.is_dir(), "{} does not belong into a backup", path.display()),
            Err(_) => data_dir::make_private(&place)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A backup with these entries, each with the same content if it has one.
    fn backup_of(entries: &[(&str, EntryKind, &str)]) -> File {
        let mut writer = Writer::new(tempfile::tempfile().unwrap()).unwrap();
        for (path, kind, target) in entries {
            let (path, target) = ((*path).to_owned(), (*target).to_owned());
            writer.entry(&Entry { path, kind: *kind, target, mode: 0o600, uid: 0, gid: 0 }).unwrap();
            if matches!(kind, EntryKind::File | EntryKind::Objects) {
                writer.content(&b"evil"[..]).unwrap();
            }
        }
        writer.finish().unwrap()
    }

    #[test]
    fn nothing_is_written_outside_of_the_data_directory() {
        use EntryKind::{Directory, File, Link};
        let outside = tempfile::tempdir().unwrap();
        let link = outside.path().to_str().unwrap();
        for entries in [
            &[("../evil", File, "")][..],
            &[("/tmp/krafla-evil", File, "")],
            &[("node/claims/../../../evil", File, "")],
            &[
                ("node/claims", Directory, ""),
                ("node/claims/a", Link, link),
                ("node/claims/a/evil", File, ""),
            ],
            &[("node/claims", Link, link)],
            &[("node", Link, link)],
            &[("node/pods/evil", File, "")],
            &[("store.redb", File, "")],
        ] {
            let mut file = backup_of(entries);
            verify(&mut file).unwrap();
            let dir = tempfile::tempdir().unwrap();
            let why = unpack(&mut file, dir.path()).unwrap_err().to_string();
            assert!(why.contains("does not belong into a backup"), "{entries:?}: {why}");
            assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_backup_with_one_bit_changed_or_cut_off_is_refused() {
        let mut file = backup_of(&[("ca.key", EntryKind::File, "")]);
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        let refusal = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            file.rewind().unwrap();
            verify(&mut file).err().map(|error| error.to_string())
        };
        assert_eq!(refusal(&bytes), None);
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(refusal(&damaged).is_some(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(refusal(&bytes[..length]).is_some(), "{length} bytes");
        }
        let newer = [b"krafla backup 2\n", &bytes[MAGIC.len()..]].concat();
        assert_eq!(refusal(&newer).unwrap(), "its format is 2, and this krafla knows 1");
        assert_eq!(refusal(b"PK").unwrap(), "it is not a backup of krafla");
    }

    #[test]
    fn a_path_is_text_whatever_its_bytes_are() {
        let path = PathBuf::from(std::ffi::OsString::from_vec((1..=255).collect()));
        assert_eq!(from_text(&to_text(path.as_os_str())).unwrap(), path);
        assert!(from_text("\u{100}").is_err());
    }
}
