//! The small readers that the visitors are put together from.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Unexpected, Visitor};

/// Longest text that is kept, in bytes. Object keys have at most 1,024.
const MAX_KEPT_BYTES: usize = 4_096;

/// Reads the fields of a JSON object.
pub(super) trait Fields: Sized {
    /// What comes of them; null and absent give its default.
    type Value: Default;
    /// What is expected, for errors.
    const EXPECTED: &'static str;

    fn read<'de, A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error>;
}

/// Reads the elements of a JSON array.
pub(super) trait Elements: Sized {
    /// What is expected, for errors.
    const EXPECTED: &'static str;

    fn read<'de, A: SeqAccess<'de>>(self, elements: A) -> Result<(), A::Error>;
}

/// An object or null.
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Fields> DeserializeSeed<'de> for Object<T> {
    type Value = T::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T::Value, D::Error> {
        deserializer.deserialize_any(Nullable(self))
    }
}

impl<'de, T: Fields> Visitor<'de> for Object<T> {
    type Value = T::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T::Value, A::Error> {
        self.0.read(map)
    }
}

/// A visitor that also takes null.
struct Nullable<V>(V);

impl<'de, T: Fields> Visitor<'de> for Nullable<Object<T>> {
    type Value = T::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_unit<E: de::Error>(self) -> Result<T::Value, E> {
        Ok(T::Value::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T::Value, A::Error> {
        self.0.0.read(map)
    }
}

/// An array or null.
pub(super) struct List<T>(pub(super) T);

impl<'de, T: Elements> DeserializeSeed<'de> for List<T> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Elements> Visitor<'de> for List<T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, elements: A) -> Result<(), A::Error> {
        self.0.read(elements)
    }
}

/// The name of a field, turned into something else without being kept.
pub(super) struct Key<F>(pub(super) F);

impl<'de, T, F: FnOnce(&str) -> T> DeserializeSeed<'de> for Key<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<T, F: FnOnce(&str) -> T> Visitor<'_> for Key<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<T, E> {
        Ok((self.0)(name))
    }
}

/// A 64-bit integer or null, in the field of that name.
pub(super) struct Long(pub(super) &'static str);

impl<'de> DeserializeSeed<'de> for Long {
    type Value = Option<i64>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Long {
    type Value = Option<i64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a 64-bit integer in `{}`", self.0)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Some(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        let fits = i64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))?;
        Ok(Some(fits))
    }
}

/// A text or null, in the field of that name.
pub(super) struct Text(pub(super) &'static str);

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Option<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Text {
    type Value = Option<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a text of at most {MAX_KEPT_BYTES} bytes in `{}`", self.0)
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        if text.len() > MAX_KEPT_BYTES {
            return Err(E::invalid_length(text.len(), &self));
        }
        Ok(Some(text.to_owned()))
    }
}

/// A value of a summary. The format says that all are texts; some writers put numbers or null.
pub(super) enum CounterValue<T> {
    Absent,
    Number(i64),
    Text(T),
    Odd,
}

/// Reads a value of a summary; texts go through a function, so that none is kept.
pub(super) struct Counter<F>(pub(super) F);

impl<'de, T, F: FnOnce(&str) -> T> DeserializeSeed<'de> for Counter<F> {
    type Value = CounterValue<T>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T, F: FnOnce(&str) -> T> Visitor<'de> for Counter<F> {
    type Value = CounterValue<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value in `summary`")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
        Ok(CounterValue::Absent)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(CounterValue::Text((self.0)(text)))
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(CounterValue::Number(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(i64::try_from(number).map_or(CounterValue::Odd, CounterValue::Number))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Self::Value, E> {
        Ok(CounterValue::Odd)
    }

    fn visit_bool<E: de::Error>(self, _: bool) -> Result<Self::Value, E> {
        Ok(CounterValue::Odd)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(CounterValue::Odd)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(CounterValue::Odd)
    }
}
