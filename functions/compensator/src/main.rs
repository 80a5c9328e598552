//! Lambda: compensator.

use lakebell_compensator::{context::Context, handler};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    lakebell_aws::logging::init();
    let context = &Context::from_env().await?;
    lambda_runtime::run(service_fn(|event: LambdaEvent<Value>| handler::handle(event, context))).await
}
