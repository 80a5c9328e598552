//! `dead-letters`.

use serde_json::json;

use crate::stub::Stub;

#[test]
fn dead_letters_are_counted_and_put_back_until_none_is_left() {
    let stub = Stub::start();
    let items = json!([{"queue": "hints", "messages": 0}, {"queue": "dispatch", "messages": 3}]);
    stub.fix("GET /dead-letters", 200, json!({ "items": items }));
    let run = stub.run(&["dead-letters", "list"]).succeeded();
    assert_eq!(run.out, "QUEUE     MESSAGES\nhints     0\ndispatch  3\n");
    for (queue, count) in [("hints", 0), ("evaluate", 1), ("dispatch", 3)] {
        let drained = json!({"queue": queue, "putBack": count, "isEmpty": true});
        stub.fix(&format!("POST /dead-letters/{queue}/drain"), 200, drained);
    }
    let run = stub.run(&["dead-letters", "drain", "dispatch"]).succeeded();
    assert_eq!(run.out, "dispatch: 3 put back\n");
    let run = stub.run(&["dead-letters", "drain"]).succeeded();
    assert_eq!(run.out, "hints: 0 put back\nevaluate: 1 put back\ndispatch: 3 put back\n");
    assert!(stub.run(&["dead-letters", "drain", "letters"]).status != 0, "there is no such queue");
}
