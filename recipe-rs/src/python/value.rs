//! JSON values between Python and Rust.

use pyo3::exceptions::{PyOverflowError, PyRecursionError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::json::{Map, Number, Value};

/// Levels of nesting that a Python value may have.
const MAX_DEPTH: usize = 128;

/// Copies a Python value made of None, bool, int, float, str, list, tuple and dict.
///
/// # Errors
/// `TypeError` for other types and for keys that are no str, `ValueError` for floats that are not
/// finite, `OverflowError` for integers outside i64 and u64, `RecursionError` for deep nesting.
pub(super) fn from_python(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    convert(value, MAX_DEPTH)
}

fn convert(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if value.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Value::Bool(flag.is_true()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::String(text.to_str()?.to_owned()));
    }
    if value.is_instance_of::<PyInt>() {
        return integer(value);
    }
    if let Ok(float) = value.cast::<PyFloat>() {
        let float = float.value();
        return Number::from_f64(float).map(Value::Number).ok_or_else(|| {
            PyValueError::new_err(format!(
                "{float} is not a number of JSON; send a finite one"
            ))
        });
    }
    if depth == 0 {
        return Err(PyRecursionError::new_err(format!(
            "value is nested deeper than {MAX_DEPTH} levels"
        )));
    }
    if let Ok(members) = value.cast::<PyDict>() {
        let mut object = Map::with_capacity(members.len());
        for (key, member) in members.iter() {
            let key = key
                .cast::<PyString>()
                .map_err(|_| PyTypeError::new_err("keys of a JSON object must be str"))?
                .to_str()?
                .to_owned();
            object.insert(key, convert(&member, depth - 1)?);
        }
        return Ok(Value::Object(object));
    }
    if let Ok(items) = value.cast::<PyList>() {
        let items: PyResult<_> = items.iter().map(|item| convert(&item, depth - 1)).collect();
        return Ok(Value::Array(items?));
    }
    if let Ok(items) = value.cast::<PyTuple>() {
        let items: PyResult<_> = items.iter().map(|item| convert(&item, depth - 1)).collect();
        return Ok(Value::Array(items?));
    }
    Err(PyTypeError::new_err(format!(
        "{} is not a JSON value; use None, bool, int, float, str, list or dict",
        value.get_type().name()?
    )))
}

fn integer(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(signed) = value.extract::<i64>() {
        return Ok(Value::from(signed));
    }
    value.extract::<u64>().map(Value::from).map_err(|_| {
        PyOverflowError::new_err("integer is outside the 64-bit range that JSON numbers have here")
    })
}

/// Builds the Python value of a JSON value.
pub(super) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        Value::Number(number) => {
            if let Some(signed) = number.as_i64() {
                signed.into_pyobject(py)?.into_any()
            } else if let Some(unsigned) = number.as_u64() {
                unsigned.into_pyobject(py)?.into_any()
            } else {
                PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any()
            }
        }
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(to_python(py, item)?)?;
            }
            list.into_any()
        }
        Value::Object(members) => {
            let dict = PyDict::new(py);
            for (key, member) in members {
                dict.set_item(key, to_python(py, member)?)?;
            }
            dict.into_any()
        }
    })
}
