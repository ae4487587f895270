#!/usr/bin/env python3
"""Write workflow/schemas/*.schema.json and docs/reference.md from scripts/thaw/schema/; tests compare them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from thaw.core.files import write_json, write_text
from thaw.schema.json_schema import schemas
from thaw.schema.reference_page import reference_page

for name, schema in schemas().items():
    write_json(Path(__file__).resolve().parents[1] / "workflow/schemas" / name, schema)
    print(f"wrote workflow/schemas/{name}")

write_text(Path(__file__).resolve().parents[1] / "docs/reference.md", reference_page())
print("wrote docs/reference.md")
