"""Runs a script whose cells begin with `# %%` as a notebook; run by the notebook's Python."""

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

script, target = map(Path, sys.argv[1:])
_, *cells = script.read_text("utf-8").split("# %%\n")
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells])
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
nbformat.write(notebook, target)
