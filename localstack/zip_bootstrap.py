#!/usr/bin/env python3
"""zip_bootstrap.py BINARY ZIP: a Lambda package that holds BINARY as an executable file named bootstrap.

The same binary always gives the same bytes (no timestamps), so that a deployment can tell that nothing has changed.
Needs nothing but the standard library.
"""

import pathlib
import sys
import zipfile


def main(binary: str, target: str) -> None:
    """Write the package."""
    entry = zipfile.ZipInfo("bootstrap", date_time=(1980, 1, 1, 0, 0, 0))
    entry.external_attr = 0o755 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(target, "w") as package:
        package.writestr(entry, pathlib.Path(binary).read_bytes(), compresslevel=9)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
