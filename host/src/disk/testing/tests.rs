//! The disks for tests, tested: a power loss must be able to take what was not synced, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use super::super::{Disk, RealDisk, write_durably};
use super::{Failure, FaultyDisk, Loss, RecordingDisk, SyncKind};

const SEEDS: u64 = 60;

/// What a file of the first root can hold after a power loss at the end; None: it is not there.
fn outcomes(disk: &RecordingDisk, roots: usize, file: &str) -> BTreeSet<Option<Vec<u8>>> {
    let random = (0..SEEDS).map(|seed| Loss::Random { seed });
    let losses = [Loss::Unsynced, Loss::Nothing, Loss::Bytes].into_iter().chain(random);
    losses.map(|loss| outcome(disk, loss, roots, file)).collect()
}

fn outcome(disk: &RecordingDisk, loss: Loss, roots: usize, file: &str) -> Option<Vec<u8>> {
    let scratch = TempDir::new().unwrap();
    let folders: Vec<_> = (0..roots).map(|root| scratch.path().join(root.to_string())).collect();
    let into: Vec<&Path> = folders.iter().map(AsRef::as_ref).collect();
    disk.rebuild(disk.operations(), loss, &into).unwrap();
    fs::read(folders[0].join(file)).ok()
}

fn write(disk: &dyn Disk, path: &Path, bytes: &[u8], sync: impl Fn(&mut dyn crate::disk::DiskFile)) {
    let mut file = disk.create_new(path).unwrap();
    file.write_all(bytes).unwrap();
    sync(file.as_mut());
}

#[test]
fn a_file_written_durably_is_there_whole_after_any_power_loss() {
    let folder = TempDir::new().unwrap();
    let disk = RecordingDisk::over(&[folder.path()]).unwrap();
    write_durably(&disk, &folder.path().join("file"), b"old").unwrap();
    write_durably(&disk, &folder.path().join("file"), b"new").unwrap();

    assert_eq!(outcomes(&disk, 1, "file"), BTreeSet::from([Some(b"new".to_vec())]));
}

#[test]
fn a_power_loss_amid_a_durable_write_leaves_the_old_file_or_the_new() {
    let folder = TempDir::new().unwrap();
    let disk = RecordingDisk::over(&[folder.path()]).unwrap();
    write_durably(&disk, &folder.path().join("file"), b"old").unwrap();
    let before = disk.operations();
    write_durably(&disk, &folder.path().join("file"), b"new").unwrap();

    let mut seen = BTreeSet::new();
    for point in before..=disk.operations() {
        for seed in 0..SEEDS {
            let scratch = TempDir::new().unwrap();
            disk.rebuild(point, Loss::Random { seed }, &[scratch.path()]).unwrap();
            seen.insert(fs::read(scratch.path().join("file")).unwrap());
        }
    }

    assert_eq!(seen, BTreeSet::from([b"old".to_vec(), b"new".to_vec()]));
}

#[test]
fn the_name_of_a_synced_file_is_lost_without_a_sync_of_its_folder() {
    let folder = TempDir::new().unwrap();
    let disk = RecordingDisk::over(&[folder.path()]).unwrap();
    write(&disk, &folder.path().join("file"), b"abc", |file| file.sync().unwrap());

    assert_eq!(outcomes(&disk, 1, "file"), BTreeSet::from([None, Some(b"abc".to_vec())]));
}

#[test]
fn the_bytes_of_a_named_file_are_cut_zeroed_or_garbage_without_a_sync() {
    let folder = TempDir::new().unwrap();
    let disk = RecordingDisk::over(&[folder.path()]).unwrap();
    write(&disk, &folder.path().join("file"), b"abcdef", |_| {});
    disk.sync_dir(folder.path()).unwrap();

    let seen = outcomes(&disk, 1, "file");

    assert!(seen.contains(&Some(b"".to_vec())) && seen.contains(&Some(b"abcdef".to_vec())));
    assert!(seen.contains(&Some(b"abc".to_vec())), "cut");
    assert!(seen.contains(&Some(b"abc\0\0\0".to_vec())), "zeroed");
    assert!(seen.iter().flatten().any(|bytes| bytes.starts_with(b"ab") && bytes.len() == 6 && bytes[3] > b'f'));
    assert!(!seen.contains(&None), "the name was synced");
}

#[test]
fn changes_of_names_that_were_not_synced_happen_in_any_order() {
    let folder = TempDir::new().unwrap();
    let disk = RecordingDisk::over(&[folder.path()]).unwrap();
    write(&disk, &folder.path().join("a"), b"", |_| {});
    write(&disk, &folder.path().join("b"), b"", |_| {});

    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let scratch = TempDir::new().unwrap();
        disk.rebuild(disk.operations(), Loss::Random { seed }, &[scratch.path()]).unwrap();
        let names: Vec<_> = RealDisk.list(scratch.path()).unwrap().into_iter().map(|entry| entry.name).collect();
        seen.insert(names.concat());
    }

    assert_eq!(seen, ["", "a", "ab", "b"].map(str::to_owned).into());
}

#[test]
fn a_removed_file_comes_back_without_a_sync_of_its_folder() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("file"), b"abc").unwrap();
    let disk = RecordingDisk::over(&[folder.path()]).unwrap();
    disk.remove_file(&folder.path().join("file")).unwrap();

    assert_eq!(outcomes(&disk, 1, "file"), BTreeSet::from([None, Some(b"abc".to_vec())]));
    disk.sync_dir(folder.path()).unwrap();
    assert_eq!(outcomes(&disk, 1, "file"), BTreeSet::from([None]));
}

#[test]
fn a_file_renamed_between_folders_has_one_name_or_both() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("file"), b"abc").unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    let disk = RecordingDisk::over(&[folder.path()]).unwrap();
    disk.rename(&folder.path().join("file"), &folder.path().join("sub/file")).unwrap();

    let mut seen = BTreeSet::new();
    for seed in 0..SEEDS {
        let loss = Loss::Random { seed };
        seen.insert(["file", "sub/file"].map(|name| outcome(&disk, loss, 1, name).is_some()));
    }

    assert_eq!(seen, BTreeSet::from([[true, false], [true, true], [false, true]]));
}

#[test]
fn files_that_something_else_wrote_are_durable_once_their_tree_is_synced() {
    let folder = TempDir::new().unwrap();
    let disk = RecordingDisk::over(&[folder.path()]).unwrap();
    fs::create_dir_all(folder.path().join("tree/sub")).unwrap();
    fs::write(folder.path().join("tree/sub/file"), b"abc").unwrap();

    disk.sync_tree(&folder.path().join("tree")).unwrap();
    assert_eq!(outcomes(&disk, 1, "tree/sub/file"), BTreeSet::from([None, Some(b"abc".to_vec())]));
    disk.sync_dir(folder.path()).unwrap();
    assert_eq!(outcomes(&disk, 1, "tree/sub/file"), BTreeSet::from([Some(b"abc".to_vec())]));
}

#[test]
fn roots_are_file_systems_of_their_own() {
    let (folder, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let disk = RecordingDisk::over(&[folder.path(), other.path()]).unwrap();
    write_durably(&disk, &folder.path().join("file"), b"abc").unwrap();

    let error = disk.rename(&folder.path().join("file"), &other.path().join("file")).unwrap_err();

    assert_eq!(error.kind(), io::ErrorKind::CrossesDevices);
    assert_eq!(outcomes(&disk, 2, "file"), BTreeSet::from([Some(b"abc".to_vec())]));
}

#[test]
fn the_same_seed_loses_the_same() {
    let folder = TempDir::new().unwrap();
    let disk = RecordingDisk::over(&[folder.path()]).unwrap();
    write(&disk, &folder.path().join("file"), &[7; 1000], |_| {});

    for seed in 0..20 {
        let loss = Loss::Random { seed };
        assert_eq!(outcome(&disk, loss, 1, "file"), outcome(&disk, loss, 1, "file"));
    }
}

#[test]
fn a_dropped_sync_of_a_file_makes_a_durable_write_lose_bytes() {
    let folder = TempDir::new().unwrap();
    let recording = Arc::new(RecordingDisk::over(&[folder.path()]).unwrap());
    let disk = FaultyDisk::over(Arc::<RecordingDisk>::clone(&recording));
    disk.drop_syncs(|kind, _| kind == SyncKind::File);
    write_durably(&disk, &folder.path().join("file"), b"abc").unwrap();

    assert_eq!(outcome(&recording, Loss::Unsynced, 1, "file"), Some(Vec::new()));
    assert_eq!(recording.syncs(), 1, "the folder");
}

#[test]
fn a_dropped_sync_of_a_folder_makes_a_durable_write_lose_its_name() {
    let folder = TempDir::new().unwrap();
    let recording = Arc::new(RecordingDisk::over(&[folder.path()]).unwrap());
    let disk = FaultyDisk::over(Arc::<RecordingDisk>::clone(&recording));
    disk.drop_syncs(|kind, _| kind == SyncKind::Folder);
    write_durably(&disk, &folder.path().join("file"), b"abc").unwrap();

    assert_eq!(outcome(&recording, Loss::Unsynced, 1, "file"), None);
}

#[test]
fn a_full_disk_takes_half_of_a_write_and_the_next_one_whole() {
    let folder = TempDir::new().unwrap();
    let disk = FaultyDisk::over(Arc::new(RealDisk));
    let mut file = disk.create_new(&folder.path().join("file")).unwrap();
    disk.fail_at(1, Failure::DiskFull);

    assert_eq!(file.write_all(b"abcd").unwrap_err().kind(), io::ErrorKind::StorageFull);
    file.write_all(b"ef").unwrap();

    assert_eq!(RealDisk.read(&folder.path().join("file")).unwrap(), b"abef");
}

#[test]
fn a_killed_process_does_nothing_ever_after() {
    let folder = TempDir::new().unwrap();
    let disk = FaultyDisk::over(Arc::new(RealDisk));
    disk.fail_at(1, Failure::Killed);
    let mut file = disk.create_new(&folder.path().join("file")).unwrap();

    assert!(file.write_all(b"abc").is_err());
    assert!(file.sync().is_err());
    assert!(disk.remove_file(&folder.path().join("file")).is_err());
    assert_eq!(RealDisk.read(&folder.path().join("file")).unwrap(), b"");
}
