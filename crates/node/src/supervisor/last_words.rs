//! What a container says of its own end, in a file that it was told of or by the end of its log.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::container::MESSAGES;
use crate::logs::last_lines;

/// A kubelet's limits.
const MESSAGE_BYTES_MAX: u64 = 4096;
const LOG_BYTES_MAX: usize = 2048;
const LOG_LINES_MAX: usize = 80;

/// Makes the directory in which containers may write why they ended: one for all of them, so that most need none of their
/// own. Whatever was there is nobody's any more.
pub(super) fn prepare(root: &Path) -> io::Result<()> {
    remove_all(root);
    fs::create_dir_all(root.join(MESSAGES))
}

/// Removes that directory.
pub(super) fn remove_all(root: &Path) {
    let _ = fs::remove_dir_all(root.join(MESSAGES));
}

/// Why a container could not be staged; none if it could.
pub(super) fn of_failed_stage(place: &Path) -> Option<String> {
    let path = place.with_added_extension("error");
    let message = read_end(&path, MESSAGE_BYTES_MAX)?;
    let _ = fs::remove_file(path);
    Some(message)
}

/// What a container wrote about its end; the end of its `log` if it wrote nothing.
pub(super) fn of_container(message: &Path, log: Option<&Path>) -> String {
    if let Some(text) = read_end(message, MESSAGE_BYTES_MAX).filter(|text| !text.is_empty()) {
        return text;
    }
    // Entries are longer than what they say, by their time and stream.
    let entries = log.and_then(|log| read_end(log, 16 * LOG_BYTES_MAX as u64)).unwrap_or_default();
    last_lines(&entries, LOG_LINES_MAX, LOG_BYTES_MAX)
}

/// Removes what a container that has ended may have written about that: it is in the record, or of no interest.
pub(super) fn forget(message: &Path) {
    let _ = fs::remove_file(message);
}

fn read_end(path: &Path, n_bytes_max: u64) -> Option<String> {
    let mut file = File::open(path).ok()?;
    let begin = file.metadata().ok()?.len().saturating_sub(n_bytes_max);
    file.seek(SeekFrom::Start(begin)).ok()?;
    let mut bytes = Vec::new();
    file.take(n_bytes_max).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_taken_at_its_word_before_its_log() {
        let directory = tempfile::tempdir().unwrap();
        let (message, log) = (directory.path().join("message"), directory.path().join("log"));
        assert_eq!(of_container(&message, Some(&log)), "");
        fs::write(&log, "2026-11-15T08:00:00Z stderr F no such model\n").unwrap();
        assert_eq!(of_container(&message, None), "");
        assert_eq!(of_container(&message, Some(&log)), "no such model\n");
        fs::write(&message, "out of luck").unwrap();
        assert_eq!(of_container(&message, Some(&log)), "out of luck");
    }
}
