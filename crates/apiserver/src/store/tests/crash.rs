//! After a crash everything that was visible is there, and nothing is there by halves.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use redb::StorageBackend;

use super::model::{Attempt, Model, attempt, revisions};
use super::*;

/// Drives often write no more than this at once.
const SECTOR: usize = 512;

/// A disk that remembers what it has not yet synced, and now and then keeps an image of what a power cut at that moment
/// would leave.
#[derive(Debug)]
struct FragileDisk {
    sectors: Mutex<Sectors>,
    /// What the store shows to its readers.
    visible: Arc<AtomicU64>,
    images: Mutex<Vec<Image>>,
}

#[derive(Debug)]
struct Sectors {
    synced: Vec<u8>,
    unsynced: Vec<Unsynced>,
    current: Vec<u8>,
    random: u64,
}

#[derive(Debug)]
enum Unsynced {
    Write { offset: usize, data: Vec<u8> },
    Length(usize),
}

/// What a power cut leaves, and what had been visible then.
#[derive(Debug)]
struct Image {
    bytes: Vec<u8>,
    visible: u64,
}

impl FragileDisk {
    fn new(bytes: Vec<u8>, random: u64) -> Arc<FragileDisk> {
        let sectors = Sectors { synced: bytes.clone(), unsynced: Vec::new(), current: bytes, random };
        let visible = Arc::new(AtomicU64::new(FIRST_REVISION));
        Arc::new(FragileDisk { sectors: Mutex::new(sectors), visible, images: Mutex::default() })
    }

    fn change(&self, change: Unsynced) {
        let mut sectors = self.sectors.lock();
        change.apply(&mut sectors.current);
        sectors.unsynced.push(change);
        self.maybe_keep_image(&mut sectors);
    }

    fn maybe_keep_image(&self, sectors: &mut Sectors) {
        if sectors.draw(8) == 0 {
            let visible = self.visible.load(Ordering::Relaxed);
            self.images.lock().push(Image { bytes: sectors.after_power_cut(), visible });
        }
    }
}

impl Sectors {
    /// A number below `n`. Each test case has its own sequence.
    fn draw(&mut self, n: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (mixed ^ (mixed >> 31)) % n
    }

    /// What was synced, and whichever sectors of the rest happened to be written.
    fn after_power_cut(&mut self) -> Vec<u8> {
        let mut bytes = self.synced.clone();
        let unsynced = std::mem::take(&mut self.unsynced);
        for change in unsynced.iter().flat_map(Unsynced::sectors) {
            if self.draw(2) == 0 {
                change.apply(&mut bytes);
            }
        }
        self.unsynced = unsynced;
        bytes
    }
}

impl Unsynced {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Unsynced::Write { offset, data } => {
                let end = offset + data.len();
                bytes.resize(bytes.len().max(end), 0);
                bytes[*offset..end].copy_from_slice(data);
            }
            Unsynced::Length(length) => bytes.resize(*length, 0),
        }
    }

    /// The parts of a change that may reach the disk one without the other.
    fn sectors(&self) -> Vec<Unsynced> {
        match self {
            Unsynced::Length(length) => vec![Unsynced::Length(*length)],
            Unsynced::Write { offset, data } => (*offset..)
                .step_by(SECTOR)
                .zip(data.chunks(SECTOR))
                .map(|(offset, data)| Unsynced::Write { offset, data: data.to_vec() })
                .collect(),
        }
    }
}

impl StorageBackend for FragileDisk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.sectors.lock().current.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let sectors = self.sectors.lock();
        let end = offset as usize + out.len();
        let bytes = sectors.current.get(offset as usize..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.change(Unsynced::Length(len as usize));
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut sectors = self.sectors.lock();
        self.maybe_keep_image(&mut sectors);
        sectors.synced = sectors.current.clone();
        sectors.unsynced.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.change(Unsynced::Write { offset: offset as usize, data: data.to_vec() });
        Ok(())
    }
}

/// Opens what a power cut left, and checks it. Opening repairs, and may be cut short in its turn: returns what that
/// would leave.
fn check(image: Image, model: &Model, random: u64) -> Vec<Image> {
    let disk = FragileDisk::new(image.bytes, random);
    disk.visible.store(image.visible, Ordering::Relaxed);
    let (_disk, contents) = Disk::open(Arc::clone(&disk) as _).expect("a crash is not damage");
    let revision = contents.revision;
    assert!(revision >= image.visible, "revision {} was visible, {revision} is left", image.visible);
    let state = State::new(revision, contents.objects, Retention::BY_AGE);
    for resource in ["pods", "jobs.batch.volcano.sh"] {
        let snapshot = state.snapshot(&resource.into());
        assert_eq!(revisions(&snapshot), model.objects_at(resource, revision), "{resource} at {revision}");
    }
    std::mem::take(&mut disk.images.lock())
}

fn write_batches(batches: &[Vec<Attempt>], random: u64) -> (Model, Vec<Image>) {
    let fragile = FragileDisk::new(Vec::new(), random);
    let (mut disk, contents) = Disk::open(Arc::clone(&fragile) as _).unwrap();
    // A new file gets its name when it is whole; what a crash leaves before that is not looked at.
    fragile.sync_data().unwrap();
    fragile.images.lock().clear();
    let sequencer = Sequencer::on_disk(State::new(contents.revision, contents.objects, Retention::BY_AGE));
    let mut model = Model::default();
    for attempts in batches {
        let accepted = attempts.iter().filter(|attempt| {
            let (write, expected) = model.expect(attempt);
            assert_eq!(sequencer.submit(write).is_ok(), expected.is_ok());
            expected.is_ok()
        });
        if accepted.count() == 0 {
            continue;
        }
        let Work::Write(batch) = sequencer.next_work() else { panic!("there are writes") };
        disk.write(&batch).unwrap();
        sequencer.publish(batch);
        fragile.visible.store(sequencer.visible().revision(), Ordering::Relaxed);
    }
    drop(disk);
    let images = std::mem::take(&mut *fragile.images.lock());
    (model, images)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_power_cut_takes_back_nothing_that_was_visible(
        batches in prop::collection::vec(prop::collection::vec(attempt(), 1..12), 1..12),
        random in any::<u64>(),
    ) {
        let (model, images) = write_batches(&batches, random);
        for image in images {
            for image_of_repair in check(image, &model, random) {
                check(image_of_repair, &model, random);
            }
        }
    }
}
