//! The Lambda `push-api`.

use std::sync::Arc;

use lakebell_aws::{AwsPorts, Metrics, logging};
use lakebell_push_api::event::GatewayEvent;
use lakebell_push_api::{Access, Context, Rate, Sensors, handler};
use lambda_runtime::{Error, LambdaEvent, service_fn};

#[tokio::main]
async fn main() -> Result<(), Error> {
    logging::init();
    let aws = Arc::new(AwsPorts::from_env().await?);
    aws.warm().await;
    let settings = aws.settings();
    let rate = settings.api_token_rate.map_or_else(Rate::default, Rate::of);
    let access = Arc::new(Access::new(rate, settings.gateway_checks_signers));
    let (sensors, metrics) = (Sensors::from_env()?, Metrics::from_env());
    let dead_letters = aws.dead_letters()?;
    let context = Arc::new(Context { ports: aws.ports(), tokens: aws, metrics, access, sensors, dead_letters });
    lambda_runtime::run(service_fn(move |event: LambdaEvent<GatewayEvent>| {
        let context = Arc::clone(&context);
        async move { Ok::<_, Error>(handler::handle(event.payload, &context).await) }
    }))
    .await
}
