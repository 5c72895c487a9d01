//! A store that is made from a copy of another is that other.

use super::*;

fn copy_of(store: &Store) -> Vec<u8> {
    store.copy().unwrap().flatten().collect()
}

#[test]
fn a_copy_holds_everything_at_one_revision() {
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let store = Store::open(dirs[0].path()).unwrap();
    let kept = runtime().block_on(async {
        let kept = store.commit(create("kept", 1)).await.unwrap();
        let changed = store.commit(create("changed", 1)).await.unwrap();
        store.commit(update("changed", changed.revision, 2)).await.unwrap();
        let gone = store.commit(create("gone", 1)).await.unwrap();
        store.commit(delete("gone", gone.revision)).await.unwrap();
        kept
    });
    let lines = store.copy().unwrap();
    let of_all = store.snapshot(&pods());
    runtime().block_on(store.commit(create("later", 1))).unwrap();
    let copy: Vec<u8> = lines.flatten().collect();

    let head = Store::from_copy(dirs[1].path(), copy.as_slice()).unwrap();
    assert_eq!((head.revision, head.objects), (of_all.revision, 2));
    let restored = Store::open(dirs[1].path()).unwrap();
    assert_eq!(restored.cluster(), store.cluster());
    assert_eq!(restored.revision(), of_all.revision);
    assert_eq!(restored.snapshot(&pods()).entries, of_all.entries);
    assert_eq!(restored.get(&pods(), &kept.key), Some(kept));
    assert_eq!(copy_of(&restored), copy);

    let again = Store::from_copy(dirs[1].path(), copy.as_slice());
    assert!(matches!(again, Err(CopyError::Write(OpenError::InUse { .. }))), "{again:?}");
    restored.close();
    let again = Store::from_copy(dirs[1].path(), copy.as_slice());
    assert!(again.unwrap_err().to_string().contains("store.redb"), "a store is not written over");
}

#[test]
fn a_copy_that_is_not_whole_makes_no_store() {
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let store = Store::open(dirs[0].path()).unwrap();
    runtime().block_on(store.commit(create("a", 1))).unwrap();
    let copy = copy_of(&store);
    for length in 0..copy.len() {
        Store::from_copy(dirs[1].path(), &copy[..length]).unwrap_err();
        assert!(!dirs[1].path().join("store.redb").exists(), "{length} bytes");
    }
    let newer = String::from_utf8(copy).unwrap().replacen(r#"{"format":1"#, r#"{"format":2"#, 1);
    let refused = Store::from_copy(dirs[1].path(), newer.as_bytes());
    assert!(matches!(refused, Err(CopyError::UnknownFormat(2))), "{refused:?}");
    assert!(Store::in_memory().copy().is_none());
}
