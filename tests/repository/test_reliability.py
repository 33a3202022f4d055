"""Every fault in docs/reliability.md has a test, by the command that stands there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\|.*\| `P ([^`]+)` \|$", TEXT, flags=re.M)


def test_every_command_finds_tests():
    assert len(COMMANDS) > 20
    for command in COMMANDS:
        places, _, words = command.partition(" -k ")
        paths = [ROOT / place for place in places.split()]
        files = [file for path in paths for file in ([path] if path.is_file() else path.rglob("test_*.py"))]
        names = [name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), flags=re.M)]
        for word in words.strip('"').split(" or "):
            assert any(word in name for name in names), command
