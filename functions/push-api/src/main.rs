//! The Lambda `push-api`.

use std::sync::Arc;

use lakebell_aws::{AwsPorts, Metrics, logging};
use lakebell_push_api::event::GatewayEvent;
use lakebell_push_api::{Context, handler};
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main]
async fn main() -> Result<(), Error> {
    logging::init();
    let aws = Arc::new(AwsPorts::from_env().await?);
    aws.warm().await;
    let context = Arc::new(Context::new(aws.ports(), aws, Metrics::from_env()));
    lambda_runtime::run(service_fn(move |event: LambdaEvent<GatewayEvent>| {
        let context = Arc::clone(&context);
        async move { Ok::<_, Error>(handler::handle(event.payload, &context).await) }
    }))
    .await
}
