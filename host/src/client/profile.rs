//! Which server a person talks to, and as whom: kept in a file that nobody else can read.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::ClientError;

/// A server, and who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its address.
    pub server: String,
    /// The tenant that is meant where none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The token.
    pub token: String,
    /// A file of certificates to trust instead of the usual ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
}

/// The profiles of a person.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Profiles {
    /// The one that is meant where none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current: Option<String>,
    /// All, by name.
    pub profiles: BTreeMap<String, Profile>,
}

impl Profiles {
    /// Reads the file; none at all is no profiles.
    ///
    /// # Errors
    /// [`ClientError::Profile`] when it cannot be read, others may read it, or it is not what it should be.
    pub fn read(file: &Path) -> Result<Self, ClientError> {
        let unusable = |reason: String| ClientError::Profile(format!("{}: {reason}", file.display()));
        let metadata = match fs::metadata(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            metadata => metadata.map_err(|error| unusable(error.to_string()))?,
        };
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(unusable("others may read the tokens in it; run `chmod 600` on it".to_owned()));
        }
        let text = fs::read_to_string(file).map_err(|error| unusable(error.to_string()))?;
        toml::from_str(&text)
            .map_err(|error| unusable(format!("{}; correct it, or log in anew after removing it", error.message())))
    }

    /// Replaces the file, readable by its owner only.
    ///
    /// # Errors
    /// [`ClientError::Profile`] when it cannot be written.
    pub fn write(&self, file: &Path) -> Result<(), ClientError> {
        let unusable = |reason: String| ClientError::Profile(format!("{} cannot be written: {reason}", file.display()));
        let text = toml::to_string(self).map_err(|error| unusable(error.to_string()))?;
        replace(file, text.as_bytes()).map_err(|error| unusable(error.to_string()))
    }

    /// The profile of this name, or the current one.
    ///
    /// # Errors
    /// [`ClientError::Profile`] when there is none.
    pub fn get(&self, name: Option<&str>) -> Result<&Profile, ClientError> {
        let Some(name) = name.or(self.current.as_deref()) else {
            return Err(ClientError::Profile(
                "no server is known: run `tidemill login --server http://127.0.0.1:8080 --token-file FILE`, or give \
                 --server and set TIDEMILL_TOKEN"
                    .to_owned(),
            ));
        };
        self.profiles.get(name).ok_or_else(|| {
            let known: Vec<&str> = self.profiles.keys().map(String::as_str).collect();
            ClientError::Profile(format!(
                "there is no profile {name:?}, only: {}; choose one with --profile, or make it with `tidemill login --profile {name}`",
                if known.is_empty() { "none".to_owned() } else { known.join(", ") }
            ))
        })
    }
}

fn replace(file: &Path, text: &[u8]) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.as_file().set_permissions(Permissions::from_mode(0o600))?;
    new.write_all(text)?;
    new.as_file().sync_all()?;
    new.persist(file).map_err(|error| error.error).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profiles() -> Profiles {
        let profile = Profile {
            server: "http://127.0.0.1:8080".to_owned(),
            tenant: Some("shop".to_owned()),
            token: "tdm_1_x".to_owned(),
            ca: None,
        };
        Profiles { current: Some("local".to_owned()), profiles: BTreeMap::from([("local".to_owned(), profile)]) }
    }

    #[test]
    fn what_was_written_is_read_and_nobody_else_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/profiles.toml");

        profiles().write(&file).unwrap();

        assert_eq!(Profiles::read(&file).unwrap(), profiles());
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
    }

    #[test]
    fn a_file_that_others_may_read_is_refused_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("profiles.toml");
        profiles().write(&file).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert!(Profiles::read(&file).unwrap_err().to_string().contains("chmod 600"));
    }

    #[test]
    fn without_a_file_there_are_no_profiles_and_the_error_says_how_to_make_one() {
        let folder = tempfile::tempdir().unwrap();
        let none = Profiles::read(&folder.path().join("profiles.toml")).unwrap();
        assert!(none.get(None).unwrap_err().to_string().contains("tidemill login"));
    }

    #[test]
    fn an_unknown_profile_is_answered_with_those_that_there_are() {
        assert!(profiles().get(Some("remote")).unwrap_err().to_string().contains("local"));
        assert_eq!(profiles().get(None).unwrap().tenant.as_deref(), Some("shop"));
    }
}
