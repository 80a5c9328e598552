//! Each payload of `fixtures/writers` has a golden outcome. The first folder of its path names the
//! decoder.

use crate::support::{files, golden, own_fixtures, shown};

#[test]
fn every_own_payload_has_its_outcome() {
    let folder = own_fixtures();
    let mut decoders = std::collections::BTreeSet::new();
    for file in files(&folder) {
        let relative = file.strip_prefix(&folder).unwrap().with_extension("");
        let decoder = relative.iter().next().unwrap().to_str().unwrap().to_owned();
        let outcome = shown(&decoder, &std::fs::read(&file).unwrap());
        golden(&format!("own/{}", relative.display()), &outcome);
        decoders.insert(decoder);
    }
    assert_eq!(decoders.len(), crate::support::DECODERS.len(), "each decoder has a payload: {decoders:?}");
}
