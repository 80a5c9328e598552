//! The client's classes against the table of status codes of the contract, where that is at hand.

use std::path::Path;

use lakebell_dolphinscheduler::classify::{Class, by_code, of_write};
use lakebell_dolphinscheduler::{Answer, Transport};

/// Beside the checkout, and not part of it.
const TABLE: &str = "../../../shared/contracts/dolphinscheduler-status-codes.tsv";

fn class_named(name: &str) -> Option<Class> {
    Some(match name {
        "success" => Class::Success,
        "retryable" => Class::Retryable,
        "ambiguous" => Class::Ambiguous,
        "permanent" => Class::Permanent,
        "permanent-hold" => Class::Offline,
        "already-done" => Class::AlreadyDone,
        "reread-state" => Class::RereadState,
        _ => return None,
    })
}

fn http(status: u16) -> Class {
    of_write(&Answer::read(status, b"<html></html>"))
}

#[test]
fn every_row_of_the_contract_has_its_class() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(TABLE);
    let Ok(table) = std::fs::read_to_string(&path) else {
        eprintln!("SKIPPED: the table of status codes is not beside this checkout");
        return;
    };
    let mut rows = 0;
    for line in table.lines().skip(1).filter(|line| !line.is_empty()) {
        let mut fields = line.split('\t');
        let (code, name) = (fields.next().unwrap(), fields.next().unwrap());
        let class = fields.next().unwrap();
        let got = match code {
            "HTTP_2xx_NOT_JSON" => http(200),
            "HTTP_401" => {
                // The table's "permanent" is about the connection.
                assert_eq!(http(401), Class::ConnectionRefused);
                Class::Permanent
            }
            "HTTP_405" => http(405),
            "HTTP_429" => http(429),
            "HTTP_5xx" => http(503),
            "OTHER" => by_code(123_456_789, ""),
            "TRANSPORT_ERROR" => of_write(&Answer::None { transport: Transport::MaybeSent, detail: String::new() }),
            number => by_code(number.parse().unwrap(), ""),
        };
        if class == "by-message" {
            assert_eq!(got, Class::Ambiguous, "{code} {name} without a text that is known");
        } else {
            assert_eq!(Some(got), class_named(class), "{code} {name}");
        }
        rows += 1;
    }
    assert!(rows > 70, "only {rows} rows were read");
}
