#!/usr/bin/env python3
"""Write what follows from the models: workflow/schemas, docs/reference.md and the comment of config/outputs.yaml.

Tests compare each of them with the models.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from thaw.core.files import write_json, write_text
from thaw.schema.json_schema import schemas
from thaw.schema.key_comments import outputs_comment
from thaw.schema.reference_page import reference_page

HOME = Path(__file__).resolve().parents[1]
for name, schema in schemas().items():
    write_json(HOME / "workflow/schemas" / name, schema)
    print(f"wrote workflow/schemas/{name}")
write_text(HOME / "docs/reference.md", reference_page())
print("wrote docs/reference.md")
entries = (HOME / "config/outputs.yaml").read_text(encoding="utf-8").partition("\noutputs:\n")[2]
write_text(HOME / "config/outputs.yaml", outputs_comment() + entries)
print("wrote the comment of config/outputs.yaml")
