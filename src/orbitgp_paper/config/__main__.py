"""``python -m orbitgp_paper.config > config/schema.json``: the JSON schema that editors check the files by."""

import json
import sys

from orbitgp_paper.config import json_schema

json.dump(json_schema(), sys.stdout, indent=2, ensure_ascii=False)
sys.stdout.write("\n")
