//! End-to-end tests of the deployed functions; they are in `tests/it`, and `README.md` says how to run them.
