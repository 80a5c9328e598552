//! Ids and names: what they may hold, and that their text is read back as it was written.

use lakebell_domain::ids::{Alias, AssetId, GroupName, InstanceId, ProjectCode, TargetId, TargetName, TriggerKey};
use lakebell_domain::reason::{ReasonCode, Verdict};
use lakebell_domain::{Invalid, event::EventKind};
use proptest::prelude::*;

#[test]
fn names_are_refused_with_their_rule() {
    for text in ["", "a b", "a/b", "ü", "a\n", &"x".repeat(65)] {
        let invalid = text.parse::<GroupName>().expect_err(text);
        assert_eq!(
            (invalid.field.as_str(), invalid.hint.as_str()),
            ("group name", "use 1 to 64 letters, digits, `_`, `-` or `.`")
        );
        assert_eq!(invalid.problem, format!("`{text}` is not a valid group name"));
        assert!(serde_json::from_value::<GroupName>(text.into()).is_err(), "{text:?} came in by JSON");
    }
    for text in ["a-b", "a.b", "ü", ""] {
        assert_eq!(text.parse::<Alias>().expect_err(text).field, "alias");
    }
    for text in ["ABC", "xyz", ""] {
        assert_eq!(text.parse::<TriggerKey>().expect_err(text).field, "trigger key");
    }
    assert!("a-b_c.d9".parse::<TargetName>().is_ok() && "x".repeat(64).parse::<TargetName>().is_ok());
}

#[test]
fn numbers_of_the_scheduler_are_positive() {
    assert_eq!("14".parse(), Ok(ProjectCode(14)));
    for text in ["0", "-1", "", "x", "1.5", "99999999999999999999"] {
        let refused: Result<InstanceId, Invalid> = text.parse();
        assert_eq!(refused.expect_err(text).hint, "use the positive number that DolphinScheduler shows");
    }
}

#[test]
fn a_target_id_is_project_and_name() {
    let id: TargetId = "14/daily.gmv".parse().unwrap();
    assert_eq!((id.project, id.name.as_str(), id.to_string().as_str()), (ProjectCode(14), "daily.gmv", "14/daily.gmv"));
    for (text, field) in
        [("daily", "target"), ("x/daily", "project code"), ("14/", "target name"), ("14/a/b", "target name")]
    {
        assert_eq!(text.parse::<TargetId>().expect_err(text).field, field);
    }
}

#[test]
fn an_asset_id_is_32_lower_case_hex_digits() {
    for text in ["", "0", "0000000000000000000000000000000G", "000000000000000000000000000000AB"] {
        assert_eq!(text.parse::<AssetId>().expect_err(text).field, "asset id");
    }
    for text in ["+0000000000000000000000000000001", &"0".repeat(33)] {
        assert!(text.parse::<AssetId>().is_err(), "{text}");
    }
}

/// The name on the wire and the one in code are the same word.
#[test]
fn words_on_the_wire_are_those_of_the_code() {
    for kind in EventKind::ALL {
        assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        assert_eq!(kind.to_string(), kind.as_str());
    }
    for code in ReasonCode::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
    }
    for (verdict, word) in [
        (Verdict::Ready, "READY"),
        (Verdict::Waiting, "WAITING"),
        (Verdict::BlockedBySnapshot, "BLOCKED_BY_SNAPSHOT"),
        (Verdict::BlockedByWatermark, "BLOCKED_BY_WATERMARK"),
        (Verdict::BlockedByQuality, "BLOCKED_BY_QUALITY"),
        (Verdict::BlockedBySchema, "BLOCKED_BY_SCHEMA"),
        (Verdict::BlockedByTag, "BLOCKED_BY_TAG"),
        (Verdict::BlockedByBackfill, "BLOCKED_BY_BACKFILL"),
        (Verdict::BlockedByRewrite, "BLOCKED_BY_REWRITE"),
        (Verdict::BlockedByUnknownAsset, "BLOCKED_BY_UNKNOWN_ASSET"),
        (Verdict::BlockedByGate, "BLOCKED_BY_GATE"),
        (Verdict::Paused, "PAUSED"),
        (Verdict::Disabled, "DISABLED"),
    ] {
        assert_eq!((verdict.as_str(), serde_json::to_value(verdict).unwrap()), (word, word.into()));
    }
}

proptest! {
    #[test]
    fn asset_ids_survive_their_text(bits in any::<u128>()) {
        let id = AssetId::from_bits(bits);
        prop_assert_eq!(id.to_string().parse::<AssetId>().unwrap(), id);
        prop_assert_eq!(serde_json::from_value::<AssetId>(serde_json::to_value(id).unwrap()).unwrap(), id);
    }
}
