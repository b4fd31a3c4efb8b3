//! Files: landlock rules for the given folders, and none for the rest of the system. The same ruleset forbids TCP and reaching
//! other processes by signals and abstract sockets, where the kernel can.

use std::path::Path;

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, make_bitflags,
};

use super::report::{Layer, Report};
use super::walls::Walls;

/// The least that we need: the first that can allow renames and links between folders.
const NEEDED: ABI = ABI::V2;
/// The newest of which we use everything.
const KNOWN: ABI = ABI::V7;

/// Neither programs nor links, devices, pipes or sockets.
fn changing() -> BitFlags<AccessFs> {
    reading() | make_bitflags!(AccessFs::{WriteFile | RemoveDir | RemoveFile | MakeDir | MakeReg | Refer | Truncate})
}

fn reading() -> BitFlags<AccessFs> {
    make_bitflags!(AccessFs::{ReadFile | ReadDir})
}

/// Closes the wall around this thread, and those that it starts from then on.
pub(super) fn restrict(walls: &Walls, report: &mut Report) {
    let (files, network, scopes) = match ruleset(walls) {
        Ok(abi) => (None, too_old(abi, ABI::V4), too_old(abi, ABI::V6)),
        Err(reason) => (Some(reason.clone()), Some(reason.clone()), Some(reason)),
    };
    report.add(Layer::LandlockFiles, files);
    report.add(Layer::LandlockNetwork, network);
    report.add(Layer::LandlockScopes, scopes);
}

fn too_old(abi: ABI, needed: ABI) -> Option<String> {
    (abi < needed).then(|| format!("the kernel has landlock {}, and this came with {}", abi as i32, needed as i32))
}

/// Answers with what the kernel has, or why there is no wall.
fn ruleset(walls: &Walls) -> Result<ABI, String> {
    let error = |error: RulesetError| format!("the kernel refused landlock: {error}");
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(NEEDED))
        .map_err(error)?
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))
        .and_then(|ruleset| ruleset.handle_access(AccessNet::from_all(KNOWN)))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(KNOWN)))
        .and_then(Ruleset::create)
        .map_err(error)?;
    let folders = walls.read_write.iter().map(|folder| (folder, changing()));
    for (folder, access) in folders.chain(walls.read_only.iter().map(|folder| (folder, reading()))) {
        ruleset = ruleset.add_rule(PathBeneath::new(open(folder)?, access)).map_err(error)?;
    }
    let status = ruleset.restrict_self().map_err(error)?;
    match status.landlock {
        LandlockStatus::Available { effective_abi, .. } if status.ruleset != RulesetStatus::NotEnforced => {
            Ok(effective_abi)
        }
        LandlockStatus::NotEnabled => Err("the kernel has landlock, but it is switched off at boot".to_owned()),
        _ => Err("the kernel has no landlock".to_owned()),
    }
}

fn open(folder: &Path) -> Result<PathFd, String> {
    PathFd::new(folder).map_err(|cause| format!("{} cannot be opened: {cause}", folder.display()))
}
