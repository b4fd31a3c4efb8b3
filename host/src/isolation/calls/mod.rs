//! System calls: two seccomp filters. One kills whoever tries what no honest code in a child does; the other answers `ENOSYS` to
//! everything that is not listed, as a kernel would that lacks the call, so that libraries fall back to what is there.
//!
//! The filters see numbers and arguments, and cannot follow pointers: which files is landlock's part. `clone3` has its flags
//! behind a pointer, so it is not listed, and libraries fall back to `clone`, which may make threads but no processes.

mod table;

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use seccompiler::SeccompCmpArgLen::{Dword, Qword};
use seccompiler::SeccompCmpOp::{Eq, Le, MaskedEq};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use self::table::{ABSENT, COMMON, Call, DEADLY, FILES};
use super::walls::Profile;

/// "No such system call."
const ENOSYS: u32 = 38;

/// Closes the wall around this thread, and those that it starts from then on. After it only listed calls are possible.
///
/// # Errors
/// Why the wall is missing.
pub(super) fn restrict(profile: Profile) -> Result<(), String> {
    let missing = |error: seccompiler::Error| match error {
        seccompiler::Error::Prctl(cause) | seccompiler::Error::Seccomp(cause) => {
            format!("the kernel refused it: {cause}")
        }
        other => other.to_string(),
    };
    let refused = |error: BackendError| format!("no filter for {ARCH}: {error}");
    let deadly = filter(DEADLY, SeccompAction::Allow, SeccompAction::KillProcess).map_err(refused)?;
    let listed = match profile {
        Profile::Compiler => COMMON.to_vec(),
        Profile::Worker => [COMMON, FILES].concat(),
    };
    let listed = filter(&listed, SeccompAction::Errno(ENOSYS), SeccompAction::Allow).map_err(refused)?;
    apply_filter(&deadly).map_err(missing)?;
    apply_filter(&listed).map_err(missing)
}

/// The calls that kill, by name.
pub(super) fn deadly() -> impl Iterator<Item = &'static str> {
    DEADLY.iter().map(|(name, ..)| *name)
}

/// The number of a call here, by its name.
pub(super) fn number_of(name: &str) -> Option<i64> {
    let architecture = TargetArch::try_from(ARCH).ok()?;
    let call = [COMMON, FILES, DEADLY].into_iter().flatten().find(|(known, ..)| *known == name)?;
    Some(number(call, &architecture)).filter(|number| *number != ABSENT)
}

fn filter(calls: &[Call], others: SeccompAction, these: SeccompAction) -> Result<BpfProgram, BackendError> {
    let architecture = TargetArch::try_from(ARCH)?;
    let mut rules = BTreeMap::new();
    for call in calls {
        let (name, ..) = *call;
        let number = number(call, &architecture);
        if number != ABSENT {
            rules.insert(number, arguments(name)?);
        }
    }
    SeccompFilter::new(rules, others, these, architecture)?.try_into()
}

const fn number(&(_, x86_64, aarch64): &Call, architecture: &TargetArch) -> i64 {
    match architecture {
        TargetArch::x86_64 => x86_64,
        TargetArch::aarch64 => aarch64,
        TargetArch::riscv64 => ABSENT,
    }
}

/// Which arguments a listed call may have: any of these rules; none: all arguments.
fn arguments(call: &str) -> Result<Vec<SeccompRule>, BackendError> {
    let own_process = u64::from(std::process::id());
    match call {
        "clone" => any([all([(0, Qword, MaskedEq(CLONE_CHECKED), CLONE_THREAD)])]),
        "fcntl" => {
            let lone =
                [F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_DUPFD_CLOEXEC, F_ADD_SEALS, F_GET_SEALS, F_SET_RW_HINT];
            let lone = lone.map(|command| all([(1, Dword, Eq, command)]));
            any([all([(1, Dword, Le, F_SETLKW)])].into_iter().chain(lone))
        }
        "ioctl" => any([TCGETS, FIONBIO, FIOCLEX].map(|request| all([(1, Dword, Eq, request)]))),
        "prctl" => any([PR_SET_NAME, PR_GET_NAME, PR_SET_VMA].map(|option| all([(0, Dword, Eq, option)]))),
        // Reads a limit of its own; sets none.
        "prlimit64" => any([all([(0, Dword, Eq, 0), (2, Qword, Eq, 0)])]),
        "setsockopt" => {
            any([SO_RCVTIMEO, SO_SNDTIMEO].map(|option| all([(1, Dword, Eq, SOL_SOCKET), (2, Dword, Eq, option)])))
        }
        "tgkill" => any([all([(0, Dword, Eq, own_process)])]),
        _ => Ok(Vec::new()),
    }
}

type Condition = (u8, SeccompCmpArgLen, SeccompCmpOp, u64);

fn all<const N: usize>(conditions: [Condition; N]) -> Result<SeccompRule, BackendError> {
    let conditions = conditions.map(|(argument, length, op, value)| SeccompCondition::new(argument, length, op, value));
    SeccompRule::new(conditions.into_iter().collect::<Result<_, _>>()?)
}

fn any(rules: impl IntoIterator<Item = Result<SeccompRule, BackendError>>) -> Result<Vec<SeccompRule>, BackendError> {
    rules.into_iter().collect()
}

const CLONE_THREAD: u64 = 0x0001_0000;
/// A thread, and no new namespace of any kind: mount, cgroup, UTS, IPC, user, process ids, network, time.
const CLONE_CHECKED: u64 = CLONE_THREAD
    | 0x0002_0000
    | 0x0200_0000
    | 0x0400_0000
    | 0x0800_0000
    | 0x1000_0000
    | 0x2000_0000
    | 0x4000_0000
    | 0x80;

/// The last of `F_DUPFD`, `F_GETFD`, `F_SETFD`, `F_GETFL`, `F_SETFL`, `F_GETLK`, `F_SETLK`, `F_SETLKW`, which begin at 0. What
/// follows can have signals sent to other processes.
const F_SETLKW: u64 = 7;
const F_OFD_GETLK: u64 = 36;
const F_OFD_SETLK: u64 = 37;
const F_OFD_SETLKW: u64 = 38;
const F_DUPFD_CLOEXEC: u64 = 1030;
const F_ADD_SEALS: u64 = 1033;
const F_GET_SEALS: u64 = 1034;
const F_SET_RW_HINT: u64 = 1036;

const TCGETS: u64 = 0x5401;
const FIONBIO: u64 = 0x5421;
const FIOCLEX: u64 = 0x5451;

const PR_SET_NAME: u64 = 15;
const PR_GET_NAME: u64 = 16;
const PR_SET_VMA: u64 = 0x5356_4d41;

const SOL_SOCKET: u64 = 1;
const SO_RCVTIMEO: u64 = 20;
const SO_SNDTIMEO: u64 = 21;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn filters_can_be_made_for_every_profile() {
        for (calls, others, these) in [
            (COMMON.to_vec(), SeccompAction::Errno(ENOSYS), SeccompAction::Allow),
            ([COMMON, FILES].concat(), SeccompAction::Errno(ENOSYS), SeccompAction::Allow),
            (DEADLY.to_vec(), SeccompAction::Allow, SeccompAction::KillProcess),
        ] {
            assert!(!filter(&calls, others, these).unwrap().is_empty());
        }
    }

    #[test]
    fn a_call_stands_once_under_one_number() {
        for architecture in [TargetArch::x86_64, TargetArch::aarch64] {
            let calls: Vec<_> = [COMMON, FILES, DEADLY].concat();
            let numbers: Vec<_> =
                calls.iter().map(|call| number(call, &architecture)).filter(|number| *number != ABSENT).collect();
            assert_eq!(numbers.len(), numbers.iter().collect::<BTreeSet<_>>().len(), "{architecture:?}");
        }
    }
}
