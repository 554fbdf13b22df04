//! Every case that is compiled in, of all three roles.

use crate::bundled::{text, texts};
use crate::client_case::{self, ClientCase};
use crate::definitions;
use crate::exchange;
use crate::results::{CaseInfo, Level, Role};
use crate::vector::{self, Lint, Vector, Vectors};
use codec::{ApiVersion, Protocol};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

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

impl Cases {
    /// The bundled cases. That they lint is a test; a broken one is still said with file and place.
    pub fn bundled(protocol: &Protocol) -> Result<Cases, Vec<String>> {
        let files = texts("codec");
        let vectors = Vectors::load(protocol, text("rules.json"), text("sources.json"), &files)
            .map_err(|lints| lints.iter().map(Lint::to_string).collect::<Vec<_>>())?;
        let exchanges = exchange::load(&texts("broker"), protocol)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let clients = client_case::load(&texts("client"), protocol)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        let mut digest = Sha256::new();
        let parts = ["codec", "broker", "client"].into_iter().flat_map(texts);
        let rest = [("rules.json", text("rules.json")), ("sources.json", text("sources.json"))];
        for (name, text) in definitions::bundled_texts().chain(rest).chain(parts) {
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

    /// What makes each case that case, as [`vector::contents`] and [`exchange::contents`] have it.
    pub fn bundled_contents() -> Result<BTreeMap<String, String>, String> {
        let mut contents = vector::contents(&texts("codec"))?;
        contents.append(&mut vector::rule_contents(text("rules.json"))?);
        for role in ["broker", "client"] {
            contents.append(&mut exchange::contents(role, &texts(role))?);
        }
        Ok(contents)
    }

    /// Long hex that could be a recipe, as [`vector::overlong`] has it.
    pub fn bundled_overlong() -> Result<Vec<Lint>, String> {
        vector::overlong(&texts("codec"))
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
