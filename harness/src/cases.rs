//! Every case that is compiled in, of all three roles.

use crate::bundled::{text, texts};
use crate::client_case::{self, ClientCase};
use crate::results::{CaseInfo, Level, Role};
use crate::vector::{self, Files, Lint, Vector, Vectors};
use crate::{cite, definitions, exchange, keys};
use codec::{ApiVersion, Protocol};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// All cases, loaded and linted.
pub struct Cases {
    /// Codec cases, a version each.
    pub vectors: Vectors,
    /// Broker cases.
    pub exchanges: Vec<exchange::Case>,
    /// Client cases.
    pub clients: Vec<ClientCase>,
    /// SHA-256 over definitions and cases, in hex.
    pub sha256: String,
}

/// One line of `list`, and what the reports say of a case.
#[derive(Clone, Debug)]
pub struct Listed {
    /// Its id.
    pub id: String,
    /// Its role.
    pub role: Role,
    /// The API it is about.
    pub api: String,
    /// The version.
    pub version: ApiVersion,
    /// How binding it is.
    pub level: Level,
    /// Requirement and citations.
    pub info: CaseInfo,
}

/// The texts that cases are loaded from, as `vectors/` has them.
pub struct Texts<'t> {
    /// `rules.json`.
    pub rules: &'t str,
    /// `sources.json`.
    pub sources: &'t str,
    /// `citations.txt`.
    pub citations: &'t str,
    /// Name and text of each file in `codec`.
    pub codec: Vec<(&'t str, &'t str)>,
    /// Of each in `broker`.
    pub broker: Vec<(&'t str, &'t str)>,
    /// Of each in `client`.
    pub client: Vec<(&'t str, &'t str)>,
}

impl<'t> Texts<'t> {
    /// Those that are compiled in.
    pub fn bundled() -> Texts<'static> {
        Texts {
            rules: text("rules.json"),
            sources: text("sources.json"),
            citations: text("citations.txt"),
            codec: texts("codec"),
            broker: texts("broker"),
            client: texts("client"),
        }
    }

    /// Everything in JSON, by its place in `vectors/`.
    fn json(&self) -> impl Iterator<Item = (String, &'t str)> {
        let folders = [("codec/", &self.codec), ("broker/", &self.broker), ("client/", &self.client)];
        let files = folders
            .into_iter()
            .flat_map(|(folder, files)| files.iter().map(move |(name, text)| (format!("{folder}{name}"), *text)));
        [("rules.json".to_owned(), self.rules), ("sources.json".to_owned(), self.sources)].into_iter().chain(files)
    }

    /// Loads all of it and looks closer than a run does: at keys that a file gives twice, long hex that could be a recipe,
    /// and citations that are none or nobody's. Beside the cases there is what makes each that case, as
    /// [`vector::Files::contents`] and [`exchange::contents`] have it.
    pub fn lint(&self, protocol: &Protocol) -> Result<(Cases, BTreeMap<String, String>), Vec<String>> {
        // What is no JSON is said with its place when it is loaded.
        let twice = |(file, text): (String, &str)| {
            let error = keys::given_once(text).err().filter(serde_json::Error::is_data)?;
            Some(format!("{file}: {error}"))
        };
        let twice: Vec<String> = self.json().filter_map(twice).collect();
        if !twice.is_empty() {
            return Err(twice);
        }
        let files = Files::read(&self.codec);
        let cases = Cases::load(protocol, self, &files)?;
        let mut lints: Vec<String> = files.overlong().iter().map(ToString::to_string).collect();
        let listed = cases.list();
        let cited: BTreeSet<&str> = listed.iter().flat_map(|case| &case.info.cite).map(String::as_str).collect();
        lints.extend(cite::lints(self.citations, &cited));
        let contents = || {
            let mut contents = files.contents()?;
            contents.append(&mut vector::rule_contents(self.rules)?);
            contents.append(&mut exchange::contents("broker", &self.broker)?);
            contents.append(&mut exchange::contents("client", &self.client)?);
            Ok::<_, String>(contents)
        };
        match contents() {
            Ok(contents) if lints.is_empty() => Ok((cases, contents)),
            Ok(_) => Err(lints),
            Err(what) => Err(vec![what]),
        }
    }
}

impl Cases {
    /// The bundled cases. That they lint is a test; a broken one is still said with file and place.
    pub fn bundled(protocol: &Protocol) -> Result<Cases, Vec<String>> {
        let texts = Texts::bundled();
        Cases::load(protocol, &texts, &Files::read(&texts.codec))
    }

    fn load(protocol: &Protocol, texts: &Texts, files: &Files) -> Result<Cases, Vec<String>> {
        let said = |lints: Vec<Lint>| lints.iter().map(Lint::to_string).collect::<Vec<_>>();
        let vectors = Vectors::load(protocol, texts.rules, texts.sources, files).map_err(said)?;
        let said = |errors: Vec<exchange::LintError>| errors.iter().map(ToString::to_string).collect::<Vec<_>>();
        let exchanges = exchange::load(&texts.broker, protocol).map_err(said)?;
        let clients = client_case::load(&texts.client, protocol).map_err(said)?;
        let mut digest = Sha256::new();
        let parts = [&texts.codec, &texts.broker, &texts.client].into_iter().flatten().copied();
        let rest = [("rules.json", texts.rules), ("sources.json", texts.sources)];
        let definitions: Vec<(&str, &str)> = definitions::bundled_texts().collect();
        for (name, text) in definitions.into_iter().chain(rest).chain(parts) {
            // Lengths first, so that no text can run into the next.
            digest.update((name.len() as u64).to_be_bytes());
            digest.update(name);
            digest.update((text.len() as u64).to_be_bytes());
            digest.update(text);
        }
        let sha256 = codec::hex(&digest.finalize());
        Ok(Cases { vectors, exchanges, clients, sha256 })
    }

    /// The ids of cases as they were recorded, `vectors/ids.txt`.
    pub fn bundled_ids() -> &'static str {
        text("ids.txt")
    }

    /// Every case at every version, by id.
    pub fn list(&self) -> Vec<Listed> {
        let vectors = self.vectors.cases.iter().map(|case| Listed {
            id: case.id.clone(),
            role: Role::Codec,
            api: case.spec.api_name().to_owned(),
            version: case.version,
            level: case.level,
            info: case.info.clone(),
        });
        let exchanges = self.exchanges.iter().flat_map(|case| {
            case.versions.iter().map(|version| Listed {
                id: case.id(version),
                role: Role::Broker,
                api: case.api.clone(),
                version,
                level: case.level,
                info: CaseInfo { requires: case.requires.clone(), cite: case.cite.clone() },
            })
        });
        let clients = self.clients.iter().flat_map(|case| {
            case.versions.iter().map(|version| Listed {
                id: case.id(version),
                role: Role::Client,
                api: case.api.clone(),
                version,
                level: case.level,
                info: case.info(),
            })
        });
        let mut list: Vec<Listed> = vectors.chain(exchanges).chain(clients).collect();
        list.sort_by(|a, b| a.id.cmp(&b.id));
        list
    }

    /// What reports say of each case.
    pub fn infos(&self) -> BTreeMap<String, CaseInfo> {
        self.list().into_iter().map(|case| (case.id, case.info)).collect()
    }

    /// A case of a broker or client as it stands in its file.
    pub fn raw(&self, case: &Listed) -> Option<Json> {
        let folder = if case.role == Role::Broker { "broker" } else { "client" };
        let slug = case.id.rsplit('/').next()?;
        texts(folder).into_iter().find_map(|(_, text)| {
            let file: Json = serde_json::from_str(text).ok()?;
            let of_api = file["api"] == case.api;
            let found = file["cases"].as_array()?.iter().find(|json| of_api && json["id"] == slug)?;
            Some(found.clone())
        })
    }

    /// A codec case by its id.
    pub fn vector(&self, id: &str) -> Option<&Vector> {
        self.vectors.cases.iter().find(|case| case.id == id)
    }
}
