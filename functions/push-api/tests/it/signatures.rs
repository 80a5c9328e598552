//! Signatures by Standard Webhooks, as a sender would make them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::support::{Api, ORDERS, body, cloud_event, rest_event};

/// The time of the tests, in seconds since 1970.
const NOW: i64 = 1_767_225_600;

/// A request with the token in its path, signed with a key.
fn signed(token: &str, key: &str, id: &str, at: i64, payload: &str) -> Value {
    let key = STANDARD.decode(key.strip_prefix("whsec_").unwrap()).unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update(format!("{id}.{at}.{payload}").as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    let mut event = rest_event("POST", &format!("/w/{token}/asset-events"), Some(payload));
    event["headers"] = json!({
        "webhook-id": id, "webhook-timestamp": at.to_string(),
        "webhook-signature": format!("v1a,AAAA v1,AAAA v1,{signature}"),
    });
    event
}

struct Signer {
    api: Api,
    id: String,
    token: String,
    key: String,
}

async fn signer() -> Signer {
    let api = Api::with_orders().await;
    let asked = json!({"name": "hook", "rights": ["evidence"], "carried": "path", "signed": true});
    let made = body(&api.post("/projects/7/tokens", &asked).await);
    let text = |name: &str| made[name].as_str().unwrap().to_owned();
    Signer { api, id: text("id"), token: text("token"), key: text("signingKey") }
}

fn event(id: &str) -> String {
    cloud_event(id, "cdc.lag.recovered", &json!({"asset": ORDERS})).to_string()
}

#[tokio::test]
async fn a_signed_message_is_taken_and_no_other() {
    let Signer { api, token, key, .. } = signer().await;
    let good = signed(&token, &key, "msg_1", NOW, &event("1"));
    assert_eq!(api.raw(good.clone()).await.status_code, 202);
    let changes: [(&str, crate::support::Change); 8] = [
        ("another body", |event| event["body"] = json!("{}")),
        ("another id", |event| event["headers"]["webhook-id"] = json!("msg_2")),
        ("another time", |event| event["headers"]["webhook-timestamp"] = json!("1767225601")),
        ("no time", |event| event["headers"]["webhook-timestamp"] = json!("now")),
        ("no signature", |event| event["headers"]["webhook-signature"] = json!("v1,")),
        ("another version", |event| {
            let text = event["headers"]["webhook-signature"].as_str().unwrap().replace("v1,", "v2,");
            event["headers"]["webhook-signature"] = json!(text);
        }),
        ("no headers", |event| event["headers"] = json!({})),
        ("too many signatures", |event| {
            let text = "v1,AAAA ".repeat(8) + event["headers"]["webhook-signature"].as_str().unwrap();
            event["headers"]["webhook-signature"] = json!(text);
        }),
    ];
    for (what, change) in changes {
        let mut event = good.clone();
        change(&mut event);
        assert_eq!(api.raw(event).await.status_code, 401, "{what}");
    }
}

#[tokio::test]
async fn an_old_message_is_refused() {
    let Signer { api, token, key, .. } = signer().await;
    for (at, status) in [(NOW - 301, 401), (NOW - 300, 202), (NOW + 300, 202), (NOW + 301, 401), (i64::MIN, 401)] {
        let answer = api.raw(signed(&token, &key, &format!("msg_{at}"), at, &event(&at.to_string()))).await;
        assert_eq!(answer.status_code, status, "{at}");
    }
}

/// Whoever has overheard a message can send it again, and nothing comes of it.
#[tokio::test]
async fn a_message_that_comes_again_is_carried_out_once() {
    let Signer { api, token, key, .. } = signer().await;
    let message = signed(&token, &key, "msg_1", NOW, &event("1"));
    let first = api.raw(message.clone()).await;
    let again = api.raw(message).await;
    assert_eq!((&again.body, again.headers["idempotency-replayed"].as_str()), (&first.body, "true"));
}

#[tokio::test]
async fn a_rotated_key_is_good_for_the_overlap() {
    let Signer { api, id, token, key } = signer().await;
    let rotated = body(&api.post(&format!("/projects/7/tokens/{id}/rotate"), &json!({"overlapHours": 1})).await);
    let (new_token, new_key) = (rotated["token"].as_str().unwrap(), rotated["signingKey"].as_str().unwrap());
    assert_ne!(new_key, key);
    for (n, (token, key)) in [(token.as_str(), key.as_str()), (new_token, new_key)].into_iter().enumerate() {
        let answer = api.raw(signed(token, key, &format!("msg_{n}"), NOW, &event(&n.to_string()))).await;
        assert_eq!(answer.status_code, 202, "{n}");
    }
    api.wait(3_600);
    let at = NOW + 3_600;
    assert_eq!(api.raw(signed(&token, &key, "msg_3", at, &event("3"))).await.status_code, 401);
    assert_eq!(api.raw(signed(new_token, &key, "msg_4", at, &event("4"))).await.status_code, 401);
    assert_eq!(api.raw(signed(new_token, new_key, "msg_5", at, &event("5"))).await.status_code, 202);
}
