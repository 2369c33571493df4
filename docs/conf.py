"""Sphinx settings. `nox -s docs` builds with each warning an error."""

from __future__ import annotations

import warnings
from importlib.metadata import version as installed_version

project = "sa_taskqueue"
author = "the sa_taskqueue authors"
copyright = "2026, the sa_taskqueue authors"  # noqa: A001 - the name Sphinx reads
release = version = installed_version("sa-taskqueue")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"sa_taskqueue {release}"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
copybutton_prompt_text = "$ "
# No intersphinx: its inventories are fetched from the network, and the build must pass without one.

# autodoc looks at the columns of mixins that no class has mapped yet.
warnings.filterwarnings("ignore", message="Unmanaged access of declarative attribute")
