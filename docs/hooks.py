"""Files outside of docs/ that pages link to (examples, FORMAT.md, records of benchmarks) become part of the site.

On a page they are plain relative links, which work in a checkout as well; here each file is added at the same place
below the site's root, and the links follow.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

LINK = re.compile(r"(\]\()((?:\.\./)+)([^)#\s]+)")


def outside(page: str, link: str) -> str | None:
    """The path, from the root of the project, of what a page links to outside of docs/."""
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link))
    return None if path.startswith(("docs/", "../")) else path


def on_files(files: Files, config: Any) -> Files:
    root = Path(config.docs_dir).parent
    wanted = {"src/penstock/store/FORMAT.md"}
    for file in files.documentation_pages():
        for _, up, rest in LINK.findall(file.content_string):
            if path := outside(file.src_uri, up + rest):
                wanted.add(path)
    for path in sorted(wanted):
        if (root / path).is_file():
            files.append(File.generated(config, path, abs_src_path=str(root / path)))
    return files


def on_page_markdown(markdown: str, page: Any, **rest: Any) -> str:
    here = posixpath.dirname(page.file.src_uri)

    def follow(link: re.Match[str]) -> str:
        path = outside(page.file.src_uri, link[2] + link[3])
        return link[0] if path is None else link[1] + posixpath.relpath(path, here or ".")

    return LINK.sub(follow, markdown)
