//! The JSON Schema of a file: made of the types that read it, kept as `schema/lakebell.schema.json`.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use lakebell_domain::ids::ProjectCode;
use lakebell_domain::target::TargetSpec;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

use super::Document;
use super::target::TargetEntry;

/// Where it is published.
const ID: &str = "https://lakebell.dev/schema/lakebell.schema.json";

impl JsonSchema for TargetEntry {
    fn schema_name() -> Cow<'static, str> {
        "Target".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut project = generator.subschema_for::<Option<ProjectCode>>();
        project.insert("description".to_owned(), "The file's project, unless another is named.".into());
        let mut target = TargetSpec::json_schema(generator);
        if let Some(Value::Object(properties)) = target.get_mut("properties") {
            properties.insert("project".to_owned(), project.into());
        }
        target.insert("description".to_owned(), "What is started, and when.".into());
        target
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn made() -> Value {
    let mut schema = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Document>();
    schema.insert("$id".to_owned(), ID.into());
    schema.insert("title".to_owned(), "lakebell.yaml".into());
    schema.insert("description".to_owned(), "What a deployment should hold, for `lakebell apply`.".into());
    schema.to_value()
}

/// Says what a document has that the schema does not allow.
fn validate(document: &Value) -> Result<(), String> {
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.add_resource(ID, made()).map_err(|error| error.to_string())?;
    let index = compiler.compile(ID, &mut schemas).map_err(|error| format!("{error:#}"))?;
    schemas.validate(document, index).map_err(|error| format!("{error:#}"))
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

#[test]
fn the_published_schema_is_the_code_s() {
    let path = root().join("schema/lakebell.schema.json");
    let made = format!("{:#}\n", made());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(made == published, "{} differs; UPDATE_GOLDEN=1 writes it anew", path.display());
}

/// The files of a folder with an ending, those below it included.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.extension().is_some_and(|found| found == ending) {
            found.push(path);
        }
    }
}

/// What stands between lines of three backticks, where the first says `yaml` and the block is a
/// whole file.
fn examples(text: &str) -> Vec<String> {
    let mut blocks = text.split("```yaml\n").skip(1);
    let blocks = blocks.by_ref().filter_map(|rest| rest.split_once("\n```").map(|(block, _)| block.to_owned()));
    blocks.filter(|block| block.lines().any(|line| line.starts_with("project:"))).collect()
}

#[test]
fn examples_are_valid_and_read() {
    let mut paths = Vec::new();
    files(&root().join("cli/examples"), "yaml", &mut paths);
    files(&root().join("xtask/demo"), "yaml", &mut paths);
    assert!(paths.len() > 1, "the demo's and the example: {paths:?}");
    let mut texts: Vec<(PathBuf, String)> =
        paths.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect();
    let mut pages = vec![root().join("README.md")];
    files(&root().join("docs"), "md", &mut pages);
    for page in pages {
        texts.extend(examples(&std::fs::read_to_string(&page).unwrap()).into_iter().map(|text| (page.clone(), text)));
    }
    assert!(texts.len() > 6, "the cookbook's examples are among them: {}", texts.len());
    for (path, text) in texts {
        // The demo puts its own deployment's names there.
        let text = text
            .replace("${BUCKET}", "lake")
            .replace("${SCHEDULER_URL}", "http://scheduler")
            .replace("${TOKEN_SECRET}", "x");
        validate(&yaml(&text)).unwrap_or_else(|error| panic!("{}: {error}\n{text}", path.display()));
        super::parse(&path, &text, None).unwrap_or_else(|error| panic!("{}\n{text}", error.to_text()));
    }
}

#[test]
fn what_the_code_reads_is_valid_and_what_it_does_not_know_is_not() {
    let targets = yaml(super::tests::EVERY_KEY);
    let file = |targets: Value| json!({ "project": 7, "targets": targets });
    validate(&file(targets)).unwrap();
    let record = json!({
        "workflowDefinitionCode": 12345, "taskDefinitionCode": 100, "assetKey": "paimon://ods_db/orders",
        "dependencyGroup": "g", "conditionJson": { "snapshotRequired": true }, "enabledFlag": 1,
    });
    validate(&json!({ "project": 7, "dependencies": [record] })).unwrap();
    let target = |change: fn(&mut Value)| {
        let mut target =
            json!({ "workflowDefinitionCode": 5, "groups": [{ "dependencies": [{ "asset": "paimon://d/t" }] }] });
        change(&mut target);
        validate(&file(json!([target])))
    };
    target(|_| {}).unwrap();
    let wrong: [fn(&mut Value); 9] = [
        |target| target["worklow"] = json!(5),
        |target| target["coalesce"] = json!("EACH"),
        |target| target["orAt"] = json!({ "cron": "0 6 * * *" }),
        |target| target["deadline"] = json!({ "before": "07:00" }),
        |target| target["enabledFlag"] = json!(2),
        |target| target["groups"] = json!([]),
        |target| target["groups"][0]["dependencies"][0]["partitionKey"] = json!("dt"),
        |target| target["groups"][0]["dependencies"][0]["asset"] = json!("ods.orders"),
        |target| target["groups"][0]["advance"] = json!({ "atleast": 2 }),
    ];
    for (at, change) in wrong.into_iter().enumerate() {
        assert!(target(change).is_err(), "{at}");
    }
}
