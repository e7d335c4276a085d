"""Settings of the docs site. Its source is the project folder, so that README belongs to it."""

from airflow_hive_opt import __version__

project = "airflow-hive-opt"
author = "The airflow-hive-opt authors"
release = __version__
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**", "docker/*.md", "benchmarks/results/*.md"]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinxcontrib.mermaid"]
myst_fence_as_directive = ["mermaid"]
html_theme = "furo"
html_title = f"airflow-hive-opt {release}"

# Links such as page.md#a-heading work on the site as they do in a repository browser.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autoclass_content = "both"
autodoc_default_options = {"members": True, "inherited-members": False, "show-inheritance": False}

# Base classes of other projects. A role for a name of this package must resolve.
nitpick_ignore_regex = [("py:class", r"(airflow\.|enum\.|abc\.).*")]
