#!/usr/bin/env python3
"""Write workflow/schemas/*.schema.json from scripts/thaw/schema/; a test holds them together."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from thaw.core.files import write_json
from thaw.schema.json_schema import schemas

for name, schema in schemas().items():
    write_json(Path(__file__).resolve().parents[1] / "workflow/schemas" / name, schema)
    print(f"wrote workflow/schemas/{name}")
