#!/usr/bin/env python3
"""Write what follows from the code: workflow/schemas, pages of docs/reference and a comment of config/outputs.yaml.

Tests compare each of them with the code.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from thaw.cli.help_page import command_line_page
from thaw.core.files import write_json, write_text
from thaw.schema.json_schema import schemas
from thaw.schema.key_comments import outputs_comment
from thaw.schema.reference_page import reference_page

HOME = Path(__file__).resolve().parents[1]
for name, schema in schemas().items():
    write_json(HOME / "workflow/schemas" / name, schema)
    print(f"wrote workflow/schemas/{name}")
for page, text in {"configuration": reference_page(), "command-line": command_line_page()}.items():
    write_text(HOME / f"docs/reference/{page}.md", text)
    print(f"wrote docs/reference/{page}.md")
entries = (HOME / "config/outputs.yaml").read_text(encoding="utf-8").partition("\noutputs:\n")[2]
write_text(HOME / "config/outputs.yaml", outputs_comment() + entries)
print("wrote the comment of config/outputs.yaml")
