//! What the probe attacks: two tenants' folders, listeners, and the memory of this process. Nobody else's.

use std::fs::{self, Permissions};
use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Child;

use tempfile::TempDir;

use super::super::{Limits, Sandbox, Walls, handshake, users};
use super::{Outcome, Targets, outcome_of};

/// In the server's memory; no child may learn it.
pub(super) static SECRET: [u8; 8] = *b"hush-now";

/// Two tenants, of which the first one attacks.
#[derive(Debug)]
pub struct Ground {
    folder: TempDir,
    targets: Targets,
    user: Option<u32>,
    _tcp: TcpListener,
    _unix: [UnixListener; 2],
}

impl Ground {
    /// # Errors
    /// What the system says.
    pub fn new() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("tidemill-probe-").tempdir()?;
        let (attacker, neighbour) = (folder.path().join("attacker"), folder.path().join("neighbour"));
        let (outside, secret) = (folder.path().join("outside"), neighbour.join("secret"));
        for place in [&attacker, &neighbour, &outside] {
            fs::create_dir(place)?;
        }
        // Rights of files must not be what holds here: a folder that anyone may enter stands for a mistake in them.
        for place in [folder.path(), &neighbour, &outside] {
            fs::set_permissions(place, Permissions::from_mode(0o777))?;
        }
        fs::write(&secret, "the neighbour's")?;
        symlink(&secret, attacker.join("link"))?;
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let abstract_unix = format!("{}", folder.path().display());
        let unix = [
            UnixListener::bind(attacker.join("listener"))?,
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(&abstract_unix)?)?,
        ];
        fs::set_permissions(attacker.join("listener"), Permissions::from_mode(0o777))?;
        let user = users::of_probe();
        chown(&attacker, user, user)?;
        let targets = Targets {
            other_tenant: secret,
            link: PathBuf::from("link"),
            outside: outside.join("written"),
            tcp: tcp.local_addr()?,
            unix: PathBuf::from("listener"),
            abstract_unix,
            secret_address: SECRET.as_ptr().addr() as u64,
        };
        Ok(Self { folder, targets, user, _tcp: tcp, _unix: unix })
    }

    /// The attacker's walls, as a worker has them.
    #[must_use]
    pub fn walls(&self) -> Walls {
        let limits = Limits {
            data_bytes: Some(256 << 20),
            cpu_seconds: Some(60),
            open_files: Some(64),
            file_bytes: Some(1 << 20),
            threads: Some(64),
        };
        Walls::worker(self.attacker(), self.user, limits, Sandbox::Warn)
    }

    /// The attacker's folder.
    #[must_use]
    pub fn attacker(&self) -> PathBuf {
        self.folder.path().join("attacker")
    }

    /// Has a child make one attack, or one system call, by name, and waits for its end.
    ///
    /// # Errors
    /// What the system says.
    pub fn attacked_by(&self, child: Child, socket: &UnixStream, attack: &str) -> io::Result<Outcome> {
        let told = handshake::say(socket, &(attack, &self.targets));
        outcome_of(child, told.and_then(|()| handshake::hear(socket)))
    }
}
