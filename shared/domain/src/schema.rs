//! JSON Schema of what a declaration writes as text, or as a number or text. What is derived stands
//! with the types.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::asset::{AssetKey, Location, WrittenKey};
use crate::ids::{Alias, ConnectionName, GroupName, TargetName};
use crate::policy::{Length, Pattern, TimeOfDay, Zone};
use crate::target::{AssetSelector, SnapshotIdText, StartFrom};

/// A type that reads one text: its name in the schema, the form of the text, and what it is.
macro_rules! text {
    ($($type:ty, $name:literal, $pattern:literal, $description:literal);+ $(;)?) => {$(
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "description": $description })
            }
        }
    )+};
}

text! {
    AssetKey, "AssetKey", "^(paimon|iceberg|hudi|delta)://[^/@]+(/[^/@]+){1,2}(@[^/@]+)?$",
        "A table or a branch of one: <format>://[<catalog>/]<database>/<table>[@branch]";
    WrittenKey, "WrittenAssetKey", "^(auto|paimon|iceberg|hudi|delta)://[^/@]+(/[^/@]+){1,2}(@[^/@]+)?$",
        "An asset key; with auto for the format, which is then that of the table at the location";
    AssetSelector, "AssetSelector", "^(paimon|iceberg|hudi|delta)://[^/@]+(/[^/@]*){1,2}(@[^/@]+)?$",
        "An asset key, or a prefix of keys as in paimon://dw_db/ods_*";
    Location, "Location", "^[sS]3[aAnN]?://[^/]+/.+$", "Where a table lives: s3://bucket/path/of/the/table";
    GroupName, "GroupName", "^[A-Za-z0-9_.-]{1,64}$", "The name of a group, unique in its target";
    TargetName, "TargetName", "^[A-Za-z0-9_.-]{1,64}$", "The name of a target, unique in its project";
    ConnectionName, "ConnectionName", "^[A-Za-z0-9_.-]{1,64}$", "The name of a connection, unique in the deployment";
    Alias, "Alias", "^[A-Za-z0-9_]{1,64}$", "What the workflow calls an asset, as in lakebell_<alias>_to";
    Pattern, "Pattern", "^.{1,128}$", "A text in which * stands for any run of characters";
    Length, "Length", "^.+$", "A length of time: 90s, 15m, 2h, 1d 12h or PT15M";
    TimeOfDay, "TimeOfDay", "^[0-2][0-9]:[0-5][0-9](:[0-5][0-9])?$", "A time of day, as in 06:30";
    Zone, "TimeZone", "^.+$", "An IANA time zone, as in Asia/Shanghai or UTC";
}

/// A type that reads a snapshot id, as a number or as text.
macro_rules! number_or_text {
    ($($type:ty, $name:literal, $description:literal);+ $(;)?) => {$(
        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": ["integer", "string"], "minimum": 0, "description": $description })
            }
        }
    )+};
}

number_or_text! {
    SnapshotIdText, "SnapshotId", "The id that the format gives a snapshot";
    StartFrom, "StartFrom", "now, current, earliest, or the id of a snapshot";
}
