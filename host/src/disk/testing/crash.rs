//! What a power loss leaves of the operations recorded so far.
//!
//! The model is harsher than any one file system, so that what survives it survives all of them:
//! - Bytes of a file that were not synced are kept, cut, zeroed, turned into garbage, or kept in part, in any order.
//! - A name that was created, replaced or removed is durable once the folder that holds it is synced, and not by a sync
//!   of the file. Until then each such change may have happened or not, whatever became of the changes to other names.
//! - Renaming a file between two folders may leave both names, but never none. Otherwise a rename is atomic.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::recording::{Operation, Place, Tree};

/// How much of what was not synced a power loss takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loss {
    /// All of it.
    Unsynced,
    /// Nothing: the process was killed and the machine went on.
    Nothing,
    /// The bytes, while names are as they were: files are there, but shorter.
    Bytes,
    /// Some of it; the same for the same seed.
    Random {
        /// Decides what is lost.
        seed: u64,
    },
}

impl Loss {
    /// What to try at an operation: the three fixed ones and so many random ones, others at each operation.
    pub fn at(point: usize, random: usize) -> impl Iterator<Item = Self> {
        let seeds = (0..random).map(move |n| Self::Random { seed: (point * random + n) as u64 });
        [Self::Unsynced, Self::Nothing, Self::Bytes].into_iter().chain(seeds)
    }
}

/// Builds the folders of `into`, one for each root, as `loss` leaves the disk after `operations`.
pub(super) fn rebuild(initial: &[Tree], operations: &[Operation], loss: Loss, into: &[&Path]) -> io::Result<()> {
    let mut model = Model::new(initial);
    for operation in operations {
        model.apply(operation);
    }
    let mut dice = Dice(match loss {
        Loss::Random { seed } => seed,
        Loss::Unsynced | Loss::Nothing | Loss::Bytes => 0,
    });
    model.lose_names(loss, &mut dice);
    for (root, folder) in into.iter().enumerate() {
        model.write(root, folder, loss, &mut dice)?;
    }
    Ok(())
}

type NodeId = usize;

enum Node {
    File { synced: Vec<u8>, unsynced: Vec<u8> },
    Folder { now: BTreeMap<PathBuf, NodeId>, synced: BTreeMap<PathBuf, NodeId> },
}

/// One atomic change of names.
struct Change {
    edits: Vec<Edit>,
    /// A change without which this one cannot have happened.
    needs: Option<usize>,
    durable: bool,
}

impl Change {
    fn shares_a_name_with(&self, other: &Change) -> bool {
        self.edits.iter().any(|a| other.edits.iter().any(|b| a.folder == b.folder && a.name == b.name))
    }
}

#[derive(Clone)]
struct Edit {
    folder: NodeId,
    name: PathBuf,
    target: Option<NodeId>,
}

/// The disk as the process sees it and as it is durable. The first nodes are the roots.
struct Model {
    nodes: Vec<Node>,
    changes: Vec<Change>,
    open: BTreeMap<u64, NodeId>,
}

impl Model {
    fn new(initial: &[Tree]) -> Self {
        let mut model = Self { nodes: Vec::new(), changes: Vec::new(), open: BTreeMap::new() };
        for _ in initial {
            model.add(Node::folder());
        }
        for (root, tree) in initial.iter().enumerate() {
            model.sync_tree(&Place { root, path: PathBuf::new() }, tree);
        }
        model
    }

    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::Create { file, at } => {
                let node = self.add(Node::File { synced: Vec::new(), unsynced: Vec::new() });
                self.open.insert(*file, node);
                self.change(self.edit(at, Some(node)).into_iter().collect(), None);
            }
            Operation::Open { file, at } => {
                if let Some(node) = self.find(at) {
                    self.open.insert(*file, node);
                }
            }
            Operation::Append { file, bytes } => {
                if let Some(Node::File { unsynced, .. }) = self.open.get(file).and_then(|id| self.nodes.get_mut(*id)) {
                    unsynced.extend_from_slice(bytes);
                }
            }
            Operation::SyncFile { file } => {
                if let Some(Node::File { synced, unsynced }) =
                    self.open.get(file).and_then(|id| self.nodes.get_mut(*id))
                {
                    synced.append(unsynced);
                }
            }
            Operation::CreateDir { at } => {
                if self.find(at).is_none() {
                    let node = self.add(Node::folder());
                    self.change(self.edit(at, Some(node)).into_iter().collect(), None);
                }
            }
            Operation::HardLink { from, to } => {
                if let Some(node) = self.find(from) {
                    self.change(self.edit(to, Some(node)).into_iter().collect(), None);
                }
            }
            Operation::Rename { from, to } => self.rename(from, to),
            Operation::Remove { at } => {
                self.change(self.edit(at, None).into_iter().collect(), None);
            }
            Operation::SyncDir { at } => {
                if let Some(node) = self.find(at) {
                    self.sync_names(node);
                }
            }
            Operation::SyncTree { at, tree } => self.sync_tree(at, tree),
        }
    }

    fn rename(&mut self, from: &Place, to: &Place) {
        let Some(node) = self.find(from) else { return };
        let (Some(link), Some(unlink)) = (self.edit(to, Some(node)), self.edit(from, None)) else { return };
        if link.folder == unlink.folder || matches!(self.nodes.get(node), Some(Node::Folder { .. })) {
            self.change(vec![link, unlink], None);
        } else {
            let linked = self.change(vec![link], None);
            self.change(vec![unlink], Some(linked));
        }
    }

    /// Takes over what stands on the disk, which something unrecorded wrote, as durable.
    fn sync_tree(&mut self, at: &Place, tree: &Tree) {
        let root = match self.find(at) {
            Some(node) => node,
            None => {
                let node = self.add(Node::folder());
                self.change(self.edit(at, Some(node)).into_iter().collect(), None);
                node
            }
        };
        self.forget_all_but(root, &at.path, tree);
        for (path, content) in tree {
            let at = Place { root: at.root, path: path.clone() };
            let found = self.find(&at);
            match (content, found.and_then(|id| self.nodes.get_mut(id))) {
                (None, Some(Node::Folder { .. })) => {}
                (Some(content), Some(Node::File { synced, unsynced })) => {
                    synced.clone_from(content);
                    unsynced.clear();
                }
                (content, _) => {
                    let node = self.add(match content {
                        None => Node::folder(),
                        Some(content) => Node::File { synced: content.clone(), unsynced: Vec::new() },
                    });
                    self.change(self.edit(&at, Some(node)).into_iter().collect(), None);
                }
            }
        }
        self.sync_names(root);
        for path in tree.keys() {
            if let Some(node) = self.find(&Place { root: at.root, path: path.clone() }) {
                self.sync_names(node);
            }
        }
    }

    fn forget_all_but(&mut self, folder: NodeId, path: &Path, tree: &Tree) {
        let Some(Node::Folder { now, .. }) = self.nodes.get(folder) else { return };
        for (name, node) in now.clone() {
            let path = path.join(&name);
            if tree.contains_key(&path) {
                self.forget_all_but(node, &path, tree);
            } else {
                self.change(vec![Edit { folder, name, target: None }], None);
            }
        }
    }

    fn add(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn find(&self, at: &Place) -> Option<NodeId> {
        at.path.iter().try_fold(at.root, |folder, name| match self.nodes.get(folder)? {
            Node::Folder { now, .. } => now.get(Path::new(name)).copied(),
            Node::File { .. } => None,
        })
    }

    fn edit(&self, at: &Place, target: Option<NodeId>) -> Option<Edit> {
        let folder = self.find(&Place { root: at.root, path: at.path.parent()?.to_owned() })?;
        Some(Edit { folder, name: PathBuf::from(at.path.file_name()?), target })
    }

    fn change(&mut self, edits: Vec<Edit>, needs: Option<usize>) -> usize {
        for edit in &edits {
            if let Some(Node::Folder { now, .. }) = self.nodes.get_mut(edit.folder) {
                edit.apply(now);
            }
        }
        self.changes.push(Change { edits, needs, durable: false });
        self.changes.len() - 1
    }

    fn sync_names(&mut self, folder: NodeId) {
        for index in 0..self.changes.len() {
            if self.changes.get(index).is_some_and(|change| change.edits.iter().any(|edit| edit.folder == folder)) {
                self.make_durable(index);
            }
        }
    }

    /// With every change that must have happened before.
    fn make_durable(&mut self, index: usize) {
        let Some(change) = self.changes.get_mut(index) else { return };
        if change.durable {
            return;
        }
        change.durable = true;
        for before in self.needed_by(index) {
            self.make_durable(before);
        }
        let edits = self.changes.get(index).map(|change| change.edits.clone()).unwrap_or_default();
        for edit in edits {
            if let Some(Node::Folder { synced, .. }) = self.nodes.get_mut(edit.folder) {
                edit.apply(synced);
            }
        }
    }

    fn needed_by(&self, index: usize) -> Vec<usize> {
        let Some(change) = self.changes.get(index) else { return Vec::new() };
        let earlier = self.changes.iter().take(index).enumerate();
        let shared = earlier.filter(|(_, other)| !other.durable && other.shares_a_name_with(change));
        shared.map(|(before, _)| before).chain(change.needs).collect()
    }

    fn lose_names(&mut self, loss: Loss, dice: &mut Dice) {
        let mut lost = vec![false; self.changes.len()];
        // Some crashes lose nearly all names, some nearly none.
        let survivors_percent = [10, 50, 90].get(dice.below(3)).copied().unwrap_or(50);
        for index in 0..self.changes.len() {
            if self.changes.get(index).is_some_and(|change| change.durable) {
                continue;
            }
            let survives = match loss {
                Loss::Unsynced => false,
                Loss::Nothing | Loss::Bytes => true,
                Loss::Random { .. } => {
                    let possible = self.needed_by(index).iter().all(|before| lost.get(*before) == Some(&false));
                    dice.below(100) < survivors_percent && possible
                }
            };
            if survives {
                self.make_durable(index);
            } else if let Some(lost) = lost.get_mut(index) {
                *lost = true;
            }
        }
    }

    fn write(&self, node: NodeId, path: &Path, loss: Loss, dice: &mut Dice) -> io::Result<()> {
        match self.nodes.get(node) {
            None => Ok(()),
            Some(Node::File { synced, unsynced }) => {
                let mut bytes = synced.clone();
                match loss {
                    Loss::Unsynced | Loss::Bytes => {}
                    Loss::Nothing => bytes.extend_from_slice(unsynced),
                    Loss::Random { .. } => bytes.extend(damaged(unsynced, dice)),
                }
                fs::write(path, bytes)
            }
            Some(Node::Folder { synced, .. }) => {
                fs::create_dir_all(path)?;
                synced.iter().try_for_each(|(name, node)| self.write(*node, &path.join(name), loss, dice))
            }
        }
    }
}

impl Node {
    fn folder() -> Self {
        Self::Folder { now: BTreeMap::new(), synced: BTreeMap::new() }
    }
}

impl Edit {
    fn apply(&self, names: &mut BTreeMap<PathBuf, NodeId>) {
        match self.target {
            Some(node) => names.insert(self.name.clone(), node),
            None => names.remove(&self.name),
        };
    }
}

/// What may stand on the disk in place of bytes that were written and not synced.
fn damaged(unsynced: &[u8], dice: &mut Dice) -> Vec<u8> {
    let cut = dice.below(unsynced.len() + 1);
    let (kept, rest) = unsynced.split_at(cut);
    match dice.below(6) {
        0 => Vec::new(),
        1 => unsynced.to_vec(),
        2 => kept.to_vec(),
        3 => kept.iter().copied().chain(rest.iter().map(|_| 0)).collect(),
        4 => kept.iter().copied().chain(rest.iter().map(|_| dice.byte())).collect(),
        _ => {
            // Blocks reach the disk in any order. Real ones are larger; smaller ones find more.
            let block_bytes = [16, 64, 512].get(dice.below(3)).copied().unwrap_or(64);
            let mut bytes = unsynced.to_vec();
            for block in bytes.chunks_mut(block_bytes) {
                match dice.below(4) {
                    0 => block.fill(0),
                    1 => block.iter_mut().for_each(|byte| *byte = dice.byte()),
                    _ => {}
                }
            }
            bytes
        }
    }
}

/// The generator `SplitMix64`: small, and the same on every machine.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// At least 0, below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).unwrap_or(0)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[0]
    }
}
