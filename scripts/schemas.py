#!/usr/bin/env python3
"""Write workflow/schemas/*.schema.json from scripts/thaw/settings/; a test holds them together."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from thaw.records import write_json
from thaw.schemas import schemas

for name, schema in schemas().items():
    write_json(Path(__file__).resolve().parents[1] / "workflow/schemas" / name, schema)
    print(f"wrote workflow/schemas/{name}")
