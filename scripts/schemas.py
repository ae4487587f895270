#!/usr/bin/env python3
"""Write workflow/schemas/*.schema.json and the comment at the head of config/outputs.yaml; tests hold them together."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from thaw.core.files import write_json, write_text
from thaw.schema.json_schema import schemas
from thaw.schema.key_comments import outputs_comment

HOME = Path(__file__).resolve().parents[1]
for name, schema in schemas().items():
    write_json(HOME / "workflow/schemas" / name, schema)
    print(f"wrote workflow/schemas/{name}")
entries = (HOME / "config/outputs.yaml").read_text(encoding="utf-8").partition("\noutputs:\n")[2]
write_text(HOME / "config/outputs.yaml", outputs_comment() + entries)
print("wrote the comment of config/outputs.yaml")
