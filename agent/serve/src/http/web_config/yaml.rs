//! YAML as the values that serde reads, as far as a web configuration needs it.

use anyhow::bail;
use saphyr::{LoadableYamlNode, Scalar, Yaml};
use serde_json::{Map, Value};

/// Value of a text's only document; null if there is none.
pub(super) fn value(text: &str) -> anyhow::Result<Value> {
    let documents = Yaml::load_from_str(text)?;
    match &documents[..] {
        [] => Ok(Value::Null),
        [document] => convert(document),
        _ => bail!("more than one document"),
    }
}

fn convert(yaml: &Yaml) -> anyhow::Result<Value> {
    Ok(match yaml {
        Yaml::Value(Scalar::Null) => Value::Null,
        Yaml::Value(Scalar::Boolean(b)) => Value::Bool(*b),
        Yaml::Value(Scalar::Integer(n)) => (*n).into(),
        Yaml::Value(Scalar::FloatingPoint(n)) => n.into_inner().into(),
        Yaml::Value(Scalar::String(s)) => s.as_ref().into(),
        Yaml::Sequence(all) => all.iter().map(convert).collect::<Result<_, _>>()?,
        Yaml::Mapping(all) => {
            let mut map = Map::new();
            for (key, value) in all {
                let Value::String(key) = convert(key)? else {
                    bail!("a key that is no text: put it in quotes");
                };
                map.insert(key, convert(value)?);
            }
            Value::Object(map)
        }
        _ => bail!("tags and aliases are not supported"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_become_what_they_are() {
        let yaml = "a: [x, 'y', \"1\", 1, true, null]\nb:\n  c: |\n    two\n    lines\n  d: 1.5\n";
        let expected =
            json!({"a": ["x", "y", "1", 1, true, null], "b": {"c": "two\nlines\n", "d": 1.5}});
        assert_eq!(value(yaml).unwrap(), expected);
        assert_eq!(value("").unwrap(), Value::Null);
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for text in ["[a]: b", "a: [", "a: 1\n---\nb: 2", "1: a", "\ta: b: c"] {
            assert!(value(text).is_err(), "{text}");
        }
    }
}
