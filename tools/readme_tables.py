#!/usr/bin/env python3
"""Updates the tables in the documents that are generated from results in the repository.

    tools/readme_tables.py [--leat build/leat] [--check]

A table is between `<!-- table: COMMAND -->` and `<!-- end of table -->`; the command, `leat …` or
`tools/…`, prints it. --check changes nothing, and fails if a table differs from what its command
prints.
"""
import argparse
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCUMENTS = [ROOT / "README.md", ROOT / "bench" / "results" / "README.md",
             *sorted(ROOT.glob("docs/**/*.md"))]
TABLE = re.compile(r"(<!-- table: ([^\n]*?) -->\n)(.*?)(<!-- end of table -->)", re.S)


def main():
    parser = argparse.ArgumentParser(description="Writes tables of results into the documents.")
    parser.add_argument("--leat", default=ROOT / "build" / "leat")
    parser.add_argument("--check", action="store_true", help="only say whether they are right")
    arguments = parser.parse_args()

    def printed(found):
        program, *rest = shlex.split(found.group(2))
        command = [arguments.leat] if program == "leat" else [sys.executable, ROOT / program]
        done = subprocess.run([*command, *rest], cwd=ROOT, text=True, capture_output=True)
        if done.returncode != 0:
            sys.exit(f"{found.group(2)} exited with {done.returncode}: {done.stderr}")
        return found.group(1) + done.stdout + found.group(4)

    wrong = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        right = TABLE.sub(printed, text)
        if right != text:
            wrong.append(str(document.relative_to(ROOT)))
            if not arguments.check:
                document.write_text(right, encoding="utf-8")
    if arguments.check and wrong:
        sys.exit(f"{', '.join(wrong)}: a table is not what its command prints; run "
                 "tools/readme_tables.py")


if __name__ == "__main__":
    main()
