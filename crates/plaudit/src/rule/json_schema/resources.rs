//! Resources of a JSON Schema (`$id`, `$anchor`, `$schema`), and the schema that a reference leads to. Nothing is fetched.

use super::keywords::{self, META};
use super::uri;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Other schemas that references may lead to, by their URI.
pub(in crate::rule) type Documents = BTreeMap<String, Value>;

/// The version of JSON Schema. A schema that names none is read by the newest, and as older ones where they say more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SchemaDraft {
    D4,
    D6,
    D7,
    D2019,
    D2020,
}

impl SchemaDraft {
    /// Up to draft 7 what stands beside `$ref` counts for nothing.
    pub(super) fn is_alone(self, rules: &Map<String, Value>) -> bool {
        self <= Self::D7 && rules.get("$ref").is_some_and(Value::is_string)
    }

    fn of(uri: &str) -> Option<Self> {
        let names = [
            ("/draft-04/", Self::D4),
            ("/draft-06/", Self::D6),
            ("/draft-07/", Self::D7),
            ("/draft/2019-09/", Self::D2019),
            ("/draft/2020-12/", Self::D2020),
        ];
        let rest = uri.split_once("://")?.1.strip_prefix("json-schema.org")?;
        names.iter().find(|(name, _)| rest.starts_with(name)).map(|(_, draft)| *draft)
    }
}

/// What the meta-schema of a resource says.
#[derive(Clone, Copy)]
pub(super) struct SchemaDialect {
    pub(super) draft: SchemaDraft,
    /// Whether `type`, `minimum` and their like restrict, and not only what leads to other schemas.
    pub(super) validates: bool,
    /// Whether `format` restricts.
    pub(super) formats: bool,
}

impl SchemaDialect {
    const NEWEST: Self = Self { draft: SchemaDraft::D2020, validates: true, formats: false };

    /// The dialect that a schema names, or else the one of the schema around it. A meta-schema of one's own is one of the
    /// documents; where it is none of them it says nothing.
    fn of(schema: &Value, around: Self, documents: &Documents) -> Self {
        let Some(uri) = schema.get("$schema").and_then(Value::as_str) else { return around };
        if let Some(draft) = SchemaDraft::of(uri) {
            return Self { draft, ..Self::NEWEST };
        }
        let Some(meta) = documents.get(uri.trim_end_matches('#')) else { return around };
        let draft = meta.get("$schema").and_then(Value::as_str).and_then(SchemaDraft::of);
        let words = meta.get("$vocabulary").and_then(Value::as_object);
        let has = |name: &str| words.is_none_or(|words| words.keys().any(|key| key.ends_with(name)));
        Self {
            draft: draft.unwrap_or(around.draft),
            validates: has("/vocab/validation"),
            formats: words.is_some() && has("/vocab/format-assertion"),
        }
    }
}

/// A schema with a URI of its own.
pub(super) struct Resource<'s> {
    pub(super) root: &'s Value,
    pub(super) dialect: SchemaDialect,
    uri: String,
    anchors: BTreeMap<&'s str, &'s Value>,
    /// Those of the anchors that `$dynamicRef` finds from other resources. The one without a name is the `$recursiveAnchor`.
    pub(super) dynamic: BTreeMap<&'s str, &'s Value>,
}

/// All resources of a schema and of the documents that come with it.
pub(super) struct Resources<'s> {
    pub(super) all: Vec<Resource<'s>>,
    by_uri: BTreeMap<String, usize>,
    /// By the place of their root.
    by_root: BTreeMap<*const Value, usize>,
    /// The meta-schemas that references lead to.
    meta: BTreeSet<&'s str>,
    documents: &'s Documents,
}

/// What a reference leads to.
pub(super) struct Target<'s> {
    pub(super) schema: &'s Value,
    pub(super) resource: usize,
    /// The name of the anchor, where it is one that `$dynamicRef` finds.
    pub(super) dynamic: Option<&'s str>,
}

impl<'s> Resources<'s> {
    /// The resources of a schema, which is number 0, and of documents.
    pub(super) fn of(root: &'s Value, documents: &'s Documents) -> Self {
        let mut found = Self {
            all: Vec::new(),
            by_uri: BTreeMap::new(),
            by_root: BTreeMap::new(),
            meta: BTreeSet::new(),
            documents,
        };
        found.add(root, "", SchemaDialect::NEWEST);
        let dialect = found.all[0].dialect;
        for (uri, document) in documents {
            found.add(document, uri.trim_end_matches('#'), dialect);
        }
        for uri in std::mem::take(&mut found.meta) {
            if !found.by_uri.contains_key(uri) {
                found.add(&META, uri, dialect);
            }
        }
        found
    }

    fn add(&mut self, root: &'s Value, uri: &str, around: SchemaDialect) {
        let dialect = SchemaDialect::of(root, around, self.documents);
        let first = self.start(root, dialect, uri.to_owned());
        let mut open = vec![(root, first)];
        while let Some((schema, around)) = open.pop() {
            let Value::Object(rules) = schema else { continue };
            let named = rules.keys().any(|key| key.starts_with('$') || key == "id");
            let resource = if named { self.enter(schema, rules, around) } else { around };
            for (key, value) in rules.iter().filter(|(_, value)| value.is_object() || value.is_array()) {
                if let Some((form, _)) = keywords::find(key) {
                    open.extend(form.schemas(value).map(|schema| (schema, resource)));
                }
            }
        }
    }

    fn start(&mut self, root: &'s Value, dialect: SchemaDialect, uri: String) -> usize {
        let at = self.all.len();
        self.by_root.insert(root, at);
        self.by_uri.entry(uri.clone()).or_insert(at);
        self.all.push(Resource { root, dialect, uri, anchors: BTreeMap::new(), dynamic: BTreeMap::new() });
        at
    }

    /// Notes what a schema is called; the resource in which its parts lie.
    fn enter(&mut self, schema: &'s Value, rules: &'s Map<String, Value>, around: usize) -> usize {
        let text = |key: &str| rules.get(key).and_then(Value::as_str);
        let outer = self.all[around].dialect;
        let dialect = SchemaDialect::of(schema, outer, self.documents);
        let id = if dialect.draft == SchemaDraft::D4 { "id" } else { "$id" };
        let meta = text("$ref").map(|uri| uri.split('#').next().unwrap_or(uri));
        self.meta.extend(meta.filter(|uri| uri.ends_with("/schema") && SchemaDraft::of(uri).is_some()));
        let mut resource = around;
        if let Some(id) = text(id).filter(|_| !dialect.draft.is_alone(rules)) {
            let (own, fragment) = id.split_once('#').unwrap_or((id, ""));
            if !own.is_empty() {
                let uri = uri::resolve(&self.all[around].uri, own);
                match self.by_root.get(&std::ptr::from_ref(schema)) {
                    // The root of a document, which has been given a URI.
                    Some(&known) => {
                        self.by_uri.entry(uri.clone()).or_insert(known);
                        self.all[known].uri = uri;
                        resource = known;
                    }
                    None => resource = self.start(schema, dialect, uri),
                }
            }
            if !fragment.is_empty() {
                self.all[resource].anchors.insert(fragment, schema);
            }
        }
        let known = &mut self.all[resource];
        for anchor in [text("$anchor"), text("$dynamicAnchor")].into_iter().flatten() {
            known.anchors.entry(anchor).or_insert(schema);
        }
        if let Some(anchor) = text("$dynamicAnchor") {
            known.dynamic.entry(anchor).or_insert(schema);
        }
        if rules.get("$recursiveAnchor") == Some(&Value::Bool(true)) {
            known.dynamic.entry("").or_insert(schema);
        }
        resource
    }

    /// The resource of a schema that lies in another one of a resource.
    pub(super) fn inside(&self, schema: &Value, around: usize) -> usize {
        self.by_root.get(&std::ptr::from_ref(schema)).copied().unwrap_or(around)
    }

    /// What a reference of a schema in a resource leads to.
    pub(super) fn find(&self, from: usize, reference: &str) -> Option<Target<'s>> {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = match address {
            "" => from,
            _ => *self.by_uri.get(&uri::resolve(&self.all.get(from)?.uri, address))?,
        };
        let holder = self.all.get(resource)?;
        let fragment = uri::percent_decoded(fragment)?;
        if fragment.is_empty() {
            return Some(Target { schema: holder.root, resource, dynamic: None });
        }
        if let Some(pointer) = fragment.strip_prefix('/') {
            let (mut schema, mut resource) = (holder.root, resource);
            for step in pointer.split('/') {
                let step = step.replace("~1", "/").replace("~0", "~");
                schema = match schema {
                    Value::Object(map) => map.get(&step)?,
                    Value::Array(all) => all.get(step.parse::<usize>().ok()?)?,
                    _ => return None,
                };
                resource = self.inside(schema, resource);
            }
            return Some(Target { schema, resource, dynamic: None });
        }
        let schema = *holder.anchors.get(fragment.as_ref())?;
        let dynamic = holder.dynamic.get_key_value(fragment.as_ref());
        let dynamic = dynamic.filter(|(_, anchor)| std::ptr::eq(**anchor, schema)).map(|(name, _)| *name);
        Some(Target { schema, resource, dynamic })
    }
}
