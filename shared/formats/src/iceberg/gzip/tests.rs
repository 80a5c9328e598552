use super::*;

fn scan(pieces: &[&str]) -> Result<Scan, String> {
    let mut scan = Scan::default();
    for piece in pieces {
        scan.add(piece.as_bytes())?;
    }
    Ok(scan)
}

#[test]
fn texts_hide_brackets_and_escapes_hide_quotes() {
    let depth = |pieces: &[&str]| scan(pieces).unwrap().depth;
    assert_eq!(depth(&["{\"a\":[1,{\"b\":2}", "]"]), 1);
    assert_eq!(depth(&["[\"[[[\\\"[[\"", "]"]), 0);
    assert_eq!(depth(&["[\"a\\", "\"[[[\\\\", "\"]"]), 0, "an escape at the end of a piece");
    assert_eq!(depth(&["]]]]["]), 1);
    assert!(scan(&["\"abc"]).unwrap().text.is_some());
    assert!(scan(&["\"abc\\\""]).unwrap().text.is_some());
    assert!(scan(&["\"abc\\\\\""]).unwrap().text.is_none());
}

#[test]
fn what_no_table_needs_is_refused() {
    assert!(scan(&[&"[".repeat(MAX_DEPTH)]).is_ok());
    assert!(scan(&[&"[".repeat(MAX_DEPTH / 2), &"{".repeat(MAX_DEPTH / 2 + 1)]).is_err());
    let long = "x".repeat(MAX_TEXT_BYTES / 2);
    assert!(scan(&["\"", &long, "\"", "\"", &long, "\""]).is_ok());
    assert!(scan(&["\"", &long, &long, "x"]).is_err());
}
