//! A stand-in for DolphinScheduler's HTTP task: does what the contract says that the task does with the definition that
//! `lakebell sensor task` prints. It is not DolphinScheduler.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

/// A task in a workflow instance.
pub(crate) struct WaitingTask {
    parameters: Value,
    /// What the workflow instance knows: built-in, project and start parameters.
    known: BTreeMap<String, String>,
    http: reqwest::Client,
}

/// What one task instance ended with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) succeeded: bool,
    /// The body, which the task's log shows.
    pub(crate) body: String,
}

impl WaitingTask {
    /// The task as it was printed, in an instance that knows these parameters.
    pub(crate) fn new(task: &Value, known: &[(&str, &str)]) -> Self {
        assert_eq!(task["taskType"], "HTTP");
        let parameters = task["taskParams"].clone();
        let mut known: BTreeMap<String, String> =
            known.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        // Local parameters are filled in from the others first.
        for local in parameters["localParams"].as_array().unwrap() {
            let value = filled(local["value"].as_str().unwrap(), &known);
            known.insert(local["prop"].as_str().unwrap().to_owned(), value);
        }
        let timeout = Duration::from_millis(parameters["connectTimeout"].as_u64().unwrap());
        let http = reqwest::Client::builder().timeout(timeout).no_proxy().build().unwrap();
        Self { parameters, known, http }
    }

    /// One task instance: one request.
    pub(crate) async fn runs(&self) -> Ended {
        let request = self.request().send().await.unwrap();
        let body = request.text().await.unwrap();
        let condition = self.parameters["condition"].as_str().unwrap();
        assert_eq!(self.parameters["httpCheckCondition"], "BODY_CONTAINS");
        Ended { succeeded: !body.is_empty() && body.contains(condition), body }
    }

    /// One whose answer is lost: the connection breaks once the server has answered.
    pub(crate) async fn runs_and_loses_the_answer(&self) {
        let response = self.request().send().await.unwrap();
        drop(response);
    }

    fn request(&self) -> reqwest::RequestBuilder {
        // The URL stands as it is: some versions fill in nothing there.
        let url = self.parameters["url"].as_str().unwrap();
        assert!(!url.contains("${") && self.parameters["httpMethod"] == "POST");
        let mut request = self.http.post(url);
        let mut of_body = Map::new();
        for parameter in self.parameters["httpParams"].as_array().unwrap() {
            let name = parameter["prop"].as_str().unwrap();
            let value = filled(parameter["value"].as_str().unwrap(), &self.known);
            match parameter["httpParametersType"].as_str().unwrap() {
                "HEADERS" => request = request.header(name, value),
                "BODY" => {
                    of_body.insert(name.to_owned(), value.into());
                }
                other => panic!("{other} is not sent with a POST"),
            }
        }
        let body = match self.parameters["httpBody"].as_str() {
            Some(text) => {
                let body: Value = serde_json::from_str(&filled(text, &self.known)).unwrap();
                // Version 3.3 sends a flat object of texts and nothing else.
                assert!(body.as_object().unwrap().values().all(Value::is_string), "{body}");
                body
            }
            None => Value::Object(of_body),
        };
        request.header("content-type", "application/json").body(body.to_string())
    }
}

/// A text with its placeholders filled in; those that nobody knows stay.
fn filled(text: &str, known: &BTreeMap<String, String>) -> String {
    known.iter().fold(text.to_owned(), |text, (name, value)| text.replace(&format!("${{{name}}}"), value))
}
