use super::*;

#[test]
fn a_position_is_read_and_a_damaged_one_refused() {
    assert_eq!(Consumer::parse(br#"{"nextSnapshot": 4}"#).unwrap().next_snapshot, 4);
    assert_eq!(Consumer::parse(b"{}").unwrap_err().to_string(), "`nextSnapshot` is missing");
    assert!(Consumer::parse(b"4").is_err());
}
